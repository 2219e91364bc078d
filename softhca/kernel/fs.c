// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Files and directories of the instance. softhca/protocol.h lists all that is made here: what the list
 * lacks stays behind when the instance ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs.h"

/* Writes in place: a reader finds the old or the new contents, and no directory's time changes. */
int file_write(int dirfd, const char *path, const char *fmt, ...)
{
	char text[4096];
	va_list ap;
	int fd, len, err = 0;
	ssize_t n;

	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (len < 0 || len >= (int)sizeof(text))
		return -EOVERFLOW;
	fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	n = pwrite(fd, text, len, 0);
	if (n >= 0 && n < len)
		err = -ENOSPC;
	else if (n < 0 || ftruncate(fd, len) < 0)
		err = -errno;
	close(fd);
	return err;
}

int dir_make(int dirfd, const char *path)
{
	char part[PATH_MAX];
	char *slash;

	if (snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part))
		return -ENAMETOOLONG;
	for (slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdirat(dirfd, part, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdirat(dirfd, part, 0755) < 0 && errno != EEXIST ? -errno : 0;
}
