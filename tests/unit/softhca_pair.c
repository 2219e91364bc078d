// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The provider's part of queue pairs, for unit tests of the transport: see softhca_pair.h. One
 * thread.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "softhca_pair.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/mr.h"
#include "softhca/device/queues/cq.h"
#include "softhca/device/queues/modify.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/queues/srq.h"
#include "softhca/device/queues/transitions.h"
#include "softhca/device/transport/doorbell.h"

static void put32(void *at, uint32_t v)
{
	v = htobe32(v);
	memcpy(at, &v, 4);
}

static void put64(void *at, uint64_t v)
{
	v = htobe64(v);
	memcpy(at, &v, 8);
}

/* ---- completion queues ---- */

void tcq_open(struct tcq *cq, struct mock *m, uint32_t hca, uint32_t ctx, uint32_t cqn,
	      uint32_t log_size)
{
	struct sh_cq_init init = {0};

	*cq = (struct tcq){.m = m, .hca = hca, .ctx = ctx, .cqn = cqn, .log_size = log_size};
	cq->evq = mock_evq(m, ctx, 8);
	cq->buf = mock_umem(m, ctx, (size_t)m->dev.cqe_size << log_size, true);
	cq->db = mock_umem(m, ctx, 8, true);
	init.ctx = ctx;
	init.log_size = log_size;
	init.user_handle = 0x4000 + cqn;
	init.comp_evq = cq->evq;
	init.buf = cq->buf;
	init.db = cq->db;
	assert_int_equal(sh_cq_create(&m->daemon, hca, cqn, &init), 0);
}

bool tcq_poll(struct tcq *cq, struct mlx4_cqe *cqe)
{
	uint32_t size = 1u << cq->log_size, stride = cq->m->dev.cqe_size;
	const uint8_t *at = mock_ptr(&cq->buf);

	at += (cq->ci & (size - 1)) * stride + (stride - 32);
	if (!!(at[31] & 0x80) != !!(cq->ci & size))
		return false;
	memcpy(cqe, at, 32);
	cq->ci++;
	put32(mock_ptr(&cq->db), cq->ci & 0xffffff);
	return true;
}

void tcq_arm(struct tcq *cq, bool solicited)
{
	uint32_t cmd = (solicited ? 1u : 2u) << 24;

	put32((uint8_t *)mock_ptr(&cq->db) + 4, 1u << 28 | cmd | (cq->ci & 0xffffff));
	assert_true(sh_enter(&cq->m->dev));
	sh_arm(&cq->m->dev, cq->ctx, cq->cqn, 1u << 28 | cmd | cq->cqn, cq->ci & 0xffffff);
	sh_leave(&cq->m->dev);
}

void texpect(struct tcq *cq, uint8_t opcode, bool send, uint16_t index)
{
	struct mlx4_cqe cqe;

	assert_true(tcq_poll(cq, &cqe));
	if ((cqe.owner_sr_opcode & 0x1f) == 0x1e)
		assert_int_equal(cqe.syndrome, 0);
	assert_int_equal(cqe.owner_sr_opcode & 0x1f, opcode);
	assert_int_equal(!!(cqe.owner_sr_opcode & 0x40), send);
	assert_int_equal(be16toh((uint16_t)cqe.wqe_index), index);
}

void texpect_error(struct tcq *cq, uint8_t syndrome, bool send, uint16_t index)
{
	struct mlx4_cqe cqe;

	assert_true(tcq_poll(cq, &cqe));
	assert_int_equal(cqe.owner_sr_opcode & 0x1f, 0x1e);
	assert_int_equal(cqe.syndrome, syndrome);
	assert_int_equal(!!(cqe.owner_sr_opcode & 0x40), send);
	assert_int_equal(be16toh((uint16_t)cqe.wqe_index), index);
}

void texpect_none(struct tcq *cq)
{
	struct mlx4_cqe cqe;

	assert_false(tcq_poll(cq, &cqe));
}

/* ---- shared receive queues ---- */

