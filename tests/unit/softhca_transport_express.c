// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a short request takes the express way if all conditions are usual, and only then.
 * The ordinary way treats the other requests just as correctly. A chain of sends ends where it has
 * to. Datagrams are in softhca_transport_express_ud.c.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/mr.h"
#include "softhca/device/memory/txn.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/queues/srq.h"
#include "softhca/device/transport/express.h"
#include "softhca_pair.h"

enum { COMM_EST = 4, SRQ_LIMIT = 15 };

static struct tpair p;

static void open_pair(uint32_t type, bool srq)
{
	tpair_open(&p, &(struct tpair_opts){.type = type, .srq = srq});
	tfill(p.amem, TMEM / 2, 1);
}

/* Returns how many requests of a took the express way. */
static uint64_t express(void)
{
	assert_int_equal(tqp_ctx(&p.b)->rcv_packets, tqp_ctx(&p.a)->xmit_packets);
	assert_int_equal(tqp_ctx(&p.b)->rcv_data, tqp_ctx(&p.a)->xmit_data);
	return tqp_ctx(&p.b)->rcv_packets;
}

static void send_one(uint32_t len)
{
	struct twr wr = tpair_wr(&p, MLX4_OPCODE_SEND, len);

	tqp_send(&p.a, &wr);
}

static void arrived(uint16_t index, uint32_t off, uint32_t len)
{
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, index);
	assert_memory_equal(p.bmem + off, p.amem, len);
}

static void taken(uint32_t type, bool srq)
{
	bool uc = type == SH_QPT_UC;
	struct sh_counters c;
	struct twr wr;

	open_pair(type, srq);
	for (uint32_t i = 0; i < 3; i++)
		tpair_recv(&p, 4096 * (i + 1), 4096);
	send_one(100);
	arrived(0, 4096, 100);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND_IMM, 0);
	tqp_send(&p.a, &wr);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND_IMM, false, 1);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 2500);
	tqp_send(&p.a, &wr);
	assert_memory_equal(p.bmem, p.amem, 2500);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE_IMM, 60);
	wr.raddr += 3000;
	tqp_send(&p.a, &wr);
	texpect(&p.bcq[1], MLX4_CQE_RECV_RDMA_WRITE_IMM, false, 2);
	assert_memory_equal(p.bmem + 3000, p.amem, 60);
	assert_int_equal(express(), 6);
	if (!uc) {
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_READ, 1100);
		wr.sge[0].addr = p.amem + TMEM / 2;
		tqp_send(&p.a, &wr);
		assert_memory_equal(p.amem + TMEM / 2, p.bmem, 1100);
		assert_int_equal(express(), 7);
	}
	for (uint16_t i = 1; i < 5 - uc; i++)
		texpect(&p.acq[0],
			i < 2	? MLX4_OPCODE_SEND_IMM
			: i < 3 ? MLX4_OPCODE_RDMA_WRITE
			: i < 4 ? MLX4_OPCODE_RDMA_WRITE_IMM
				: MLX4_OPCODE_RDMA_READ,
			true, i);
	/* The HCA's counters contain them while the QP lives and afterwards. */
	sh_counters(&p.m->daemon, 1, &c);
	assert_int_equal(c.rcv_packets, 7 - uc);
	assert_int_equal(c.rcv_data, 100 + 2500 + 60);
	assert_int_equal(sh_qp_destroy(&p.m->daemon, 1, p.b.qpn, NULL), 0);
	sh_counters(&p.m->daemon, 1, &c);
	assert_int_equal(c.rcv_packets, 7 - uc);
	sh_counters(&p.m->daemon, 0, &c);
	assert_int_equal(c.xmit_packets, 7 - uc);
	tpair_close(&p);
}

static void test_taken(void **state)
{
	(void)state;
	taken(SH_QPT_RC, false);
	taken(SH_QPT_RC, true);
	taken(SH_QPT_XRC, false);
	taken(SH_QPT_UC, false);
	taken(SH_QPT_UC, true);
}

/* A chain of UC messages whose receives end in between: those that have none are lost. */
static void test_lossy_chain(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 4; round++) {
		uint32_t type = round & 1 ? SH_QPT_UD : SH_QPT_UC;

		open_pair(type, round & 2);
		for (uint32_t i = 0; i < 5; i++)
			tpair_recv(&p, 4096 * (i + 1), 4096);
		for (uint32_t i = 0; i < 9; i++) {
			struct twr wr = tpair_wr(&p, MLX4_OPCODE_SEND, 64);

			wr.signaled = i == 8;
			tqp_post(&p.a, &wr);
		}
		tqp_ring(&p.a);
		for (uint16_t i = 0; i < 5; i++)
			texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, i);
		texpect_none(&p.bcq[1]);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 8);
		assert_int_equal(sh_hca(&p.m->dev, 1)->counters.drops_no_wqe, 4);
		tpair_recv(&p, 4096, 4096);
		send_one(100);
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 5);
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 9);
		tpair_close(&p);
	}
}

