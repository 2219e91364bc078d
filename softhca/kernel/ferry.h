/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Copies to and from the memory of processes that only the daemon may reach (host/ferry.h). */
#ifndef SOFTHCA_KERNEL_FERRY_H
#define SOFTHCA_KERNEL_FERRY_H

struct kernel;

/* The calling thread, the daemon's, makes such copies until ferry_end(). */
void ferry_begin(struct kernel *k);
void ferry_end(struct kernel *k);
/* Makes those that have been asked for. */
void ferry_serve(struct kernel *k);

#endif
