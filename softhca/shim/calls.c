// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rest of what is redirected: commands, which are write() on a device file, the RDMA netlink socket, and the
 * host's name. ioctl() needs nothing: a context's file answers ENOTTY by itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#include "shim.h"

#define NETLINK_RDMA 20

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
	struct shim_ctx *ctx;

	/* Short or odd writes count too: into the file they must never go. */
	if (shim_active() && (ctx = shim_ctx_of_fd(fd)))
		RETURN_ERRNO(shim_command(ctx, buf, len));
	return REAL(write)(fd, buf, len);
}

/* A device without vectored writes gets one write for each piece. */
EXPORT ssize_t writev(int fd, const struct iovec *iov, int n)
{
	struct shim_ctx *ctx;
	ssize_t total = 0;

	if (!shim_active() || !(ctx = shim_ctx_of_fd(fd)))
		return REAL(writev)(fd, iov, n);
	for (int i = 0; i < n; i++) {
		long done = shim_command(ctx, iov[i].iov_base, iov[i].iov_len);

		if (done < 0 && total)
			break;
		if (done < 0)
			RETURN_ERRNO(done);
		total += done;
	}
	return total;
}

EXPORT int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && shim_active()) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return REAL(socket)(domain, type, protocol);
}

/* Where several hosts are emulated each has a name of its own; a lone one keeps the machine's. */
static bool own_name(char name[32])
{
	static int several = -1;
	char path[PATH_MAX];

	if (!shim_active())
		return false;
	if (several < 0) {
		snprintf(path, sizeof(path), "%.*s/host1", PATH_MAX - 64, shim.dir);
		several = sh_sys(syscall(SYS_faccessat, AT_FDCWD, path, F_OK)) == 0;
	}
	if (several)
		snprintf(name, 32, "host%u", shim.host);
	return several;
}

EXPORT int gethostname(char *out, size_t len)
{
	char name[32];

	if (!own_name(name))
		return REAL(gethostname)(out, len);
	if (strlen(name) >= len) {
		memcpy(out, name, len);
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(out, name);
	return 0;
}

EXPORT int __gethostname_chk(char *out, size_t len, size_t room);
EXPORT int __gethostname_chk(char *out, size_t len, size_t room)
{
	if (len > room)
		abort();
	return gethostname(out, len);
}

EXPORT int uname(struct utsname *u)
{
	char name[32];
	int ret = REAL(uname)(u);

	if (!ret && own_name(name))
		strcpy(u->nodename, name);
	return ret;
}
