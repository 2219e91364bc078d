// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Every kind of QP behind the same few calls, so that a case which runs for one kind runs for all.
 * A case names the kinds that it leaves out, each with the reason, which the output shows.
 */
#ifndef KINDS_H
#define KINDS_H

#include "fake-kernel.h"

enum kind {
	KIND_RC,
	KIND_UC,
	KIND_UD,
	KIND_RC_SRQ,
	KIND_UC_SRQ,
	KIND_UD_SRQ,
	KIND_XRC,	   /* of ibv_create_qp(), both directions */
	KIND_XRC_RCV_QP,   /* sends by one, receives by a receive QP of the kernel's */
	KIND_XRC_MAINLINE, /* the same, where a sending QP's number has no bit 23 */
	KINDS
};

/* Where the receives of a kind are. */
enum receives_from { OWN_QUEUE, PLAIN_SRQ, XRC_SRQ };

struct kind_info {
	const char *name;
	enum ibv_qp_type type;
	enum receives_from from;
};
extern const struct kind_info kind_info[KINDS];

static inline int is_xrc(enum kind kind)
{
	return kind_info[kind].from == XRC_SRQ;
}

/* A QP of a kind, with what it receives through. */
struct lane {
	enum kind kind;
	struct dev_cq *scq, *rcq;
	struct dev_qp qp;
	struct dev_srq own_srq, *srq; /* NULL: a receive queue of its own */
	uint32_t recv_qpn;	      /* what its receive completions have for a QP number */
	uint32_t sent, received;      /* completions that the device has written */
};

/* Of the running test. */
extern struct ibv_context *ctx;
extern struct ibv_pd *pd;
extern struct ibv_xrc_domain *domain;

enum { LANE_SENDS = 60, LANE_RECVS = 63 };

void lane_open(struct lane *l, enum kind kind, struct dev_cq *scq, struct dev_cq *rcq);
/* The same, on the SRQ of another lane of this kind. */
void lane_open_beside(struct lane *l, const struct lane *other);
void lane_close(struct lane *l);
/* Parts of lane_close(), for what goes alone; lane_close() leaves out what is gone. */
void lane_destroy_qp(struct lane *l);
void lane_destroy_srq(struct lane *l);
void lane_reset_qp(struct lane *l);

void lane_post_send(struct lane *l, uint64_t id);
void lane_post_recv(struct lane *l, uint64_t id);

/* Where a lane of datagrams sends to. */
struct ibv_ah *lane_ah(void);

/* What receives carry as immediate data, but for datagrams; and the source QP of those. */
enum { LANE_IMM = 0x01020304, LANE_SOURCE_QPN = 0xabcdef, LANE_LENGTH = 1234 };

/* The device completes the oldest that was posted. code: of the CQE; syndrome: with MLX4's error
 * opcode, 0x1e. */
void lane_cqe(struct lane *l, int is_send, uint8_t code, uint8_t syndrome);

/* What a lane can be made to have on its CQ: posted and completed, and what a poll says of it. */
enum event { SENT, RECEIVED, READ_DONE, SEND_FLUSHED, RECV_FLUSHED, EVENTS };
static inline int is_recv(enum event e)
{
	return e == RECEIVED || e == RECV_FLUSHED;
}
struct dev_cq *lane_cq(const struct lane *l, enum event e);
void lane_do(struct lane *l, enum event e, uint64_t id);
void lane_check(const struct lane *l, enum event e, uint64_t id, const struct ibv_wc *wc);

/* The next completion of a CQ is this; and there is none. */
void lane_expect(const struct lane *l, enum event e, uint64_t id);
void expect_empty(struct dev_cq *d);

/* While this is the hook of the fake kernel, the device carries a resize of *resizing out. */
extern struct dev_cq *resizing;
void on_resize(int command, uint8_t *cmd, uint8_t *resp);

struct kind_case {
	const char *name;
	void (*run)(enum kind kind);
	struct {
		const char *why;
		enum kind kind;
	} left_out[KINDS + 1];
};

/* Every case for every kind, with locks and without, and with entries of both sizes. What main()
 * returns. */
int run_kinds(const char *group, const struct kind_case *cases, size_t n);

#endif
