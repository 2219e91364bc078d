// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a port counts each packet that it sends or receives once, as a card's does: also one
 * that no QP is there for, one for several members of a group, one that is damaged on its way, or
 * that the fabric doubles. The words of its data include the octets that fill up a payload.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca/device/queues/qp.h"
#include "softhca/device/transport/fault.h"
#include "softhca/device/transport/mcast.h"
#include "softhca_pair.h"

static struct tpair p;

static struct sh_traffic traffic(uint32_t hca)
{
	struct sh_traffic t[SH_MAX_PORTS];

	sh_traffic(&p.m->daemon, hca, t);
	return t[0];
}

static void open_pair(uint32_t type)
{
	tpair_open(&p, &(struct tpair_opts){.type = type});
}

static void fault(enum sh_fault_kind kind)
{
	p.m->inst->faults.rule[kind].count = 1;
	sh_faults_settle(&p.m->inst->faults);
}

/* There is no such QP: the port has received the packet. */
static void test_no_qp(void **state)
{
	struct twr wr;

	(void)state;
	open_pair(SH_QPT_UC);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
	tqp_ctx(&p.a)->dest_qpn = 0x4711;
	tqp_send(&p.a, &wr);
	assert_int_equal(traffic(0).xmit_packets, 1);
	assert_int_equal(traffic(1).rcv_packets, 1);
	assert_int_equal(traffic(1).rcv_data, 100);
	/* A port that is down receives nothing. */
	sh_hca(&p.m->dev, 1)->port[0].state = 1;
	tqp_send(&p.a, &wr);
	assert_int_equal(traffic(1).rcv_packets, 1);
	tpair_close(&p);
}

static void test_group(void **state)
{
	static const uint8_t group[16] = {0xff, 0x12, 1, 2, 3};
	struct tqp other;
	struct twr wr;

	(void)state;
	open_pair(SH_QPT_UD);
	tqp_open(&other, p.m, 1, p.b.ctx, p.b.pdn, SH_QPT_UD, 0x55, &p.bcq[0], &p.bcq[1], NULL);
	tqp_up(&other, &p.battr);
	assert_int_equal(sh_mcast_attach(&p.m->daemon, 1, group, p.b.qpn), 0);
	assert_int_equal(sh_mcast_attach(&p.m->daemon, 1, group, other.qpn), 0);
	assert_int_equal(sh_mcast_attach(&p.m->daemon, 0, group, p.a.qpn), 0);
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
	wr.dlid = 0xc005;
	wr.dqpn = 0xffffff;
	wr.grh = true;
	memcpy(wr.dgid, group, 16);
	for (uint32_t i = 1; i <= 2; i++) {
		tqp_send(&p.a, &wr);
		assert_int_equal(traffic(0).xmit_packets, i);
		assert_int_equal(traffic(0).xmit_multicast, i);
		for (uint32_t hca = 0; hca < 2; hca++) {
			assert_int_equal(traffic(hca).rcv_packets, i);
			assert_int_equal(traffic(hca).rcv_data, 100 * i);
			assert_int_equal(traffic(hca).rcv_multicast, i);
		}
	}
	/*
	 * It met its fate where it divides: it has left its sender, and no port of a host has got
	 * it.
	 */
	fault(SH_FAULT_CORRUPT);
	tqp_send(&p.a, &wr);
	assert_int_equal(traffic(0).xmit_multicast, 3);
	assert_int_equal(traffic(0).rcv_errors, 0);
	assert_int_equal(traffic(1).rcv_packets, 2);
	tpair_close(&p);
}

static void test_faults(void **state)
{
	static const struct {
		enum sh_fault_kind kind;
		uint32_t sent, received, errors, discards;
	} cases[] = {
		{SH_FAULT_DROP, 0, 0, 0, 1},
		{SH_FAULT_CORRUPT, 1, 1, 1, 0},
		{SH_FAULT_DUPLICATE, 1, 2, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct twr wr;

		open_pair(SH_QPT_UC);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
		tpair_recv(&p, 0, 100);
		fault(cases[i].kind);
		tqp_send(&p.a, &wr);
		assert_int_equal(traffic(0).xmit_packets, cases[i].sent);
		assert_int_equal(traffic(0).xmit_data, 100 * cases[i].sent);
		assert_int_equal(traffic(0).xmit_discards, cases[i].discards);
		assert_int_equal(traffic(1).rcv_packets, cases[i].received);
		assert_int_equal(traffic(1).rcv_data, 100 * cases[i].received);
		assert_int_equal(traffic(1).rcv_errors, cases[i].errors);
		tpair_close(&p);
	}
	/* What is to be damaged on a way that does not exist is not received. */
	for (uint32_t down = 0; down < 2; down++) {
		struct twr wr;

		open_pair(SH_QPT_UC);
		wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
		sh_hca(&p.m->dev, down)->port[0].state = 1;
		fault(SH_FAULT_CORRUPT);
		tqp_send(&p.a, &wr);
		assert_int_equal(traffic(0).xmit_packets, down);
		assert_int_equal(traffic(1).rcv_packets, 0);
		assert_int_equal(traffic(1).rcv_errors, 0);
		tpair_close(&p);
	}
}

/* The packets of a READ's answer, too. */
static void test_read(void **state)
{
	struct twr wr;

	(void)state;
	open_pair(SH_QPT_RC);
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_READ, 101);
	tqp_send(&p.a, &wr);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_READ, true, 0);
	assert_int_equal(traffic(1).xmit_packets, 1);
	assert_int_equal(traffic(1).xmit_pads, 3);
	assert_int_equal(traffic(0).rcv_packets, 1);
	assert_int_equal(traffic(0).rcv_pads, 3);
	tpair_close(&p);
}

/* By the express way, and by the ordinary one. */
static void test_pads(void **state)
{
	static const uint32_t types[] = {SH_QPT_RC, SH_QPT_UC, SH_QPT_UD};
	uint64_t pads = 0;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		open_pair(types[i]);
		pads = 0;
		for (uint32_t len = 1; len <= 8; len++) {
			struct twr wr = tpair_wr(&p, MLX4_OPCODE_SEND, len);

			tpair_recv(&p, 0, 100);
			if (len == 5)
				p.m->inst->faults.active = SH_ACTIVE_FAULTS;
			tqp_send(&p.a, &wr);
			pads += (4 - len % 4) % 4;
			assert_int_equal(traffic(0).xmit_pads, pads);
			assert_int_equal(traffic(1).rcv_pads, pads);
			assert_int_equal(traffic(1).rcv_packets, len);
		}
		tpair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_qp),  cmocka_unit_test(test_group),
		cmocka_unit_test(test_faults), cmocka_unit_test(test_read),
		cmocka_unit_test(test_pads),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
