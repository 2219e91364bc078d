// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A client overwrites device memory while a device works with it. Two QPs of some kind send to each
 * other, with commands in between, and before each step a word of device memory is overwritten.
 * What becomes of the messages does not matter. But nothing outside of device memory is touched,
 * which the sanitizer or the system would report, and every step ends. The mutexes in the slots of
 * threads are not overwritten, because the C library itself follows pointers in them.
 *
 *	BYTE	OF AN INPUT
 *	0	what kind of QPs
 *	1..	steps of 4 bytes: what is done, which table is written to, where, and how
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "revive.h"
#include "softhca/device/memory/event.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/tables.h"
#include "softhca/device/queues/cq.h"
#include "softhca/device/queues/modify.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/queues/srq.h"
#include "softhca/device/transport/doorbell.h"
#include "softhca/device/transport/mcast.h"

static uint64_t state;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Returns a place in one of the tables that this pair uses. */
static void *place(struct tpair *p, uint8_t table, size_t *len)
{
	struct sh_dev *dev = &p->m->dev;
	uint32_t hca = table >> 7;

	switch (table % 16) {
	case 0:
		*len = sizeof(struct sh_instance);
		return dev->inst;
	case 1:
		*len = 4 * sizeof(struct sh_ctx);
		return sh_ctx(dev, 0);
	case 2:
		*len = 2 * sizeof(struct sh_proc);
		return sh_proc(dev, 0);
	case 3:
		*len = 8 * sizeof(struct sh_evq);
		return sh_evq(dev, 1);
	case 4:
		*len = sizeof(struct sh_hca);
		return sh_hca(dev, hca);
	case 5:
	case 6:
	case 7:
		*len = sizeof(struct sh_qp);
		return sh_qp_slot(dev, p->a.hca, p->a.qpn);
	case 8:
	case 9:
	case 10:
		*len = sizeof(struct sh_qp);
		return sh_qp_slot(dev, p->b.hca, p->b.qpn);
	case 11:
		*len = sizeof(struct sh_cq);
		return sh_cq_get(dev, p->bcq[1].hca, p->bcq[1].cqn);
	case 12:
		*len = sizeof(struct sh_cq);
		return sh_cq_get(dev, p->acq[0].hca, p->acq[0].cqn);
	case 13:
		*len = sizeof(struct sh_mpt);
		return sh_mpt_get(dev, p->b.hca, table & 16 ? p->akey : p->bkey);
	case 14:
		*len = sizeof(struct sh_srq);
		return p->srq.srqn ? sh_srq_get(dev, p->srq.hca, p->srq.srqn) : NULL;
	default:
		*len = p->m->pool_used;
		return sh_at(dev, dev->pool_off);
	}
}

/*
 * The word as it was before overwrite() changed a bit of it, or stored a number that is likely to
 * hurt, that of a neighbour, or any other.
 */
static struct {
	char *at;
	size_t size;
	uint64_t word;
} before;

static void overwrite(struct tpair *p, uint8_t table, uint8_t how)
{
	static const uint64_t bad[] = {
		0,
		1,
		31,
		63,
		255,
		4096,
		0x7fffffff,
		0x80000000,
		UINT32_MAX,
		INT64_MAX,
		UINT64_MAX,
		UINT64_C(1) << 40,
		UINT64_C(1) << 63,
	};
	size_t len, size = how & 16 ? 4 : 8;
	char *at = place(p, table, &len);
	uint64_t word = 0;

	if (!at || len < size)
		return;
	at += next() % (len / size) * size;
	memcpy(&word, at, size);
	before.at = at;
	before.size = size;
	before.word = word;
	switch (how % 4) {
	case 0:
		word ^= UINT64_C(1) << next() % (size * 8);
		break;
	case 1:
		word = bad[next() % (sizeof(bad) / sizeof(bad[0]))];
		break;
	case 2:
		word += next() % 2 ? 8 : -8;
		break;
	default:
		word = next();
	}
	memcpy(at, &word, size);
}

/* Most words are restored after the step. Otherwise nothing would work any more before long. */
static void put_back(void)
{
	if (before.at)
		memcpy(before.at, &before.word, before.size);
	before.at = NULL;
}

