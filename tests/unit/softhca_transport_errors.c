// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: however a request fails, both sides get the right status, in order, and no byte of
 * memory changes.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_pair.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/queues/srq.h"
#include "softhca/device/queues/srq_receives.h"
#include "softhca/device/transport/doorbell.h"

enum { FATAL = 1, REQ_ERR = 2, ACCESS_ERR = 3, LAST_WQE = 16 };

static const struct tpair_opts rc = {.type = SH_QPT_RC};

/*
 * Checks a pair whose first WQE has failed: the state of a's QP is ERR, the second WQE is flushed,
 * and b's memory is as it was.
 */
static void requester_failed(struct tpair *p, uint8_t syndrome)
{
	texpect_error(&p->acq[0], syndrome, true, 0);
	texpect_error(&p->acq[0], MLX4_SYNDROME_WR_FLUSH, true, 1);
	texpect_none(&p->acq[0]);
	assert_int_equal(tqp_state(&p->a), p->a.type == SH_QPT_UD || p->a.type == SH_QPT_UC
						   ? SH_QPS_SQE
						   : SH_QPS_ERR);
	for (unsigned int i = 0; i < 65536; i++)
		assert_int_equal(p->bmem[i], 0);
}

/* Posts this WQE, then one that would succeed, and rings once. */
static void post_two(struct tpair *p, const struct twr *wr)
{
	struct twr fine = tpair_wr(p, MLX4_OPCODE_SEND, 8);

	tfill(p->amem, TMEM, 5);
	tqp_post(&p->a, wr);
	tqp_post(&p->a, &fine);
	tqp_ring(&p->a);
}

static void local(const struct tpair_opts *o, uint8_t opcode, uint32_t len, uint8_t syndrome,
		  void (*change)(struct tpair *p, struct twr *wr))
{
	struct tpair p;
	struct twr wr;
	struct mlx4_cqe cqe;

	tpair_open(&p, o);
	tpair_recv(&p, 0, 1000);
	wr = tpair_wr(&p, opcode, len);
	wr.signaled = false;
	if (change)
		change(&p, &wr);
	post_two(&p, &wr);
	requester_failed(&p, syndrome);
	/* The peer has noticed nothing. */
	assert_int_equal(tqp_state(&p.b), SH_QPS_RTS);
	assert_false(tcq_poll(&p.bcq[1], &cqe));
	tpair_close(&p);
}

static void bad_lkey(struct tpair *p, struct twr *wr)
{
	(void)p;
	wr->sge[0].key ^= 0x100;
}
static void other_pd(struct tpair *p, struct twr *wr)
{
	assert_int_equal(
		sh_mr_create(&p->m->daemon, 0, 0x7700, p->a.ctx, 99, (uintptr_t)p->amem, TMEM, 0xf),
		0);
	wr->sge[0].key = 0x7700;
}
static void read_only(struct tpair *p, struct twr *wr)
{
	assert_int_equal(sh_mr_create(&p->m->daemon, 0, 0x7800, p->a.ctx, p->a.pdn,
				      (uintptr_t)p->amem, TMEM, 0),
			 0);
	wr->sge[0].key = 0x7800;
}
static void past_end(struct tpair *p, struct twr *wr)
{
	wr->sge[0].addr = p->amem + TMEM - wr->sge[0].len + 1;
}
static void wraps(struct tpair *p, struct twr *wr)
{
	(void)p;
	wr->sge[0].addr = (void *)(uintptr_t)-8;
}
static void unmapped(struct tpair *p, struct twr *wr)
{
	(void)wr;
	mock_unmap(p->m, p->a.ctx, p->amem);
}
static void two_sges(struct tpair *p, struct twr *wr)
{
	wr->nsge = 2;
	wr->sge[1] = (struct tsge){p->amem + 100, 8, p->akey};
}
static void too_long(struct tpair *p, struct twr *wr)
{
	(void)p;
	wr->nsge = 2;
	wr->sge[0].len = 1u << 30;
	wr->sge[1] = wr->sge[0];
}
static void no_ds(struct tpair *p, struct twr *wr)
{
	(void)p;
	wr->ds = 63;
}
static void no_raddr(struct tpair *p, struct twr *wr)
{
	(void)p;
	wr->ds = 1;
}
static void inlined(struct tpair *p, struct twr *wr)
{
	(void)p;
	wr->inlined = true;
}

