// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The places where this user's instances can be. A place must not be a link, or a directory that
 * another user can write to or replace by another one. So the directory above it is checked as
 * well. The administrator, or the user who named the place, answers for those further up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"
#include "sys.h"

#define LOOK_ONLY 4 /* the index of the place that is searched but not used for new instances */

static const char *named(void)
{
	const char *dir = getenv("SOFTHCA_DIR");

	return dir && *dir ? dir : NULL;
}

bool sh_place_named(void)
{
	return named() != NULL;
}

/* Makes the path absolute, and resolves links as far as it exists. Allocates no memory. */
static int resolve(const char *dir, char out[PATH_MAX])
{
	int len;

	if (realpath(dir, out))
		return 0;
	if (errno != ENOENT) {
		return -errno;
	} else if (dir[0] == '/') {
		len = snprintf(out, PATH_MAX, "%s", dir);
	} else {
		char here[PATH_MAX];

		if (!getcwd(here, sizeof(here)))
			return -errno;
		len = snprintf(out, PATH_MAX, "%s/%s", here, dir);
	}
	return len < 0 || len >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int below(char path[PATH_MAX], const char *dir, const char *name)
{
	char full[PATH_MAX];
	int err = resolve(dir, full), len;

	if (err)
		return err;
	/*
	 * NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Branch): errno is not 0 after a failure
	 */
	len = snprintf(path, PATH_MAX, "%s/%s", full[1] ? full : "", name);
	/* There must be room behind it for an instance's name and contents. */
	return len < 0 || len >= PATH_MAX - 192 ? -ENAMETOOLONG : 0;
}

static bool own_dir(const char *path)
{
	struct stat st;

	return path && path[0] == '/' && sh_stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid();
}

static int choose(unsigned int index, char path[PATH_MAX])
{
	char name[32], run[48];
	const char *dir = NULL;

	if (named())
		return index ? -ENOENT : below(path, named(), "softhca");
	snprintf(name, sizeof(name), "softhca-%u", (unsigned int)geteuid());
	switch (index) {
	case 0:
		dir = getenv("XDG_RUNTIME_DIR");
		return own_dir(dir) && !below(path, dir, "softhca") ? 0 : -ENOENT;
	case 1:
		dir = "/dev/shm";
		break;
	case 2:
		dir = getenv("TMPDIR");
		break;
	case 3:
		dir = "/tmp";
		break;
	case LOOK_ONLY:
		snprintf(run, sizeof(run), "/run/user/%u", (unsigned int)geteuid());
		return own_dir(run) && !below(path, run, "softhca") ? 0 : -ENOENT;
	}
	return dir && dir[0] == '/' && !below(path, dir, name) ? 0 : -ENOENT;
}

int sh_place(unsigned int index, char path[PATH_MAX])
{
	char before[PATH_MAX];
	int err = choose(index, path);

	for (unsigned int i = 0; !err && i < index; i++)
		if (!choose(i, before) && !strcmp(before, path))
			err = -ENOENT;
	return err;
}

static int say(int err, char *why, size_t len, const char *reason)
{
	snprintf(why, len, "%s", reason);
	return err;
}

/* What was tried, and the reason why it failed. */
static int say_failed(int err, char *why, size_t len, const char *what)
{
	snprintf(why, len, "%s: %s", what, strerror(-err));
	return err;
}

/* Another user can write there: tells the mode, and what to do. */
static int say_writable(const char *what, const char *dir, mode_t mode, char *why, size_t len)
{
	const char *by = mode & 02 ? "by other users" : "by users of its group";

	snprintf(why, len, "%s can be written %s (mode %04o): chmod %s%s-w %s", what, by,
		 mode & 07777, mode & 020 ? "g" : "", mode & 02 ? "o" : "", dir);
	return -EPERM;
}

/*
 * A user who can write to the directory above can replace the place, unless that directory is
 * sticky.
 */
static int check_parent(const char *path, char *why, size_t len)
{
	char parent[PATH_MAX];
	struct stat st;
	int err;

	snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
	err = sh_stat(parent[0] ? parent : "/", &st);
	if (err)
		return say_failed(err, why, len, "cannot look at the directory above it");
	if (!S_ISDIR(st.st_mode))
		return say(-ENOTDIR, why, len, "the directory above it is a file");
	if (st.st_mode & S_ISVTX)
		return 0;
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return say(-EPERM, why, len, "the directory above it belongs to another user");
	if (st.st_mode & 022)
		return say_writable("the directory above it", parent, st.st_mode, why, len);
	return 0;
}

int sh_place_check(const char *path, char *why, size_t len)
{
	struct stat st;
	int err = check_parent(path, why, len);

	if (err)
		return err;
	err = sh_sys(syscall(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW));
	if (err)
		return say_failed(err, why, len, "cannot look at it");
	if (S_ISLNK(st.st_mode))
		return say(-ENOTDIR, why, len, "it is a symbolic link");
	if (!S_ISDIR(st.st_mode))
		return say(-ENOTDIR, why, len, "it is not a directory");
	if (st.st_uid != geteuid())
		return say(-EPERM, why, len, "it belongs to another user");
	if (st.st_mode & 022)
		return say_writable("it", path, st.st_mode, why, len);
	return 0;
}

/*
 * An earlier softhca takes every directory in SOFTHCA_DIR for an instance, and removes those in
 * which no process holds a file "lock". So daemons hold this one.
 */
static int make_lock(const char *path)
{
	char lock[PATH_MAX];
	int fd;

	snprintf(lock, sizeof(lock), "%.*s/lock", PATH_MAX - 64, path);
	fd = sh_openat(AT_FDCWD, lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		       0600);
	if (fd < 0)
		return fd;
	sh_close(fd);
	return 0;
}

static int make_one(const char *path, char *why, size_t len)
{
	int err = check_parent(path, why, len);

	if (err)
		return err;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return say_failed(-errno, why, len, "cannot make it");
	err = sh_place_check(path, why, len);
	if (!err && access(path, R_OK | W_OK | X_OK) < 0)
		err = say_failed(-errno, why, len, "cannot read, write and enter it");
	if (!err && sh_place_named()) {
		err = make_lock(path);
		if (err)
			say_failed(err, why, len, "cannot make its file \"lock\"");
	}
	return err;
}

int sh_place_make(char path[PATH_MAX], char *tried, size_t len)
{
	unsigned int places = named() ? 1 : LOOK_ONLY;
	char why[SH_PLACE_WHY];
	int first = 0;
	size_t at = 0;

	*tried = '\0';
	/*
	 * The directory that the user has named need not exist yet. If this fails, the reason shows
	 * below.
	 */
	if (named())
		(void)mkdir(named(), 0700);
	for (unsigned int i = 0; i < places; i++) {
		int err = sh_place(i, path), n;

		if (err && !named())
			continue;
		if (err) {
			snprintf(path, PATH_MAX, "%s", named());
			say_failed(err, why, sizeof(why), "cannot follow the path");
		} else {
			err = make_one(path, why, sizeof(why));
		}
		if (!err)
			return 0;
		first = first ?: err;
		n = snprintf(tried + at, len - at, "%s%s: %s", at ? "; " : "", path, why);
		if (n > 0)
			at = at + (size_t)n < len ? at + (size_t)n : len - 1;
	}
	if (!first)
		snprintf(tried, len, "the paths of /dev/shm, TMPDIR and /tmp cannot be followed");
	return first ?: -ENOENT;
}