static void send(struct tpair *p, uint8_t arg)
{
	static const uint8_t opcodes[] = {
		MLX4_OPCODE_SEND,	    MLX4_OPCODE_SEND_IMM,  MLX4_OPCODE_RDMA_WRITE,
		MLX4_OPCODE_RDMA_WRITE_IMM, MLX4_OPCODE_RDMA_READ, MLX4_OPCODE_ATOMIC_FA,
	};
	struct twr wr;

	wr = tpair_wr(p, opcodes[arg % 6], arg % 6 == 5 ? 8 : arg & 64 ? 9000 : arg);
	for (uint8_t n = 0; n <= arg % 3; n++) {
		tpair_recv(p, 0, 9100);
		tqp_post(&p->a, &wr);
	}
	tqp_ring(&p->a);
}

static void command(struct tpair *p, uint8_t arg)
{
	struct sh_dev *daemon = &p->m->daemon;
	struct sh_qp_attr attr = p->aattr;
	uint8_t gid[16] = {0xff, [15] = arg & 3};
	struct sh_counters counters;
	struct sh_qp_info qp;
	struct sh_cq_info cq;
	struct sh_srq_info srq;

	switch (arg % 12) {
	case 0:
		attr.qp_state = arg / 16 % 8;
		(void)sh_qp_modify(daemon, p->a.hca, p->a.qpn, &attr, SH_QPA_STATE);
		break;
	case 1:
		(void)sh_qp_query(daemon, p->b.hca, p->b.qpn, &attr);
		break;
	case 2:
		(void)sh_qp_info(daemon, p->b.hca, p->b.qpn, &qp);
		break;
	case 3:
		(void)sh_cq_query(daemon, p->b.hca, p->bcq[1].cqn, &cq);
		break;
	case 4:
		(void)sh_srq_query(daemon, p->b.hca, p->srq.srqn, &srq);
		break;
	case 5:
		sh_counters(daemon, p->b.hca, &counters);
		break;
	case 6:
		(void)sh_mcast_attach(daemon, p->b.hca, gid, p->b.qpn);
		break;
	case 7:
		(void)sh_mcast_detach(daemon, p->b.hca, gid, p->b.qpn);
		break;
	case 8:
		(void)sh_async_event(daemon, p->b.ctx, 1, 9);
		break;
	case 9:
		for (uint32_t evq = sh_evq_spilled(daemon, 1), n = 0; evq && n < 8; n++) {
			(void)sh_evq_flush(daemon, evq);
			evq = sh_evq_spilled(daemon, evq + 1);
		}
		break;
	case 10:
		sh_affiliated_event(&p->m->dev, p->a.hca, 1, p->a.qpn);
		break;
	case 11:
		tcq_arm(&p->bcq[1], arg & 16);
		break;
	}
}

static void step(struct tpair *p, uint8_t what, uint8_t arg)
{
	switch (what % 8) {
	case 0:
	case 1:
	case 2:
	case 3:
		send(p, arg);
		break;
	case 4:
	case 5:
		command(p, arg);
		break;
	case 6:
		assert_true(sh_enter(&p->m->dev));
		sh_attention(&p->m->dev);
		sh_leave(&p->m->dev);
		break;
	case 7:
		let_time_pass(p->m);
		break;
	}
	drain(&p->acq[0]);
	drain(&p->bcq[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t types[] = {SH_QPT_RC, SH_QPT_UC, SH_QPT_UD, SH_QPT_XRC, SH_QPT_RC};
	struct tpair_opts opts = {0};
	unsigned int n = 0;
	struct tpair p;
	uint32_t word;

	if (size < 5)
		return 0;
	opts.type = types[data[0] % 5];
	opts.srq = data[0] & 32;
	opts.same_hca = data[0] & 64;
	before.at = NULL;
	tpair_open(&p, &opts);
	p.m->shared->room = 20;
	for (data++, size--; size >= 4; data += 4, size -= 4) {
		/*
		 * Each step makes its own choices, so changing one step leaves the others as they
		 * were.
		 */
		memcpy(&word, data, sizeof(word));
		state = 0x9e3779b97f4a7c15u * (word + 1);
		(void)next();
		if (data[3] & 32)
			overwrite(&p, data[2], data[3]);
		step(&p, data[0], data[1]);
		if (data[3] & 0xc0)
			put_back();
		if (!(n++ % 32)) {
			revive(&p.a, &p.aattr);
			revive(&p.b, &p.battr);
		}
		if (p.m->ndefers > MOCK_DEFERS / 2)
			step(&p, 7, 0);
	}
	p.m->shared->complaints = 0;
	tpair_close(&p);
	return 0;
}