static void test_local(void **state)
{
	static const uint8_t ops[] = {MLX4_OPCODE_SEND, MLX4_OPCODE_SEND_IMM,
				      MLX4_OPCODE_RDMA_WRITE, MLX4_OPCODE_RDMA_WRITE_IMM,
				      MLX4_OPCODE_RDMA_READ};
	static const struct tpair_opts xrc = {.type = SH_QPT_XRC};

	(void)state;
	for (unsigned int i = 0; i < sizeof(ops); i++) {
		const struct tpair_opts *o = i & 1 ? &xrc : &rc;

		local(o, ops[i], 64, MLX4_SYNDROME_LOC_PROT, bad_lkey);
		local(o, ops[i], 64, MLX4_SYNDROME_LOC_PROT, other_pd);
		local(o, ops[i], 64, MLX4_SYNDROME_LOC_PROT, past_end);
		local(o, ops[i], 64, MLX4_SYNDROME_LOC_PROT, wraps);
		local(o, ops[i], 64, MLX4_SYNDROME_LOC_PROT, unmapped);
		local(o, ops[i], 64, MLX4_SYNDROME_LOC_LEN, too_long);
		local(o, ops[i], 64, MLX4_SYNDROME_LOC_QP_OP, no_ds);
	}
	local(&rc, MLX4_OPCODE_RDMA_READ, 64, MLX4_SYNDROME_LOC_PROT, read_only);
	local(&rc, MLX4_OPCODE_ATOMIC_FA, 8, MLX4_SYNDROME_LOC_PROT, read_only);
	local(&rc, MLX4_OPCODE_ATOMIC_FA, 4, MLX4_SYNDROME_LOC_LEN, NULL);
	local(&rc, MLX4_OPCODE_ATOMIC_CS, 8, MLX4_SYNDROME_LOC_LEN, two_sges);
	local(&rc, MLX4_OPCODE_RDMA_READ, 64, MLX4_SYNDROME_LOC_QP_OP, inlined);
	local(&rc, MLX4_OPCODE_RDMA_WRITE, 64, MLX4_SYNDROME_LOC_QP_OP, no_raddr);
}

/* Opcodes that the type of QP does not have. */
static void test_illegal_opcode(void **state)
{
	static const uint8_t never[] = {MLX4_OPCODE_SEND_INVAL,
					MLX4_OPCODE_LSO,
					MLX4_OPCODE_MASKED_ATOMIC_CS,
					MLX4_OPCODE_BIND_MW,
					MLX4_OPCODE_FMR,
					MLX4_OPCODE_LOCAL_INVAL,
					0x1f,
					0x05};
	static const uint8_t not_uc[] = {MLX4_OPCODE_RDMA_READ, MLX4_OPCODE_ATOMIC_CS,
					 MLX4_OPCODE_ATOMIC_FA};

	(void)state;
	for (unsigned int i = 0; i < sizeof(never); i++) {
		local(&rc, never[i], 8, MLX4_SYNDROME_LOC_QP_OP, NULL);
		local(&(struct tpair_opts){.type = SH_QPT_UC}, never[i], 8, MLX4_SYNDROME_LOC_QP_OP,
		      NULL);
	}
	for (unsigned int i = 0; i < sizeof(not_uc); i++) {
		local(&(struct tpair_opts){.type = SH_QPT_UC}, not_uc[i], 8,
		      MLX4_SYNDROME_LOC_QP_OP, NULL);
		local(&(struct tpair_opts){.type = SH_QPT_UD}, not_uc[i], 8,
		      MLX4_SYNDROME_LOC_QP_OP, NULL);
	}
	local(&(struct tpair_opts){.type = SH_QPT_UD}, MLX4_OPCODE_RDMA_WRITE, 8,
	      MLX4_SYNDROME_LOC_QP_OP, NULL);
}

