/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue pairs for unit tests of the transport. The functions do the provider's part by hand: they
 * write and read WQEs, doorbell records and CQEs byte by byte, without libmlx4. They assert what a
 * test cannot do without.
 */
#ifndef TESTS_UNIT_SOFTHCA_PAIR_H
#define TESTS_UNIT_SOFTHCA_PAIR_H

#include "mlx4-format.h"
#include "softhca/device/memory/qp_context.h"
#include "softhca_mock.h"

#define TMTU 1024 /* MTU of connected QPs unless a test sets another */
#define TPSN 100

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
	uint32_t head; /* of the send queue, free-running */
	uint32_t rq_head;
	struct sh_umem buf, db;
};

struct tsge {
	void *addr;
	uint32_t len, key;
};

struct twr { /* a send */
	uint8_t opcode;
	bool signaled, solicited, fence, strong, inlined;
	uint32_t imm; /* host order */
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
	uint8_t ds; /* not 0: a false size */
};

void tcq_open(struct tcq *cq, struct mock *m, uint32_t hca, uint32_t ctx, uint32_t cqn,
	      uint32_t log_size);
/* Takes the next CQE, if there is one. */
bool tcq_poll(struct tcq *cq, struct mlx4_cqe *cqe);
void tcq_arm(struct tcq *cq, bool solicited);

void tsrq_open(struct tsrq *srq, struct mock *m, uint32_t hca, uint32_t ctx, uint32_t pdn,
	       uint32_t srqn, uint32_t xrcd, uint32_t cqn);
void tsrq_post(struct tsrq *srq, const struct tsge *sge, unsigned int nsge);

struct topts { /* 0: the default */
	uint32_t srqn, xrcd, max_sge_shift;
	bool no_rq, private_memory;
	uint32_t log_sq, sq_shift, log_rq, rq_shift;
};
void tqp_open(struct tqp *qp, struct mock *m, uint32_t hca, uint32_t ctx, uint32_t pdn,
	      uint32_t type, uint32_t qpn, struct tcq *scq, struct tcq *rcq,
	      const struct topts *opts);
/* Attributes of a working QP. A test changes those that it is about and passes them on. */
struct sh_qp_attr tqp_attr(uint16_t dlid, uint32_t dest_qpn);
/* Move the QP from RESET to INIT, RTR or RTS; tqp_up() makes all three steps. */
void tqp_init(struct tqp *qp, const struct sh_qp_attr *attr);
void tqp_rtr(struct tqp *qp, const struct sh_qp_attr *attr);
void tqp_rts(struct tqp *qp, const struct sh_qp_attr *attr);
void tqp_up(struct tqp *qp, const struct sh_qp_attr *attr);
int tqp_modify(struct tqp *qp, const struct sh_qp_attr *attr, uint32_t mask);
int tqp_to(struct tqp *qp, uint32_t state);
uint32_t tqp_state(struct tqp *qp);
struct sh_qp *tqp_ctx(struct tqp *qp);

void tqp_post(struct tqp *qp, const struct twr *wr); /* without doorbell */
void tqp_ring(struct tqp *qp);
void tqp_send(struct tqp *qp, const struct twr *wr); /* post and ring */
void tqp_recv(struct tqp *qp, const struct tsge *sge, unsigned int nsge);

uint16_t tlid(struct mock *m, uint32_t hca);

/* Asserts that there is exactly one CQE, with these values. */
void texpect(struct tcq *cq, uint8_t opcode, bool send, uint16_t index);
void texpect_error(struct tcq *cq, uint8_t syndrome, bool send, uint16_t index);
void texpect_none(struct tcq *cq);

/*
 * Two connected QPs of one type on two HCAs (or one). Each has a region that it may use for
 * everything.
 */
#define TMEM (1u << 20)
struct tpair {
	struct mock *m;
	struct tqp a, b;
	struct tcq acq[2], bcq[2]; /* send, receive */
	struct tsrq srq;	   /* of b, on request; with XRC always */
	uint8_t *amem, *bmem;	   /* TMEM bytes */
	uint32_t akey, bkey;
	struct sh_qp_attr aattr, battr;
};
struct tpair_opts {
	uint32_t type;
	bool same_hca, srq, private_memory;
	bool unconnected;					 /* the QPs stay in RESET */
	uint32_t psn, timeout, retry, rnr_retry, rd_atomic, mtu; /* 0 = TPSN, 14, 7, 7, 4, 3 */
	bool no_timeout, no_retry, no_rnr_retry;		 /* really 0 */
};
void tpair_open(struct tpair *p, const struct tpair_opts *opts);
void tpair_close(struct tpair *p);
/* A send of this opcode from a's memory to b's, from the start of both, with b's remote address. */
struct twr tpair_wr(struct tpair *p, uint8_t opcode, uint32_t len);
/* Posts a receive of b at an offset of its memory (to the SRQ if there is one). */
void tpair_recv(struct tpair *p, uint32_t off, uint32_t len);
void tfill(uint8_t *at, size_t len, uint32_t seed);
unsigned int tasync(struct mock *m, uint32_t ctx, uint32_t type); /* events so far, by type */

#endif
