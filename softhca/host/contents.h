/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What an instance directory holds, by the list of softhca/wire.h, and the removal of exactly that.
 */
#ifndef SOFTHCA_HOST_CONTENTS_H
#define SOFTHCA_HOST_CONTENTS_H

/*
 * The first thing that had to be left: where it is below the instance, and why it stayed. path is
 * "" when nothing was.
 */
struct sh_left {
	char path[256];
	const char *why;
};

/*
 * Remove what the list has, but for the lock, from the instance directory that dirfd is. The caller
 * holds the lock. Never follows a link, never enters another file system, never touches what
 * belongs to another user. 0, or -ENOTEMPTY when something is left that the list does not have, or
 * the -errno of a removal that failed; *left tells where.
 */
int sh_contents_remove(int dirfd, struct sh_left *left);

#endif
