/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The places where this user's instances can be, in order. If SOFTHCA_DIR is set,
 * $SOFTHCA_DIR/softhca is the only one (a relative path means the current directory). Else they are
 * $XDG_RUNTIME_DIR/softhca if the user owns that directory, /dev/shm/softhca-UID,
 * $TMPDIR/softhca-UID and /tmp/softhca-UID. /run/user/UID/softhca is only searched: a process with
 * another environment may have made an instance there.
 */
#ifndef SOFTHCA_HOST_PLACES_H
#define SOFTHCA_HOST_PLACES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define SH_PLACES    5
#define SH_PLACE_WHY (PATH_MAX + 128) /* room for a reason */

/* Has the user named the place? Then there is no other. */
bool sh_place_named(void);

/*
 * The place of that index, below SH_PLACES, as an absolute path; links above it are resolved.
 * -ENOENT: this process does not have it, or it is the same as an earlier one. Another -errno:
 * SOFTHCA_DIR cannot be resolved.
 */
int sh_place(unsigned int index, char path[PATH_MAX]);

/*
 * Is the place a directory of this user's that no other user can write to or replace? (Directories
 * further up than the one above it must not be another user's.) 0; -ENOENT: it does not exist;
 * -ENOTDIR, -EPERM, ...: the reason is in why.
 */
int sh_place_check(const char *path, char *why, size_t len);

/*
 * The place to make instances in: the first that exists, or can be made (mode 0700), and can be
 * written. If there is none, returns the -errno of the first; tried then has each place with its
 * reason.
 */
int sh_place_make(char path[PATH_MAX], char *tried, size_t len);

#endif
