// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the wire's engine. Two QPs take each other for QPs of other instances: what one sends
 * is encoded, waits in a queue of the test, which may lose it, and is decoded for the other one.
 * Windows, losses at each place, retries, READs in pieces; what is left to the engine; strangers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_pair.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/memory/fault_rule.h"
#include "softhca/device/transport/fault.h"
#include "softhca/device/transport/timer.h"
#include "softhca/device/transport/wire.h"
#include "softhca/wire/roce.h"

#define A_FAR 501 /* the LIDs that the two HCAs have on the wire */
#define B_FAR 502
#define QUEUE 4096
#define MS    UINT64_C(1000000)

static struct {
	struct {
		unsigned char bytes[SH_ROCE_BYTES];
		long n;
		uint16_t dlid;
	} packet[QUEUE];
	unsigned int head, tail, sent;
	unsigned int lose; /* the packet of this number, counted from 1; 0: none */
	bool lose_all;
	unsigned int most;	      /* that waited at once */
	uint32_t reads, longest_read; /* requests for READs, and their bytes */
	unsigned int throw; /* when this many have been sent, the thread is thrown; 0: never */
} queue;

static unsigned int throw_at, thrown; /* for open_pair(); how many times it was */

static struct sh_roce_way way_to(uint16_t dlid)
{
	const struct sh_ip net = sh_ip4(0x0a000000);

	return (struct sh_roce_way){.from = sh_ip_of_lid(net, A_FAR + B_FAR - dlid),
				    .to = sh_ip_of_lid(net, dlid),
				    .sport = SH_ROCE_PORT};
}

/*
 * As if the thread had been stopped here, another one had ended its life, and it went on: the kernel
 * would send it there.
 */
static void be_thrown(void)
{
#ifdef __x86_64__
	extern void sh_landing(void) __attribute__((visibility("hidden")));

	if (!sh_self.armed)
		return;
	thrown++;
	sh_landing();
#endif
}

static void send_packet(struct sh_dev *dev, const struct sh_packet *p, uint16_t dlid,
			const unsigned char *payload, enum sh_wire_fate fate)
{
	struct sh_roce_way way = way_to(dlid);

	(void)dev, (void)fate;
	if (p->op == SH_PKT_READ) {
		queue.reads++;
		if (p->dmalen > queue.longest_read)
			queue.longest_read = p->dmalen;
	}
	if (++queue.sent == queue.lose || queue.lose_all)
		return;
	assert_true(queue.tail - queue.head < QUEUE);
	queue.packet[queue.tail % QUEUE].n =
		sh_roce_encode(p, payload, &way, queue.packet[queue.tail % QUEUE].bytes);
	queue.packet[queue.tail % QUEUE].dlid = dlid;
	assert_true(queue.packet[queue.tail++ % QUEUE].n > 0);
	if (queue.tail - queue.head > queue.most)
		queue.most = queue.tail - queue.head;
	if (queue.sent == queue.throw)
		be_thrown();
}

static struct sh_wire_mad came; /* the last datagram for QP 1 */
static unsigned int mads;

static bool take_mad(struct sh_dev *dev, const struct sh_wire_mad *m)
{
	(void)dev;
	came = *m;
	mads++;
	return true;
}

static const struct sh_wire_ops ops = {.send = send_packet, .mad = take_mad};

static void deliver(struct tpair *p, unsigned char *bytes, long n, uint16_t dlid, uint16_t slid)
{
	struct sh_roce_way way = way_to(dlid);
	struct sh_packet packet;
	struct sh_seg seg;

	assert_int_equal(sh_roce_decode(bytes, (size_t)n - SH_ROCE_HEAD, &way, &packet, &seg),
			 SH_ROCE_OK);
	packet.slid = slid;
	packet.dlid = tlid(p->m, dlid == B_FAR);
	assert_true(sh_enter(&p->m->dev));
	sh_wire_arrive(&p->m->dev, dlid == B_FAR, 1, &packet);
	sh_leave(&p->m->dev);
}

