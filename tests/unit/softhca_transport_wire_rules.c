// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: packets that no instance sends but others may: with operations that the device does
 * not have, with lengths that no packet of a message has, and with keys that do not match.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_wire_rig.h"
#include "softhca/device/memory/instance.h"

enum { REQ_ERR = 2 };

#define PKEY 0xffff

struct crafted {
	uint8_t opcode;
	uint16_t pkey; /* 0: the right one */
	uint32_t qkey, psn, len;
};

static unsigned char payload[8192];

/* From a's port to the QP of b. */
static void craft(struct tpair *p, struct crafted c)
{
	const struct sh_roce_way way = way_to(B_FAR);
	unsigned char bytes[SH_ROCE_BYTES];
	struct sh_frame f;
	long n;

	memset(&f, 0, sizeof(f));
	sh_roce_set_way(&f, &way);
	f.bth.opcode = c.opcode;
	f.bth.pkey = c.pkey ? c.pkey : PKEY;
	f.bth.qpn = p->b.qpn;
	f.bth.ack = true;
	f.bth.psn = c.psn;
	f.ext.srqn = p->srq.srqn;
	f.ext.qkey = c.qkey;
	f.ext.srcqp = p->a.qpn;
	f.ext.va = (uintptr_t)p->bmem;
	f.ext.rkey = f.ext.inv_rkey = p->bkey;
	f.ext.dmalen = 2 * TMTU;
	f.ext.swap_add = 1;
	f.payload = payload;
	f.len = c.len;
	n = sh_frame_encode(&f, bytes, sizeof(bytes));
	assert_true(n > 0);
	deliver(p, bytes, n, B_FAR, A_FAR);
}

/* The one answer that waits, which does not arrive. */
static struct sh_packet answered(void)
{
	struct sh_roce_way way = way_to(A_FAR);
	struct sh_packet p;
	struct sh_seg seg;

	assert_int_equal(queue.tail - queue.head, 1);
	assert_int_equal(sh_roce_decode(queue.packet[queue.head % QUEUE].bytes,
					(size_t)queue.packet[queue.head % QUEUE].n - SH_ROCE_HEAD,
					&way, &p, &seg),
			 SH_ROCE_OK);
	queue.head++;
	return p;
}

/* ---- a SEND that invalidates a key ---- */

static void invalidates(uint32_t type, bool whole)
{
	uint8_t service = type == SH_QPT_XRC ? SH_BTH_XRC : SH_BTH_RC;
	uint8_t inv = service | (whole ? SH_BTH_SEND_ONLY_INV : SH_BTH_SEND_LAST_INV);
	uint32_t psn = TPSN;
	struct sh_packet nak;
	struct tpair p;

	open_pair(&p, &(struct tpair_opts){.type = type});
	tpair_recv(&p, 0, TMEM);
	if (!whole) {
		craft(&p, (struct crafted){.opcode = service | SH_BTH_SEND_FIRST,
					   .psn = psn++,
					   .len = TMTU});
		assert_int_equal(answered().syndrome, SH_AETH_ACK);
	}
	/* Ahead of its turn it is only that. */
	craft(&p, (struct crafted){.opcode = inv, .psn = psn + 1, .len = 8});
	assert_int_equal(answered().syndrome, SH_AETH_NAK_SEQ);
	assert_int_equal(tqp_state(&p.b), SH_QPS_RTS);
	craft(&p, (struct crafted){.opcode = inv, .psn = psn, .len = 8});
	nak = answered();
	assert_int_equal(nak.op, SH_PKT_ACK);
	assert_int_equal(nak.syndrome, SH_AETH_NAK_REQ);
	assert_int_equal(nak.psn, psn);
	assert_int_equal(nak.dqpn, p.a.qpn);
	assert_int_equal(tqp_state(&p.b), SH_QPS_ERR);
	/* The test's receive QP of XRC is the kernel's, which tells no program. */
	if (type == SH_QPT_RC)
		assert_int_equal(tasync(p.m, p.b.ctx, REQ_ERR), 1);
	/* Of an earlier life: nobody hears of it. */
	craft(&p, (struct crafted){.opcode = inv, .psn = psn, .len = 8});
	assert_true(queue.head == queue.tail);
	tpair_close(&p);
}

/* The device has no such operation, and says so: a requester that hears nothing would repeat it. */
static void test_invalidate(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		invalidates(i & 1 ? SH_QPT_XRC : SH_QPT_RC, i & 2);
}

