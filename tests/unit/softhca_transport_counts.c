// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what QPs say of their payload adds up to what their HCAs' ports say, for each
 * operation, of any length, whichever way a request takes; a QP counts its own retries.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "softhca/device/queues/qp.h"
#include "softhca_pair.h"

static struct tpair p;

static struct sh_qp_info info_of(const struct tqp *qp)
{
	struct sh_qp_info info;

	assert_int_equal(sh_qp_info(&p.m->daemon, qp->hca, qp->qpn, &info), 0);
	return info;
}

static void adds_up(const struct tqp *qp, uint64_t sent, uint64_t received)
{
	const struct sh_qp_info info = info_of(qp);
	struct sh_counters all;

	sh_counters(&p.m->daemon, qp->hca, &all);
	assert_int_equal(info.xmit_data, all.xmit_data);
	assert_int_equal(info.rcv_data, all.rcv_data);
	assert_int_equal(info.xmit_data, sent);
	assert_int_equal(info.rcv_data, received);
}

static void request(uint32_t type, uint8_t opcode, uint32_t len, bool each_packet)
{
	bool read = opcode == MLX4_OPCODE_RDMA_READ;
	struct twr wr;

	tpair_open(&p, &(struct tpair_opts){.type = type});
	p.m->inst->faults.active = each_packet;
	tpair_recv(&p, 0, 65536);
	wr = tpair_wr(&p, opcode, len);
	tqp_send(&p.a, &wr);
	adds_up(&p.a, read ? 0 : len, read ? len : 0);
	adds_up(&p.b, read ? len : 0, read ? 0 : len);
	assert_int_equal(info_of(&p.a).retries, 0);
	tpair_close(&p);
}

static void test_payload(void **state)
{
	static const uint32_t type[] = {SH_QPT_RC, SH_QPT_UC, SH_QPT_XRC};
	static const uint8_t opcode[] = {MLX4_OPCODE_SEND, MLX4_OPCODE_RDMA_WRITE,
					 MLX4_OPCODE_RDMA_READ};
	static const uint32_t len[] = {0, 8, TMTU, TMTU + 1, 9 * TMTU};

	(void)state;
	for (uint32_t t = 0; t < 3; t++)
		for (uint32_t o = 0; o < 3; o++)
			for (uint32_t l = 0; l < 5; l++)
				for (uint32_t each = 0; each < 2; each++)
					if (type[t] != SH_QPT_UC ||
					    opcode[o] != MLX4_OPCODE_RDMA_READ)
						request(type[t], opcode[o], len[l], each);
}

/* A receiver that is not ready makes the sender begin again; what it sends then counts, too. */
static void test_retries(void **state)
{
	struct twr wr;

	(void)state;
	tpair_open(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
	tqp_send(&p.a, &wr);
	assert_int_equal(info_of(&p.a).retries, 1);
	tpair_recv(&p, 0, 4096);
	mock_advance(p.m, 1000000000);
	texpect(&p.bcq[1], MLX4_CQE_RECV_SEND, false, 0);
	assert_int_equal(info_of(&p.a).retries, 1);
	adds_up(&p.a, 200, 0);
	adds_up(&p.b, 0, 200);
	/* The port is down: no answer, and a timeout. */
	sh_hca(&p.m->dev, 1)->port[0].state = 1;
	tqp_send(&p.a, &wr);
	mock_advance(p.m, 100000000);
	assert_true(info_of(&p.a).retries > 1);
	assert_int_equal(info_of(&p.b).retries, 0);
	tpair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_payload),
		cmocka_unit_test(test_retries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
