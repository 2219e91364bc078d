/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the XRC programs of this folder share to reach each other, as the libraries of the time do
 * it. The ranks of a group (of a host, unless the program says otherwise) share a domain by a file.
 * A rank has a few XRC SRQs, one CQ, and a *way* to each group that it sends to: a send QP of its
 * own, and there a receive QP that the first rank which is asked creates and each further one
 * registers with. Connections are made when the first message needs them, by notes that the
 * program's carrier brings.
 *
 * Each message is verified: contents, length, that it is the sender's next one, came to the SRQ of
 * its size and through the receive QP of that sender. Where ranks may die (mortal), what a broken
 * way had not delivered is sent again over a new one, and a message that had arrived all the same
 * is recognised; so is one to a dead rank that reaches its successor because their SRQs have the
 * same number.
 *
 * No locks: all of it belongs to the rank's main thread. peers_work() never waits.
 */
#ifndef XRC_PEERS_H
#define XRC_PEERS_H

#include <infiniband/verbs.h>

#include "xrc_ranks.h"

/* Kinds of notes. Those from NOTE_OWN on are the program's. */
enum { NOTE_NEW = 1, NOTE_JOIN, NOTE_MADE, NOTE_JOINED, NOTE_REFUSED, NOTE_OWN };

struct message {
	uint32_t from, from_life, to, to_life;
	uint32_t number, len; /* of those from this sender to this receiver; with this header */
	uint32_t kind, value; /* the program's */
	uint8_t body[];
};

struct peers_config {
	int queues;
	uint32_t size[MAX_QUEUES];	/* the longest message of each, ascending */
	unsigned int slots[MAX_QUEUES]; /* receives of each */
	unsigned int low[MAX_QUEUES];	/* receives are posted again when fewer than these are left;
					   0: at once */
	bool limit[MAX_QUEUES];		/* and only after the SRQ's limit event has said so */
	unsigned int window;		/* messages on the way to a group */
	size_t extra; /* bytes of registered memory for the program, at hca.extra */
	int access;   /* of all memory and QPs, beside local writes */
	bool mortal;
	int retry_ms; /* notes that are not answered are sent again; 0: their carrier loses none */
	int (*group)(int rank);
	int (*first)(
		int rank); /* the rank to ask for a new receive QP when this one is to be reached */
	void (*tell)(int to, const struct note *note);
	bool (*hear)(struct note *note);
	int (*choose)(const struct message *m); /* the queue, when not by size */
	void (*received)(const struct message *m);
	void (*immediate)(const struct ibv_wc *wc);
	void (*completed)(const struct ibv_wc *wc); /* of work requests of the program's own */
};

/* In the wr_id of a work request of the program's own. */
#define PEERS_OWN (1ULL << 62)

struct hca {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_xrc_domain *domain;
	struct ibv_srq *srq[MAX_QUEUES];
	uint16_t lid;
	uint8_t *extra;
};
extern struct hca hca;

/* This rank's connection to a group: a send QP and, there, its receive QP. */
struct way {
	struct ibv_qp *qp;
	enum { WAY_NONE, WAY_ASKED, WAY_READY, WAY_BROKEN } state;
	uint32_t serial, rcv_qpn, psn;
	int asked;
	uint32_t asked_life;
	uint64_t asked_at;
	unsigned int outstanding; /* posted, not completed */
	unsigned int failed;	  /* to be sent again */
};

/* Another rank: whether it is registered with the receive QP of the way to its group, and what was
 * sent and received. */
struct peer {
	bool joined, asked;
	uint64_t asked_at;
	uint32_t life, from_life;
	uint32_t srqn[MAX_QUEUES];
	uint32_t sent, received;
};
extern struct peer peer[MAX_RANKS];

/* The receive QP that the messages of a rank come through. */
struct source {
	uint32_t qpn, serial, life;
	struct note answer;
	bool mine; /* this rank created it */
};
extern struct source source[MAX_RANKS];

void peers_open(const struct peers_config *config);
/* Everything is taken down, in the order in which a library does it. The others may still be at
 * work. */
void peers_close(void);
/* Gives up this rank's registration with the receive QP of that rank's messages. */
void peers_leave(int from);

/* Poll once, answer notes, mend what is broken. Whether there was something to do. */
bool peers_work(void);
/* A message of len bytes, header included. Waits, working, for the connection and for its turn. */
void peers_send(int to, uint32_t kind, uint32_t value, uint32_t len);
/* The way to a rank once that is connected, for work requests of the program's own. */
struct way *peers_reach(int to);
/* How often a way has broken. */
unsigned int peers_breaks(void);
/* Limit events of a queue so far. */
uint32_t peers_limit_events(int q);
/* Wait until all that was sent has been acknowledged. */
void peers_flush(void);
/* Wait until this many have come from that rank. */
void peers_await(int from, uint32_t received);

/* ibv_modify_qp or ibv_modify_xrc_rcv_qp, to INIT and on; checked. */
void make_ready(struct ibv_qp *qp, uint32_t rcv_qpn, uint16_t dlid, uint32_t dest_qpn,
		uint32_t psn);

#endif