void tsrq_open(struct tsrq *srq, struct mock *m, uint32_t hca, uint32_t ctx, uint32_t pdn,
	       uint32_t srqn, uint32_t xrcd, uint32_t cqn)
{
	struct sh_srq_init init = {0};
	uint8_t *at;

	*srq = (struct tsrq){
		.m = m, .hca = hca, .ctx = ctx, .srqn = srqn, .shift = 7, .log_size = 6};
	srq->buf = mock_umem(m, ctx, 1u << (srq->shift + srq->log_size), true);
	srq->db = mock_umem(m, ctx, 4, true);
	at = mock_ptr(&srq->buf);
	for (uint32_t i = 0; i < 1u << srq->log_size; i++) {
		uint16_t next = htobe16((i + 1) & ((1u << srq->log_size) - 1));

		memcpy(at + (i << srq->shift) + 2, &next, 2);
	}
	init.ctx = ctx;
	init.pdn = pdn;
	init.log_size = srq->log_size;
	init.wqe_shift = srq->shift;
	init.xrcd = xrcd;
	init.cqn = cqn;
	init.max_sge = 7;
	init.user_handle = 0x5000 + srqn;
	init.buf = srq->buf;
	init.db = srq->db;
	assert_int_equal(sh_srq_create(&m->daemon, hca, srqn, &init), 0);
}

static void put_scatter(uint8_t *at, const struct tsge *sge, unsigned int nsge, unsigned int max)
{
	for (unsigned int i = 0; i < nsge; i++, at += 16) {
		put32(at, sge[i].len);
		put32(at + 4, sge[i].key);
		put64(at + 8, (uintptr_t)sge[i].addr);
	}
	if (nsge < max) {
		memset(at, 0, 16);
		put32(at + 4, 0x100);
	}
}

void tsrq_post(struct tsrq *srq, const struct tsge *sge, unsigned int nsge)
{
	uint8_t *at = mock_ptr(&srq->buf);
	uint16_t next;

	at += srq->head << srq->shift;
	put_scatter(at + 16, sge, nsge, 7);
	memcpy(&next, at + 2, 2);
	srq->head = be16toh(next);
	srq->posted++;
	put32(mock_ptr(&srq->db), srq->posted & 0xffff);
}

/* ---- queue pairs ---- */

uint16_t tlid(struct mock *m, uint32_t hca)
{
	return (uint16_t)sh_hca(&m->dev, hca)->port[0].lid;
}

void tqp_open(struct tqp *qp, struct mock *m, uint32_t hca, uint32_t ctx, uint32_t pdn,
	      uint32_t type, uint32_t qpn, struct tcq *scq, struct tcq *rcq,
	      const struct topts *opts)
{
	static const struct topts none;
	struct sh_qp_init init = {0};
	uint32_t sq_bytes, rq_bytes;
	uint8_t *at;

	if (!opts)
		opts = &none;
	*qp = (struct tqp){.m = m,
			   .hca = hca,
			   .ctx = ctx,
			   .pdn = pdn,
			   .qpn = qpn,
			   .type = type,
			   .scq = scq,
			   .rcq = rcq};
	qp->sq_shift = opts->sq_shift ? opts->sq_shift : 8;
	qp->log_sq = opts->log_sq ? opts->log_sq : 6;
	qp->rq_shift = opts->rq_shift ? opts->rq_shift : 6;
	qp->log_rq = opts->no_rq ? 0 : opts->log_rq ? opts->log_rq : 5;
	sq_bytes = 1u << (qp->sq_shift + qp->log_sq);
	rq_bytes = opts->no_rq ? 0 : 1u << (qp->rq_shift + qp->log_rq);
	qp->buf = mock_umem(m, ctx, sq_bytes + rq_bytes, !opts->private_memory);
	qp->db = mock_umem(m, ctx, 4, !opts->private_memory);
	init.ctx = ctx;
	init.type = type;
	init.pdn = pdn;
	init.send_cqn = scq->cqn;
	init.recv_cqn = rcq->cqn;
	init.srqn = opts->srqn;
	init.xrcd = opts->xrcd;
	init.log_sq_size = qp->log_sq;
	init.sq_shift = qp->sq_shift;
	init.sq_present = 1;
	init.log_rq_size = qp->log_rq;
	init.rq_shift = opts->no_rq ? 0 : qp->rq_shift;
	init.rq_present = !opts->no_rq;
	init.user_handle = 0x6000 + qpn;
	init.buf = qp->buf;
	if (!opts->no_rq)
		init.rq_db = qp->db;
	init.cap_recv_wr = opts->no_rq ? 0 : 1u << qp->log_rq;
	init.cap_recv_sge = opts->no_rq ? 0 : 4;
	assert_int_equal(sh_qp_create(&m->daemon, hca, qpn, &init), 0);
	at = mock_ptr(&qp->buf);
	for (uint32_t i = 0; i < 1u << qp->log_sq; i++)
		put32(at + (i << qp->sq_shift), 0x80000000u);
}