/* ---- the responder refuses ---- */

struct refusal {
	const struct tpair_opts *o;
	uint8_t opcode;
	uint32_t len;
	uint8_t syndrome; /* a's */
	uint32_t event;	  /* b's, 0xff = none */
	void (*change)(struct tpair *p, struct twr *wr);
};

static void refused(const struct refusal *r)
{
	struct tpair p;
	struct twr wr;

	tpair_open(&p, r->o);
	if (!p.srq.srqn) {
		tpair_recv(&p, 0, 64);
		tpair_recv(&p, 0, 64);
	}
	wr = tpair_wr(&p, r->opcode, r->len);
	r->change(&p, &wr);
	post_two(&p, &wr);
	requester_failed(&p, r->syndrome);
	assert_int_equal(tqp_state(&p.b), SH_QPS_ERR);
	if (!p.srq.srqn) {
		if (r->event != 0xff)
			assert_int_equal(tasync(p.m, p.b.ctx, r->event), 1);
		texpect_error(&p.bcq[1], MLX4_SYNDROME_WR_FLUSH, false, 0);
		texpect_error(&p.bcq[1], MLX4_SYNDROME_WR_FLUSH, false, 1);
	}
	texpect_none(&p.bcq[1]);
	tpair_close(&p);
}

static void bad_rkey(struct tpair *p, struct twr *wr)
{
	(void)p;
	wr->rkey ^= 0x100;
}
static void rkey_generation(struct tpair *p, struct twr *wr)
{
	(void)p;
	wr->rkey ^= 1;
}
static void remote_end(struct tpair *p, struct twr *wr)
{
	wr->raddr = (uintptr_t)p->bmem + TMEM - wr->sge[0].len + 1;
	if (wr->opcode == MLX4_OPCODE_ATOMIC_FA)
		wr->raddr = (uintptr_t)p->bmem + TMEM;
}
static void remote_start(struct tpair *p, struct twr *wr)
{
	(void)p;
	wr->raddr -= 8;
}
static void remote_wrap(struct tpair *p, struct twr *wr)
{
	(void)p;
	wr->raddr = -8ull;
}
static void remote_pd(struct tpair *p, struct twr *wr)
{
	assert_int_equal(sh_mr_create(&p->m->daemon, p->b.hca, 0x7700, p->b.ctx, 99,
				      (uintptr_t)p->bmem, TMEM, 0xf),
			 0);
	wr->rkey = 0x7700;
}
static void remote_right(struct tpair *p, struct twr *wr)
{
	uint32_t right = wr->opcode == MLX4_OPCODE_RDMA_READ   ? SH_REMOTE_READ
			 : wr->opcode == MLX4_OPCODE_ATOMIC_FA ? SH_REMOTE_ATOMIC
							       : SH_REMOTE_WRITE;

	assert_int_equal(sh_mr_create(&p->m->daemon, p->b.hca, 0x7800, p->b.ctx, p->b.pdn,
				      (uintptr_t)p->bmem, TMEM, 0xf & ~right),
			 0);
	wr->rkey = 0x7800;
}
static void remote_unmapped(struct tpair *p, struct twr *wr)
{
	(void)wr;
	mock_unmap(p->m, p->b.ctx, p->bmem);
}
static void qp_right(struct tpair *p, struct twr *wr)
{
	(void)wr;
	tqp_ctx(&p->b)->access = 0;
}
static void no_depth(struct tpair *p, struct twr *wr)
{
	(void)wr;
	tqp_ctx(&p->b)->max_dest_rd_atomic = 0;
}
static void misaligned(struct tpair *p, struct twr *wr)
{
	(void)p;
	wr->raddr += 4;
}
static void no_srq(struct tpair *p, struct twr *wr)
{
	(void)p;
	wr->srqn = 0x1234;
}
static void zero_srq(struct tpair *p, struct twr *wr)
{
	(void)p;
	wr->srqn = 0;
}
static void foreign_srq(struct tpair *p, struct twr *wr)
{
	struct tsrq other;

	tsrq_open(&other, p->m, p->b.hca, p->b.ctx, p->b.pdn, 0x61, 10, p->bcq[1].cqn);
	wr->srqn = 0x61;
}
static void plain_srq(struct tpair *p, struct twr *wr)
{
	struct tsrq other;

	tsrq_open(&other, p->m, p->b.hca, p->b.ctx, p->b.pdn, 0x62, 0, 0);
	wr->srqn = 0x62;
}

