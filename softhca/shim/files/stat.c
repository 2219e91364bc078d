// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a file is, by every name that glibc exports for asking. The file of a context, and the node
 * that it came from, are character devices here, as they are where a kernel made them.
 */
#include <fcntl.h>
#include <linux/stat.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "context.h"
#include "softhca/shim/interpose.h"
#include "names.h"
#include "rdmacm.h"
#include "umad.h"
#include "softhca/protocol.h"

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout");

static void make_device(struct stat *st, unsigned int major, unsigned int minor, unsigned int mode)
{
	st->st_mode = S_IFCHR | mode;
	st->st_rdev = makedev(major, minor);
	st->st_size = 0;
	st->st_blocks = 0;
}

static int patch_fd(int ret, int fd, void *out)
{
	struct stat *st = out;
	const struct shim_ctx *ctx;
	struct shim_fifo cm;

	if (ret || !shim_active())
		return ret;
	if ((ctx = shim_ctx_of_stat(fd, st)))
		make_device(st, UVERBS_MAJOR, shim_ctx_minor(ctx), 0666);
	else if (shim_cm_of_stat(fd, st, &cm))
		make_device(st, MISC_MAJOR, SH_CM_MINOR, 0666);
	else if (shim_umad_of_stat(fd, st, &cm))
		make_device(st, UVERBS_MAJOR, cm.index, 0600);
	return ret;
}

static int patch_path(int ret, const char *to, const char *path, void *out)
{
	int n;

	if (!ret && to != path && (n = shim_node(to)) >= 0)
		make_device(out, shim_node_major(n), shim_node_minor(n), shim_node_mode(n));
	return ret;
}

static bool by_fd(const char *path, int flags)
{
	return (flags & AT_EMPTY_PATH) && (!path || !*path);
}

#define STAT(name, type)                                                                           \
	EXPORT int name(const char *path, type *st)                                                \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		const char *to = shim_redirect(path, buf);                                         \
                                                                                                   \
		return patch_path(REAL(name)(to, st), to, path, st);                               \
	}
#define XSTAT(name, type)                                                                          \
	EXPORT int name(int version, const char *path, type *st);                                  \
	EXPORT int name(int version, const char *path, type *st)                                   \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		const char *to = shim_redirect(path, buf);                                         \
                                                                                                   \
		return patch_path(REAL(name)(version, to, st), to, path, st);                      \
	}
#define FSTAT(name, type)                                                                          \
	EXPORT int name(int fd, type *st)                                                          \
	{                                                                                          \
		return patch_fd(REAL(name)(fd, st), fd, st);                                       \
	}
#define FXSTAT(name, type)                                                                         \
	EXPORT int name(int version, int fd, type *st);                                            \
	EXPORT int name(int version, int fd, type *st)                                             \
	{                                                                                          \
		return patch_fd(REAL(name)(version, fd, st), fd, st);                              \
	}
#define FSTATAT(name, type)                                                                        \
	EXPORT int name(int fd, const char *path, type *st, int flags)                             \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		const char *to = shim_redirect(path, buf);                                         \
		int ret = REAL(name)(fd, to, st, flags);                                           \
                                                                                                   \
		return by_fd(path, flags) ? patch_fd(ret, fd, st) : patch_path(ret, to, path, st); \
	}
#define FXSTATAT(name, type)                                                                       \
	EXPORT int name(int version, int fd, const char *path, type *st, int flags);               \
	EXPORT int name(int version, int fd, const char *path, type *st, int flags)                \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		const char *to = shim_redirect(path, buf);                                         \
		int ret = REAL(name)(version, fd, to, st, flags);                                  \
                                                                                                   \
		return by_fd(path, flags) ? patch_fd(ret, fd, st) : patch_path(ret, to, path, st); \
	}

STAT(stat, struct stat)
STAT(stat64, struct stat64)
STAT(lstat, struct stat)
STAT(lstat64, struct stat64)
FSTAT(fstat, struct stat)
FSTAT(fstat64, struct stat64)
FSTATAT(fstatat, struct stat)
FSTATAT(fstatat64, struct stat64)
XSTAT(__xstat, struct stat)
XSTAT(__xstat64, struct stat64)
XSTAT(__lxstat, struct stat)
XSTAT(__lxstat64, struct stat64)
FXSTAT(__fxstat, struct stat)
FXSTAT(__fxstat64, struct stat64)
FXSTATAT(__fxstatat, struct stat)
FXSTATAT(__fxstatat64, struct stat64)

EXPORT int statx(int fd, const char *path, int flags, unsigned int mask, struct statx *stx)
{
	char buf[PATH_MAX];
	const char *to = shim_redirect(path, buf);
	int ret = REAL(statx)(fd, to, flags, mask, stx);
	const struct shim_ctx *ctx;
	struct shim_fifo cm;
	struct stat st;
	int node = -1;

	if (ret || !shim_active())
		return ret;
	if (to != path)
		node = shim_node(to);
	else if (by_fd(path, flags) && (ctx = shim_ctx_of_fd(fd)))
		node = (int)(shim_ctx_minor(ctx) - UVERBS_MINOR);
	else if (by_fd(path, flags) && fd >= 0 && sh_fstat(fd, &st) >= 0)
		node = shim_cm_of_stat(fd, &st, &cm)	 ? SHIM_NODE_CM
		       : shim_umad_of_stat(fd, &st, &cm) ? SHIM_NODE_UMAD + (int)cm.index
							 : -1;
	if (node < 0)
		return 0;
	stx->stx_mode = (uint16_t)(S_IFCHR | shim_node_mode(node));
	stx->stx_rdev_major = shim_node_major(node);
	stx->stx_rdev_minor = shim_node_minor(node);
	stx->stx_size = 0;
	stx->stx_blocks = 0;
	return 0;
}
