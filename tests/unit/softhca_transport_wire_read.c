// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: READs over the wire, which come in pieces: what a requester asks for again, and
 * where an answer ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_wire_rig.h"

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

/*
 * Behind a READ that is not answered yet, another kind of requester sends more than is kept for it: what is kept is
 * bounded, and the rest comes again because it is missed.
 */
static void test_many_behind(void **state)
{
	const uint32_t many = 200, kept = 64;
	struct tpair p;
	uint32_t psn;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	psn = tqp_ctx(&p.b)->e_psn;
	ask(&p, SH_PKT_READ, psn, 0, LONG);
	psn += 201;
	for (uint32_t i = 0; i < many; i++)
		ask(&p, SH_PKT_WRITE, psn + i, 0, 0);
	while (go_on(&p))
		;
	assert_int_equal(tqp_ctx(&p.b)->e_psn, psn + kept);
	for (uint32_t i = kept; i < many; i++)
		ask(&p, SH_PKT_WRITE, psn + i, 0, 0);
	assert_int_equal(tqp_ctx(&p.b)->e_psn, psn + many);
	queue.head = queue.tail;
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_pieces),
		cmocka_unit_test(test_read_portions),
		cmocka_unit_test(test_read_ends),
		cmocka_unit_test(test_many_behind),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
