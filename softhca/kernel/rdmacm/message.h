/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Messages between ids. Those to ids of this instance never leave the daemon; mad.h says how others
 * look on the wire.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_MESSAGE_H
#define SOFTHCA_KERNEL_RDMACM_MESSAGE_H

#include <stdint.h>

#include "rdmacm-abi.h"

struct cm_id;
struct rdmacm;

enum cm_kind {
	CM_M_REQ,
	CM_M_REP,
	CM_M_RTU,
	CM_M_REJ,
	CM_M_DREQ,
	CM_M_DREP,
	CM_M_SIDR_REQ,
	CM_M_SIDR_REP,
	CM_M_MRA, /* only on the wire */
};
/* Which message a REJ or an MRA is about. */
enum { CM_ABOUT_REQ, CM_ABOUT_REP, CM_ABOUT_OTHER };
/*
 * Bytes that programs may send in each. Of REQ and SIDR_REQ, ids with IP addresses use CM_IP_HEADER
 * themselves.
 */
#define CM_IP_HEADER	 36
#define CM_REQ_DATA	 92
#define CM_REP_DATA	 196
#define CM_REJ_DATA	 148
#define CM_SIDR_REQ_DATA 216
#define CM_SIDR_REP_DATA 136

struct cm_message {
	struct cm_message *prev, *next;
	enum cm_kind kind;
	uint64_t from, to;  /* comm; to 0: by address */
	uint16_t far;	    /* the other end's LID, elsewhere on the wire; 0: in this instance */
	uint32_t hca, port; /* where it is sent */
	uint8_t sgid[16], dgid[16];
	union cm_sockaddr src, dst; /* of requests */
	uint16_t ps;
	uint8_t qp_type;
	uint8_t mtu; /* of REQ: that of the path, for both sides */
	int status;  /* of REJ, SIDR_REP */
	uint32_t psn;
	struct cm_conn_param param;
	struct cm_ece ece;
	/* The rest is for the wire alone. */
	uint8_t about;	     /* of REJ, MRA */
	uint8_t patience;    /* of MRA: so long, as 4.096 us << patience */
	uint8_t ack_timeout; /* of REQ: of the QP */
	uint8_t rate, tos;   /* of REQ: of the path */
	uint16_t pkey;	     /* of requests */
	uint32_t peer_qpn;   /* of DREQ: that of its receiver */
};

/* From the id to its peer. NULL: no memory; it is as if the message were lost. */
struct cm_message *cm_message_new(const struct cm_id *id, enum cm_kind kind);
/* An answer to that message, where the id that it is for has ended. */
struct cm_message *cm_message_answer(const struct cm_message *to, enum cm_kind kind);
void cm_message_send(struct rdmacm *cm, struct cm_message *m); /* NULL: does nothing */
void cm_messages_deliver(struct rdmacm *cm);
void cm_messages_free(struct rdmacm *cm);

#endif
