// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the wire's engine: every operation, losses at each place, windows, retries, peers
 * that do not answer.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_wire_rig.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/queues/modify.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/queues/qp_halves.h"
#include "softhca/device/queues/transitions.h"
#include "softhca/device/transport/doorbell.h"
#include "softhca/device/transport/timer.h"

static const uint32_t lengths[] = {0, 1, 3, 4, 5, 1023, 1024, 1025, 10000, 300000};

/* One message of each operation and length, over a wire that loses packet number `lose`. */
static void one(uint32_t type, uint8_t opcode, uint32_t len, unsigned int lose)
{
	struct tpair p;
	struct twr wr;
	bool read = opcode == MLX4_OPCODE_RDMA_READ;

	open_pair(&p, &(struct tpair_opts){.type = type});
	queue.lose = lose;
	tfill(read ? p.bmem : p.amem, TMEM, 7 + len);
	tpair_recv(&p, 0, TMEM);
	wr = tpair_wr(&p, opcode, len);
	tqp_send(&p.a, &wr);
	pump(&p);
	for (int i = 0; i < 3; i++) {
		mock_advance(p.m, 300 * MS);
		pump(&p);
	}
	texpect(&p.acq[0], opcode, true, 0);
	assert_memory_equal(p.amem, p.bmem, len);
	if (opcode == MLX4_OPCODE_SEND || opcode == MLX4_OPCODE_RDMA_WRITE_IMM) {
		struct mlx4_cqe cqe;

		assert_true(tcq_poll(&p.bcq[1], &cqe));
		assert_int_equal(__builtin_bswap32(cqe.byte_cnt), len);
		assert_false(tcq_poll(&p.bcq[1], &cqe));
	}
	assert_true(queue.most <= 2 * 64 + 8);
	assert_int_equal(tqp_state(&p.a), SH_QPS_RTS);
	assert_int_equal(tqp_state(&p.b), SH_QPS_RTS);
	tpair_close(&p);
}

static void test_operations(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		one(SH_QPT_RC, opcodes[i % 4], lengths[i / 4], 0);
		one(SH_QPT_XRC, opcodes[i % 4], lengths[i / 4], 0);
	}
}

/* Whichever packet is lost, request or answer. */
static void test_losses(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		for (unsigned int lose = 1; lose <= 24; lose++) {
			one(SH_QPT_RC, opcodes[i], 10000, lose);
			one(SH_QPT_XRC, opcodes[i], 10000, lose);
		}
	one(SH_QPT_RC, MLX4_OPCODE_RDMA_WRITE, 300000, 150);
	one(SH_QPT_RC, MLX4_OPCODE_RDMA_READ, 300000, 150);
}

/*
 * Whichever packet the engine has just sent when another thread ends its life, it loses nothing and
 * does nothing twice.
 */
static void test_thrown(void **state)
{
	bool can_be_thrown = false;

	(void)state;
	for (throw_at = 1; throw_at <= 24; throw_at++)
		for (unsigned int i = 0; i < 4; i++) {
			one(SH_QPT_RC, opcodes[i], 10000, 0);
			one(SH_QPT_XRC, opcodes[i], 10000, 0);
			can_be_thrown |= sh_self.catches != NULL;
		}
	throw_at = 0;
	/* In the 10 packets that each of the requests and READs has, and some of the answers. */
	if (can_be_thrown)
		assert_true(thrown >= 8 * 10);
}

/* lose: 0 for none. Returns how many packets there were. */
static unsigned int last_packet(uint32_t type, uint8_t opcode, unsigned int lose)
{
	unsigned int n;
	struct tpair p;
	struct twr wr;

	open_pair(&p, &(struct tpair_opts){.type = type, .no_retry = true});
	queue.lose = lose;
	tfill(opcode == MLX4_OPCODE_RDMA_READ ? p.bmem : p.amem, TMEM, 7 + lose);
	tpair_recv(&p, 0, TMEM);
	wr = tpair_wr(&p, opcode, 10000);
	tqp_send(&p.a, &wr);
	pump(&p);
	n = queue.sent;
	if (lose)
		texpect_none(&p.acq[0]);
	mock_advance(p.m, 10 * MS);
	pump(&p);
	texpect(&p.acq[0], opcode, true, 0);
	assert_memory_equal(p.amem, p.bmem, 10000);
	tpair_close(&p);
	return n;
}