struct sh_qp_attr tqp_attr(uint16_t dlid, uint32_t dest_qpn)
{
	return (struct sh_qp_attr){
		.path_mtu = 3,
		.qkey = 0x11111111,
		.rq_psn = TPSN,
		.sq_psn = TPSN,
		.dest_qp_num = dest_qpn,
		.qp_access_flags = SH_REMOTE_WRITE | SH_REMOTE_READ | SH_REMOTE_ATOMIC,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.port_num = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.path = {.dlid = dlid, .port_num = 1},
	};
}

int tqp_modify(struct tqp *qp, const struct sh_qp_attr *attr, uint32_t mask)
{
	int err;

	/* If another thread holds a lock, the daemon tries again until it gets the lock. */
	do
		err = sh_qp_modify(&qp->m->daemon, qp->hca, qp->qpn, attr, mask);
	while (err == -EINPROGRESS);
	return err;
}

int tqp_to(struct tqp *qp, uint32_t state)
{
	struct sh_qp_attr attr = {.qp_state = state};

	return tqp_modify(qp, &attr, SH_QPA_STATE);
}

void tqp_init(struct tqp *qp, const struct sh_qp_attr *attr)
{
	struct sh_qp_attr a = *attr;

	a.qp_state = SH_QPS_INIT;
	assert_int_equal(
		tqp_modify(qp, &a,
			   SH_QPA_STATE | SH_QPA_PKEY_INDEX | SH_QPA_PORT |
				   (qp->type == SH_QPT_UD ? SH_QPA_QKEY : SH_QPA_ACCESS_FLAGS)),
		0);
}

void tqp_rtr(struct tqp *qp, const struct sh_qp_attr *attr)
{
	struct sh_qp_attr a = *attr;
	uint32_t mask = SH_QPA_STATE;

	a.qp_state = SH_QPS_RTR;
	if (qp->type != SH_QPT_UD)
		mask |= SH_QPA_AV | SH_QPA_PATH_MTU | SH_QPA_DEST_QPN | SH_QPA_RQ_PSN;
	if (qp->type != SH_QPT_UD && qp->type != SH_QPT_UC)
		mask |= SH_QPA_MAX_DEST_RD_ATOMIC | SH_QPA_MIN_RNR_TIMER;
	assert_int_equal(tqp_modify(qp, &a, mask), 0);
}

void tqp_rts(struct tqp *qp, const struct sh_qp_attr *attr)
{
	struct sh_qp_attr a = *attr;
	uint32_t mask = SH_QPA_STATE | SH_QPA_SQ_PSN;

	a.qp_state = SH_QPS_RTS;
	if (qp->type != SH_QPT_UD && qp->type != SH_QPT_UC)
		mask |= SH_QPA_TIMEOUT | SH_QPA_RETRY_CNT | SH_QPA_RNR_RETRY |
			SH_QPA_MAX_QP_RD_ATOMIC;
	assert_int_equal(tqp_modify(qp, &a, mask), 0);
}

void tqp_up(struct tqp *qp, const struct sh_qp_attr *attr)
{
	tqp_init(qp, attr);
	tqp_rtr(qp, attr);
	tqp_rts(qp, attr);
}

uint32_t tqp_state(struct tqp *qp)
{
	struct sh_qp_attr attr;

	assert_int_equal(sh_qp_query(&qp->m->daemon, qp->hca, qp->qpn, &attr), 0);
	return attr.qp_state;
}

struct sh_qp *tqp_ctx(struct tqp *qp)
{
	return sh_qp_get(&qp->m->dev, qp->hca, qp->qpn);
}

static uint8_t *put_inline(uint8_t *slot, uint8_t *at, const struct twr *wr)
{
	uint8_t *head = at;
	uint32_t count = 0;

	at += 4;
	for (unsigned int i = 0; i < wr->nsge; i++)
		for (uint32_t j = 0; j < wr->sge[i].len; j++) {
			if ((at - slot) % 64 == 0) {
				put32(head, 0x80000000u | count);
				head = at;
				at += 4;
				count = 0;
			}
			*at++ = ((const uint8_t *)wr->sge[i].addr)[j];
			count++;
		}
	if (!count)
		return head;
	put32(head, 0x80000000u | count);
	return slot + ((at - slot + 15) & ~15);
}

