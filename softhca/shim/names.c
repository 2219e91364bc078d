// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Which paths mean something in the instance. Allocates no memory and opens nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/host/sys.h"
#include "attach.h"
#include "names.h"
#include "say.h"

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

static const char *in_root(const char *path, char buf[PATH_MAX])
{
	int len = snprintf(buf, PATH_MAX, "%.*s%s", PATH_MAX - 64, shim.root, path);

	return len >= PATH_MAX ? NULL : buf;
}

/*
 * In an instance of several hosts: the files that tell this host from others. /etc/machine-id stays
 * the machine's. It names an installation, its journal and its buses, and the hosts share the file
 * system.
 */
static const char *own_file(const char *path, char buf[PATH_MAX])
{
	static const char *const files[] = {"/etc/hostname", "/proc/sys/kernel/hostname",
					    "/proc/sys/kernel/random/boot_id"};
	char plain[PATH_MAX];
	const char *to;

	if ((strncmp(path, "/etc", 4) && strncmp(path, "/proc", 5)) || !tidy(path, plain))
		return path;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (strcmp(plain, files[i]))
			continue;
		to = in_root(plain, buf);
		return to ? to : path;
	}
	return path;
}

const char *shim_redirect(const char *path, char buf[PATH_MAX])
{
	char plain[PATH_MAX], *end;
	const char *to;
	unsigned long minor;

	if (!path || path[0] != '/' || !strchr("sdpe", path[1]))
		return path;
	if (!shim_active()) {
		shim_say_now(path);
		return path;
	}
	if (path[1] == 'p' || path[1] == 'e')
		return shim.several ? own_file(path, buf) : path;
	if (strncmp(path, "/sys", 4) && strncmp(path, "/dev", 4))
		return path;
	if (!tidy(path, plain))
		return path;
	if (below(plain, "/dev/infiniband") || !strncmp(plain, "/sys/class/infiniband", 21)) {
		to = in_root(plain, buf);
		return to ? to : path;
	}
	if (!strncmp(plain, "/dev/char/231:", 14)) {
		minor = strtoul(plain + 14, &end, 10);
		if (*end || end == plain + 14 || minor < UVERBS_MINOR)
			return path;
		snprintf(plain, sizeof(plain), "/dev/infiniband/uverbs%lu", minor - UVERBS_MINOR);
		to = in_root(plain, buf);
		return to ? to : path;
	}
	/*
	 * In the rest of sysfs the machine's own files come first: the instance adds its devices to
	 * them.
	 */
	if (!strncmp(plain, "/sys/devices/", 13) || !strncmp(plain, "/sys/bus/pci/devices/", 21)) {
		if (exists(plain))
			return path;
		to = in_root(plain, buf);
		return to && exists(to) ? to : path;
	}
	return path;
}

int shim_node(const char *redirected)
{
	static const char node[] = "/dev/infiniband/uverbs";
	const char *s;
	char *end;
	unsigned long n;

	if (strncmp(redirected, shim.root, shim.root_len) ||
	    strncmp(redirected + shim.root_len, node, sizeof(node) - 1))
		return -1;
	s = redirected + shim.root_len + sizeof(node) - 1;
	if (*s < '0' || *s > '9')
		return -1;
	n = strtoul(s, &end, 10);
	return *end || n > 1023 ? -1 : (int)n;
}
