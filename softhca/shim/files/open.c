// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Opening files, by every name that glibc exports for it. Calls inside glibc do not pass through
 * these functions, so each name has its own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "context.h"
#include "counters.h"
#include "softhca/shim/interpose.h"
#include "names.h"
#include "rdmacm.h"
#include "umad.h"

EXPORT int open(const char *path, int flags, ...);
EXPORT int open64(const char *path, int flags, ...);
EXPORT int openat(int dirfd, const char *path, int flags, ...);
EXPORT int openat64(int dirfd, const char *path, int flags, ...);
EXPORT int __open(const char *path, int flags, ...);
EXPORT int __open64(const char *path, int flags, ...);
EXPORT int __open_2(const char *path, int flags);
EXPORT int __open64_2(const char *path, int flags);
EXPORT int __openat_2(int dirfd, const char *path, int flags);
EXPORT int __openat64_2(int dirfd, const char *path, int flags);

#define MODE(flags)                                                                                \
	({                                                                                         \
		mode_t mode_ = 0;                                                                  \
		if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) {                         \
			va_list ap_;                                                               \
			va_start(ap_, flags);                                                      \
			mode_ = va_arg(ap_, mode_t);                                               \
			va_end(ap_);                                                               \
		}                                                                                  \
		mode_;                                                                             \
	})

#define ATTRIBUTE 4096 /* in place of a device's number: an attribute, which is not to be written */

/* Of the redirected path: can no program write the file, not even root's? A description it can. */
static bool is_attribute(const char *to)
{
	size_t len = strlen(shim.dir);
	const char *name = strrchr(to, '/'), *at = to + len;

	return !strncmp(to, shim.dir, len) && !strncmp(at, "/host", 5) &&
	       !strncmp(strchrnul(at + 1, '/'), "/sys/", 5) && strcmp(name, "/node_desc");
}

static bool writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
}

/*
 * The device's number if this opens a device node, ATTRIBUTE, or -1. With O_PATH it only names the
 * node.
 */
static int node(const char *to, int flags)
{
	if (flags & O_PATH)
		return -1;
	return writes(flags) && is_attribute(to) ? ATTRIBUTE : shim_node(to);
}

/* For "uverbs0" or "rdma_cm" below a descriptor of /dev/infiniband. */
static int __attribute__((noinline)) node_at(int dirfd, const char *path, int flags)
{
	char full[PATH_MAX];
	size_t len;

	if (dirfd == AT_FDCWD || !path ||
	    (strncmp(path, "uverbs", 6) && strncmp(path, "umad", 4) && strncmp(path, "issm", 4) &&
	     strcmp(path, "rdma_cm")) ||
	    !shim_active())
		return -1;
	if (strlen(path) > 20 || !shim_fd_path(dirfd, full))
		return -1;
	len = strlen(full);
	if (len > sizeof(full) - 32)
		return -1;
	full[len] = '/';
	strcpy(full + len + 1, path);
	return node(full, flags);
}

/* What no node is opened with: 0 or -errno. */
static int unfit(int flags)
{
	if (flags & O_CREAT && flags & O_EXCL)
		return -EEXIST;
	if (flags & O_DIRECTORY)
		return -ENOTDIR;
	return flags & O_DIRECT ? -EINVAL : 0;
}

static int open_node(int device, int flags)
{
	int err = device == ATTRIBUTE ? -EACCES : unfit(flags);

	if (err)
		RETURN_ERRNO(err);
	if (device == SHIM_NODE_CM)
		RETURN_ERRNO(shim_cm_open(flags));
	if (device >= SHIM_NODE_UMAD)
		RETURN_ERRNO(shim_umad_open((unsigned int)device - SHIM_NODE_UMAD, flags));
	RETURN_ERRNO(shim_open_device((unsigned int)device, flags));
}

/* The path to open instead of path. A file with counters is brought up to date first. */
static const char *opened(const char *path, char buf[PATH_MAX])
{
	const char *to = shim_redirect(path, buf);

	if (to == buf && shim_counters(to))
		shim_counters_refresh();
	return to;
}

#define OPEN(name)                                                                                 \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		mode_t mode = MODE(flags);                                                         \
		char buf[PATH_MAX];                                                                \
		const char *to = opened(path, buf);                                                \
		int n = to == buf ? node(to, flags) : -1;                                          \
                                                                                                   \
		return n >= 0 ? open_node(n, flags) : REAL(name)(to, flags, mode);                 \
	}

#define OPENAT(name)                                                                               \
	int name(int dirfd, const char *path, int flags, ...)                                      \
	{                                                                                          \
		mode_t mode = MODE(flags);                                                         \
		char buf[PATH_MAX];                                                                \
		const char *to = opened(path, buf);                                                \
		int n = to == buf ? node(to, flags) : node_at(dirfd, path, flags);                 \
                                                                                                   \
		return n >= 0 ? open_node(n, flags) : REAL(name)(dirfd, to, flags, mode);          \
	}

#define OPEN_2(name)                                                                               \
	int name(const char *path, int flags)                                                      \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		const char *to = opened(path, buf);                                                \
		int n = to == buf ? node(to, flags) : -1;                                          \
                                                                                                   \
		return n >= 0 ? open_node(n, flags) : REAL(name)(to, flags);                       \
	}

#define OPENAT_2(name)                                                                             \
	int name(int dirfd, const char *path, int flags)                                           \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		const char *to = opened(path, buf);                                                \
		int n = to == buf ? node(to, flags) : node_at(dirfd, path, flags);                 \
                                                                                                   \
		return n >= 0 ? open_node(n, flags) : REAL(name)(dirfd, to, flags);                \
	}

OPEN(open)
OPEN(open64)
OPEN(__open)
OPEN(__open64)
OPENAT(openat)
OPENAT(openat64)
OPEN_2(__open_2)
OPEN_2(__open64_2)
OPENAT_2(__openat_2)
OPENAT_2(__openat64_2)

/* Is that an attribute, which stdio is to write? */
static bool unwritable(const char *to, const char *buf, const char *mode)
{
	if (to != buf || (*mode == 'r' && !strchr(mode, '+')) || !is_attribute(to))
		return false;
	errno = EACCES;
	return true;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	char buf[PATH_MAX];
	const char *to = opened(path, buf);

	return unwritable(to, buf, mode) ? NULL : REAL(fopen)(to, mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
	char buf[PATH_MAX];
	const char *to = opened(path, buf);

	return unwritable(to, buf, mode) ? NULL : REAL(fopen64)(to, mode);
}

EXPORT FILE *freopen(const char *path, const char *mode, FILE *file)
{
	char buf[PATH_MAX];

	return REAL(freopen)(opened(path, buf), mode, file);
}

EXPORT FILE *freopen64(const char *path, const char *mode, FILE *file)
{
	char buf[PATH_MAX];

	return REAL(freopen64)(opened(path, buf), mode, file);
}

EXPORT DIR *opendir(const char *path)
{
	char buf[PATH_MAX];

	return REAL(opendir)(shim_redirect(path, buf));
}

EXPORT int scandir(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
		   int (*compare)(const struct dirent **, const struct dirent **))
{
	char buf[PATH_MAX];

	return REAL(scandir)(shim_redirect(path, buf), list, filter, compare);
}

EXPORT int scandir64(const char *path, struct dirent64 ***list,
		     int (*filter)(const struct dirent64 *),
		     int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
	char buf[PATH_MAX];

	return REAL(scandir64)(shim_redirect(path, buf), list, filter, compare);
}

EXPORT int chdir(const char *path)
{
	char buf[PATH_MAX];

	return REAL(chdir)(shim_redirect(path, buf));
}
