/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Names of files: which lead into the instance, and which are device nodes.
 */
#ifndef SOFTHCA_SHIM_NAMES_H
#define SOFTHCA_SHIM_NAMES_H

#include <limits.h>

#define UVERBS_MAJOR 231
#define UVERBS_MINOR 192

/* The path to use instead of path: path itself, or buf. */
const char *shim_redirect(const char *path, char buf[PATH_MAX]);
/* N if the redirected path is the device node uverbsN, else -1. */
int shim_node(const char *redirected);

#endif