/*
 * A packet that nothing follows is lost, or the answer to it. The requester notices long before the
 * time-out of the QP, which is 268 ms here, and takes none of its retries: it has none.
 */
static void test_last_packet(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		uint32_t type = i & 4 ? SH_QPT_XRC : SH_QPT_RC;
		/* The request of a READ is one packet. */
		unsigned int last = opcodes[i % 4] == MLX4_OPCODE_RDMA_READ ? 1 : 10;

		last_packet(type, opcodes[i % 4], last);
		last_packet(type, opcodes[i % 4], last_packet(type, opcodes[i % 4], 0));
	}
}

/*
 * The answers are only late: at each packet the requester may already have sent its oldest one
 * again.
 */
static void test_late_answers(void **state)
{
	static const uint8_t all[] = {MLX4_OPCODE_SEND, MLX4_OPCODE_RDMA_WRITE,
				      MLX4_OPCODE_RDMA_WRITE_IMM, MLX4_OPCODE_RDMA_READ,
				      MLX4_OPCODE_ATOMIC_FA};

	(void)state;
	for (unsigned int i = 0; i < 5 * 24; i++) {
		unsigned int late = i / 5;
		bool atomic = i % 5 == 4, read = i % 5 == 3;
		uint32_t len = atomic ? 8 : 10000;
		struct tpair p;
		struct twr wr;
		uint64_t word = 41;

		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC, .no_retry = true});
		tfill(read ? p.bmem : p.amem, TMEM, i);
		if (atomic)
			memcpy(p.bmem, &word, 8);
		tpair_recv(&p, 0, TMEM);
		wr = tpair_wr(&p, all[i % 5], len);
		wr.swap_add = 1;
		tqp_send(&p.a, &wr);
		tqp_send(&p.a, &wr);
		for (unsigned int n = 0; queue.head != queue.tail; n++) {
			if (n == late)
				mock_advance(p.m, 10 * MS);
			deliver_one(&p);
		}
		if (all[i % 5] == MLX4_OPCODE_SEND || all[i % 5] == MLX4_OPCODE_RDMA_WRITE_IMM) {
			/* The second one finds no receive; it has not been executed. */
			texpect(&p.bcq[1],
				all[i % 5] == MLX4_OPCODE_SEND ? MLX4_CQE_RECV_SEND
							       : MLX4_CQE_RECV_RDMA_WRITE_IMM,
				false, 0);
		} else if (atomic) {
			memcpy(&word, p.bmem, 8);
			assert_int_equal(word, 43);
			memcpy(&word, p.amem, 8);
			assert_int_equal(word, 42);
		} else {
			assert_memory_equal(p.amem, p.bmem, len);
		}
		tpair_close(&p);
	}
}

/* Nobody answers: one packet is sent ahead of time, alone; then all as the QP's time-outs say. */
static void test_probe_of_the_dead(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC, .no_retry = true});
	queue.lose_all = true;
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 10000);
	tqp_send(&p.a, &wr);
	assert_int_equal(queue.sent, 10);
	mock_advance(p.m, 10 * MS);
	assert_int_equal(queue.sent, 11);
	mock_advance(p.m, 200 * MS);
	assert_int_equal(queue.sent, 11);
	texpect_none(&p.acq[0]);
	mock_advance(p.m, 100 * MS);
	texpect_error(&p.acq[0], MLX4_SYNDROME_RETRY_EXC, true, 0);
	tpair_close(&p);
}

/* However often answers or requests are lost, an atomic operation is executed once. */
static void atomic(uint32_t type, uint8_t opcode, uint64_t found, unsigned int lose)
{
	bool swaps = opcode == MLX4_OPCODE_ATOMIC_CS && found == 41;
	struct tpair p;
	struct twr wr;
	uint64_t word = found;

	open_pair(&p, &(struct tpair_opts){.type = type});
	queue.lose = lose;
	memcpy(p.bmem, &word, 8);
	wr = tpair_wr(&p, opcode, 8);
	wr.swap_add = 5;
	wr.compare = 41;
	tqp_send(&p.a, &wr);
	pump(&p);
	mock_advance(p.m, 300 * MS);
	pump(&p);
	texpect(&p.acq[0], opcode, true, 0);
	memcpy(&word, p.amem, 8);
	assert_int_equal(word, found);
	memcpy(&word, p.bmem, 8);
	assert_int_equal(word, opcode == MLX4_OPCODE_ATOMIC_FA ? found + 5 : swaps ? 5 : found);
	tpair_close(&p);
}