static void test_refused(void **state)
{
	static const struct tpair_opts xrc = {.type = SH_QPT_XRC}, ini = {.type = SH_QPT_XRC_INI};
	static const struct tpair_opts *const os[] = {&rc, &xrc, &ini};
	static const uint8_t rdma[] = {MLX4_OPCODE_RDMA_WRITE, MLX4_OPCODE_RDMA_WRITE_IMM,
				       MLX4_OPCODE_RDMA_READ, MLX4_OPCODE_ATOMIC_FA};
	void (*const access[])(struct tpair *, struct twr *) = {
		bad_rkey,    rkey_generation, remote_end,   remote_start,
		remote_wrap, remote_pd,	      remote_right,
	};

	(void)state;
	for (unsigned int o = 0; o < 3; o++) {
		for (unsigned int i = 0; i < sizeof(rdma); i++) {
			uint32_t len = rdma[i] == MLX4_OPCODE_ATOMIC_FA ? 8 : 4000;

			if (rdma[i] == MLX4_OPCODE_RDMA_WRITE_IMM && o)
				continue;
			for (unsigned int c = 0; c < sizeof(access) / sizeof(access[0]); c++)
				refused(&(struct refusal){os[o], rdma[i], len,
							  MLX4_SYNDROME_REM_ACCESS, ACCESS_ERR,
							  access[c]});
			refused(&(struct refusal){os[o], rdma[i], len, MLX4_SYNDROME_REM_INVAL_REQ,
						  REQ_ERR, qp_right});
			if (rdma[i] != MLX4_OPCODE_RDMA_READ)
				refused(&(struct refusal){os[o], rdma[i], len,
							  MLX4_SYNDROME_REM_ACCESS, ACCESS_ERR,
							  remote_unmapped});
		}
		refused(&(struct refusal){os[o], MLX4_OPCODE_RDMA_READ, 8,
					  MLX4_SYNDROME_REM_INVAL_REQ, REQ_ERR, no_depth});
		refused(&(struct refusal){os[o], MLX4_OPCODE_ATOMIC_FA, 8,
					  MLX4_SYNDROME_REM_INVAL_REQ, REQ_ERR, misaligned});
	}
	for (unsigned int i = 0; i < 3; i++) {
		static const uint8_t ops[] = {MLX4_OPCODE_SEND, MLX4_OPCODE_RDMA_WRITE,
					      MLX4_OPCODE_RDMA_READ};
		void (*const how[])(struct tpair *, struct twr *) = {no_srq, zero_srq, foreign_srq,
								     plain_srq};

		for (unsigned int c = 0; c < 4; c++)
			refused(&(struct refusal){&xrc, ops[i], 64, MLX4_SYNDROME_REM_INVAL_REQ,
						  REQ_ERR, how[c]});
	}
}

/*
 * An event of a receive QP that the kernel made goes to the contexts that are registered, with a
 * flag.
 */
