/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The names in a directory of /proc, read without malloc(). */
#ifndef SOFTHCA_HOST_DIRENTS_H
#define SOFTHCA_HOST_DIRENTS_H

#include <dirent.h>

#include "sys.h"

struct sh_dirents {
	int fd;
	long at, got; /* got < 0: an error, where the names ended */
	_Alignas(struct dirent64) char text[1024];
};

/* 0 or -errno. sh_close(d->fd) closes it. */
static inline int sh_dirents_open(struct sh_dirents *d, const char *path)
{
	d->at = d->got = 0;
	d->fd = sh_open_own(path, O_RDONLY | O_DIRECTORY);
	return d->fd < 0 ? d->fd : 0;
}

/* The next name; NULL: there are no more. */
static inline const char *sh_dirents_next(struct sh_dirents *d)
{
	const struct dirent64 *entry;

	if (d->at >= d->got) {
		d->at = 0;
		d->got = sh_sys(syscall(SYS_getdents64, d->fd, d->text, sizeof(d->text)));
		if (d->got <= 0)
			return NULL;
	}
	entry = (const struct dirent64 *)(d->text + d->at);
	d->at += entry->d_reclen;
	return entry->d_name;
}

#endif