static void deliver_one(struct tpair *p)
{
	unsigned int i = queue.head++ % QUEUE;
	uint16_t dlid = queue.packet[i].dlid;

	deliver(p, queue.packet[i].bytes, queue.packet[i].n, dlid, A_FAR + B_FAR - dlid);
}

static void pump(struct tpair *p)
{
	while (queue.head != queue.tail)
		deliver_one(p);
}

static void open_pair(struct tpair *p, const struct tpair_opts *opts)
{
	memset(&queue, 0, sizeof(queue));
	queue.throw = throw_at;
	tpair_open(p, opts);
	tqp_ctx(&p->a)->path.dlid = B_FAR;
	tqp_ctx(&p->b)->path.dlid = A_FAR;
	p->m->inst->wire.last_lid = 1000;
	p->m->inst->wire.mtu = 1024;
	p->m->dev.wire = &ops;
}

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

static const uint8_t opcodes[] = {MLX4_OPCODE_SEND, MLX4_OPCODE_RDMA_WRITE,
				  MLX4_OPCODE_RDMA_WRITE_IMM, MLX4_OPCODE_RDMA_READ};

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

/* The answers are only late: at each packet the requester may already have sent its oldest one again. */
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
static void test_atomics(void **state)
{
	(void)state;
	for (unsigned int lose = 0; lose <= 2; lose++) {
		struct tpair p;
		struct twr wr;
		uint64_t word = 41;

		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
		queue.lose = lose;
		memcpy(p.bmem, &word, 8);
		wr = tpair_wr(&p, MLX4_OPCODE_ATOMIC_FA, 8);
		wr.swap_add = 1;
		tqp_send(&p.a, &wr);
		pump(&p);
		mock_advance(p.m, 300 * MS);
		pump(&p);
		texpect(&p.acq[0], MLX4_OPCODE_ATOMIC_FA, true, 0);
		memcpy(&word, p.amem, 8);
		assert_int_equal(word, 41);
		memcpy(&word, p.bmem, 8);
		assert_int_equal(word, 42);
		tpair_close(&p);
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
	for (int i = 0; i < 16; i++)
		deliver_one(&p);
	/* The sixteenth asks for an answer. */
	assert_int_equal(queue.sent, 65);
	while (queue.tail - queue.head > 1)
		deliver_one(&p);
	assert_true(queue.sent > 65 + 16);
	pump(&p);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
	tpair_close(&p);
}

/*
 * An ACK of what has not left yet says nothing: it is of another life of these QPs, or a stranger's.
 * Of what has left once it does, also after the requester went back: the answers may have been lost.
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

/* A READ asks for no more than the window at a time; its pieces do not overtake each other. */
static void test_read_pieces(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	tfill(p.bmem, TMEM, 3);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_READ, 300 * TMTU);
	tqp_send(&p.a, &wr);
	assert_int_equal(queue.sent, 1);
	pump(&p);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_READ, true, 0);
	assert_memory_equal(p.amem, p.bmem, 300 * TMTU);
	assert_int_equal(queue.reads, 5);
	assert_int_equal(queue.longest_read, 64 * TMTU);
	tpair_close(&p);
}

/* What the packet that has waited longest is. */
static void oldest(struct sh_packet *packet, struct sh_seg *seg)
{
	unsigned int i = queue.head++ % QUEUE;
	struct sh_roce_way way = way_to(queue.packet[i].dlid);

	assert_true(queue.head <= queue.tail);
	assert_int_equal(sh_roce_decode(queue.packet[i].bytes,
					(size_t)queue.packet[i].n - SH_ROCE_HEAD, &way, packet,
					seg),
			 SH_ROCE_OK);
}