static void test_xrc_event(void **state)
{
	struct tpair p;
	struct twr wr;
	struct sh_xrc_reg *reg;
	const struct mock_record *rec = NULL;
	uint32_t evq;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_XRC});
	reg = (struct sh_xrc_reg *)sh_at(&p.m->dev, SH_XRC_REG_OFF) + 1;
	assert_int_equal(sh_promise(&p.m->daemon, reg, sizeof(*reg)), 0);
	reg->ctx = p.b.ctx;
	reg->next = 0;
	assert_int_equal(sh_qp_set_xrc_regs(&p.m->daemon, p.b.hca, p.b.qpn, 1), 0);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 8);
	wr.rkey = 5;
	tqp_send(&p.a, &wr);
	texpect_error(&p.acq[0], MLX4_SYNDROME_REM_ACCESS, true, 0);
	evq = sh_ctx(&p.m->dev, p.b.ctx)->async_evq;
	assert_int_equal(mock_records(p.m, evq), 1);
	rec = mock_record(p.m, evq, 0);
	assert_int_equal(rec->type, 0x80000000u | ACCESS_ERR);
	assert_int_equal(rec->element, p.b.qpn);
	tpair_close(&p);
}

/* ---- the receive WQE is at fault ---- */

static void receive_error(const struct tpair_opts *o, const struct tsge *sge, uint32_t len,
			  uint8_t at_a, uint8_t at_b)
{
	struct tpair p;
	struct twr wr;
	struct tsge mine = *sge;

	tpair_open(&p, o);
	mine.addr = p.bmem + (uintptr_t)sge->addr;
	if (p.srq.srqn) {
		tsrq_post(&p.srq, &mine, 1);
		tsrq_post(&p.srq, &mine, 1);
	} else {
		tqp_recv(&p.b, &mine, 1);
		tqp_recv(&p.b, &mine, 1);
	}
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, len);
	post_two(&p, &wr);
	requester_failed(&p, at_a);
	texpect_error(&p.bcq[1], at_b, false, 0);
	if (!p.srq.srqn) {
		texpect_error(&p.bcq[1], MLX4_SYNDROME_WR_FLUSH, false, 1);
	} else if (o->srq) {
		assert_int_equal(tasync(p.m, p.b.ctx, LAST_WQE), 1);
		assert_int_equal(sh_srq_available(&p.m->dev, sh_srq_get(&p.m->dev, p.b.hca, 0x60)),
				 1);
	}
	texpect_none(&p.bcq[1]);
	assert_int_equal(tqp_state(&p.b), SH_QPS_ERR);
	tpair_close(&p);
}

static void test_receive_errors(void **state)
{
	const struct tpair_opts os[] = {
		{.type = SH_QPT_RC}, {.type = SH_QPT_RC, .srq = true}, {.type = SH_QPT_XRC}};

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		receive_error(&os[i], &(struct tsge){0, 99, 0x2100}, 100,
			      MLX4_SYNDROME_REM_INVAL_REQ, MLX4_SYNDROME_LOC_LEN);
		receive_error(&os[i], &(struct tsge){0, 99999, 0x2100}, 100000,
			      MLX4_SYNDROME_REM_INVAL_REQ, MLX4_SYNDROME_LOC_LEN);
		receive_error(&os[i], &(struct tsge){0, 100, 0x2200}, 100, MLX4_SYNDROME_REM_OP,
			      MLX4_SYNDROME_LOC_PROT);
		receive_error(&os[i], &(struct tsge){(void *)(TMEM - 50), 100, 0x2100}, 100,
			      MLX4_SYNDROME_REM_OP, MLX4_SYNDROME_LOC_PROT);
	}
}

/* The error CQE of a receive over XRC has the number of the SRQ. */
static void test_xrc_error_cqe(void **state)
{
	struct tpair p;
	struct twr wr;
	struct mlx4_cqe cqe;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_XRC});
	tpair_recv(&p, 0, 8);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 9);
	tqp_send(&p.a, &wr);
	assert_true(tcq_poll(&p.bcq[1], &cqe));
	assert_int_equal(be32toh((uint32_t)cqe.g_mlpath_rqpn), p.srq.srqn);
	assert_int_equal(be32toh((uint32_t)cqe.vlan_my_qpn), p.b.qpn);
	assert_int_equal(cqe.owner_sr_opcode & 0x7f, MLX4_CQE_ERROR);
	tpair_close(&p);
}