static void test_atomics(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2 * 3; i++) {
		uint32_t type = i & 1 ? SH_QPT_XRC : SH_QPT_RC;

		atomic(type, MLX4_OPCODE_ATOMIC_FA, 41, i / 2);
		atomic(type, MLX4_OPCODE_ATOMIC_CS, 41, i / 2);
		atomic(type, MLX4_OPCODE_ATOMIC_CS, 40, i / 2);
	}
}

/* No more PSNs than the window are without an answer, and each answer lets some follow. */
static void test_window(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 300 * TMTU);
	tqp_send(&p.a, &wr);
	assert_int_equal(queue.sent, 64);
	tqp_ring(&p.a);
	assert_int_equal(queue.sent, 64);
	for (int i = 0; i < 31; i++)
		deliver_one(&p);
	assert_int_equal(queue.sent, 64);
	/* The thirty-second asks for an answer. */
	deliver_one(&p);
	assert_int_equal(queue.sent, 65);
	while (queue.tail - queue.head > 1)
		deliver_one(&p);
	assert_true(queue.sent > 65 + 31);
	pump(&p);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
	tpair_close(&p);
}

static unsigned int runs, gathered;

static void begin_run(struct sh_dev *dev)
{
	(void)dev;
	runs++;
}

static void gather(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
		   const unsigned char *payload)
{
	gathered++;
	send_packet(dev, p, dlid, payload, SH_WIRE_WHOLE);
}

static void flush_run(struct sh_dev *dev)
{
	(void)dev;
}

static const struct sh_wire_ops whole = {.send = send_packet,
					 .begin = begin_run,
					 .gather = gather,
					 .flush = flush_run,
					 .mad = take_mad};

/* No packet of a message leaves by itself if the window holds all. */
static void test_one_run(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct tpair p;
		struct twr wr;

		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
		p.m->dev.wire = &whole;
		tpair_recv(&p, 0, TMEM);
		wr = tpair_wr(&p, opcodes[i], 10 * TMTU);
		runs = gathered = 0;
		tqp_send(&p.a, &wr);
		assert_int_equal(queue.sent, 10);
		assert_int_equal(gathered, 10);
		assert_int_equal(runs, 1);
		pump(&p);
		texpect(&p.acq[0], opcodes[i], true, 0);
		tpair_close(&p);
	}
}

/*
 * An ACK of what has not left yet says nothing: it is of another life of these QPs, or a
 * stranger's. Of what has left once it does, also after the requester went back: the answers may
 * have been lost.
 */
static void test_early_ack(void **state)
{
	struct sh_packet ack;
	struct tpair p;
	struct twr wr;
	uint32_t psn;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	psn = tqp_ctx(&p.a)->next_psn;
	tfill(p.amem, TMEM, 5);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100 * TMTU);
	tqp_send(&p.a, &wr);
	assert_int_equal(queue.sent, 64);
	sh_packet_init(&ack);
	ack.op = SH_PKT_ACK;
	ack.service = SH_SVC_RC;
	ack.flags = SH_PKT_FIRST | SH_PKT_LAST;
	ack.pkey = 0xffff;
	ack.slid = B_FAR;
	ack.dlid = tlid(p.m, 0);
	ack.dqpn = p.a.qpn;
	ack.syndrome = SH_AETH_ACK;
	for (unsigned int ahead = 64; ahead < 100; ahead++) {
		ack.psn = sh_psn_add(psn, ahead);
		assert_true(sh_enter(&p.m->dev));
		sh_wire_arrive(&p.m->dev, 0, 1, &ack);
		sh_leave(&p.m->dev);
		assert_int_equal(queue.sent, 64);
	}
	/* All that left arrives; no answer does. */
	queue.lose_all = true;
	while (queue.head != queue.tail)
		deliver_one(&p);
	mock_advance(p.m, 300 * MS);
	queue.lose_all = false;
	queue.head = queue.tail;
	ack.psn = sh_psn_add(psn, 63);
	assert_true(sh_enter(&p.m->dev));
	sh_wire_arrive(&p.m->dev, 0, 1, &ack);
	sh_leave(&p.m->dev);
	assert_int_equal(tqp_ctx(&p.a)->ack_psn, sh_psn_add(psn, 64));
	pump(&p);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
	assert_memory_equal(p.amem, p.bmem, 100 * TMTU);
	tpair_close(&p);
}