static void ask(struct tpair *p, uint8_t op, uint32_t psn, uint32_t at, uint32_t len)
{
	const struct twr wr = tpair_wr(p, MLX4_OPCODE_RDMA_READ, len);
	struct sh_packet req;

	sh_packet_init(&req);
	req.op = op;
	req.service = SH_SVC_RC;
	req.flags = SH_PKT_FIRST | SH_PKT_LAST | SH_PKT_ACKREQ;
	req.pkey = 0xffff;
	req.slid = A_FAR;
	req.dlid = tlid(p->m, 1);
	req.dqpn = p->b.qpn;
	req.psn = psn;
	req.va = wr.raddr + at;
	req.rkey = wr.rkey;
	req.dmalen = len;
	assert_true(sh_enter(&p->m->dev));
	sh_wire_arrive(&p->m->dev, 1, 1, &req);
	sh_leave(&p->m->dev);
}

static bool go_on(struct tpair *p)
{
	bool more;

	assert_true(sh_enter(&p->m->dev));
	more = sh_wire_go_on(&p->m->dev);
	sh_leave(&p->m->dev);
	return more;
}

#define LONG (200 * TMTU + 7)

/* Takes the answers to the packets [from, 201) of the long READ. */
static void expect_read(struct tpair *p, uint32_t psn, uint32_t from, uint32_t first, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		struct sh_packet packet;
		struct sh_seg seg;

		oldest(&packet, &seg);
		assert_int_equal(packet.op, SH_PKT_READ_RESP);
		assert_int_equal(packet.psn, psn + i);
		/* READ response first, last, middle */
		assert_int_equal(queue.packet[(queue.head - 1) % QUEUE].bytes[SH_ROCE_HEAD],
				 i == first ? 0x0d
				 : i == 200 ? 0x0f
					    : 0x0e);
		assert_int_equal(seg.len, i == 200 ? 7 : TMTU);
		assert_memory_equal((void *)(uintptr_t)seg.addr, p->bmem + i * TMTU, seg.len);
	}
}

/*
 * A READ of another kind of requester, which asks for all at once: others are heard in between, and
 * what that requester sent behind it is answered behind it.
 */
static void test_read_portions(void **state)
{
	struct sh_packet packet;
	struct sh_seg seg;
	struct tpair p;
	uint32_t psn;

	(void)state;
	for (unsigned int again = 0; again <= 1; again++) {
		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
		tfill(p.bmem, TMEM, 3);
		psn = tqp_ctx(&p.b)->e_psn;
		assert_false(go_on(&p));
		ask(&p, SH_PKT_READ, psn, 0, LONG);
		assert_int_equal(queue.sent, 64);
		ask(&p, SH_PKT_READ, psn + 201, 0, LONG);
		ask(&p, SH_PKT_WRITE, psn + 402, 0, 0);
		assert_int_equal(queue.sent, 64);
		assert_true(go_on(&p));
		assert_int_equal(queue.sent, 128);
		expect_read(&p, psn, 0, 0, again ? 100 : 128);
		if (again) {
			/* It has lost packet 100. */
			queue.head = queue.tail;
			ask(&p, SH_PKT_READ, psn + 100, 100 * TMTU, LONG - 100 * TMTU);
			assert_int_equal(queue.sent, 192);
			assert_true(go_on(&p));
			expect_read(&p, psn, 100, 100, 201);
		} else {
			assert_true(go_on(&p));
			assert_true(go_on(&p));
			expect_read(&p, psn, 128, 0, 201);
		}
		while (go_on(&p))
			;
		expect_read(&p, psn + 201, 0, 0, 201);
		oldest(&packet, &seg);
		assert_int_equal(packet.op, SH_PKT_ACK);
		assert_int_equal(packet.psn, psn + 402);
		assert_int_equal(packet.syndrome & SH_AETH_KIND, SH_AETH_ACK & SH_AETH_KIND);
		assert_int_equal(queue.head, queue.tail);
		tpair_close(&p);
	}
}

