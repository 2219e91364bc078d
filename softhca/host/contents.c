// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Knows what an instance directory holds, by the list in softhca/protocol.h, and removes exactly
 * that.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contents.h"
#include "softhca/protocol.h"

struct content {
	char type;
	const char *path;
};

#define CONTENT(t, p) {.type = t, .path = p},
static const struct content contents[] = {SH_INSTANCE_CONTENTS(CONTENT)};

#define NCONTENTS (sizeof(contents) / sizeof(contents[0]))

static bool is_type(char type, mode_t mode)
{
	switch (type) {
	case 'f':
		return S_ISREG(mode);
	case 'd':
		return S_ISDIR(mode);
	case 'p':
		return S_ISFIFO(mode);
	case 's':
		return S_ISSOCK(mode);
	case 'l':
		return S_ISLNK(mode);
	}
	return false;
}

/* The number of digits that '#' or '@' stands for. */
static size_t digits(const char *name, bool hex)
{
	size_t n = 0;

	while (n < 10 &&
	       (isdigit((unsigned char)name[n]) || (hex && name[n] >= 'a' && name[n] <= 'f')))
		n++;
	return n;
}

/*
 * No pattern has a digit of its own behind a number, so a number takes as many digits as it can. In
 * "##" the second number takes the digits from the 11th on.
 */
static bool fits(const char *pattern, const char *name)
{
	for (; *pattern; pattern++) {
		size_t n = 1;

		if (*pattern == '#' || *pattern == '@')
			n = digits(name, *pattern == '@');
		else if (*pattern != *name)
			n = 0;
		if (!n)
			return false;
		name += n;
	}
	return !*name;
}

/* The line of the list for an entry of the directory whose own line is parent, or NULL. */
static const struct content *find(const struct content *parent, const char *name)
{
	size_t len = parent ? strlen(parent->path) : 0;

	for (size_t i = 0; i < NCONTENTS; i++) {
		const char *rest = contents[i].path;

		if (parent) {
			if (strncmp(rest, parent->path, len) || rest[len] != '/')
				continue;
			rest += len + 1;
		}
		if (!strchr(rest, '/') && fits(rest, name))
			return &contents[i];
	}
	return NULL;
}

/* ---- removal ---- */

struct removal {
	dev_t dev;
	struct sh_left *left;
	char path[PATH_MAX]; /* what is being looked at, relative to the instance */
	int err;
};

/*
 * Keeps the first thing that has to stay, with the reason, and the first error. why is NULL if a
 * call failed with err.
 */
static void leave(struct removal *r, int err, const char *why)
{
	if (r->left && !r->left->path[0]) {
		snprintf(r->left->path, sizeof(r->left->path), "%.*s",
			 (int)sizeof(r->left->path) - 1, r->path);
		r->left->why = why ?: strerror(-err);
		r->left->failed = why ? 0 : -err;
	}
	if (!r->err)
		r->err = err;
}

static bool clear(struct removal *r, int fd, const struct content *parent, size_t len);

/*
 * Is something mounted there? The device number does not tell: the same file system may be mounted
 * there once more. Kernels before 5.8 do not tell either.
 */
static bool is_mounted(int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &st) == 0 &&
	       st.stx_attributes & st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT;
}

/* True: the entry is gone. */
static bool remove_entry(struct removal *r, int dirfd, const char *name,
			 const struct content *parent, size_t len)
{
	const struct content *c = find(parent, name);
	struct stat st;
	int fd;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	if (!c || !is_type(c->type, st.st_mode)) {
		leave(r, -ENOTEMPTY, "softhca did not make it");
		return false;
	}
	/* Of another file system; is_mounted() finds what is mounted from the same one. */
	if (st.st_dev != r->dev) {
		leave(r, -EBUSY, "something is mounted there");
		return false;
	}
	if (st.st_uid != geteuid()) {
		leave(r, -ENOTEMPTY, "it belongs to another user");
		return false;
	}
	if (c->type != 'd') {
		if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
			return true;
		leave(r, -errno, NULL);
		return false;
	}
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		leave(r, -errno, NULL);
		return false;
	}
	if (is_mounted(fd)) {
		close(fd);
		leave(r, -EBUSY, "something is mounted there");
		return false;
	}
	if (!clear(r, fd, c, len))
		return false;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return true;
	leave(r, -errno, NULL);
	return false;
}

/*
 * Reads the directory again until it finds nothing more to remove: what readdir() returns while
 * entries are being removed depends on the file system.
 */
static bool clear(struct removal *r, int fd, const struct content *parent, size_t len)
{
	bool again = true, empty = false;
	struct dirent *entry;
	DIR *dir = fdopendir(fd);

	if (!dir) {
		leave(r, -errno, NULL);
		close(fd);
		return false;
	}
	while (again) {
		again = false;
		empty = true;
		rewinddir(dir);
		while ((entry = readdir(dir))) {
			const char *name = entry->d_name;
			int n;

			if (!strcmp(name, ".") || !strcmp(name, "..") ||
			    (!parent && !strcmp(name, "lock")))
				continue;
			n = snprintf(r->path + len, sizeof(r->path) - len, "%s%s", len ? "/" : "",
				     name);
			if (n > 0 && (size_t)n < sizeof(r->path) - len &&
			    remove_entry(r, dirfd(dir), name, parent, len + (size_t)n))
				again = true;
			else
				empty = false;
			r->path[len] = '\0';
		}
	}
	closedir(dir);
	return empty;
}

int sh_contents_remove(int dirfd, struct sh_left *left)
{
	struct removal r = {.left = left};
	struct stat st;
	int fd;

	if (left)
		*left = (struct sh_left){.why = ""};
	if (fstat(dirfd, &st) < 0)
		return -errno;
	r.dev = st.st_dev;
	/* A descriptor of its own: readdir() moves the offset, which duplicates share. */
	fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	clear(&r, fd, NULL, 0);
	return r.err;
}
