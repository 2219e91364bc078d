// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Where instances live. Follows no symbolic link when it removes, and trusts no directory of another user. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "paths.h"
#include "sys.h"

static bool own_dir(const char *path)
{
	struct stat st;

	return path && path[0] == '/' && sh_stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

static int format(char path[PATH_MAX], const char *dir, const char *name)
{
	int len = snprintf(path, PATH_MAX, "%s/%s", dir, name);

	return len < 0 || len >= PATH_MAX - 64 ? -ENAMETOOLONG : 0;
}

static int choose(char path[PATH_MAX])
{
	const char *dir = getenv("SOFTHCA_DIR");
	char name[32];
	int len;

	if (dir && *dir) {
		len = snprintf(path, PATH_MAX, "%s", dir);
		return len >= PATH_MAX - 64 ? -ENAMETOOLONG : 0;
	}
	dir = getenv("XDG_RUNTIME_DIR");
	if (own_dir(dir))
		return format(path, dir, "softhca");
	snprintf(name, sizeof(name), "softhca-%u", (unsigned int)geteuid());
	if (access("/dev/shm", W_OK | X_OK) == 0)
		return format(path, "/dev/shm", name);
	dir = getenv("TMPDIR");
	return format(path, dir && dir[0] == '/' ? dir : "/tmp", name);
}

int sh_base_dir(char path[PATH_MAX], bool create)
{
	struct stat st;
	int err = choose(path);

	if (err)
		return err;
	if (create && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (lstat(path, &st) < 0)
		return -errno;
	/* A directory named by hand may be a link; one at a place open to all may not. */
	if (S_ISLNK(st.st_mode) && getenv("SOFTHCA_DIR") && stat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return -EPERM;
	return 0;
}

bool sh_name_valid(const char *name)
{
	size_t len = strlen(name);

	if (!len || len > 64 || name[0] == '.' || name[0] == '-')
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

int sh_instance_dir(char path[PATH_MAX], const char *instance)
{
	char base[PATH_MAX];
	int err;

	if (strchr(instance, '/')) {
		size_t len = strlen(instance);

		if (len >= PATH_MAX - 64)
			return -ENAMETOOLONG;
		if (instance[0] == '/') {
			memcpy(path, instance, len + 1);
		} else {
			char *full = realpath(instance, NULL);

			if (!full)
				return -errno;
			err = snprintf(path, PATH_MAX, "%s", full) >= PATH_MAX - 64 ? -ENAMETOOLONG : 0;
			free(full);
			if (err)
				return err;
		}
		while (len > 1 && path[len - 1] == '/')
			path[--len] = '\0';
		return 0;
	}
	if (!sh_name_valid(instance))
		return -EINVAL;
	err = sh_base_dir(base, false);
	return err ? err : format(path, base, instance);
}

int sh_instance_alive(const char *dir)
{
	char path[PATH_MAX];
	int fd, err;

	err = format(path, dir, "lock");
	if (err)
		return err;
	fd = sh_open(path, O_RDWR | O_CLOEXEC);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	err = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	sh_close(fd);
	if (err == -EWOULDBLOCK)
		return 1;
	return err;
}

static int remove_at(int dirfd, const char *name, int depth)
{
	struct dirent *entry;
	DIR *dir;
	int fd, err = 0;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (depth > 32)
		return -ELOOP;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		err = -errno;
		close(fd);
		return err;
	}
	while ((entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		err = remove_at(fd, entry->d_name, depth + 1);
		if (err)
			break;
	}
	closedir(dir);
	if (!err && unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		err = -errno;
	return err;
}

int sh_instance_remove(const char *dir)
{
	return remove_at(AT_FDCWD, dir, 0);
}