/* A QP that is gone owes nothing any more, and a key that is gone is refused. */
static void test_read_ends(void **state)
{
	struct sh_packet packet;
	struct sh_seg seg;
	struct tpair p;
	uint32_t psn;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	psn = tqp_ctx(&p.b)->e_psn;
	ask(&p, SH_PKT_READ, psn, 0, LONG);
	queue.head = queue.tail;
	tqp_ctx(&p.b)->access = 0;
	assert_false(go_on(&p));
	oldest(&packet, &seg);
	assert_int_equal(packet.op, SH_PKT_ACK);
	assert_int_equal(packet.syndrome, SH_AETH_NAK_ACCESS);
	assert_int_equal(packet.psn, psn + 64);
	tpair_close(&p);
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	ask(&p, SH_PKT_READ, tqp_ctx(&p.b)->e_psn, 0, LONG);
	ask(&p, SH_PKT_WRITE, tqp_ctx(&p.b)->e_psn, 0, 0);
	queue.head = queue.tail;
	tqp_ctx(&p.b)->gen++;
	ask(&p, SH_PKT_READ, tqp_ctx(&p.b)->e_psn, 0, 1);
	assert_false(go_on(&p));
	assert_false(go_on(&p));
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

/* The receiver is not ready: the requester waits, and takes none of the packets behind for a loss. */
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

/* A process that is not the engine sends nothing, and asks the engine to go on. */
static void test_left(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	p.m->dev.wire = NULL;
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 3000);
	tfill(p.amem, TMEM, 9);
	/* The engine has not come yet. */
	tqp_send(&p.a, &wr);
	assert_int_equal(queue.sent, 0);
	p.m->inst->wire.proc = 5;
	tqp_ring(&p.a);
	assert_int_equal(queue.sent, 0);
	assert_int_equal(p.m->shared->wakes[5], 1);
	mock_advance(p.m, 3000 * MS);
	texpect_none(&p.acq[0]);
	p.m->dev.wire = &ops;
	p.m->dev.proc = 5;
	assert_true(sh_enter(&p.m->dev));
	sh_wire_begin(&p.m->dev);
	sh_leave(&p.m->dev);
	assert_int_equal(queue.sent, 3);
	pump(&p);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
	assert_memory_equal(p.bmem, p.amem, 3000);
	p.m->dev.proc = 1;
	tpair_close(&p);
}

static const struct sh_host_ops *host;
static const struct sh_qp *watched;
static unsigned int copies, unknown;

static enum sh_copy watch_copy(void *h, uint32_t dst_ctx, const struct sh_seg *dst,
			       unsigned int ndst, uint32_t src_ctx, const struct sh_seg *src,
			       unsigned int nsrc, uint64_t len)
{
	copies++;
	unknown += watched->engine && watched->engine != watched->wire_engine;
	return host->copy(h, dst_ctx, dst, ndst, src_ctx, src, nsrc, len);
}

/*
 * Whenever the wire's engine is killed, the QP says that the engine had it. Here it has a datagram that
 * stays in the instance, in front of one that leaves.
 */
static void test_token(void **state)
{
	struct sh_host_ops with;
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_UD, .private_memory = true});
	host = p.m->dev.ops;
	with = *host;
	with.copy = watch_copy;
	p.m->dev.ops = &with;
	watched = tqp_ctx(&p.a);
	copies = unknown = 0;
	tpair_recv(&p, 0, 4096);
	tpair_recv(&p, 4096, 4096);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 1000);
	tqp_post(&p.a, &wr);
	wr.dlid = B_FAR;
	tqp_post(&p.a, &wr);
	tqp_ring(&p.a);
	pump(&p);
	assert_true(copies > 0);
	assert_int_equal(unknown, 0);
	p.m->dev.ops = host;
	tpair_close(&p);
}

