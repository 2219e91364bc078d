// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: PSNs that wrap at each packet of a message of any operation on the wire, also where
 * a packet is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_wire_rig.h"
#include "softhca/device/memory/instance.h"

#define PACKETS 10
#define BYTES	(PACKETS * TMTU - 5)

/*
 * Two messages, of which the first one begins that many packets before the wrap. lose: a packet, 0:
 * none.
 */
static void wraps(uint32_t type, uint8_t opcode, uint32_t before, unsigned int lose)
{
	uint32_t first = SH_PSN_MASK - before;
	struct tpair p;
	struct twr wr;
	bool read = opcode == MLX4_OPCODE_RDMA_READ;

	open_pair(&p, &(struct tpair_opts){.type = type, .psn = first});
	queue.lose = lose;
	tfill(read ? p.bmem : p.amem, 2 * BYTES, 7 + before + lose);
	tpair_recv(&p, 0, BYTES);
	tpair_recv(&p, BYTES, BYTES);
	wr = tpair_wr(&p, opcode, BYTES);
	tqp_send(&p.a, &wr);
	wr.sge[0].addr = p.amem + BYTES;
	wr.raddr += BYTES;
	tqp_send(&p.a, &wr);
	pump(&p);
	for (int i = 0; i < 3; i++) {
		mock_advance(p.m, 300 * MS);
		pump(&p);
	}
	for (uint16_t i = 0; i < 2; i++) {
		struct mlx4_cqe cqe;

		assert_true(tcq_poll(&p.acq[0], &cqe));
		assert_int_equal(cqe.owner_sr_opcode & 0x1f, opcode);
	}
	assert_memory_equal(p.amem, p.bmem, 2 * BYTES);
	/* A request of a READ has as many PSNs as its answer has packets. */
	assert_int_equal(tqp_ctx(&p.a)->ack_psn, sh_psn_add(first, 2 * PACKETS));
	assert_int_equal(tqp_ctx(&p.b)->e_psn, sh_psn_add(first, 2 * PACKETS));
	if (!lose)
		assert_int_equal(tqp_ctx(&p.a)->retries, 0);
	assert_int_equal(tqp_state(&p.a), SH_QPS_RTS);
	assert_int_equal(tqp_state(&p.b), SH_QPS_RTS);
	tpair_close(&p);
}

static void test_wrap(void **state)
{
	(void)state;
	for (uint32_t before = 0; before < 2 * PACKETS; before++)
		for (unsigned int i = 0; i < sizeof(opcodes); i++) {
			wraps(SH_QPT_RC, opcodes[i], before, 0);
			wraps(SH_QPT_XRC, opcodes[i], before, 0);
		}
}

/* A request or an answer is lost: of each message every fourth one, beginning at each. */
static void test_wrap_and_loss(void **state)
{
	(void)state;
	for (uint32_t before = 0; before < PACKETS; before++)
		for (unsigned int i = 0; i < sizeof(opcodes); i++)
			for (unsigned int lose = 1 + before % 4; lose <= 24; lose += 4)
				wraps(SH_QPT_RC, opcodes[i], before, lose);
}

/* UC, which has no answers: the receiver takes all of it, or after a loss none of that message. */
static void test_wrap_unreliable(void **state)
{
	(void)state;
	for (uint32_t before = 0; before < PACKETS; before++)
		for (unsigned int lose = 0; lose <= PACKETS; lose += 1 + before % 2) {
			struct tpair p;
			struct twr wr;

			open_pair(&p, &(struct tpair_opts){.type = SH_QPT_UC,
							   .psn = SH_PSN_MASK - before});
			queue.lose = lose;
			tfill(p.amem, BYTES, 7 + before);
			tpair_recv(&p, 0, TMEM);
			wr = tpair_wr(&p, MLX4_OPCODE_SEND, BYTES);
			tqp_send(&p.a, &wr);
			pump(&p);
			if (lose)
				texpect_none(&p.bcq[1]);
			tqp_send(&p.a, &wr);
			pump(&p);
			texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
			assert_memory_equal(p.amem, p.bmem, BYTES);
			tpair_close(&p);
		}
}

/* Wherever PSNs wrap in it, a long message keeps to the window, and fills it. */
static void test_window(void **state)
{
	(void)state;
	for (uint32_t before = 0; before < 200; before++) {
		struct tpair p;
		struct twr wr;

		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC, .psn = SH_PSN_MASK - before});
		wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 200 * TMTU);
		tqp_send(&p.a, &wr);
		assert_int_equal(queue.sent, 64);
		while (queue.head != queue.tail) {
			deliver_one(&p);
			assert_in_range(
				sh_psn_diff(tqp_ctx(&p.a)->next_psn, tqp_ctx(&p.a)->ack_psn), 0,
				64);
		}
		texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
		assert_int_equal(tqp_ctx(&p.a)->retries, 0);
		tpair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_wrap_and_loss),
		cmocka_unit_test(test_wrap_unreliable),
		cmocka_unit_test(test_window),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
