/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the files behind xrc_peers.h share: xrc_objects.c, xrc_ways.c, xrc_messages.c. */
#ifndef XRC_PEERS_INTERNAL_H
#define XRC_PEERS_INTERNAL_H

#include "xrc_peers.h"

#define PEERS_RECEIVE (1ULL << 63) /* in wr_id, with queue << 16 and slot */
#define MOST_SLOTS    256
#define MOST_SENDS    256

extern struct peers_config config;

/* xrc_objects.c */
extern struct queue {
	size_t at; /* of its slots, in memory */
	unsigned int free[MOST_SLOTS], frees;
	uint32_t fired; /* limit events, counted by the thread that gets them */
	uint32_t answered;
	uint32_t before; /* the SRQ's number when another rank was in this place; 0: none was */
} queues[MAX_QUEUES];
extern uint8_t *memory;
extern size_t sends_at; /* of the buffers to send from, in memory */
extern unsigned int send_slots;
/* Receives again, if it is time. */
void queue_refill(int q);

/* xrc_ways.c */
extern struct way ways[MAX_RANKS]; /* by group */
int group_of(int rank);
uint32_t life_of(int rank);
/* Whether messages can go to a rank now. If not, what is missing is on its way. */
bool reachable(int to);
/* Answers a note, if there is one. */
bool hear_note(void);
/* A send has failed: the way is given up when all of its sends have completed. */
void break_way(struct way *w);
void forget_way(struct way *w);

#endif
