/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RMPP messages for agents that were registered without RMPP.
 */
#ifndef SOFTHCA_KERNEL_UMAD_SEGMENTS_H
#define SOFTHCA_KERNEL_UMAD_SEGMENTS_H

#include <stdbool.h>

#include "fabric.h"

/*
 * A response of len octets has come to a port, for such an agent. False: it is lost, because too many
 * wait or the agent's file has no room for the first segment.
 */
bool segments_begin(struct kernel *k, const struct mad_way *w, const uint8_t *mad, size_t len);
/* The same has come again. False: it is not one of which segments wait. */
bool segments_again(struct kernel *k, const struct mad_way *w, const uint8_t *mad);
/*
 * A request that the sender's kernel makes segments of, of one or more, has come to a port, for such an
 * agent: for the first time, or again.
 */
void segments_ask(struct kernel *k, const struct mad_way *w, const uint8_t *mad, size_t len);
/* Says a program something about segments, or what is neither that nor a segment? */
bool segments_word(const uint8_t *mad);
/*
 * It has said so, by a MAD that has come to a port that way, for an agent with RMPP; w: with the LID of
 * its sender in dlid. What makes no sense ends the message, and its sender hears of that.
 */
void segments_told(struct kernel *k, const struct mad_node *at, const struct mad_way *w,
		   const uint8_t *mad);
/* Sends again what is due. When the next is; 0: none waits. */
uint64_t segments_due(struct kernel *k, uint64_t now);
void segments_forget(struct kernel *k);

#endif