static void first_message(uint32_t type)
{
	tpair_open(&p, &(struct tpair_opts){.type = type, .unconnected = true});
	tfill(p.amem, TMEM / 2, 1);
	tqp_up(&p.a, &p.aattr);
	tqp_init(&p.b, &p.battr);
	tpair_recv(&p, 4096, 4096);
	tpair_recv(&p, 8192, 4096);
	tqp_rtr(&p.b, &p.battr);
	send_one(100);
	arrived(0, 4096, 100);
	assert_int_equal(tasync(p.m, p.b.ctx, COMM_EST), 1);
	assert_int_equal(express(), 0);
	send_one(100);
	arrived(1, 8192, 100);
	assert_int_equal(tasync(p.m, p.b.ctx, COMM_EST), 1);
	assert_int_equal(express(), 1);
	tpair_close(&p);
}

static void test_first_message(void **state)
{
	(void)state;
	first_message(SH_QPT_RC);
	first_message(SH_QPT_UC);
}

static void test_not_ready(void **state)
{
	(void)state;
	open_pair(SH_QPT_RC, false);
	send_one(100);
	texpect_none(&p.bcq[1]);
	assert_int_equal(sh_hca(&p.m->dev, 1)->counters.rnr_naks_sent, 1);
	tpair_recv(&p, 4096, 4096);
	mock_advance(p.m, 10000000);
	arrived(0, 4096, 100);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	tpair_close(&p);
}

/*
 * The express way does not read the record of receives for each request, but only when the receives
 * that it knows of are used up. This happens again and again as the queue wraps.
 */
static void test_receives_run_out(void **state)
{
	(void)state;
	for (int srq = 0; srq < 2; srq++) {
		open_pair(SH_QPT_RC, srq);
		for (uint32_t i = 0; i < 200; i++) {
			for (uint32_t n = 0; n <= i % 3; n++)
				tpair_recv(&p, 4096, 4096);
			for (uint32_t n = 0; n <= i % 3; n++) {
				struct mlx4_cqe cqe;

				send_one(8);
				assert_true(tcq_poll(&p.bcq[1], &cqe));
				assert_int_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_RECV_SEND);
				texpect(&p.acq[0], MLX4_OPCODE_SEND, true,
					(uint16_t)(p.a.head - 1));
			}
		}
		assert_int_equal(express(), p.a.head);
		send_one(8);
		texpect_none(&p.bcq[1]);
		tpair_close(&p);
	}
}

/* Receives that the ordinary way takes are counted too. The record has 16 bits and wraps. */
static void test_record_comes_around(void **state)
{
	(void)state;
	for (int srq = 0; srq < 2; srq++) {
		open_pair(SH_QPT_RC, srq);
		for (uint32_t i = 0; i < 65536; i++) {
			struct mlx4_cqe cqe;

			tpair_recv(&p, 4096, 16384);
			send_one(i ? SH_SHORT + 1 : 8);
			assert_true(tcq_poll(&p.bcq[1], &cqe));
			assert_int_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_RECV_SEND);
			assert_true(tcq_poll(&p.acq[0], &cqe));
		}
		send_one(8);
		texpect_none(&p.bcq[1]);
		assert_int_equal(sh_hca(&p.m->dev, 1)->counters.rnr_naks_sent, 1);
		tpair_close(&p);
	}
}

/*
 * Four receives of one segment share a cache line and are read ahead. Each is used once, in its
 * turn, whichever way takes it.
 */