/* Only the peer is heard and answered. */
static void test_strangers(void **state)
{
	struct sh_counters *c;
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	c = &sh_hca(&p.m->dev, 1)->counters;
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
	tfill(p.amem, TMEM, 1);
	tqp_send(&p.a, &wr);
	assert_int_equal(queue.sent, 1);
	deliver(&p, queue.packet[0].bytes, queue.packet[0].n, B_FAR, A_FAR + 5);
	assert_int_equal(queue.sent, 1);
	assert_int_equal(c->drops_path, 1);
	deliver_one(&p);
	assert_int_equal(queue.sent, 2);
	/* The same of an answer. */
	deliver(&p, queue.packet[1].bytes, queue.packet[1].n, A_FAR, B_FAR + 5);
	texpect_none(&p.acq[0]);
	assert_int_equal(sh_hca(&p.m->dev, 0)->counters.drops_path, 1);
	deliver_one(&p);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
	tpair_close(&p);
}

/* Faults of one link: what leaves for one port, or comes from it. */
static void test_faults_of_links(void **state)
{
	static const struct sh_fault_scope scopes[] = {
		{SH_FAULT_DROP, 0, SH_FAULT_FAR | B_FAR, SH_FAULT_ANY},
		{SH_FAULT_DROP, SH_FAULT_FAR | A_FAR, SH_FAULT_ANY, SH_FAULT_ANY},
		{SH_FAULT_CORRUPT, SH_FAULT_FAR | A_FAR, SH_FAULT_ANY, SH_FAULT_ANY},
		{SH_FAULT_PARTITION, SH_FAULT_ANY, SH_FAULT_FAR | A_FAR, SH_FAULT_ANY},
		{SH_FAULT_DROP, 0, SH_FAULT_FAR | (B_FAR + 1), SH_FAULT_ANY},
		{SH_FAULT_DROP, SH_FAULT_FAR | (A_FAR + 5), SH_FAULT_ANY, SH_FAULT_ANY},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		bool lost = i < 4;
		struct sh_fault_rule *rule;
		struct tpair p;
		struct twr wr;

		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
		rule = &p.m->inst->faults.rule[SH_FAULT_KINDS];
		rule->scope = sh_fault_pack(&scopes[i]);
		rule->rate = SH_FAULT_MILLION;
		p.m->inst->faults.active = SH_ACTIVE_FAULTS;
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
		tfill(p.amem, TMEM, 1);
		tqp_send(&p.a, &wr);
		pump(&p);
		assert_int_equal(rule->done > 0, lost);
		assert_int_equal(memcmp(p.amem, p.bmem, 100) != 0, lost);
		rule->rate = 0;
		p.m->inst->faults.active = 0;
		mock_advance(p.m, 300 * MS);
		pump(&p);
		texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
		tpair_close(&p);
	}
}

/* The seed by which a rule lets its first packet through, and hits the second one. */
static uint32_t seed_for(const struct sh_fault_rule *rule)
{
	for (uint32_t seed = 0;; seed++) {
		struct sh_fault_rule r = {.seed = seed};

		if (sh_fault_draw(&r, rule->scope) >= rule->rate &&
		    sh_fault_draw(&r, rule->scope) < rule->rate)
			return seed;
	}
}

/* A thread that is thrown while it executes a packet does not draw what becomes of it once more. */
static void test_fate_of_thrown(void **state)
{
	const struct sh_fault_scope scope = {SH_FAULT_DROP, SH_FAULT_FAR | A_FAR, SH_FAULT_ANY,
					     SH_FAULT_ANY};
	struct sh_fault_rule *rule;
	unsigned int before = thrown;
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	rule = &p.m->inst->faults.rule[SH_FAULT_KINDS];
	rule->scope = sh_fault_pack(&scope);
	rule->rate = SH_FAULT_MILLION / 2;
	rule->seed = seed_for(rule);
	p.m->inst->faults.active = SH_ACTIVE_FAULTS;
	/* The first packet is the request, the second one its answer. */
	queue.throw = 2;
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
	tfill(p.amem, TMEM, 1);
	tqp_send(&p.a, &wr);
	deliver_one(&p);
	if (sh_self.catches)
		assert_int_equal(thrown, before + 1);
	assert_int_equal(rule->drawn, 1);
	assert_int_equal(rule->done, 0);
	assert_int_equal(sh_hca(&p.m->dev, 1)->counters.drops_fault, 0);
	p.m->inst->faults.active = 0;
	pump(&p);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
	assert_memory_equal(p.amem, p.bmem, 100);
	tpair_close(&p);
}

