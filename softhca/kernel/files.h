/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Files that programs close: contexts, their memory, event queues.
 */
#ifndef SOFTHCA_KERNEL_FILES_H
#define SOFTHCA_KERNEL_FILES_H

struct server;

/*
 * Acts on each file that has been closed so far. Precedes each request, which keeps the order that
 * a kernel would have seen.
 */
void files_drain(struct server *s);

#endif