/*
 * Unsignaled WQEs that complete before the failing one leave no CQE. The failing WQE's error comes
 * first.
 */
static void test_flush_order(void **state)
{
	struct tpair p;
	struct twr wr, bad;

	(void)state;
	tpair_open(&p, &rc);
	for (int i = 0; i < 4; i++)
		tpair_recv(&p, 0, 64);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	wr.signaled = false;
	tqp_post(&p.a, &wr);
	tqp_post(&p.a, &wr);
	bad = wr;
	bad.sge[0].key = 1;
	tqp_post(&p.a, &bad);
	tqp_post(&p.a, &wr);
	wr.opcode = MLX4_OPCODE_RDMA_READ;
	tqp_post(&p.a, &wr);
	for (int i = 0; i < 3; i++)
		tqp_recv(&p.a, &(struct tsge){p.amem, 64, p.akey}, 1);
	tqp_ring(&p.a);
	texpect_error(&p.acq[0], MLX4_SYNDROME_LOC_PROT, true, 2);
	texpect_error(&p.acq[0], MLX4_SYNDROME_WR_FLUSH, true, 3);
	texpect_error(&p.acq[0], MLX4_SYNDROME_WR_FLUSH, true, 4);
	texpect_none(&p.acq[0]);
	for (int i = 0; i < 3; i++)
		texpect_error(&p.acq[1], MLX4_SYNDROME_WR_FLUSH, false, i);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 1);
	texpect_none(&p.bcq[1]);
	/*
	 * Requests posted later are flushed too: sends at the doorbell, receives when a thread
	 * looks at the QP.
	 */
	tqp_send(&p.a, &wr);
	texpect_error(&p.acq[0], MLX4_SYNDROME_WR_FLUSH, true, 5);
	tqp_recv(&p.a, &(struct tsge){p.amem, 64, p.akey}, 1);
	texpect_none(&p.acq[1]);
	mock_advance(p.m, 100000000);
	texpect_error(&p.acq[1], MLX4_SYNDROME_WR_FLUSH, false, 3);
	tqp_recv(&p.a, &(struct tsge){p.amem, 64, p.akey}, 1);
	assert_true(sh_enter(&p.m->dev));
	sh_recv_posted(&p.m->dev, p.a.ctx, p.a.qpn);
	sh_leave(&p.m->dev);
	texpect_error(&p.acq[1], MLX4_SYNDROME_WR_FLUSH, false, 4);
	tqp_recv(&p.a, &(struct tsge){p.amem, 64, p.akey}, 1);
	mock_advance(p.m, 100000000);
	texpect_error(&p.acq[1], MLX4_SYNDROME_WR_FLUSH, false, 5);
	/* After RESET no timer is left that would look at the QP. */
	assert_int_equal(tqp_to(&p.a, SH_QPS_RESET), 0);
	mock_advance(p.m, 1000000000);
	assert_int_equal(p.m->ndefers, 0);
	tpair_close(&p);
}

/* The send CQ is full: CQ_ERR and QP_FATAL are raised, and the QP ends. */
static void test_send_overrun(void **state)
{
	struct tpair p;
	struct tcq tiny;
	struct tqp qp;
	struct twr wr;
	struct sh_qp_attr attr;

	(void)state;
	tpair_open(&p, &rc);
	tcq_open(&tiny, p.m, 0, p.a.ctx, 0xa0, 1);
	tqp_open(&qp, p.m, 0, p.a.ctx, p.a.pdn, SH_QPT_UD, 0x60, &tiny, &p.acq[1], NULL);
	attr = tqp_attr(0, 0);
	tqp_up(&qp, &attr);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	for (int i = 0; i < 3; i++)
		tqp_send(&qp, &wr);
	assert_int_equal(tqp_state(&qp), SH_QPS_ERR);
	assert_int_equal(tasync(p.m, p.a.ctx, FATAL), 1);
	assert_int_equal(tasync(p.m, p.a.ctx, 0), 1);
	texpect(&tiny, MLX4_OPCODE_SEND, true, 0);
	texpect(&tiny, MLX4_OPCODE_SEND, true, 1);
	texpect_none(&tiny);
	tpair_close(&p);
}