static void test_read_ahead(void **state)
{
	struct topts opts = {.rq_shift = 4, .log_rq = 3};
	uint32_t used = 0, counted = 0;
	struct sh_qp_attr attr;
	struct tqp b;

	(void)state;
	open_pair(SH_QPT_RC, false);
	tqp_open(&b, p.m, 1, p.b.ctx, p.b.pdn, SH_QPT_RC, 0x55, &p.bcq[0], &p.bcq[1], &opts);
	attr = p.battr;
	tqp_up(&b, &attr);
	attr = p.aattr;
	attr.dest_qp_num = 0x55;
	assert_int_equal(tqp_to(&p.a, SH_QPS_RESET), 0);
	p.a.head = 0;
	for (uint32_t i = 0; i < 64; i++)
		*(uint32_t *)((char *)mock_ptr(&p.a.buf) + (i << p.a.sq_shift)) =
			htobe32(0x80000000u);
	tqp_up(&p.a, &attr);
	for (uint32_t round = 0; round < 100; round++) {
		uint32_t n = round * 7 % 8 + 1;

		for (uint32_t i = 0; i < n; i++)
			tqp_recv(&b,
				 &(struct tsge){p.bmem + 16384 * ((used + i) % 8), 16384, p.bkey},
				 1);
		for (uint32_t i = 0; i < n; i++, used++) {
			/* the long ones take the ordinary way */
			uint32_t len = (used * 5 + round) % 3 ? 100 : 9000;
			uint8_t *at = p.bmem + 16384 * (used % 8);

			memset(p.bmem, 0, 8 * 16384);
			send_one(len);
			counted += len == 100;
			texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, (uint16_t)used);
			texpect(&p.acq[0], MLX4_OPCODE_SEND, true, (uint16_t)used);
			assert_memory_equal(at, p.amem, len);
		}
	}
	assert_int_equal(sh_qp_get(&p.m->dev, 1, 0x55)->rcv_packets, counted);
	/* A message that is larger than its receive fails at both ends. */
	tqp_recv(&b, &(struct tsge){p.bmem, 99, p.bkey}, 1);
	send_one(100);
	texpect_error(&p.bcq[1], MLX4_SYNDROME_LOC_LEN, false, (uint16_t)used);
	texpect_error(&p.acq[0], MLX4_SYNDROME_REM_INVAL_REQ, true, (uint16_t)used);
	tpair_close(&p);
}

static void test_srq_limit(void **state)
{
	(void)state;
	open_pair(SH_QPT_RC, true);
	for (uint32_t i = 0; i < 3; i++)
		tpair_recv(&p, 4096 * (i + 1), 4096);
	assert_int_equal(sh_srq_limit(&p.m->daemon, 1, 0x60, 2), 0);
	send_one(100);
	arrived(0, 4096, 100);
	assert_int_equal(tasync(p.m, p.b.ctx, SRQ_LIMIT), 0);
	assert_int_equal(express(), 1);
	send_one(100);
	arrived(1, 8192, 100);
	assert_int_equal(tasync(p.m, p.b.ctx, SRQ_LIMIT), 1);
	assert_int_equal(express(), 1);
	tpair_close(&p);
}

static void test_faults(void **state)
{
	(void)state;
	open_pair(SH_QPT_RC, false);
	tpair_recv(&p, 4096, 4096);
	p.m->inst->faults.rule[SH_FAULT_DUPLICATE].count = 1;
	p.m->inst->faults.active = 1;
	send_one(100);
	arrived(0, 4096, 100);
	texpect_none(&p.bcq[1]);
	assert_int_equal(express(), 0);
	assert_int_equal(sh_hca(&p.m->dev, 1)->counters.duplicates, 1);
	tpair_close(&p);
}

/*
 * The data of a READ counts as sent by the responder's port and received by the requester's,
 * whichever way the request took.
 */
static void test_fetched_is_counted(void **state)
{
	struct sh_counters mine, theirs;
	struct twr wr;

	(void)state;
	for (uint32_t round = 0; round < 4; round++) {
		open_pair(round & 1 ? SH_QPT_XRC : SH_QPT_RC, false);
		/* Each packet on its own, as with faults. */
		p.m->inst->faults.active = round >= 2;
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_READ, 2 * TMTU + 1);
		wr.sge[0].addr = p.amem + TMEM / 2;
		tqp_send(&p.a, &wr);
		assert_memory_equal(p.amem + TMEM / 2, p.bmem, 2 * TMTU + 1);
		assert_int_equal(express(), round < 2);
		sh_counters(&p.m->daemon, 0, &mine);
		sh_counters(&p.m->daemon, 1, &theirs);
		assert_int_equal(theirs.xmit_data, 2 * TMTU + 1);
		assert_int_equal(theirs.xmit_packets, 3);
		assert_int_equal(mine.rcv_data, 2 * TMTU + 1);
		assert_int_equal(mine.rcv_packets, 3);
		assert_int_equal(mine.xmit_data, 0);
		assert_int_equal(mine.xmit_packets, 1);
		tpair_close(&p);
	}
}

static void test_long(void **state)
{
	(void)state;
	open_pair(SH_QPT_RC, true);
	tpair_recv(&p, 0, 65536);
	send_one(8193);
	arrived(0, 0, 8193);
	assert_int_equal(express(), 0);
	tpair_close(&p);
}

