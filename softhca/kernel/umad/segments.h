/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RMPP messages for agents that were registered without RMPP.
 */
#ifndef SOFTHCA_KERNEL_UMAD_SEGMENTS_H
#define SOFTHCA_KERNEL_UMAD_SEGMENTS_H

#include <stdbool.h>

#include "fabric.h"

/*
 * A response of len octets has come to a port, for such an agent. False: it is lost, because too
 * many wait or the agent's file has no room for the first segment.
 */
bool segments_begin(struct umad *u, const struct mad_way *w, const uint8_t *mad, size_t len);
/* The same response has come again. False: none of its segments wait. */
bool segments_again(struct umad *u, const struct mad_way *w, const uint8_t *mad);
/*
 * A request that the sender's kernel cuts into one or more segments has come to a port, for such an
 * agent: for the first time, or again.
 */
void segments_ask(struct umad *u, const struct mad_way *w, const uint8_t *mad, size_t len);
/* Is this a word of a program about segments, or neither such a word nor a segment? */
bool segments_word(const uint8_t *mad);
/*
 * Such a word has come to a port that way, for an agent with RMPP; w: with the LID of its sender in
 * dlid. A word that makes no sense ends the message, and its sender hears of that.
 */
void segments_told(struct umad *u, const struct mad_node *at, const struct mad_way *w,
		   const uint8_t *mad);
/* Sends again what is due. Returns when the next is due; 0: none waits. */
uint64_t segments_due(struct umad *u, uint64_t now);
void segments_forget(struct umad *u);

#endif