/* ---- lengths ---- */

static const struct message {
	uint8_t opcode[3];
	uint32_t len[3];
	uint32_t n; /* packets */
} short_ones[] = {
	{{SH_BTH_SEND_FIRST, SH_BTH_SEND_MIDDLE, SH_BTH_SEND_LAST}, {TMTU, 100, 10}, 3},
	{{SH_BTH_SEND_FIRST, SH_BTH_SEND_LAST}, {100, 10}, 2},
	{{SH_BTH_SEND_FIRST, SH_BTH_SEND_LAST}, {TMTU + 4, 10}, 2},
	{{SH_BTH_SEND_FIRST, SH_BTH_SEND_LAST}, {TMTU, 0}, 2},
	{{SH_BTH_SEND_FIRST, SH_BTH_SEND_LAST}, {TMTU, TMTU + 1}, 2},
	{{SH_BTH_SEND_ONLY}, {TMTU + 1}, 1},
	{{SH_BTH_WRITE_FIRST, SH_BTH_WRITE_MIDDLE, SH_BTH_WRITE_LAST_IMM},
	 {TMTU, 100, TMTU - 100},
	 3},
	{{SH_BTH_WRITE_FIRST, SH_BTH_WRITE_LAST_IMM}, {TMTU + 4, TMTU - 4}, 2},
	{{SH_BTH_WRITE_FIRST, SH_BTH_WRITE_LAST_IMM}, {TMTU - 4, TMTU + 4}, 2},
	{{SH_BTH_WRITE_ONLY_IMM}, {2 * TMTU}, 1},
};

/*
 * A message of UC with a packet whose length does not fit is dropped, and the next one takes the
 * receive that it may have taken.
 */
static void test_lengths(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(short_ones) / sizeof(short_ones[0]); i++) {
		const struct message *m = &short_ones[i];
		struct mlx4_cqe cqe;
		uint32_t psn = TPSN;
		struct tpair p;

		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_UC});
		tpair_recv(&p, 0, TMEM);
		for (uint32_t n = 0; n < m->n; n++)
			craft(&p, (struct crafted){.opcode = SH_BTH_UC | m->opcode[n],
						   .psn = psn++,
						   .len = m->len[n]});
		if (tcq_poll(&p.bcq[1], &cqe))
			fail_msg("message %u completes", i);
		assert_true(sh_hca(&p.m->dev, 1)->counters.out_of_sequence > 0);
		craft(&p, (struct crafted){.opcode = SH_BTH_UC | SH_BTH_SEND_FIRST,
					   .psn = psn++,
					   .len = TMTU});
		craft(&p, (struct crafted){
				  .opcode = SH_BTH_UC | SH_BTH_SEND_LAST, .psn = psn++, .len = 5});
		assert_true(tcq_poll(&p.bcq[1], &cqe));
		assert_int_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_RECV_SEND);
		assert_int_equal(__builtin_bswap32(cqe.byte_cnt), TMTU + 5);
		assert_int_equal(cqe.wqe_index, 0);
		assert_int_equal(tqp_state(&p.b), SH_QPS_RTS);
		assert_int_equal(queue.sent, 0);
		tpair_close(&p);
	}
}

/* ---- keys ---- */

/* With another partition's key nothing happens but that it is counted. */
static void test_pkeys(void **state)
{
	static const uint8_t operations[] = {SH_BTH_SEND_ONLY, SH_BTH_WRITE_ONLY,
					     SH_BTH_READ_REQUEST, SH_BTH_FETCH_ADD, SH_BTH_ACK};
	static const struct {
		uint32_t type;
		uint8_t service;
	} types[] = {{SH_QPT_RC, SH_BTH_RC},
		     {SH_QPT_XRC, SH_BTH_XRC},
		     {SH_QPT_UC, SH_BTH_UC},
		     {SH_QPT_UD, SH_BTH_UD}};

	(void)state;
	for (unsigned int i = 0; i < 4 * sizeof(operations); i++) {
		uint8_t opcode = types[i % 4].service | operations[i / 4];
		struct sh_counters *c;
		struct tpair p;

		if (sh_opcode_ext(opcode) < 0)
			continue;
		open_pair(&p, &(struct tpair_opts){.type = types[i % 4].type});
		c = &sh_hca(&p.m->dev, 1)->counters;
		tfill(p.bmem, TMEM, i);
		memcpy(p.amem, p.bmem, TMEM);
		tpair_recv(&p, 0, TMEM);
		craft(&p, (struct crafted){.opcode = opcode, .pkey = 0x9234, .psn = TPSN});
		assert_int_equal(c->drops_pkey, 1);
		/* Of no partition. */
		craft(&p, (struct crafted){.opcode = opcode, .pkey = 0x8000, .psn = TPSN});
		assert_int_equal(c->drops_pkey, 2);
		assert_int_equal(queue.sent, 0);
		texpect_none(&p.bcq[0]);
		texpect_none(&p.bcq[1]);
		assert_memory_equal(p.amem, p.bmem, TMEM);
		assert_int_equal(tqp_state(&p.b), SH_QPS_RTS);
		tpair_close(&p);
	}
}