/* The receive CQ is full: the same happens at the receiver, and the sender gets an error. */
static void test_receive_overrun(void **state)
{
	struct tpair p;
	struct tcq tiny;
	struct tqp d;
	struct twr wr;
	struct sh_qp_attr attr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC, .unconnected = true});
	tcq_open(&tiny, p.m, 1, p.b.ctx, 0xa0, 1);
	tqp_open(&d, p.m, 1, p.b.ctx, p.b.pdn, SH_QPT_RC, 0x62, &p.bcq[0], &tiny, NULL);
	p.aattr.dest_qp_num = d.qpn;
	attr = p.battr;
	tqp_up(&p.a, &p.aattr);
	tqp_up(&d, &attr);
	for (int i = 0; i < 5; i++)
		tqp_recv(&d, &(struct tsge){p.bmem, 64, p.bkey}, 1);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	for (int i = 0; i < 3; i++)
		tqp_send(&p.a, &wr);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 1);
	texpect_error(&p.acq[0], MLX4_SYNDROME_REM_OP, true, 2);
	assert_int_equal(tqp_state(&d), SH_QPS_ERR);
	assert_int_equal(tasync(p.m, p.b.ctx, FATAL), 1);
	assert_int_equal(tasync(p.m, p.b.ctx, 0), 1);
	texpect(&tiny, MLX4_CQE_RECV_SEND, false, 0);
	texpect(&tiny, MLX4_CQE_RECV_SEND, false, 1);
	texpect_none(&tiny);
	tpair_close(&p);
}

/* The SRQ is destroyed while messages arrive. */
static void test_srq_destroyed(void **state)
{
	struct tpair p;
	struct twr wr;
	uint32_t events;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_XRC});
	tpair_recv(&p, 0, 64);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	tqp_send(&p.a, &wr);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	tqp_send(&p.a, &wr); /* waits for a receive */
	assert_int_equal(sh_srq_destroy(&p.m->daemon, p.b.hca, p.srq.srqn, &events), 0);
	mock_advance(p.m, 1000000);
	texpect_error(&p.acq[0], MLX4_SYNDROME_REM_INVAL_REQ, true, 1);
	tpair_close(&p);
}

/*
 * The context of the SRQ's owner ends: the request is not answered, and the receive QP, which
 * others may share, stays as it was.
 */
static void test_srq_owner_gone(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_XRC, .retry = 1});
	tpair_recv(&p, 0, 64);
	sh_ctx(&p.m->dev, p.b.ctx)->state = SH_CTX_GONE;
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 8);
	tqp_send(&p.a, &wr);
	mock_advance(p.m, 1000000000);
	texpect_error(&p.acq[0], MLX4_SYNDROME_RETRY_EXC, true, 0);
	assert_int_equal(tqp_state(&p.b), SH_QPS_RTS);
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_local),		cmocka_unit_test(test_illegal_opcode),
		cmocka_unit_test(test_refused),		cmocka_unit_test(test_xrc_event),
		cmocka_unit_test(test_receive_errors),	cmocka_unit_test(test_xrc_error_cqe),
		cmocka_unit_test(test_flush_order),	cmocka_unit_test(test_send_overrun),
		cmocka_unit_test(test_receive_overrun), cmocka_unit_test(test_srq_destroyed),
		cmocka_unit_test(test_srq_owner_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
