/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The names of instances, and which directory a name means. Functions return 0 or -errno and write
 * at most PATH_MAX bytes.
 */
#ifndef SOFTHCA_HOST_PATHS_H
#define SOFTHCA_HOST_PATHS_H

#include <limits.h>
#include <stdbool.h>

/*
 * A name has at most 64 letters, digits, '.', '_' and '-', does not begin with '.' or '-', and is
 * not "lock".
 */
bool sh_name_valid(const char *name);

/*
 * The directory of an instance, which is given as a directory (with a '/') or as a name. A name is
 * looked for in every place of places.h: an instance that runs, else one that exists, else where it
 * could be. -EINVAL; -ENOENT: there is no place.
 */
int sh_instance_dir(char path[PATH_MAX], const char *instance);

/*
 * Does a daemon live there, or does a remover hold it at this moment? 1 or 0, or -errno if that
 * cannot be told.
 */
int sh_instance_alive(const char *dir);

#endif
