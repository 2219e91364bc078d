// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Which paths mean something in the instance. Allocates no memory and opens nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "names.h"
#include "softhca/shim/say.h"

/* Turns "a//b/./c" into "a/b/c". False: the result does not fit. */
static bool tidy(const char *path, char out[PATH_MAX])
{
	size_t n = 0;

	while (*path) {
		if (path[0] == '/' &&
		    (path[1] == '/' || (path[1] == '.' && (path[2] == '/' || !path[2])))) {
			path += path[1] == '/' ? 1 : 2;
			if (!*path && !n)
				out[n++] = '/';
			continue;
		}
		if (n + 1 >= PATH_MAX)
			return false;
		out[n++] = *path++;
	}
	out[n] = '\0';
	return true;
}

/* Is path dir, or below it? */
static bool below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): it ends behind len */
	return !strncmp(path, dir, len) && (path[len] == '\0' || path[len] == '/');
}

static bool exists(const char *path)
{
	return sh_sys(syscall(SYS_faccessat, AT_FDCWD, path, F_OK)) == 0;
}

/* Puts the root in front of the path, in place: the stack may have no room for two paths. */
static const char *in_root(char path[PATH_MAX])
{
	size_t len = strlen(path);

	if (shim.root_len + len >= PATH_MAX)
		return NULL;
	memmove(path + shim.root_len, path, len + 1);
	memcpy(path, shim.root, shim.root_len);
	return path;
}

/*
 * Of a host with a name of its own: the files that tell this host from others. /etc/machine-id
 * stays the machine's. It names an installation, its journal and its buses, and the hosts share the
 * file system.
 */
static const char *own_file(const char *path, char buf[PATH_MAX])
{
	static const char *const files[] = {"/etc/hostname", "/proc/sys/kernel/hostname",
					    "/proc/sys/kernel/random/boot_id"};
	const char *to;

	if ((strncmp(path, "/etc", 4) && strncmp(path, "/proc", 5)) || !tidy(path, buf))
		return path;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (strcmp(buf, files[i]))
			continue;
		to = in_root(buf);
		return to ? to : path;
	}
	return path;
}

const char *shim_redirect(const char *path, char buf[PATH_MAX])
{
	char number[32], *end;
	const char *to;
	unsigned long minor;

	if (!path || path[0] != '/' || !strchr("sdpe", path[1]))
		return path;
	if (!shim_active()) {
		shim_say_now(path);
		return path;
	}
	if (path[1] == 'p' || path[1] == 'e')
		return shim.name[0] ? own_file(path, buf) : path;
	if (strncmp(path, "/sys", 4) && strncmp(path, "/dev", 4))
		return path;
	if (!tidy(path, buf))
		return path;
	if (below(buf, "/dev/infiniband") || !strncmp(buf, "/sys/class/infiniband", 21) ||
	    below(buf, "/sys/class/misc/rdma_cm")) {
		to = in_root(buf);
		return to ? to : path;
	}
	/* Elsewhere not, because snprintf() takes 2 KiB of a stack that may be small. */
	if (!strncmp(buf, "/dev/char/", 10)) {
		snprintf(number, sizeof(number), "/dev/char/%d:%d", MISC_MAJOR, SH_CM_MINOR);
		if (!strcmp(buf, number)) {
			strcpy(buf, "/dev/infiniband/rdma_cm");
			to = in_root(buf);
			return to ? to : path;
		}
	}
	if (!strncmp(buf, "/dev/char/231:", 14)) {
		minor = strtoul(buf + 14, &end, 10);
		if (*end || end == buf + 14 || (minor >= 2 * UMAD_MINORS && minor < UVERBS_MINOR))
			return path;
		if (minor < UMAD_MINORS)
			snprintf(buf, PATH_MAX, "/dev/infiniband/umad%lu", minor);
		else if (minor < 2 * UMAD_MINORS)
			snprintf(buf, PATH_MAX, "/dev/infiniband/issm%lu", minor - UMAD_MINORS);
		else
			snprintf(buf, PATH_MAX, "/dev/infiniband/uverbs%lu", minor - UVERBS_MINOR);
		to = in_root(buf);
		return to ? to : path;
	}
	/*
	 * In the rest of sysfs the machine's own files come first: the instance adds its devices to
	 * them.
	 */
	if (!strncmp(buf, "/sys/devices/", 13) || !strncmp(buf, "/sys/bus/pci/devices/", 21)) {
		if (exists(buf))
			return path;
		to = in_root(buf);
		return to && exists(to) ? to : path;
	}
	return path;
}

/* The number behind a name that begins so, or -1. */
static int numbered(const char *name, const char *begins, unsigned long most)
{
	size_t len = strlen(begins);
	unsigned long n;
	char *end;

	if (strncmp(name, begins, len) || name[len] < '0' || name[len] > '9')
		return -1;
	n = strtoul(name + len, &end, 10);
	return *end || n > most ? -1 : (int)n;
}

int shim_node(const char *redirected)
{
	const char *name = redirected + shim.root_len;
	int n;

	if (strncmp(redirected, shim.root, shim.root_len))
		return -1;
	if (!strcmp(name, "/dev/infiniband/rdma_cm"))
		return SHIM_NODE_CM;
	n = numbered(name, "/dev/infiniband/umad", UMAD_MINORS - 1);
	if (n >= 0)
		return SHIM_NODE_UMAD + n;
	n = numbered(name, "/dev/infiniband/issm", UMAD_MINORS - 1);
	if (n >= 0)
		return SHIM_NODE_UMAD + UMAD_MINORS + n;
	return numbered(name, "/dev/infiniband/uverbs", 1023);
}

unsigned int shim_node_major(int node)
{
	return node == SHIM_NODE_CM ? MISC_MAJOR : UVERBS_MAJOR;
}

unsigned int shim_node_minor(int node)
{
	if (node >= SHIM_NODE_UMAD)
		return (unsigned int)node - SHIM_NODE_UMAD;
	return node == SHIM_NODE_CM ? SH_CM_MINOR : UVERBS_MINOR + (unsigned int)node;
}

unsigned int shim_node_mode(int node)
{
	return node >= SHIM_NODE_UMAD ? 0600 : 0666;
}