static void test_port_down(void **state)
{
	(void)state;
	open_pair(SH_QPT_RC, false);
	tpair_recv(&p, 4096, 4096);
	sh_hca(&p.m->dev, 1)->port[0].state = 1;
	send_one(100);
	texpect_none(&p.bcq[1]);
	assert_int_equal(express(), 0);
	sh_hca(&p.m->dev, 1)->port[0].state = 4;
	mock_advance(p.m, 1000000000);
	arrived(0, 4096, 100);
	tpair_close(&p);
}

/* The receiver is at fault: the receive is not taken twice, and both ends get an error. */
static void refused(void (*spoil)(void), uint32_t len, uint8_t theirs, uint8_t ours)
{
	open_pair(SH_QPT_RC, false);
	tqp_recv(&p.b, &(struct tsge){p.bmem + 4096, 4096, p.bkey}, 1);
	tqp_recv(&p.b, &(struct tsge){p.bmem + 8192, 4096, p.bkey}, 1);
	if (spoil)
		spoil();
	send_one(len);
	texpect_error(&p.bcq[1], theirs, false, 0);
	texpect_error(&p.bcq[1], MLX4_SYNDROME_WR_FLUSH, false, 1);
	texpect_none(&p.bcq[1]);
	texpect_error(&p.acq[0], ours, true, 0);
	assert_int_equal(express(), 0);
	tpair_close(&p);
}

static void unmap(void)
{
	mock_unmap(p.m, p.b.ctx, p.bmem);
}

static void drop_key(void)
{
	assert_int_equal(sh_mr_destroy(&p.m->daemon, 1, p.bkey), 0);
}

static void test_refused(void **state)
{
	(void)state;
	refused(NULL, 4097, MLX4_SYNDROME_LOC_LEN, MLX4_SYNDROME_REM_INVAL_REQ);
	refused(unmap, 100, MLX4_SYNDROME_LOC_PROT, MLX4_SYNDROME_REM_OP);
	refused(drop_key, 100, MLX4_SYNDROME_LOC_PROT, MLX4_SYNDROME_REM_OP);
}

static void overrun(struct sh_cq *cq)
{
	cq->overrun = 1;
}

static void damaged(struct sh_cq *cq)
{
	cq->live = SH_DAMAGED;
}

static void too_large(struct sh_cq *cq)
{
	cq->log_size = 23;
}

static void owner_gone(struct sh_cq *cq)
{
	cq->ctx = mock_ctx(p.m, 1);
	sh_ctx(&p.m->dev, cq->ctx)->state = SH_CTX_GONE;
}

static void shorter(struct sh_cq *cq)
{
	cq->buf.len = 16;
}

/* A CQ that takes no more CQEs gets none, although it has room. */
static void test_cq_takes_none(void **state)
{
	static const struct {
		void (*spoil)(struct sh_cq *cq);
		uint32_t complaints;
	} cases[] = {{overrun, 0}, {damaged, 0}, {owner_gone, 0}, {too_large, 1}, {shorter, 1}};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t before[32];

		open_pair(SH_QPT_RC, false);
		tpair_recv(&p, 4096, 4096);
		memcpy(before, mock_ptr(&p.bcq[1].buf), sizeof(before));
		cases[i].spoil(sh_cq_get(&p.m->dev, 1, p.bcq[1].cqn));
		send_one(100);
		assert_memory_equal(mock_ptr(&p.bcq[1].buf), before, sizeof(before));
		assert_int_equal(express(), 0);
		assert_int_equal(p.m->shared->complaints, cases[i].complaints);
		p.m->shared->complaints = 0;
		tpair_close(&p);
	}
}

/* The acknowledgement of a request was lost. That of the next request stands for both. */
static void test_acknowledged_late(void **state)
{
	(void)state;
	for (unsigned int signaled = 0; signaled < 2; signaled++) {
		struct sh_qp *a;
		struct twr wr;

		open_pair(SH_QPT_RC, false);
		a = tqp_ctx(&p.a);
		tpair_recv(&p, 4096, 4096);
		tpair_recv(&p, 8192, 4096);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
		wr.signaled = signaled;
		tqp_send(&p.a, &wr);
		if (signaled)
			texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
		a->sq_una--;
		a->una_psn = a->ack_psn = sh_psn_add(a->ack_psn, SH_PSN_MASK);
		tqp_send(&p.a, &wr);
		assert_int_equal(express(), 2);
		assert_int_equal(a->sq_una, 2);
		assert_int_equal(a->sq_next, 2);
		assert_int_equal(a->ack_psn, a->next_psn);
		for (uint16_t i = 0; i < 2 && signaled; i++)
			texpect(&p.acq[0], MLX4_OPCODE_SEND, true, i);
		texpect_none(&p.acq[0]);
		tpair_close(&p);
	}
}