/* One message of each operation, whose packets arrive out of order, late, or one after the other. */
static void test_late_links(void **state)
{
	static const uint32_t kinds[] = {SH_FAULT_JITTER, SH_FAULT_REORDER, SH_FAULT_LIMIT};

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		for (unsigned int k = 0; k < 3; k++) {
			struct sh_fault_rule *rule;
			struct tpair p;
			struct twr wr;

			open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
			rule = &p.m->inst->faults.rule[kinds[k]];
			rule->seed = 7;
			rule->bits = 100000000;
			rule->rate = kinds[k] == SH_FAULT_LIMIT ? SH_FAULT_MILLION : 300000;
			p.m->inst->faults.active = SH_ACTIVE_FAULTS;
			tfill(i == 3 ? p.bmem : p.amem, TMEM, 7);
			tpair_recv(&p, 0, TMEM);
			wr = tpair_wr(&p, opcodes[i], 100000);
			tqp_send(&p.a, &wr);
			for (int step = 0; step < 4000; step++) {
				pump(&p);
				mock_advance(p.m, MS / 4);
			}
			texpect(&p.acq[0], opcodes[i], true, 0);
			assert_memory_equal(p.amem, p.bmem, 100000);
			assert_true(rule->done > 5);
			assert_int_equal(tqp_state(&p.a), SH_QPS_RTS);
			p.m->inst->faults.active = 0;
			tpair_close(&p);
		}
}

/* A datagram that no packet of the wire can carry fails, and says so. */
static void test_long_datagram(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	for (uint32_t len = 1024; len <= 1025; len++) {
		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_UD});
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, len);
		wr.dlid = B_FAR;
		tfill(p.amem, TMEM, 1);
		tpair_recv(&p, 0, 4096);
		tqp_send(&p.a, &wr);
		pump(&p);
		if (len == 1024) {
			texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
			assert_memory_equal(p.bmem + 40, p.amem, len);
		} else {
			texpect_error(&p.acq[0], MLX4_SYNDROME_LOC_LEN, true, 0);
			assert_int_equal(queue.sent, 0);
		}
		tpair_close(&p);
	}
}

/* ::ffff:10.0.A.B, where A and B are the LID. */
static void set_gid(uint8_t gid[16], uint16_t lid)
{
	const uint8_t mapped[16] = {
		[10] = 0xff, [11] = 0xff, [12] = 10, [14] = lid >> 8, [15] = (uint8_t)lid};

	memcpy(gid, mapped, sizeof(mapped));
}

static void by_gid(uint32_t type, uint16_t lid)
{
	struct tpair p;
	struct twr wr;

	open_pair(&p, &(struct tpair_opts){.type = type, .unconnected = true, .retry = 1});
	p.m->inst->wire.network = sh_ip4(0x0a000000);
	p.aattr.path = p.battr.path = (struct sh_path){.port_num = 1, .is_global = 1};
	set_gid(p.aattr.path.dgid, lid);
	set_gid(p.battr.path.dgid, A_FAR);
	tqp_up(&p.a, &p.aattr);
	tqp_up(&p.b, &p.battr);
	tfill(p.amem, TMEM, 1);
	tpair_recv(&p, 0, 4096);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 1000);
	wr.dlid = 0;
	wr.grh = true;
	set_gid(wr.dgid, lid);
	tqp_send(&p.a, &wr);
	pump(&p);
	if (lid == B_FAR) {
		texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
		assert_memory_equal(p.bmem + (type == SH_QPT_UD ? 40 : 0), p.amem, 1000);
	} else {
		assert_int_equal(queue.sent, 0);
		texpect_none(&p.bcq[1]);
	}
	tpair_close(&p);
}