void tqp_post(struct tqp *qp, const struct twr *wr)
{
	uint32_t slots = 1u << qp->log_sq;
	uint8_t *slot = mock_ptr(&qp->buf), *at;

	if (!(qp->log_rq && qp->rq_shift > qp->sq_shift))
		slot += 0;
	slot += (qp->head & (slots - 1)) << qp->sq_shift;
	at = slot + 16;
	if (qp->type == SH_QPT_UD) {
		memset(at, 0, 48);
		put32(at, (uint32_t)wr->av_port << 24 | wr->av_pd);
		at[5] = wr->grh ? 0x80 : 0;
		at[6] = wr->dlid >> 8;
		at[7] = wr->dlid & 0xff;
		at[9] = wr->gid_index;
		at[11] = 64;
		put32(at + 12, (uint32_t)wr->sl << 28 | 5u << 20 | 0x12345);
		memcpy(at + 16, wr->dgid, 16);
		put32(at + 32, wr->dqpn);
		put32(at + 36, wr->qkey);
		at += 48;
	} else if (wr->opcode != 0x0a && wr->opcode != 0x0b && wr->opcode) {
		put64(at, wr->raddr);
		put32(at + 8, wr->rkey);
		put32(at + 12, 0);
		at += 16;
	}
	if (wr->opcode == 0x11 || wr->opcode == 0x12) {
		put64(at, wr->swap_add);
		put64(at + 8, wr->compare);
		at += 16;
	}
	if (wr->inlined) {
		at = put_inline(slot, at, wr);
	} else {
		for (unsigned int i = 0; i < wr->nsge; i++, at += 16) {
			put32(at, wr->sge[i].len);
			put32(at + 4, wr->sge[i].key);
			put64(at + 8, (uintptr_t)wr->sge[i].addr);
		}
	}
	memset(slot + 4, 0xee, 3); /* bytes that BlueFlame may have left there */
	slot[7] = (wr->ds ? wr->ds : (uint8_t)((at - slot) / 16)) | (wr->fence ? 0x40 : 0);
	put32(slot + 8, wr->srqn << 8 | (wr->strong ? 0x80 : 0) | (wr->signaled ? 0xc : 0) |
				(wr->solicited ? 2 : 0));
	put32(slot + 12, wr->imm);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	put32(slot, (qp->head & slots ? 0x80000000u : 0) | (qp->head & 0xffff) << 8 | wr->opcode);
	qp->head++;
}

void tqp_ring(struct tqp *qp)
{
	assert_true(sh_enter(&qp->m->dev));
	sh_ring(&qp->m->dev, qp->ctx, qp->qpn);
	sh_leave(&qp->m->dev);
}

void tqp_send(struct tqp *qp, const struct twr *wr)
{
	tqp_post(qp, wr);
	tqp_ring(qp);
}

void tqp_recv(struct tqp *qp, const struct tsge *sge, unsigned int nsge)
{
	uint8_t *at = mock_ptr(&qp->buf);

	at += 1u << (qp->sq_shift + qp->log_sq);
	at += (qp->rq_head & ((1u << qp->log_rq) - 1)) << qp->rq_shift;
	put_scatter(at, sge, nsge, qp->rq_shift == 4 ? 1 : 4);
	qp->rq_head++;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	put32(mock_ptr(&qp->db), qp->rq_head & 0xffff);
}

/* ---- pairs ---- */

#define PD_A 4
#define PD_B 5
#define XRCD 9

