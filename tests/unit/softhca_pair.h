/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue pairs for unit tests of the transport, with the provider's part done by hand: WQEs, doorbell records and CQEs are
 * written and read here, byte by byte, not through libmlx4. Calls assert what a test cannot do without.
 */
#ifndef TESTS_UNIT_SOFTHCA_PAIR_H
#define TESTS_UNIT_SOFTHCA_PAIR_H

#include "mlx4-format.h"
#include "softhca/device/memory/qp_context.h"
#include "softhca_mock.h"

#define TMTU	1024		/* what connected QPs use unless a test says otherwise */
#define TPSN	100

struct tcq {
	struct mock *m;
	uint32_t hca, cqn, ctx, evq, log_size, ci;
	struct sh_umem buf, db;
};

struct tsrq {
	struct mock *m;
	uint32_t hca, srqn, ctx, shift, log_size, head, posted;
	struct sh_umem buf, db;
};

struct tqp {
	struct mock *m;
	uint32_t hca, ctx, pdn, qpn, type;
	struct tcq *scq, *rcq;
	uint32_t sq_shift, log_sq, rq_shift, log_rq;
	uint32_t head;			/* of the send queue, free running */
	uint32_t rq_head;
	struct sh_umem buf, db;
};

struct tsge {
	void *addr;
	uint32_t len, key;
};

struct twr {				/* a send */
	uint8_t opcode;
	bool signaled, solicited, fence, strong, inlined;
	uint32_t imm;			/* host order */
	uint32_t srqn;
	uint64_t raddr, swap_add, compare;
	uint32_t rkey;
	unsigned int nsge;
	struct tsge sge[8];
	/* UD */
	uint32_t av_pd, dqpn, qkey;
	uint16_t dlid;
	uint8_t av_port, sl;
	bool grh;
	uint8_t dgid[16], gid_index;
	uint8_t ds;			/* nonzero: lie about the size */
};

void tcq_open(struct tcq *cq, struct mock *m, uint32_t hca, uint32_t ctx, uint32_t cqn, uint32_t log_size);
/* The next CQE, if there is one. */
bool tcq_poll(struct tcq *cq, struct mlx4_cqe *cqe);
void tcq_arm(struct tcq *cq, bool solicited);

void tsrq_open(struct tsrq *srq, struct mock *m, uint32_t hca, uint32_t ctx, uint32_t pdn, uint32_t srqn,
	       uint32_t xrcd, uint32_t cqn);
void tsrq_post(struct tsrq *srq, const struct tsge *sge, unsigned int nsge);

struct topts {				/* 0 = the default */
	uint32_t srqn, xrcd, max_sge_shift;
	bool no_rq, private_memory;
	uint32_t log_sq, sq_shift, log_rq, rq_shift;
};
void tqp_open(struct tqp *qp, struct mock *m, uint32_t hca, uint32_t ctx, uint32_t pdn, uint32_t type, uint32_t qpn,
	      struct tcq *scq, struct tcq *rcq, const struct topts *opts);
/* Attributes that make up a working QP; tests change what they are about and pass them on. */
struct sh_qp_attr tqp_attr(uint16_t dlid, uint32_t dest_qpn);
/* RESET to INIT to RTR to RTS. */
void tqp_init(struct tqp *qp, const struct sh_qp_attr *attr);
void tqp_rtr(struct tqp *qp, const struct sh_qp_attr *attr);
void tqp_rts(struct tqp *qp, const struct sh_qp_attr *attr);
void tqp_up(struct tqp *qp, const struct sh_qp_attr *attr);
int tqp_modify(struct tqp *qp, const struct sh_qp_attr *attr, uint32_t mask);
int tqp_to(struct tqp *qp, uint32_t state);
uint32_t tqp_state(struct tqp *qp);
struct sh_qp *tqp_ctx(struct tqp *qp);

void tqp_post(struct tqp *qp, const struct twr *wr);	/* no doorbell */
void tqp_ring(struct tqp *qp);
void tqp_send(struct tqp *qp, const struct twr *wr);	/* both */
void tqp_recv(struct tqp *qp, const struct tsge *sge, unsigned int nsge);

uint16_t tlid(struct mock *m, uint32_t hca);

/* Exactly one CQE is there and it is this. */
void texpect(struct tcq *cq, uint8_t opcode, bool send, uint16_t index);
void texpect_error(struct tcq *cq, uint8_t syndrome, bool send, uint16_t index);
void texpect_none(struct tcq *cq);

/* Two connected QPs of one type on two HCAs (or on one), each with a region that it may use for everything. */
#define TMEM	(1u << 20)
struct tpair {
	struct mock *m;
	struct tqp a, b;
	struct tcq acq[2], bcq[2];	/* send, receive */
	struct tsrq srq;		/* b's, when asked for; XRC: always */
	uint8_t *amem, *bmem;		/* TMEM bytes */
	uint32_t akey, bkey;
	struct sh_qp_attr aattr, battr;
};
struct tpair_opts {
	uint32_t type;
	bool same_hca, srq, private_memory;
	bool unconnected;		/* leave the QPs in RESET */
	uint32_t psn, timeout, retry, rnr_retry, rd_atomic, mtu;	/* 0 = TPSN, 14, 7, 7, 4, 3 */
	bool no_timeout, no_retry, no_rnr_retry;			/* really 0 */
};
void tpair_open(struct tpair *p, const struct tpair_opts *opts);
void tpair_close(struct tpair *p);
/* A send of this opcode from a's memory to b's, both at their start, with the remote address of b's. */
struct twr tpair_wr(struct tpair *p, uint8_t opcode, uint32_t len);
/* A receive of b at an offset of its memory (from the SRQ, where there is one). */
void tpair_recv(struct tpair *p, uint32_t off, uint32_t len);
void tfill(uint8_t *at, size_t len, uint32_t seed);
unsigned int tasync(struct mock *m, uint32_t ctx, uint32_t type);	/* asynchronous events of a kind so far */

#endif