/* A datagram for QP 1 of b, in `packet` as it comes. False: it did not go on. */
static bool goes_on(struct tpair *p, struct sh_packet packet)
{
	unsigned int before = mads;

	sh_wire_arrive(&p->m->dev, 1, 1, &packet);
	return mads == before + 1;
}

/* QP 1 sends to QP 1; only datagrams of the communication manager go on, and only whole ones. */
static void test_qp1(void **state)
{
	struct sh_wire_mad m = {.hca = 0, .port = 1, .lid = B_FAR, .pkey = 0xffff, .mad = {1, 7}};
	struct sh_packet packet, bad;
	struct sh_roce_way way = way_to(B_FAR);
	struct sh_seg seg;
	struct tpair p;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_UD});
	m.mad[255] = 0x5a;
	assert_true(sh_enter(&p.m->dev));
	sh_gsi_leave(&p.m->dev, &m);
	assert_int_equal(queue.tail - queue.head, 1);
	assert_int_equal(queue.packet[queue.head].dlid, B_FAR);
	assert_int_equal(sh_roce_decode(queue.packet[queue.head].bytes,
					(size_t)queue.packet[queue.head].n - SH_ROCE_HEAD, &way,
					&packet, &seg),
			 SH_ROCE_OK);
	queue.head++;
	assert_int_equal(packet.qkey, 0x80010000);
	assert_int_equal(packet.dqpn, 1);
	assert_int_equal(packet.srcqp, 1);
	packet.slid = A_FAR;
	assert_true(goes_on(&p, packet));
	assert_int_equal(came.hca, 1);
	assert_int_equal(came.port, 1);
	assert_int_equal(came.lid, A_FAR);
	assert_memory_equal(came.mad, m.mad, sizeof(m.mad));
	bad = packet;
	bad.qkey = 0x11111111;
	assert_false(goes_on(&p, bad));
	bad = packet;
	bad.pkey = 0x8001;
	assert_false(goes_on(&p, bad));
	bad = packet;
	bad.srcqp = 2;
	assert_false(goes_on(&p, bad));
	bad = packet;
	bad.payload.len = seg.len = 255;
	assert_false(goes_on(&p, bad));
	seg.len = 256;
	bad = packet;
	bad.flags &= (uint8_t)~SH_PKT_LAST;
	assert_false(goes_on(&p, bad));
	bad = packet;
	bad.service = SH_SVC_RC;
	assert_false(goes_on(&p, bad));
	((uint8_t *)(uintptr_t)seg.addr)[1] = 3; /* the subnet administrator's */
	assert_false(goes_on(&p, packet));
	sh_leave(&p.m->dev);
	tpair_close(&p);
}

/* Ports without a LID, as cards and Soft-RoCE have, are reached by GID; addresses behind the network are not. */
static void test_gids(void **state)
{
	static const uint32_t types[] = {SH_QPT_RC, SH_QPT_UC, SH_QPT_UD, SH_QPT_XRC};

	(void)state;
	for (unsigned int i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		by_gid(types[i], B_FAR);
		by_gid(types[i], 0x0400 + B_FAR);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_thrown),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_read_pieces),
		cmocka_unit_test(test_read_portions),
		cmocka_unit_test(test_read_ends),
		cmocka_unit_test(test_dead_peer),
		cmocka_unit_test(test_not_ready),
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_faults_of_links),
		cmocka_unit_test(test_fate_of_thrown),
		cmocka_unit_test(test_late_links),
		cmocka_unit_test(test_long_datagram),
		cmocka_unit_test(test_early_ack),
		cmocka_unit_test(test_gids),
		cmocka_unit_test(test_token),
		cmocka_unit_test(test_last_packet),
		cmocka_unit_test(test_late_answers),
		cmocka_unit_test(test_probe_of_the_dead),
		cmocka_unit_test(test_qp1),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
