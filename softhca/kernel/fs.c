// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Files and directories of the instance. softhca/protocol.h lists all that is made here: what the
 * list lacks stays behind when the instance ends.
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

/*
 * Modes bind the daemon too, unless it is root's. For a moment the file is one that it can write.
 */
static int open_own(int dirfd, const char *path)
{
	int own = openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), fd;
	struct stat st;

	if (own < 0)
		return -errno;
	if (fstat(own, &st) < 0 || fchmod(own, (st.st_mode & 0777) | S_IWUSR) < 0) {
		fd = -errno;
		close(own);
		return fd;
	}
	fd = openat(dirfd, path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	(void)fchmod(own, st.st_mode & 0777);
	close(own);
	return fd;
}

/* Writes in place: a reader finds the old or the new contents, and no directory's time changes. */
static int __attribute__((format(printf, 4, 0)))
write_text(int dirfd, const char *path, mode_t mode, const char *fmt, va_list ap)
{
	char text[4096];
	int fd, len, err = 0;
	ssize_t n;

	len = vsnprintf(text, sizeof(text), fmt, ap);
	if (len < 0 || len >= (int)sizeof(text))
		return -EOVERFLOW;
	fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		fd = errno == EACCES && !(mode & S_IWUSR) ? open_own(dirfd, path) : -errno;
	if (fd < 0)
		return fd;
	n = pwrite(fd, text, len, 0);
	if (n >= 0 && n < len)
		err = -ENOSPC;
	else if (n < 0 || ftruncate(fd, len) < 0)
		err = -errno;
	close(fd);
	return err;
}

int file_write(int dirfd, const char *path, const char *fmt, ...)
{
	va_list ap;
	int err;

	va_start(ap, fmt);
	err = write_text(dirfd, path, 0644, fmt, ap);
	va_end(ap);
	return err;
}

int file_attribute(int dirfd, const char *path, const char *fmt, ...)
{
	va_list ap;
	int err;

	va_start(ap, fmt);
	err = write_text(dirfd, path, 0444, fmt, ap);
	va_end(ap);
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
