/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ids, as rdma_create_id() makes them, and requests bring them.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_ID_H
#define SOFTHCA_KERNEL_RDMACM_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/kernel/lists.h"
#include "rdmacm-abi.h"

struct cm_channel;
struct cm_event;
struct cm_host;
struct cm_member;
struct cm_port;
struct rdmacm;

/* What the program has done with it. */
enum cm_state {
	CM_IDLE,
	CM_BOUND,
	CM_ADDR_ASKED,
	CM_ADDR_RESOLVED,
	CM_ROUTE_ASKED,
	CM_ROUTE_RESOLVED,
	CM_CONNECTED, /* from connect, or of a request */
	CM_DISCONNECTED,
	CM_LISTENING,
};
/* Where its exchange of messages is (rc.c, sidr.c). */
enum cm_exchange {
	CM_X_NONE,
	CM_X_REQ_SENT,
	CM_X_REQ_RECEIVED,
	CM_X_REP_SENT,
	CM_X_REP_RECEIVED,
	CM_X_ESTABLISHED,
	CM_X_DREQ_SENT,
	CM_X_DREQ_RECEIVED,
	CM_X_TIMEWAIT,
	CM_X_SIDR_SENT,
	CM_X_SIDR_RECEIVED,
	CM_X_ENDED,
};

struct cm_path {
	uint8_t sgid[16], dgid[16];
	uint16_t slid, dlid, pkey;
	uint8_t mtu, rate, life; /* as the field encodes them */
	uint8_t qos_class;
};

struct cm_id {
	struct rdmacm *cm;
	uint32_t host, number;
	uint64_t comm; /* tells it from all others that there ever were */
	uint64_t uid;
	bool known;   /* the program knows it: false until a request is accepted */
	bool hidden;  /* of a request that the program has not read */
	bool removed; /* its device has failed: only DESTROY_ID takes it */
	/*
	 * service: the port space of its ports and services, which of an AF_IB id its address says.
	 */
	uint16_t ps, service;
	uint8_t qp_type;
	struct cm_channel *channel;
	struct cm_id *prev, *next; /* of the channel */
	enum cm_state state;
	struct cm_event *events; /* that were not read */
	uint32_t reported;	 /* those that were */

	union cm_sockaddr src, dst;
	bool device; /* it has hca and port */
	uint32_t hca, port;
	struct cm_port *bound;
	struct cm_id *pprev, *pnext; /* of the port */
	bool reuse, afonly, afonly_set;
	uint8_t tos, ack_timeout;
	bool ack_timeout_set; /* 0 is a time-out, too: none */
	bool has_path;
	struct cm_path path;
	int found; /* what resolving has found: 0 or -errno */

	uint32_t backlog; /* of a listener: how many more requests may wait unread */
	/* Of a listener: those whose requests wait for room in its backlog, in their order. */
	struct cm_id *waiting;
	struct cm_id *full; /* of such a sender: that listener */
	struct cm_id *wprev, *wnext;

	enum cm_exchange x;
	uint64_t peer; /* comm; of a peer elsewhere on the wire as elsewhere() in wire.c makes it */
	uint16_t far;  /* the LID of a peer elsewhere on the wire; 0: it is in this instance */
	struct cm_conn_param sent;
	struct cm_ece ece, peer_ece;
	uint32_t psn, peer_psn, qpn, peer_qpn, qkey;
	uint8_t responder_resources, initiator_depth, retry, rnr;
	uint16_t refused;   /* the status of the answer that ended a request, plus 1; 0: none did */
	bool told;	    /* of the disconnection */
	uint64_t due;	    /* cm_id_timer() sets it; 0: nothing is due */
	uint32_t due_place; /* in the heap (due.c) */
	unsigned int tries; /* left, of the message that waits for its answer */

	struct cm_member *members;
	UT_hash_handle hh, ha; /* by comm; by peer, if of a request */
};

struct cm_host *cm_host_of(const struct cm_id *id);
/* 0 or -ENOMEM. */
int cm_id_new(struct cm_channel *ch, uint32_t host, struct cm_id **out);
/*
 * Ends its exchange, which tells the peer, and all that it has. *reported: how many of its events
 * were read.
 */
void cm_id_destroy(struct cm_id *id, uint32_t *reported);
/*
 * Its device has failed: ends all that it has, and tells its program.
 */
void cm_id_remove(struct cm_id *id);
/* 0, -ENOENT: there is no such id; -EINVAL: it is another channel's. */
int cm_id_get_any(struct cm_channel *ch, uint32_t number, struct cm_id **out);
/* The same; -ENXIO, from kernels of OFED's time -EIO: its device has failed. */
int cm_id_get(struct cm_channel *ch, uint32_t number, struct cm_id **out);
struct cm_id *cm_id_by_comm(struct rdmacm *cm, uint64_t comm); /* or NULL */
/* The id of a request that came from that comm. */
struct cm_id *cm_id_asked_by(struct rdmacm *cm, uint64_t comm);
void cm_id_asked(struct cm_id *id); /* makes it so, by its peer */
/* Moves it with its unread events. */
void cm_id_migrate(struct cm_id *id, struct cm_channel *to);
bool cm_id_is_ud(const struct cm_id *id);
uint32_t cm_id_qkey(const struct cm_id *id); /* of UD QPs */
/* Says that something of it is due then; 0: nothing. */
void cm_id_timer(struct cm_id *id, uint64_t due);
/* Its request waits for room in the listener's backlog; it does not any more. */
void cm_id_wait(struct cm_id *id, struct cm_id *listener);
void cm_id_wait_no_more(struct cm_id *id);

#endif