static void test_dead_peer(void **state)
{
	(void)state;
	for (uint32_t retries = 1; retries <= 7; retries += 3) {
		struct tpair p;
		struct twr wr;

		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC, .retry = retries});
		queue.lose_all = true;
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 10);
		tqp_send(&p.a, &wr);
		assert_int_equal(queue.sent, 1);
		/* The packet that is sent ahead of time takes no retry. */
		mock_advance(p.m, 10 * MS);
		for (uint32_t i = 1; i <= retries; i++) {
			assert_int_equal(queue.sent, 1 + i);
			texpect_none(&p.acq[0]);
			mock_advance(p.m, 4 * sh_ack_ns(14));
		}
		assert_int_equal(queue.sent, retries + 2);
		mock_advance(p.m, 4 * sh_ack_ns(14));
		assert_int_equal(queue.sent, retries + 2);
		texpect_error(&p.acq[0], MLX4_SYNDROME_RETRY_EXC, true, 0);
		assert_int_equal(tqp_state(&p.a), SH_QPS_ERR);
		tpair_close(&p);
	}
}

/*
 * The receiver is not ready: the requester waits, and takes none of the packets behind for a loss.
 */
static void test_not_ready(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	tfill(p.amem, TMEM, 5);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 10000);
	tqp_send(&p.a, &wr);
	tqp_send(&p.a, &wr);
	pump(&p);
	texpect_none(&p.acq[0]);
	tpair_recv(&p, 0, 10000);
	tpair_recv(&p, 10000, 10000);
	mock_advance(p.m, 640001);
	pump(&p);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	assert_memory_equal(p.bmem, p.amem, 10000);
	assert_memory_equal(p.bmem + 10000, p.amem, 10000);
	tpair_close(&p);
}

/*
 * A program leaves what it sends to the engine, which may come late. Until it has been there, the
 * QP does not end, and is not reset; if it never comes, nothing waits.
 */
static void test_ends_early(void **state)
{
	static const uint32_t types[] = {SH_QPT_RC, SH_QPT_UC, SH_QPT_UD, SH_QPT_XRC};
	const struct sh_qp_attr reset = {.qp_state = SH_QPS_RESET},
				error = {.qp_state = SH_QPS_ERR};

	(void)state;
	for (unsigned int i = 0; i < 3 * sizeof(types) / sizeof(types[0]); i++) {
		struct tpair p;
		struct sh_dev *daemon;
		struct twr wr;

		open_pair(&p, &(struct tpair_opts){.type = types[i / 3]});
		daemon = &p.m->daemon;
		p.m->dev.wire = NULL;
		p.m->inst->wire.proc = 5;
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 10);
		wr.dlid = B_FAR;
		tqp_send(&p.a, &wr);
		tqp_send(&p.a, &wr);
		assert_int_equal(queue.sent, 0);
		assert_int_equal(sh_qp_destroy(daemon, 0, p.a.qpn, NULL), -EINPROGRESS);
		assert_int_equal(sh_qp_modify(daemon, 0, p.a.qpn, &reset, SH_QPA_STATE),
				 -EINPROGRESS);
		if (i % 3 == 0) {
			p.m->dev.wire = &ops;
			sh_look(&p.m->dev, 0, p.a.qpn);
			assert_int_equal(queue.sent, 2);
		} else if (i % 3 == 1) {
			p.m->inst->wire.proc = 0;
		} else {
			assert_int_equal(sh_qp_modify(daemon, 0, p.a.qpn, &error, SH_QPA_STATE), 0);
		}
		assert_int_equal(sh_qp_modify(daemon, 0, p.a.qpn, &reset, SH_QPA_STATE), 0);
		assert_int_equal(sh_qp_destroy(daemon, 0, p.a.qpn, NULL), 0);
		tpair_close(&p);
	}
}

