// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Puts every kind of QP behind the same few calls, so that a case runs for all kinds. A case names
 * the kinds that it leaves out, each with the reason, which the runner prints.
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
	KIND_XRC,	   /* one QP from ibv_create_qp() for both directions */
	KIND_XRC_RCV_QP,   /* one QP that sends, and a receive QP of the kernel */
	KIND_XRC_MAINLINE, /* the same, on a kernel where the sending QP's number has no bit 23 */
	KINDS
};

/* Where a kind takes its receives from. */
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

/* A QP of some kind, with the queue it receives through. */
struct lane {
	enum kind kind;
	struct dev_cq *scq, *rcq;
	struct dev_qp qp;
	struct dev_srq own_srq, *srq; /* srq NULL: the QP has a receive queue of its own */
	uint32_t recv_qpn;	      /* QP number in its receive completions */
	uint32_t sent, received;      /* completions that the device has written */
};

/* Objects of the running test. */
extern struct ibv_context *ctx;
extern struct ibv_pd *pd;
extern struct ibv_xrc_domain *domain;

enum { LANE_SENDS = 60, LANE_RECVS = 63 };

void lane_open(struct lane *l, enum kind kind, struct dev_cq *scq, struct dev_cq *rcq);
/* Opens a lane of the same kind on the SRQ of another lane. */
void lane_open_beside(struct lane *l, const struct lane *other);
void lane_close(struct lane *l);
/*
 * Parts of lane_close(), for tests that destroy one object alone. lane_close() skips objects that
 * are already destroyed.
 */
void lane_destroy_qp(struct lane *l);
void lane_destroy_srq(struct lane *l);
void lane_reset_qp(struct lane *l);

void lane_post_send(struct lane *l, uint64_t id);
void lane_post_recv(struct lane *l, uint64_t id);

/* The address to which UD lanes send. */
struct ibv_ah *lane_ah(void);

/*
 * LANE_IMM is the immediate data of receives other than UD's. LANE_SOURCE_QPN is the source QP of
 * UD's.
 */
enum { LANE_IMM = 0x01020304, LANE_SOURCE_QPN = 0xabcdef, LANE_LENGTH = 1234 };

/*
 * Completes the oldest request posted. code is the opcode of the CQE; syndrome counts if code is
 * MLX4's error opcode, 0x1e.
 */
void lane_cqe(struct lane *l, int is_send, uint8_t code, uint8_t syndrome);

/* What lane_do() posts and completes, and lane_check() compares with the completion polled. */
enum event { SENT, RECEIVED, READ_DONE, SEND_FLUSHED, RECV_FLUSHED, EVENTS };
static inline int is_recv(enum event e)
{
	return e == RECEIVED || e == RECV_FLUSHED;
}
struct dev_cq *lane_cq(const struct lane *l, enum event e);
void lane_do(struct lane *l, enum event e, uint64_t id);
void lane_check(const struct lane *l, enum event e, uint64_t id, const struct ibv_wc *wc);

/*
 * lane_expect() asserts that this is the next completion in the CQ, expect_empty() that there is
 * none.
 */
void lane_expect(const struct lane *l, enum event e, uint64_t id);
void expect_empty(struct dev_cq *d);

/* With on_resize() as the fake kernel's hook, the device carries out a resize of *resizing. */
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

/*
 * Runs every case for every kind: with locks, without locks, and with large entries. Returns the
 * exit status for main().
 */
int run_kinds(const char *group, const struct kind_case *cases, size_t n);

#endif
