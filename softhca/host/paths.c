// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The names of instances, and which directory a name means. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "paths.h"
#include "places.h"
#include "sys.h"

static int format(char path[PATH_MAX], const char *dir, const char *name)
{
	int len = snprintf(path, PATH_MAX, "%s/%s", dir, name);

	return len < 0 || len >= PATH_MAX - 64 ? -ENAMETOOLONG : 0;
}

bool sh_name_valid(const char *name)
{
	size_t len = strlen(name);

	/* "lock" is a file of the place. */
	if (!len || len > 64 || name[0] == '.' || name[0] == '-' || !strcmp(name, "lock"))
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
	       len;
}

/*
 * An absolute path without links, because what the kernel says of files in it begins with that. A
 * path that does not exist stays as given. Allocates no memory: the first call of malloc() may be
 * what opened the file that has this process look for its instance.
 */
static int by_path(char path[PATH_MAX], const char *instance)
{
	char room[PATH_MAX];
	const char *full = realpath(instance, room);
	size_t len;

	if (!full && instance[0] != '/')
		return -errno;
	len = strlen(full ? full : instance);
	if (len >= PATH_MAX - 64)
		return -ENAMETOOLONG;
	memcpy(path, full ? full : instance, len + 1);
	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	return 0;
}

int sh_instance_dir(char path[PATH_MAX], const char *instance)
{
	char place[PATH_MAX], one[PATH_MAX], why[128];
	bool possible = false, exists = false;
	unsigned int places = sh_place_named() ? 1 : SH_PLACES;

	if (strchr(instance, '/'))
		return by_path(path, instance);
	if (!sh_name_valid(instance))
		return -EINVAL;
	for (unsigned int i = 0; i < places; i++) {
		struct stat st;
		int err = sh_place(i, place);

		err = err ?: sh_place_check(place, why, sizeof(why));
		err = err ?: format(one, place, instance);
		if (err && sh_place_named())
			return err;
		if (err)
			continue;
		/*
		 * An instance that runs is meant, in whatever place; else the first that exists;
		 * else the first place where it could be.
		 */
		if (sh_instance_alive(one) == 1) {
			strcpy(path, one);
			return 0;
		}
		if (!exists && sh_stat(one, &st) == 0)
			exists = true;
		else if (possible)
			continue;
		possible = true;
		strcpy(path, one);
	}
	return possible ? 0 : -ENOENT;
}

int sh_instance_alive(const char *dir)
{
	char path[PATH_MAX];
	int fd, err;

	err = format(path, dir, "lock");
	if (err)
		return err;
	fd = sh_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	/* A shared lock, so that two processes that ask do not take each other for the daemon. */
	err = flock(fd, LOCK_SH | LOCK_NB) < 0 ? -errno : 0;
	sh_close(fd);
	if (err == -EWOULDBLOCK)
		return 1;
	return err;
}
