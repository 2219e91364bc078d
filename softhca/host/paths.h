/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Where instances live, and their names. Functions return 0 or -errno and write at most PATH_MAX bytes. */
#ifndef SOFTHCA_HOST_PATHS_H
#define SOFTHCA_HOST_PATHS_H

#include <limits.h>
#include <stdbool.h>

/*
 * The directory of this user's instances: $SOFTHCA_DIR, else $XDG_RUNTIME_DIR/softhca when that is ours, else
 * /dev/shm/softhca-UID, else ${TMPDIR:-/tmp}/softhca-UID. With create it is made (mode 0700). -EPERM: it exists and
 * belongs to somebody else or is open to others; -ENOENT: it is not there and was not to be made.
 */
int sh_base_dir(char path[PATH_MAX], bool create);

/* A name is letters, digits, '.', '_' and '-', does not begin with '.' or '-', and has at most 64 of them. */
bool sh_name_valid(const char *name);

/* The directory of an instance given as a directory (anything with a '/') or as a name. -EINVAL, or as above. */
int sh_instance_dir(char path[PATH_MAX], const char *instance);

/* Whether a daemon lives there: 1 or 0, -errno when that cannot be told. */
int sh_instance_alive(const char *dir);

/* Remove what a dead daemon left: the directory with all it holds. */
int sh_instance_remove(const char *dir);

#endif
