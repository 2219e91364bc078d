/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * rdma_cm as a room of the daemon.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_ROOM_H
#define SOFTHCA_KERNEL_RDMACM_ROOM_H

#include <stdbool.h>
#include <stddef.h>

struct conn;
struct kernel;
struct out;
struct rdmacm;
struct server;

extern const struct room rdmacm_room;

/*
 * What the room keeps, once it has been made: for the subnet administrator, which asks it for
 * groups and paths.
 */
struct rdmacm *cm_of(struct kernel *k);

/* requests.c */
int cm_serve(struct server *s, struct conn *c, const void *m, size_t len, bool late);
/* show.c */
void cm_show(struct rdmacm *cm, struct out *o);

#endif