static uint8_t *region(struct mock *m, uint32_t hca, uint32_t ctx, uint32_t pdn, uint32_t key)
{
	/* Shared, because tests that fork look at what a child wrote. */
	uint8_t *at = mmap(NULL, TMEM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	mock_map(m, ctx, at, TMEM);
	assert_int_equal(
		sh_mr_create(&m->daemon, hca, key, ctx, pdn, (uintptr_t)at, TMEM,
			     SH_LOCAL_WRITE | SH_REMOTE_WRITE | SH_REMOTE_READ | SH_REMOTE_ATOMIC),
		0);
	return at;
}

void tpair_open(struct tpair *p, const struct tpair_opts *o)
{
	struct mock_config cfg = {.hcas_per_host = o->same_hca ? 1 : 2};
	uint32_t hb = o->same_hca ? 0 : 1, actx, bctx, aqpn = 0x48, bqpn = 0x51;
	bool xrc = o->type == SH_QPT_XRC || o->type == SH_QPT_XRC_INI;
	struct topts at = {.no_rq = xrc, .private_memory = o->private_memory}, bt = at;
	struct mock *m;

	memset(p, 0, sizeof(*p));
	m = p->m = mock_new(&cfg);
	actx = mock_ctx(m, 0);
	bctx = mock_ctx(m, hb);
	for (int i = 0; i < 2; i++) {
		tcq_open(&p->acq[i], m, 0, actx, 0x80 + i, 7);
		tcq_open(&p->bcq[i], m, hb, bctx, 0x90 + i, 7);
	}
	p->akey = 0x1000;
	p->bkey = 0x2100;
	p->amem = region(m, 0, actx, PD_A, p->akey);
	p->bmem = region(m, hb, bctx, PD_B, p->bkey);
	if (xrc || o->srq) {
		tsrq_open(&p->srq, m, hb, bctx, PD_B, 0x60, xrc ? XRCD : 0,
			  xrc ? p->bcq[1].cqn : 0);
		bt.no_rq = true;
		bt.srqn = xrc ? 0 : 0x60;
	}
	if (o->type == SH_QPT_XRC) {
		aqpn |= 1u << 23;
		bqpn |= 1u << 23;
		at.xrcd = XRCD + 1;
		bt.xrcd = XRCD;
	}
	tqp_open(&p->a, m, 0, actx, PD_A, o->type, aqpn, &p->acq[0], &p->acq[1], &at);
	if (xrc) { /* as the kernel makes it: no queues, no CQs, a PD that no region has */
		struct sh_qp_init init = {.type = o->type == SH_QPT_XRC ? SH_QPT_XRC
									: SH_QPT_XRC_TGT,
					  .pdn = 77,
					  .xrcd = XRCD};

		bqpn |= 1u << 23;
		p->b = (struct tqp){.m = m,
				    .hca = hb,
				    .ctx = bctx,
				    .qpn = bqpn,
				    .type = init.type,
				    .pdn = PD_B};
		assert_int_equal(sh_qp_create(&m->daemon, hb, bqpn, &init), 0);
	} else {
		tqp_open(&p->b, m, hb, bctx, PD_B, o->type, bqpn, &p->bcq[0], &p->bcq[1], &bt);
	}
	p->aattr = tqp_attr(tlid(m, hb), bqpn);
	p->battr = tqp_attr(tlid(m, 0), aqpn);
	if (o->psn)
		p->aattr.sq_psn = p->aattr.rq_psn = p->battr.sq_psn = p->battr.rq_psn = o->psn;
	if (o->timeout || o->no_timeout)
		p->aattr.timeout = o->timeout;
	if (o->retry || o->no_retry)
		p->aattr.retry_cnt = o->retry;
	if (o->rnr_retry || o->no_rnr_retry)
		p->aattr.rnr_retry = o->rnr_retry;
	if (o->rd_atomic)
		p->aattr.max_rd_atomic = o->rd_atomic;
	if (o->mtu)
		p->aattr.path_mtu = p->battr.path_mtu = o->mtu;
	if (o->unconnected)
		return;
	tqp_up(&p->a, &p->aattr);
	tqp_up(&p->b, &p->battr);
}

void tpair_close(struct tpair *p)
{
	assert_int_equal(p->m->shared->complaints, 0);
	mock_free(p->m);
	munmap(p->amem, TMEM);
	munmap(p->bmem, TMEM);
}

struct twr tpair_wr(struct tpair *p, uint8_t opcode, uint32_t len)
{
	struct twr wr = {
		.opcode = opcode,
		.signaled = true,
		.raddr = (uintptr_t)p->bmem,
		.rkey = p->bkey,
		.srqn = p->srq.srqn,
		.nsge = len ? 1 : 0,
		.av_pd = p->a.pdn,
		.av_port = 1,
		.dqpn = p->b.qpn,
		.qkey = 0x11111111,
		.dlid = tlid(p->m, p->b.hca),
	};

	wr.sge[0] = (struct tsge){p->amem, len, p->akey};
	return wr;
}

void tpair_recv(struct tpair *p, uint32_t off, uint32_t len)
{
	struct tsge sge = {p->bmem + off, len, p->bkey};

	if (p->srq.srqn)
		tsrq_post(&p->srq, &sge, 1);
	else
		tqp_recv(&p->b, &sge, 1);
}

void tfill(uint8_t *at, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1103515245u + 12345u;
		at[i] = seed >> 16;
	}
}

unsigned int tasync(struct mock *m, uint32_t ctx, uint32_t type)
{
	uint32_t evq = sh_ctx(&m->dev, ctx)->async_evq;
	unsigned int n = 0;

	for (unsigned int i = 0; i < mock_records(m, evq); i++)
		n += mock_record(m, evq, i)->type == type;
	return n;
}
