/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Makes, recognises and removes the directory of an instance; the daemon and the command use the
 * same code. softhca/protocol.h says how a directory is known to be an instance's, and what is
 * there at each moment of making and removing it.
 */
#ifndef SOFTHCA_HOST_INSTDIR_H
#define SOFTHCA_HOST_INSTDIR_H

#include "contents.h"

/* An instance directory whose lock this process holds. */
struct sh_instdir {
	int base_fd, dir_fd, lock_fd;
	int place_fd;  /* the lock of the place itself, or -1 */
	char name[80]; /* its name below base_fd at this moment */
};
#define SH_INSTDIR_NONE                                                                            \
	{                                                                                          \
		.base_fd = -1, .dir_fd = -1, .lock_fd = -1, .place_fd = -1                         \
	}

/*
 * Makes a directory below base, under a name of its own that no client looks for. On -errno nothing
 * is left.
 */
int sh_instdir_make(struct sh_instdir *d, const char *base);

/*
 * Gives it the name that clients look for. -EEXIST: something has that name already. If two
 * processes do this at once, one succeeds.
 */
int sh_instdir_publish(struct sh_instdir *d, const char *name);

/*
 * Removes it and closes the descriptors. Returns the same as sh_contents_remove(). If something
 * stays, so does the lock, unlocked.
 */
int sh_instdir_end(struct sh_instdir *d, struct sh_left *left);

/*
 * Removes what a dead daemon left. 0: nothing is there any more. -EBUSY: a daemon lives there, or
 * another process is removing it. -ETXTBSY: programs that used it still live. -ENODATA: it is not
 * one of this softhca's instances, and is untouched. -EPERM: it belongs to another user. Other
 * errors as sh_contents_remove().
 */
int sh_instance_remove(const char *dir, struct sh_left *left);

/*
 * Removes all instances below the directory that are dead or half made. Calls tell for those that
 * had to stay.
 */
void sh_instance_sweep(const char *base, void (*tell)(const char *dir, const struct sh_left *left));

#endif
