// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Makes, recognises and removes the directory of an instance. Works on descriptors of directories
 * and never follows a link. The lock of an instance protects it against every process but its
 * holder. A lock counts only while the locked file is the one that has the name.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "instdir.h"
#include "paths.h"
#include "softhca/protocol.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_all(struct sh_instdir *d)
{
	close_fd(&d->dir_fd);
	/* From here on another process may take the instance. */
	close_fd(&d->lock_fd);
	close_fd(&d->place_fd);
	close_fd(&d->base_fd);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* ---- names ---- */

static int new_name(char name[80])
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	snprintf(name, 80, SH_NEW "%0*llx", SH_NEW_DIGITS, (unsigned long long)number);
	return 0;
}

static void beside(char lock[96], const char *name)
{
	snprintf(lock, 96, "%s" SH_NEW_LOCK, name);
}

/* What follows ".new-X", or NULL if the name does not begin so. */
static const char *after_new(const char *name)
{
	const char *p = name + strlen(SH_NEW);

	if (strncmp(name, SH_NEW, strlen(SH_NEW)))
		return NULL;
	for (int i = 0; i < SH_NEW_DIGITS; i++, p++)
		if (!isdigit((unsigned char)*p) && !(*p >= 'a' && *p <= 'f'))
			return NULL;
	return p;
}

/*
 * If the file system cannot rename without replacing, the rename replaces an empty directory that
 * this makes.
 */
