// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queues as a program may leave them for the device: WQEs of any contents in the send queue, the
 * receive queue and the SRQ, doorbell records with any count, doorbells with any number. Two QPs of
 * some kind work with them. Nothing outside of registered memory and queues is touched, every step
 * ends, and device memory proper stays whole: the device complains of nothing but doorbell records.
 *
 *	BYTE	OF AN INPUT
 *	0	the kind of QPs (modulo 5); bit 5 an SRQ, bit 6 one HCA for both, bit 7 queues that are no device memory
 *	1..	records:
 *	 0	what happens (enum what); bits 4-7 are flags of it
 *	 1	an argument
 *	 2	bytes that follow
 *	 3..	what they are: a WQE, a doorbell record, a number
 */
#include <asm/byteorder.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "revive.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/objects.h"
#include "softhca/device/queues/cq.h"
#include "softhca/device/transport/doorbell.h"

enum what {
	SEND_WQE,
	RECV_WQE,
	RECORD,
	RING,
	ARM,
	LOOK,
	TIME,
	RECEIVED,
	DRAIN,
	REVIVE,
	PEER_STATE,
	WHATS
};
enum {
	AS_IT_IS = 16, /* the owner bit, the number and the like are the input's */
	/* addresses are offsets in the QP's registered memory, or a little behind it */
	ADDRESSES = 32,
	SILENT = 64, /* rings no doorbell, counts in no record */
};

/* Turns the offsets in data segments of a WQE, and in all that looks like one, into addresses. */
static void relocate(uint8_t *wqe, size_t from, size_t len, const void *base)
{
	uint64_t addr;

	for (; from + 16 <= len; from += 16) {
		memcpy(&addr, wqe + from + 8, sizeof(addr));
		addr = __cpu_to_be64((uintptr_t)base + (__be64_to_cpu(addr) & (2 * TMEM - 1)));
		memcpy(wqe + from + 8, &addr, sizeof(addr));
	}
}

/*
 * The data segments are behind the control segment, or behind the further segments that every WQE
 * of its opcode has.
 */
static void relocate_send(struct tpair *p, uint8_t *wqe, size_t len)
{
	uint8_t opcode = wqe[3] & 0x1f;
	size_t data = 16;
	uint64_t raddr;

	if (p->a.type == SH_QPT_UD) {
		data += 48;
	} else if (opcode != MLX4_OPCODE_SEND && opcode != MLX4_OPCODE_SEND_IMM && len >= 32) {
		memcpy(&raddr, wqe + 16, sizeof(raddr));
		raddr = __cpu_to_be64((uintptr_t)p->bmem + (__be64_to_cpu(raddr) & (2 * TMEM - 1)));
		memcpy(wqe + 16, &raddr, sizeof(raddr));
		data += 16;
	}
	if (opcode == MLX4_OPCODE_ATOMIC_CS || opcode == MLX4_OPCODE_ATOMIC_FA)
		data += 16;
	relocate(wqe, data, len, p->amem);
}

static void put32(void *at, uint32_t value)
{
	value = __cpu_to_be32(value);
	memcpy(at, &value, sizeof(value));
}

static void ring(struct tpair *p, uint32_t ctx, uint32_t qpn)
{
	assert_true(sh_enter(&p->m->dev));
	sh_ring(&p->m->dev, ctx, qpn);
	sh_leave(&p->m->dev);
}

static void send_wqe(struct tpair *p, unsigned int flags, const uint8_t *data, size_t len)
{
	struct tqp *qp = &p->a;
	uint32_t slots = 1u << qp->log_sq;
	uint8_t *slot = mock_ptr(&qp->buf), wqe[256] = {0};

	slot += (size_t)(qp->head & (slots - 1)) << qp->sq_shift;
	memcpy(wqe, data, len);
	if (flags & ADDRESSES)
		relocate_send(p, wqe, sizeof(wqe));
	if (!(flags & AS_IT_IS))
		wqe[0] = (wqe[0] & 0x7f) | (qp->head & slots ? 0x80 : 0);
	memcpy(slot, wqe, sizeof(wqe));
	qp->head++;
	if (!(flags & SILENT))
		ring(p, qp->ctx, qp->qpn);
}

static void srq_wqe(struct tsrq *srq, unsigned int flags, const uint8_t *wqe, size_t len)
{
	uint8_t *at = mock_ptr(&srq->buf);
	uint16_t next;

	at += (size_t)(srq->head & ((1u << srq->log_size) - 1)) << srq->shift;
	memcpy(&next, at + 2, sizeof(next));
	/* The first bytes have the link to the next WQE. */
	if (flags & AS_IT_IS)
		memcpy(at, wqe, len < 16 ? len : 16);
	if (len > 16)
		memcpy(at + 16, wqe + 16, (len < 128 ? len : 128) - 16);
	srq->head = __be16_to_cpu(next);
	srq->posted++;
	if (!(flags & SILENT))
		put32(mock_ptr(&srq->db), srq->posted & 0xffff);
}

