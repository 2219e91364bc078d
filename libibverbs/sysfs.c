// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Reads sysfs through libsysfs, but always by full paths from the root that is determined here:
 * libsysfs's own search for the mount point is not used. pthread_once() determines the root
 * once. */

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sysfs/libsysfs.h>

#include "ibverbs.h"

static char root[IBV_SYSFS_PATH_MAX];
static pthread_once_t root_once = PTHREAD_ONCE_INIT;

const char *trusted_getenv(const char *name)
{
	/* secure_getenv() knows the rights that the program started with; this checks those it has
	 * now. */
	if (getuid() != geteuid() || getgid() != getegid())
		return NULL;
#ifdef HAVE_SECURE_GETENV
	return secure_getenv(name);
#else
	return getenv(name);
#endif
}

static void find_root(void)
{
	const char *env = trusted_getenv("SYSFS_PATH");
	size_t len;

	snprintf(root, sizeof(root), "%s", env ? env : "/sys");
	for (len = strlen(root); len > 0 && root[len - 1] == '/'; --len)
		root[len - 1] = '\0';
}

const char *ibv_get_sysfs_path(void)
{
	pthread_once(&root_once, find_root);
	return root;
}

/* Reads without libsysfs, which truncates longer paths. */
static int read_plain(const char *path, char *buf, size_t size)
{
	ssize_t len;
	int err, fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;

	len = read(fd, buf, size);
	err = errno;
	close(fd);

	return len < 0 ? -err : (int)len;
}

/* Reads up to size bytes of the attribute. Returns their number or -errno. */
static int read_attribute(const char *path, char *buf, size_t size)
{
	struct sysfs_attribute *attr;
	int len;

	/* libsysfs reads at most a page, the largest attribute there is, and counts in 16 bits. */
	if (strlen(path) >= SYSFS_PATH_MAX || size > (size_t)getpagesize() || size > UINT16_MAX)
		return read_plain(path, buf, size);

	errno = 0;
	attr = sysfs_open_attribute(path);
	if (!attr)
		return errno ? -errno : -ENOENT;

	if (sysfs_read_attribute(attr)) {
		len = errno ? -errno : -EIO;
		goto out;
	}

	len = attr->len < size ? attr->len : (int)size;
	if (len)
		memcpy(buf, attr->value, len);
out:
	sysfs_close_attribute(attr);
	return len;
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char *path;
	int len;

	if (asprintf(&path, "%s/%s", dir, file) < 0)
		return -1;

	len = read_attribute(path, buf, size);
	free(path);
	if (len < 0) {
		errno = -len;
		return -1;
	}

	if (len > 0 && buf[len - 1] == '\n')
		buf[--len] = '\0';

	return len;
}

int sysfs_read_text(const char *path, char *buf, size_t size)
{
	int len;

	len = read_attribute(path, buf, size);
	if (len < 0)
		return len;

	if (len > 0 && buf[len - 1] == '\n')
		--len;
	else if ((size_t)len == size)
		return -EOVERFLOW;

	buf[len] = '\0';
	return len;
}

void names_free(char **names)
{
	size_t i;

	for (i = 0; names[i]; ++i)
		free(names[i]);
	free(names);
}

static int by_version(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* Appends a copy of name. Returns 0, or -ENOMEM with the array unchanged. */
static int append_name(char ***names, int n, const char *name)
{
	char **grown;

	grown = realloc(*names, (n + 2) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	*names = grown;

	grown[n] = strdup(name);
	if (!grown[n])
		return -ENOMEM;

	grown[n + 1] = NULL;
	return 0;
}

int names_read(const char *path, char ***names)
{
	struct dirent *entry;
	int n = 0, ret;
	DIR *dir;

	*names = calloc(1, sizeof(**names));
	if (!*names)
		return -ENOMEM;

	dir = opendir(path);
	if (!dir) {
		ret = -errno;
		goto err;
	}

	while ((errno = 0, entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		ret = append_name(names, n, entry->d_name);
		if (ret)
			goto err_dir;
		++n;
	}
	if (errno) {
		ret = -errno;
		goto err_dir;
	}

	closedir(dir);
	qsort(*names, n, sizeof(**names), by_version);
	return n;

err_dir:
	closedir(dir);
err:
	names_free(*names);
	*names = NULL;
	return ret;
}
