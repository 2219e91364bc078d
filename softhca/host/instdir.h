/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The directory of an instance: made, recognised, removed. The daemon and the command use the same
 * code. How a directory is known to be an instance's, and what is there at each moment of making
 * and removing, softhca/wire.h says.
 */
#ifndef SOFTHCA_HOST_INSTDIR_H
#define SOFTHCA_HOST_INSTDIR_H

#include "contents.h"

/* An instance directory whose lock this process holds. */
struct sh_instdir {
	int base_fd, dir_fd, lock_fd;
	int place_fd;		/* the place's own lock, or -1 */
	char name[80];		/* below base_fd, at this moment */
};
#define SH_INSTDIR_NONE {.base_fd = -1, .dir_fd = -1, .lock_fd = -1, .place_fd = -1}

/*
 * Make one below that directory, under a name of its own that no client looks for. -errno:
 * nothing is left.
 */
int sh_instdir_make(struct sh_instdir *d, const char *base);

/*
 * Give it the name that clients look for. -EEXIST: something has that name already. One of two that
 * do this at once succeeds.
 */
int sh_instdir_publish(struct sh_instdir *d, const char *name);

/*
 * Remove it and close the descriptors: as sh_contents_remove(). What is left keeps its lock, free.
 */
int sh_instdir_end(struct sh_instdir *d, struct sh_left *left);

/*
 * Remove what a dead daemon left. 0: nothing is there any more. -EBUSY: a daemon lives there, or
 * another process is removing it. -ETXTBSY: programs that had it still live. -ENODATA: it is none
 * of our instances, and has not been touched. -EPERM: it belongs to another user. Others as
 * sh_contents_remove().
 */
int sh_instance_remove(const char *dir, struct sh_left *left);

/*
 * Remove all instances below the directory that are dead or half made; tell about those that could
 * not go.
 */
void sh_instance_sweep(const char *base, void (*tell)(const char *dir, const struct sh_left *left));

#endif
