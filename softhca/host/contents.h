/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Knows what an instance directory holds, by the list in softhca/protocol.h, and removes exactly
 * that.
 */
#ifndef SOFTHCA_HOST_CONTENTS_H
#define SOFTHCA_HOST_CONTENTS_H

/*
 * The first thing that had to stay: its path relative to the instance, and the reason. path is ""
 * if nothing stayed.
 */
struct sh_left {
	char path[256];
	const char *why;
	int failed; /* the errno of a call that failed; 0: it is not softhca's to remove */
};

/*
 * Removes what the list has, except for the lock, from the instance directory dirfd. The caller
 * holds the lock. Never follows a link, enters another file system or touches what belongs to
 * another user. Returns 0, -ENOTEMPTY if something is left that the list does not have, or the
 * -errno of a removal that failed. *left tells where.
 */
int sh_contents_remove(int dirfd, struct sh_left *left);

#endif
