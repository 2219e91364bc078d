/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The places where this user's instances can be, in order: $SOFTHCA_DIR/softhca alone when that is
 * set (a relative one means the current directory); else $XDG_RUNTIME_DIR/softhca when
 * XDG_RUNTIME_DIR is ours, /dev/shm/softhca-UID, $TMPDIR/softhca-UID, /tmp/softhca-UID, and, to
 * look in only, /run/user/UID/softhca: an instance may have been made by a process with another
 * environment.
 */
#ifndef SOFTHCA_HOST_PLACES_H
#define SOFTHCA_HOST_PLACES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define SH_PLACES    5
#define SH_PLACE_WHY (PATH_MAX + 128) /* room for a reason */

/* Whether the user has named the place: then there is no other. */
bool sh_place_named(void);

/*
 * The place of that index, below SH_PLACES, absolute; links above it are resolved. -ENOENT: this
 * one does not exist for this process, or is an earlier one again. Another -errno: SOFTHCA_DIR
 * cannot be resolved.
 */
int sh_place(unsigned int index, char path[PATH_MAX]);

/*
 * Whether it is a directory of ours that no other user can write to or replace (where those further up than
 * the one above it are no other user's): 0, -ENOENT when it is not there,
 * -ENOTDIR, -EPERM, ... with the reason in why.
 */
int sh_place_check(const char *path, char *why, size_t len);

/*
 * The place to make instances in: the first that is there, or can be made (mode 0700), and can be
 * written. Where none is, the -errno of the first, and in tried each place with its reason.
 */
int sh_place_make(char path[PATH_MAX], char *tried, size_t len);

#endif