/* May the daemon destroy or reset the sender's QP now? */
static bool is_over(struct tpair *p)
{
	return !sh_qp_is_leaving(&p->m->daemon, tqp_ctx(&p->a));
}

static void is_not_over(struct tpair *p)
{
	const struct sh_qp_attr reset = {.qp_state = SH_QPS_RESET};

	assert_int_equal(sh_qp_destroy(&p->m->daemon, 0, p->a.qpn, NULL), -EINPROGRESS);
	assert_int_equal(sh_qp_modify(&p->m->daemon, 0, p->a.qpn, &reset, SH_QPA_STATE),
			 -EINPROGRESS);
}

/* Silence until the requester has sent its oldest packet once more, and only that. */
static void until_probe(struct tpair *p)
{
	unsigned int sent = queue.sent;

	mock_advance(p->m, 6 * MS);
	assert_int_equal(queue.sent, sent + 1);
}

static void open_with_engine(struct tpair *p, uint32_t type)
{
	open_pair(p, &(struct tpair_opts){.type = type});
	p->m->inst->wire.proc = p->m->dev.proc;
	tfill(p->amem, TMEM, 7);
}

/*
 * The QP ends when the rest has left, whose answers are nobody's concern. looked: the engine looks
 * at its send queue before.
 */
static void ends_when_sent(struct tpair *p, bool looked)
{
	if (looked)
		sh_look(&p->m->dev, 0, p->a.qpn);
	is_not_over(p);
	while (!is_over(p))
		deliver_one(p);
	assert_int_equal(sh_qp_destroy(&p->m->daemon, 0, p->a.qpn, NULL), 0);
	pump(p);
}

/*
 * More than a window has been posted, or has been while the requester waits for the answer to a
 * packet that it has sent again: a card would have sent it all. The QP does not end before it has
 * left once, whatever comes in between.
 */
static void test_ends_behind(void **state)
{
	static const uint32_t types[] = {SH_QPT_RC, SH_QPT_XRC};
	const uint32_t len = 150 * TMTU;

	(void)state;
	for (unsigned int i = 0; i < 4 * sizeof(types) / sizeof(types[0]); i++) {
		bool probed = i & 1, looked = i & 2;
		struct tpair p;
		struct twr wr;

		open_with_engine(&p, types[i / 4]);
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, len);
		wr.signaled = false;
		tqp_send(&p.a, &wr);
		assert_int_equal(queue.sent, 64);
		is_not_over(&p);
		if (probed)
			until_probe(&p);
		ends_when_sent(&p, looked);
		assert_memory_equal(p.bmem, p.amem, len);
		tpair_close(&p);

		/* The answer to one packet is late. Then another one is posted. */
		open_with_engine(&p, types[i / 4]);
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, probed ? 3000 : 100);
		wr.signaled = false;
		tqp_send(&p.a, &wr);
		until_probe(&p);
		assert_true(is_over(&p));
		wr.raddr += 10000;
		tqp_send(&p.a, &wr);
		is_not_over(&p);
		ends_when_sent(&p, looked);
		assert_memory_equal(p.bmem + 10000, p.amem, probed ? 3000 : 100);
		tpair_close(&p);
	}
}

/*
 * What the engine does itself never leaves: of a QP whose packets have left, a NOP behind them is
 * no reason to wait.
 */
static void test_ends_with_nop(void **state)
{
	struct tpair p;
	struct twr wr, nop = {.opcode = MLX4_OPCODE_NOP};

	(void)state;
	open_with_engine(&p, SH_QPT_RC);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 3000);
	wr.signaled = false;
	tqp_send(&p.a, &wr);
	until_probe(&p);
	/* The rest of the WRITE, which waits for the answer to the probe, has been sent before. */
	tqp_send(&p.a, &nop);
	pump(&p);
	assert_int_equal(tqp_ctx(&p.a)->sq_una, 2);
	assert_true(is_over(&p));
	assert_int_equal(sh_qp_destroy(&p.m->daemon, 0, p.a.qpn, NULL), 0);
	tpair_close(&p);
}