/* A limited member may talk to a full one, which answers with its own key. */
static void test_limited(void **state)
{
	struct tpair p;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	tpair_recv(&p, 0, TMEM);
	craft(&p,
	      (struct crafted){
		      .opcode = SH_BTH_SEND_ONLY, .pkey = PKEY & 0x7fff, .psn = TPSN, .len = 8});
	assert_int_equal(answered().pkey, PKEY);
	assert_int_equal(sh_hca(&p.m->dev, 1)->counters.drops_pkey, 0);
	tpair_close(&p);
}

static void test_qkey(void **state)
{
	struct sh_counters *c;
	struct tpair p;
	uint32_t qkey;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_UD});
	c = &sh_hca(&p.m->dev, 1)->counters;
	qkey = tqp_ctx(&p.b)->qkey;
	tpair_recv(&p, 0, TMEM);
	craft(&p,
	      (struct crafted){.opcode = SH_BTH_UD | SH_BTH_SEND_ONLY, .qkey = qkey + 1, .len = 8});
	assert_int_equal(c->drops_qkey, 1);
	texpect_none(&p.bcq[1]);
	craft(&p, (struct crafted){.opcode = SH_BTH_UD | SH_BTH_SEND_ONLY, .qkey = qkey, .len = 8});
	assert_int_equal(c->drops_qkey, 1);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	assert_int_equal(queue.sent, 0);
	tpair_close(&p);
}

/* No packet has more than 4096 bytes, though one with short headers may be as long as a whole one. */
static void test_long_datagram(void **state)
{
	struct sh_roce_way way = way_to(B_FAR);
	unsigned char bytes[SH_ROCE_BYTES];
	struct sh_packet out;
	struct sh_frame f;
	struct sh_seg seg;

	(void)state;
	for (uint32_t len = 4096; len <= 4120; len += 24) {
		long n;

		memset(&f, 0, sizeof(f));
		sh_roce_set_way(&f, &way);
		f.bth.opcode = SH_BTH_UD | SH_BTH_SEND_ONLY;
		f.bth.pkey = PKEY;
		f.payload = payload;
		f.len = len;
		n = sh_frame_encode(&f, bytes, sizeof(bytes));
		assert_true(n > 0);
		assert_int_equal(sh_roce_decode(bytes, (size_t)n - SH_ROCE_HEAD, &way, &out, &seg),
				 len == 4096 ? SH_ROCE_OK : SH_ROCE_MALFORMED);
	}
}

/* An answer to a duplicate is that of the newest atomic operation with its PSN. */
static void test_lap(void **state)
{
	uint32_t psn = TPSN;
	struct tpair p;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	memset(p.bmem, 0, 8);
	for (uint32_t i = 0; i < SH_QP_ATOMICS; i++) {
		craft(&p, (struct crafted){.opcode = SH_BTH_FETCH_ADD, .psn = psn++});
		assert_int_equal(answered().swap_add, i);
	}
	/* As after 2^24 - 1 SENDs. */
	tqp_ctx(&p.b)->e_psn = --psn;
	for (int duplicate = 0; duplicate < 2; duplicate++) {
		craft(&p, (struct crafted){.opcode = SH_BTH_FETCH_ADD, .psn = psn});
		assert_int_equal(answered().swap_add, SH_QP_ATOMICS);
	}
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_invalidate), cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_pkeys),	   cmocka_unit_test(test_limited),
		cmocka_unit_test(test_qkey),	   cmocka_unit_test(test_long_datagram),
		cmocka_unit_test(test_lap),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
