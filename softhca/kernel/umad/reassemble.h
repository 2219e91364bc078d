/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RMPP messages that come in segments, for agents that were registered with RMPP.
 */
#ifndef SOFTHCA_KERNEL_UMAD_REASSEMBLE_H
#define SOFTHCA_KERNEL_UMAD_REASSEMBLE_H

#include "fabric.h"

/*
 * A segment, MAD_SIZE octets, has come to a port that way, for such an agent; w: with the LID of its
 * sender in dlid. Says the sender what a kernel says about it. The message, if it has become whole with
 * that, as the program reads it: *len octets, and *first the way of its first segment. The caller frees
 * it. NULL: there is none yet.
 */
uint8_t *reassemble(struct kernel *k, const struct mad_node *at, const struct mad_way *w,
		    uint32_t hi_tid, const uint8_t *mad, size_t *len, struct mad_way *first);
/* ABORT with that status, to who has sent what has come that way. */
void reassemble_abort(struct kernel *k, const struct mad_node *at, const struct mad_way *came,
		      const uint8_t *mad, uint8_t status);
/* Gives up what has been waited for too long. When the next will have been; 0: none waits. */
uint64_t reassemble_due(struct kernel *k, uint64_t now);
void reassemble_forget(struct kernel *k);

#endif
