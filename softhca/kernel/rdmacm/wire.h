/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Messages to and from ids of other instances, or of other implementations, on the wire. Nothing
 * that comes from there is trusted: a message changes an id only if it is of the peer that the id
 * has.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_WIRE_H
#define SOFTHCA_KERNEL_RDMACM_WIRE_H

struct cm_message;
struct rdmacm;
struct sh_wire_mad;

/* Sends it. It may be lost, as on any network. */
void cm_wire_leave(struct rdmacm *cm, const struct cm_message *m);
/* Operation of the room (softhca/kernel/room.h). */
void cm_wire_came(struct rdmacm *cm, const struct sh_wire_mad *w);

#endif
