/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RMPP messages that come in segments, for agents that were registered with RMPP.
 */
#ifndef SOFTHCA_KERNEL_UMAD_REASSEMBLE_H
#define SOFTHCA_KERNEL_UMAD_REASSEMBLE_H

#include "fabric.h"

/*
 * A segment, MAD_SIZE octets, has come to a port that way, for such an agent; w: with the LID of
 * its sender in dlid. Answers the sender as a kernel does. If the message is whole with this
 * segment, returns it as the program reads it, *len octets, and *first is the way of its first
 * segment. The caller frees it. NULL: the message is not whole yet.
 */
uint8_t *reassemble(struct umad *u, const struct mad_node *at, const struct mad_way *w,
		    uint32_t hi_tid, const uint8_t *mad, size_t *len, struct mad_way *first);
/* Sends ABORT with that status to the sender of what has come that way. */
void reassemble_abort(struct umad *u, const struct mad_node *at, const struct mad_way *came,
		      const uint8_t *mad, uint8_t status);
/* Gives up the messages whose time is over. Returns when that of the next one is; 0: none waits. */
uint64_t reassemble_due(struct umad *u, uint64_t now);
void reassemble_forget(struct umad *u);

#endif