static int rename_dir(int base_fd, const char *from, const char *to)
{
	if (renameat2(base_fd, from, base_fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (mkdirat(base_fd, to, 0700) < 0)
		return -errno;
	if (renameat(base_fd, from, base_fd, to) < 0) {
		int err = -errno;

		unlinkat(base_fd, to, AT_REMOVEDIR);
		return err;
	}
	return 0;
}

static int rename_lock(int from_fd, const char *from, int to_fd, const char *to)
{
	if (renameat2(from_fd, from, to_fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if ((errno == EINVAL || errno == ENOSYS) && renameat(from_fd, from, to_fd, to) == 0)
		return 0;
	return -errno;
}

/* ---- the marker ---- */

static int write_marker(int fd)
{
	char text[SH_MARKER_MAX];
	struct stat st;
	ssize_t n;
	int len;

	if (fstat(fd, &st) < 0)
		return -errno;
	len = snprintf(text, sizeof(text), SH_MARKER, (unsigned long long)st.st_ino);
	n = pwrite(fd, text, (size_t)len, 0);
	return n == len ? 0 : n < 0 ? -errno : -ENOSPC;
}

static bool has_marker(int fd, const struct stat *st)
{
	char wanted[SH_MARKER_MAX], text[SH_MARKER_MAX];
	int len = snprintf(wanted, sizeof(wanted), SH_MARKER, (unsigned long long)st->st_ino);

	return S_ISREG(st->st_mode) && st->st_nlink == 1 && st->st_size == len &&
	       pread(fd, text, sizeof(text), 0) == len && !memcmp(text, wanted, (size_t)len);
}

/*
 * Opens and locks a lock file that has the marker, and returns its descriptor. -ENODATA: it has no
 * marker. -EBUSY: another process holds the lock. -EPERM: it belongs to another user. -EAGAIN:
 * another file has got the name meanwhile.
 */
static int take_marked(int dirfd, const char *name)
{
	struct stat st, now;
	int fd, err;

	/* Checked before it is opened, because opening a FIFO or a device has effects. */
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -ENODATA : -errno;
	if (!S_ISREG(st.st_mode))
		return -ENODATA;
	if (st.st_uid != geteuid())
		return -EPERM;
	fd = openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	if (fstat(fd, &st) < 0)
		err = -errno;
	else if (!has_marker(fd, &st))
		err = st.st_nlink ? -ENODATA : -EAGAIN;
	else if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	else if (fstatat(dirfd, name, &now, AT_SYMLINK_NOFOLLOW) < 0 || !same_file(&st, &now))
		err = -EAGAIN;
	else
		return fd;
	close(fd);
	return err;
}

/* ---- making ---- */

/*
 * Makes <name>.lock, locked, with its contents: it appears complete. If the file system cannot make
 * a file without a name, it appears empty. A maker that is killed before it writes then leaves an
 * empty file. No process removes that file, as nothing tells who made it.
 */
static int make_lock(struct sh_instdir *d)
{
	char lock[96], self[64];
	int err;

	beside(lock, d->name);
	d->lock_fd = openat(d->base_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (d->lock_fd >= 0) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", d->lock_fd);
		if (flock(d->lock_fd, LOCK_EX | LOCK_NB) < 0)
			err = -errno;
		else
			err = write_marker(d->lock_fd);
		if (!err && linkat(AT_FDCWD, self, d->base_fd, lock, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		close_fd(&d->lock_fd);
		if (err)
			return err;
	}
	d->lock_fd = openat(d->base_fd, lock, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (d->lock_fd < 0)
		return -errno;
	if (flock(d->lock_fd, LOCK_EX | LOCK_NB) < 0)
		err = -errno;
	else
		err = write_marker(d->lock_fd);
	if (err) {
		unlinkat(d->base_fd, lock, 0);
		close_fd(&d->lock_fd);
	}
	return err;
}

int sh_instdir_make(struct sh_instdir *d, const char *base)
{
	char lock[96];
	int err;

	*d = (struct sh_instdir)SH_INSTDIR_NONE;
	d->base_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->base_fd < 0)
		return -errno;
	/*
	 * An earlier softhca looks for a lock in every directory. This tells it that the place is
	 * in use.
	 */
	d->place_fd = openat(d->base_fd, "lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (d->place_fd >= 0)
		(void)flock(d->place_fd, LOCK_SH | LOCK_NB);
	err = new_name(d->name);
	if (err)
		goto err_close;
	err = make_lock(d);
	if (err)
		goto err_close;
	beside(lock, d->name);
	if (mkdirat(d->base_fd, d->name, 0700) < 0) {
		err = -errno;
		goto err_lock;
	}
	d->dir_fd = openat(d->base_fd, d->name, DIR_FLAGS);
	err = d->dir_fd < 0 ? -errno : rename_lock(d->base_fd, lock, d->dir_fd, "lock");
	if (err)
		goto err_dir;
	return 0;

err_dir:
	unlinkat(d->base_fd, d->name, AT_REMOVEDIR);
err_lock:
	unlinkat(d->base_fd, lock, 0);
err_close:
	close_all(d);
	return err;
}

int sh_instdir_publish(struct sh_instdir *d, const char *name)
{
	int err;

	if (strlen(name) >= sizeof(d->name))
		return -ENAMETOOLONG;
	err = rename_dir(d->base_fd, d->name, name);
	if (!err)
		strcpy(d->name, name);
	return err;
}

/* ---- removing ---- */

/* The lock is held, and d->name names dir_fd. */
static int remove_locked(struct sh_instdir *d, struct sh_left *left)
{
	char lock[96], name[80];
	int err = sh_contents_remove(d->dir_fd, left);

	if (err)
		return err;
	if (!after_new(d->name)) {
		err = new_name(name);
		err = err ?: rename_dir(d->base_fd, d->name, name);
		if (err)
			return err;
		strcpy(d->name, name);
	}
	beside(lock, d->name);
	err = rename_lock(d->dir_fd, "lock", d->base_fd, lock);
	if (err)
		return err;
	if (unlinkat(d->base_fd, d->name, AT_REMOVEDIR) < 0 || unlinkat(d->base_fd, lock, 0) < 0)
		return -errno;
	return 0;
}

static bool still_there(const struct sh_instdir *d)
{
	struct stat dir, now;

	return fstat(d->dir_fd, &dir) == 0 &&
	       fstatat(d->base_fd, d->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       same_file(&dir, &now);
}

int sh_instdir_end(struct sh_instdir *d, struct sh_left *left)
{
	int err = 0;

	if (left)
		*left = (struct sh_left){.why = ""};
	if (d->dir_fd >= 0)
		err = still_there(d) ? remove_locked(d, left) : -ENOENT;
	close_all(d);
	return err;
}

/* Does a process of the instance live although its daemon does not? */
static bool has_clients(int dir_fd)
{
	int fd = openat(dir_fd, "lease", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	close_fd(&fd);
	return held;
}

/*
 * Takes over what a dead daemon left. Returns 0 with *d filled in, or an error as
 * sh_instance_remove(). -ENOENT: there is nothing.
 */
static int take(struct sh_instdir *d, int base_fd, const char *name)
{
	struct stat st;
	int err = 0;

	*d = (struct sh_instdir)SH_INSTDIR_NONE;
	if (strlen(name) >= sizeof(d->name))
		return -ENODATA;
	strcpy(d->name, name);
	d->dir_fd = openat(base_fd, name, DIR_FLAGS);
	if (d->dir_fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? -ENODATA : -errno;
	if (fstat(d->dir_fd, &st) < 0)
		err = -errno;
	else if (st.st_uid != geteuid())
		err = -EPERM;
	if (!err) {
		d->lock_fd = take_marked(d->dir_fd, "lock");
		err = d->lock_fd < 0 ? d->lock_fd : 0;
	}
	if (!err) {
		d->base_fd = fcntl(base_fd, F_DUPFD_CLOEXEC, 0);
		if (d->base_fd < 0)
			err = -errno;
		else if (!still_there(d))
			err = -EAGAIN;
		else if (has_clients(d->dir_fd))
			err = -ETXTBSY;
	}
	if (err)
		close_all(d);
	return err;
}

static int remove_at(int base_fd, const char *name, struct sh_left *left)
{
	struct sh_instdir d;
	int err = -EAGAIN;

	if (left)
		*left = (struct sh_left){.why = ""};
	/* Each -EAGAIN means that another process has removed it, or made another one. */
	for (int tries = 0; tries < 100 && err == -EAGAIN; tries++)
		err = take(&d, base_fd, name);
	if (!err)
		err = sh_instdir_end(&d, left);
	return err == -ENOENT ? 0 : err == -EAGAIN ? -EBUSY : err;
}

int sh_instance_remove(const char *dir, struct sh_left *left)
{
	const char *name = strrchr(dir, '/');
	char base[PATH_MAX];
	int base_fd, err;

	if (!name || !name[1] || name - dir >= PATH_MAX)
		return -EINVAL;
	snprintf(base, sizeof(base), "%.*s", (int)(name - dir), dir);
	base_fd = open(base[0] ? base : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	err = remove_at(base_fd, name + 1, left);
	close(base_fd);
	return err;
}

/*
 * For .new-X.lock, where .new-X is empty or missing: its maker or remover has died. False:
 * something else is in .new-X.
 */
static bool remove_beside(int base_fd, const char *lock, const char *name)
{
	struct stat st;
	int fd = take_marked(base_fd, lock);
	bool gone;

	if (fd < 0)
		return true;
	if (fstatat(base_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		gone = errno == ENOENT;
	else
		gone = S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
		       unlinkat(base_fd, name, AT_REMOVEDIR) == 0;
	if (gone)
		unlinkat(base_fd, lock, 0);
	close(fd);
	return gone;
}

void sh_instance_sweep(const char *base, void (*tell)(const char *dir, const struct sh_left *left))
{
	struct dirent *entry;
	DIR *dir = opendir(base);

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		const char *rest = after_new(entry->d_name);
		char path[PATH_MAX];
		struct sh_left left;

		if (rest && !strcmp(rest, SH_NEW_LOCK)) {
			left.why = "softhca did not make it, or did not make all that is in it";
			left.failed = 0;
			snprintf(left.path, sizeof(left.path), "%.*s", (int)(rest - entry->d_name),
				 entry->d_name);
			if (!remove_beside(dirfd(dir), entry->d_name, left.path))
				tell(base, &left);
		} else if ((rest && !*rest) || sh_name_valid(entry->d_name)) {
			if (!remove_at(dirfd(dir), entry->d_name, &left) || !left.path[0])
				continue;
			if (snprintf(path, sizeof(path), "%s/%s", base, entry->d_name) <
			    (int)sizeof(path))
				tell(path, &left);
		}
	}
	closedir(dir);
}