static void recv_wqe(struct tpair *p, unsigned int flags, const uint8_t *data, size_t len)
{
	struct tqp *qp = &p->b;
	uint8_t *at, wqe[256] = {0};
	size_t size = 1u << qp->rq_shift;

	memcpy(wqe, data, len);
	if (p->srq.srqn) {
		if (flags & ADDRESSES)
			relocate(wqe, 16, sizeof(wqe), p->bmem);
		srq_wqe(&p->srq, flags, wqe, len);
		return;
	}
	if (!qp->log_rq)
		return;
	if (flags & ADDRESSES)
		relocate(wqe, 0, sizeof(wqe), p->bmem);
	at = mock_ptr(&qp->buf);
	at += 1u << (qp->sq_shift + qp->log_sq);
	at += (size_t)(qp->rq_head & ((1u << qp->log_rq) - 1)) << qp->rq_shift;
	memcpy(at, wqe, len < size ? len : size);
	qp->rq_head++;
	if (!(flags & SILENT))
		put32(mock_ptr(&qp->db), qp->rq_head & 0xffff);
}

/* Writes a doorbell record. */
static void doorbell_record(struct tpair *p, uint8_t which, const uint8_t *data, size_t len)
{
	struct sh_umem *records[] = {&p->b.db,	    &p->srq.db,	   &p->acq[0].db, &p->acq[1].db,
				     &p->bcq[0].db, &p->bcq[1].db, &p->a.db};
	struct sh_umem *record = records[which % (sizeof(records) / sizeof(records[0]))];

	if (record->len)
		memcpy(mock_ptr(record), data, len < record->len ? len : record->len);
}

static uint32_t number(const uint8_t *data, size_t len, size_t at)
{
	uint32_t n = 0;

	if (at < len)
		memcpy(&n, data + at, len - at < 4 ? len - at : 4);
	return n;
}

static void doorbell(struct tpair *p, unsigned int flags, uint8_t arg, const uint8_t *data,
		     size_t len)
{
	struct tqp *qp = arg & 1 ? &p->b : &p->a;

	if (flags & AS_IT_IS)
		ring(p, arg / 2, number(data, len, 0));
	else
		ring(p, qp->ctx, qp->qpn);
}

static void arm(struct tpair *p, unsigned int flags, uint8_t arg, const uint8_t *data, size_t len)
{
	struct tcq *cqs[] = {&p->acq[0], &p->acq[1], &p->bcq[0], &p->bcq[1]};
	struct tcq *cq = cqs[arg % 4];
	uint32_t word = number(data, len, 0);

	if (!(flags & AS_IT_IS)) {
		tcq_arm(cq, arg & 4);
		return;
	}
	assert_true(sh_enter(&p->m->dev));
	sh_arm(&p->m->dev, cq->ctx, arg & 8 ? number(data, len, 8) : cq->cqn, word,
	       number(data, len, 4));
	sh_leave(&p->m->dev);
}

static void received(struct tpair *p, unsigned int flags, const uint8_t *data, size_t len)
{
	uint32_t qpn = flags & AS_IT_IS ? number(data, len, 0) : p->b.qpn;

	assert_true(sh_enter(&p->m->dev));
	if (sh_recv_matters(&p->m->dev, p->b.ctx, qpn))
		sh_recv_posted(&p->m->dev, p->b.ctx, qpn);
	sh_leave(&p->m->dev);
}

static void record(struct tpair *p, unsigned int what, uint8_t arg, const uint8_t *data, size_t len)
{
	struct sh_qp_attr attr = {.qp_state = arg % 8};

	switch (what % 16 % WHATS) {
	case SEND_WQE:
		send_wqe(p, what, data, len);
		break;
	case RECV_WQE:
		recv_wqe(p, what, data, len);
		break;
	case RECORD:
		doorbell_record(p, arg, data, len);
		break;
	case RING:
		doorbell(p, what, arg, data, len);
		break;
	case ARM:
		arm(p, what, arg, data, len);
		break;
	case LOOK:
		assert_true(sh_enter(&p->m->dev));
		sh_attention(&p->m->dev);
		sh_leave(&p->m->dev);
		break;
	case TIME:
		let_time_pass(p->m);
		break;
	case RECEIVED:
		received(p, what, data, len);
		break;
	case DRAIN:
		drain(&p->acq[0]);
		drain(&p->bcq[1]);
		break;
	case REVIVE:
		revive(&p->a, &p->aattr);
		revive(&p->b, &p->battr);
		break;
	case PEER_STATE:
		(void)tqp_modify(arg & 8 ? &p->a : &p->b, &attr, SH_QPA_STATE);
		break;
	}
}

/*
 * A doorbell record belongs to the program and may have any value. All else that the device
 * complains of would be its own fault.
 */
static void complaint(const char *what)
{
	if (!strcmp(what, "a receive queue's record runs ahead of it"))
		return;
	fprintf(stderr, "softhca_queues: %s\n", what);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t types[] = {SH_QPT_RC, SH_QPT_UC, SH_QPT_UD, SH_QPT_XRC,
					 SH_QPT_XRC_INI};
	struct tpair_opts opts = {0};
	struct tpair p;
	size_t n;

	if (!size)
		return 0;
	opts.type = types[data[0] % 32 % 5];
	opts.srq = data[0] & 32;
	opts.same_hca = data[0] & 64;
	opts.private_memory = data[0] & 128;
	tpair_open(&p, &opts);
	p.m->on_complaint = complaint;
	for (data++, size--; size >= 3; data += 3 + n, size -= 3 + n) {
		n = data[2] < size - 3 ? data[2] : size - 3;
		record(&p, data[0], data[1], data + 3, n);
		if (p.m->ndefers > MOCK_DEFERS / 2)
			let_time_pass(p.m);
	}
	p.m->shared->complaints = 0;
	tpair_close(&p);
	return 0;
}