/* ---- chains ---- */

static void test_chain(void **state)
{
	struct twr wr;

	(void)state;
	open_pair(SH_QPT_RC, false);
	for (uint32_t i = 0; i < 30; i++)
		tpair_recv(&p, 4096 * (i + 1), 4096);
	for (uint32_t i = 0; i < 40; i++) {
		wr = tpair_wr(&p, i % 4 ? MLX4_OPCODE_SEND : MLX4_OPCODE_NOP, i % 4 ? 64 : 0);
		wr.sge[0].addr = p.amem + 64 * i;
		wr.signaled = i % 10 == 9;
		tqp_post(&p.a, &wr);
	}
	tqp_ring(&p.a);
	for (uint32_t i = 0, n = 0; i < 40; i++) {
		if (i % 4 == 0)
			continue;
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, n);
		n++;
		assert_memory_equal(p.bmem + 4096 * n, p.amem + 64 * i, 64);
	}
	for (uint16_t i = 9; i < 40; i += 10)
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, i);
	texpect_none(&p.acq[0]);
	assert_int_equal(express(), 30);
	tpair_close(&p);
}

/*
 * The fifth of ten messages cannot be read. Four arrive, the fifth fails, and the others are
 * flushed.
 */
static void test_chain_breaks(void **state)
{
	(void)state;
	open_pair(SH_QPT_RC, true);
	for (uint32_t i = 0; i < 10; i++)
		tpair_recv(&p, 4096 * (i + 1), 4096);
	for (uint32_t i = 0; i < 10; i++) {
		struct twr wr = tpair_wr(&p, MLX4_OPCODE_SEND, 64);

		wr.sge[0].key += i == 4;
		wr.signaled = false;
		tqp_post(&p.a, &wr);
	}
	tqp_ring(&p.a);
	for (uint16_t i = 0; i < 4; i++)
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, i);
	texpect_none(&p.bcq[1]);
	texpect_error(&p.acq[0], MLX4_SYNDROME_LOC_PROT, true, 4);
	for (uint16_t i = 5; i < 10; i++)
		texpect_error(&p.acq[0], MLX4_SYNDROME_WR_FLUSH, true, i);
	texpect_none(&p.acq[0]);
	/* The chain has left no lock held at the receiver. */
	assert_int_equal(sh_trylock(&p.m->dev, &tqp_ctx(&p.b)->rlock), 0);
	sh_unlock(&p.m->dev, &tqp_ctx(&p.b)->rlock);
	assert_int_equal(sh_trylock(&p.m->dev, &sh_srq_get(&p.m->dev, 1, 0x60)->lock), 0);
	sh_unlock(&p.m->dev, &sh_srq_get(&p.m->dev, 1, 0x60)->lock);
	tpair_close(&p);
}

/* The receives end in the middle of a chain. The rest arrives later, each message once. */
static void test_chain_waits(void **state)
{
	(void)state;
	open_pair(SH_QPT_RC, false);
	for (uint32_t i = 0; i < 4; i++)
		tpair_recv(&p, 4096 * (i + 1), 4096);
	for (uint32_t i = 0; i < 10; i++) {
		struct twr wr = tpair_wr(&p, MLX4_OPCODE_SEND, 64);

		wr.signaled = i == 9;
		tqp_post(&p.a, &wr);
	}
	tqp_ring(&p.a);
	for (uint32_t i = 4; i < 10; i++)
		tpair_recv(&p, 4096 * (i + 1), 4096);
	mock_advance(p.m, 10000000);
	for (uint16_t i = 0; i < 10; i++)
		texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, i);
	texpect_none(&p.bcq[1]);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 9);
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_first_message),
		cmocka_unit_test(test_lossy_chain),
		cmocka_unit_test(test_not_ready),
		cmocka_unit_test(test_receives_run_out),
		cmocka_unit_test(test_srq_limit),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_port_down),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_cq_takes_none),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_chain_breaks),
		cmocka_unit_test(test_chain_waits),
		cmocka_unit_test(test_read_ahead),
		cmocka_unit_test(test_record_comes_around),
		cmocka_unit_test(test_acknowledged_late),
		cmocka_unit_test(test_fetched_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
