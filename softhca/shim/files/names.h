/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Names of files: which lead into the instance, and which are device nodes.
 */
#ifndef SOFTHCA_SHIM_NAMES_H
#define SOFTHCA_SHIM_NAMES_H

#include <limits.h>

#define UVERBS_MAJOR   231
#define UVERBS_MINOR   192
#define MISC_MAJOR     10
#define SHIM_NODE_CM   1024
#define SHIM_NODE_UMAD 2048 /* and the minor number: umadN has N, issmN UMAD_MINORS + N */
#define UMAD_MINORS    64

/* The path to use instead of path: path itself, or buf. */
const char *shim_redirect(const char *path, char buf[PATH_MAX]);
/*
 * N if the redirected path is the device node uverbsN, SHIM_NODE_CM if it is rdma_cm,
 * SHIM_NODE_UMAD + N if it is umadN, SHIM_NODE_UMAD + UMAD_MINORS + N if it is issmN, else -1.
 */
int shim_node(const char *redirected);
/* What stat() says of that node. */
unsigned int shim_node_major(int node);
unsigned int shim_node_minor(int node);
unsigned int shim_node_mode(int node);

#endif