/*
 * A loss takes one of the retries, but the peer that tells of it is there: all that was posted
 * still leaves.
 */
static void test_ends_after_loss(void **state)
{
	const uint32_t len = 150 * TMTU;

	(void)state;
	for (unsigned int lose = 1; lose <= 150; lose++) {
		struct tpair p;
		struct twr wr;

		open_with_engine(&p, lose & 1 ? SH_QPT_RC : SH_QPT_XRC);
		queue.lose = lose;
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, len);
		wr.signaled = false;
		tqp_send(&p.a, &wr);
		while (!is_over(&p) && queue.head != queue.tail)
			deliver_one(&p);
		assert_true(is_over(&p));
		assert_int_equal(tqp_ctx(&p.a)->wire_psn, sh_psn_add(tqp_ctx(&p.a)->una_psn, 150));
		assert_int_equal(sh_qp_destroy(&p.m->daemon, 0, p.a.qpn, NULL), 0);
		tpair_close(&p);
	}
}

/*
 * As on a card, what has left once ends with the QP, whether it has arrived or not; and so does
 * what a receiver is not ready for.
 */
static void test_ends_unanswered(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	for (unsigned int last = 0; last < 2; last++) {
		open_with_engine(&p, SH_QPT_RC);
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 20 * TMTU);
		queue.lose_all = true;
		tqp_send(&p.a, &wr);
		tqp_send(&p.a, &wr);
		assert_true(is_over(&p));
		until_probe(&p);
		if (last)
			sh_look(&p.m->dev, 0, p.a.qpn);
		assert_true(is_over(&p));
		/* The QP's own time-out. */
		mock_advance(p.m, 4 * sh_ack_ns(14));
		assert_int_equal(queue.sent, 40 + 1 + 1);
		assert_true(is_over(&p));
		assert_int_equal(sh_qp_destroy(&p.m->daemon, 0, p.a.qpn, NULL), 0);
		tpair_close(&p);
	}
	/* More than the window, and nobody answers: not longer than the first time-out. */
	open_with_engine(&p, SH_QPT_RC);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 150 * TMTU);
	queue.lose_all = true;
	tqp_send(&p.a, &wr);
	until_probe(&p);
	is_not_over(&p);
	mock_advance(p.m, 4 * sh_ack_ns(14));
	assert_true(is_over(&p));
	assert_int_equal(sh_qp_destroy(&p.m->daemon, 0, p.a.qpn, NULL), 0);
	tpair_close(&p);
	/* A READ whose first piece has been asked for. */
	open_with_engine(&p, SH_QPT_RC);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_READ, 150 * TMTU);
	tqp_send(&p.a, &wr);
	assert_int_equal(queue.sent, 1);
	sh_look(&p.m->dev, 0, p.a.qpn);
	assert_true(is_over(&p));
	/* But not what stands behind it. */
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
	tqp_send(&p.a, &wr);
	is_not_over(&p);
	pump(&p);
	assert_true(is_over(&p));
	tpair_close(&p);
	open_with_engine(&p, SH_QPT_RC);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100 * TMTU);
	tqp_send(&p.a, &wr);
	is_not_over(&p);
	pump(&p);
	assert_true(tqp_ctx(&p.a)->rnr_waiting);
	assert_int_equal(sh_qp_destroy(&p.m->daemon, 0, p.a.qpn, NULL), 0);
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations),	cmocka_unit_test(test_losses),
		cmocka_unit_test(test_thrown),		cmocka_unit_test(test_last_packet),
		cmocka_unit_test(test_late_answers),	cmocka_unit_test(test_probe_of_the_dead),
		cmocka_unit_test(test_atomics),		cmocka_unit_test(test_window),
		cmocka_unit_test(test_early_ack),	cmocka_unit_test(test_dead_peer),
		cmocka_unit_test(test_not_ready),	cmocka_unit_test(test_ends_early),
		cmocka_unit_test(test_one_run),		cmocka_unit_test(test_ends_behind),
		cmocka_unit_test(test_ends_unanswered), cmocka_unit_test(test_ends_with_nop),
		cmocka_unit_test(test_ends_after_loss),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
