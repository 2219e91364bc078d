// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a requester on the wire hears answers that say more than "it has arrived": that a
 * packet is missing, said or implied, or that the receiver is not ready; and answers that say
 * nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_wire_rig.h"

/* b says that of a's packet, whatever has come. */
static void say(struct tpair *p, uint32_t psn, uint8_t syndrome)
{
	const struct sh_roce_way way = way_to(A_FAR);
	unsigned char bytes[SH_ROCE_BYTES];
	struct sh_packet ack;

	sh_packet_init(&ack);
	ack.op = SH_PKT_ACK;
	ack.service = SH_SVC_RC;
	ack.flags = SH_PKT_FIRST | SH_PKT_LAST;
	ack.npackets = 1;
	ack.pkey = 0xffff;
	ack.psn = psn;
	ack.syndrome = syndrome;
	ack.dqpn = p->a.qpn;
	deliver(p, bytes, sh_roce_encode(&ack, NULL, &way, bytes), A_FAR, B_FAR);
}

/* Each NAK costs a retry, so a peer that never takes the packet in is given up. */
static void test_only_naks(void **state)
{
	unsigned int ms;
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC, .retry = 2});
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
	tqp_send(&p.a, &wr);
	for (ms = 0; ms < 5000 && tqp_state(&p.a) == SH_QPS_RTS; ms++) {
		if (queue.head != queue.tail)
			say(&p, TPSN, SH_AETH_NAK_SEQ);
		queue.head = queue.tail;
		mock_advance(p.m, MS);
	}
	texpect_error(&p.acq[0], MLX4_SYNDROME_RETRY_EXC, true, 0);
	/* Sent, probed, and two retries; each may have been asked for once more. */
	assert_true(queue.sent <= 8);
	tpair_close(&p);
}

/*
 * What a READ or an atomic operation has fetched is lost, and the answer to a later request comes:
 * the requester asks again at once, and waits for no timer.
 */
static void test_implied_nak(void **state)
{
	static const uint8_t fetch[] = {MLX4_OPCODE_RDMA_READ, MLX4_OPCODE_ATOMIC_CS,
					MLX4_OPCODE_ATOMIC_FA};
	static const uint8_t later[] = {MLX4_OPCODE_SEND, MLX4_OPCODE_RDMA_WRITE,
					MLX4_OPCODE_RDMA_READ};

	(void)state;
	for (unsigned int i = 0; i < sizeof(fetch) * sizeof(later); i++) {
		uint8_t first = fetch[i / sizeof(later)], second = later[i % sizeof(later)];
		struct tpair p;
		struct twr wr;

		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
		tpair_recv(&p, 0, 64);
		wr = tpair_wr(&p, first, 8);
		tqp_send(&p.a, &wr);
		wr = tpair_wr(&p, second, 8);
		tqp_send(&p.a, &wr);
		/* Two requests; then the answers. */
		queue.lose = 3;
		pump(&p);
		assert_int_equal(queue.sent, 3 + 1 + 4);
		texpect(&p.acq[0], first, true, 0);
		texpect(&p.acq[0], second, true, 1);
		tpair_close(&p);
	}
}

/* The requester waits for a receiver that is not ready, whatever else it hears meanwhile. */
static void test_nak_while_not_ready(void **state)
{
	struct tpair p;
	struct twr wr;
	uint8_t retries;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	wr = tpair_wr(&p, MLX4_OPCODE_SEND, 100);
	tqp_send(&p.a, &wr);
	pump(&p);
	assert_int_equal(queue.sent, 2);
	assert_int_equal(tqp_ctx(&p.a)->rnr_waiting, 1);
	retries = tqp_ctx(&p.a)->retry_left;
	for (unsigned int i = 0; i < 10; i++)
		say(&p, TPSN, SH_AETH_NAK_SEQ);
	assert_int_equal(queue.sent, 2);
	assert_int_equal(tqp_ctx(&p.a)->rnr_waiting, 1);
	assert_int_equal(tqp_ctx(&p.a)->retry_left, retries);
	tpair_recv(&p, 0, 100);
	mock_advance(p.m, 700 * MS);
	pump(&p);
	texpect(&p.acq[0], MLX4_OPCODE_SEND, true, 0);
	tpair_close(&p);
}

/* A syndrome that is reserved says nothing: neither that the packet has come, nor that it is refused. */
static void test_reserved_syndromes(void **state)
{
	struct tpair p;
	struct twr wr;

	(void)state;
	open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
	wr = tpair_wr(&p, MLX4_OPCODE_RDMA_WRITE, 100);
	tqp_send(&p.a, &wr);
	for (unsigned int syndrome = 0x40; syndrome < 0x100; syndrome++) {
		if (syndrome == 0x60)
			syndrome = SH_AETH_NAK_OP + 1;
		if (syndrome == 0x80)
			break;
		say(&p, TPSN, (uint8_t)syndrome);
		texpect_none(&p.acq[0]);
		assert_int_equal(tqp_state(&p.a), SH_QPS_RTS);
		assert_int_equal(tqp_ctx(&p.a)->ack_psn, TPSN);
	}
	assert_int_equal(queue.sent, 1);
	pump(&p);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_WRITE, true, 0);
	tpair_close(&p);
}

static struct sh_host_ops ending;
static const struct sh_host_ops *usual;
static struct sh_qp *ends;

/* The program that the event wakes destroys its QP at once. This is what the engine still sees of it then. */
static int event_and_end(void *host, uint32_t evq, const void *record, size_t len)
{
	int err = usual->event(host, evq, record, len);

	if (ends) {
		memset(&ends->path, 0, sizeof(ends->path));
		ends->dest_qpn = 0;
		ends->port = 0;
		ends = NULL;
	}
	return err;
}

/* Who has got the last message may end the connection: the sender hears all the same that it has arrived. */
static void test_receiver_ends(void **state)
{
	static const uint8_t op[] = {MLX4_OPCODE_SEND, MLX4_OPCODE_RDMA_WRITE_IMM};

	(void)state;
	for (unsigned int i = 0; i < sizeof(op); i++) {
		struct tpair p;
		struct twr wr;

		open_pair(&p, &(struct tpair_opts){.type = SH_QPT_RC});
		usual = p.m->dev.ops;
		ending = *usual;
		ending.event = event_and_end;
		tpair_recv(&p, 0, 100);
		tcq_arm(&p.bcq[1], false);
		wr = tpair_wr(&p, op[i], 100);
		tqp_send(&p.a, &wr);
		ends = tqp_ctx(&p.b);
		p.m->dev.ops = &ending;
		pump(&p);
		p.m->dev.ops = usual;
		assert_null(ends);
		texpect(&p.acq[0], op[i], true, 0);
		tpair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_naks),
		cmocka_unit_test(test_implied_nak),
		cmocka_unit_test(test_nak_while_not_ready),
		cmocka_unit_test(test_reserved_syndromes),
		cmocka_unit_test(test_receiver_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
