// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the wire's loopback. What a receiver gets is what stands in the bytes of packets,
 * for each operation of RC, UC and XRC. A wrong bit in a request or an answer is found by the check
 * of the ICRC, and reliable services recover.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "softhca_pair.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/transport/fault.h"
#include "softhca/device/transport/loop.h"
#include "softhca/wire/loopback.h"

#define MS UINT64_C(1000000)

static const struct sh_loop_ops *real;
static unsigned int encoded, at; /* packets so far; the payload of packet `at` comes out reversed */

static long counting_encode(const struct sh_packet *p, bool spoilt,
			    unsigned char bytes[SH_LOOP_BYTES])
{
	encoded++;
	return real->encode(p, spoilt, bytes);
}

static int changing_decode(unsigned char bytes[SH_LOOP_BYTES], long n, uint16_t slid, uint16_t dlid,
			   struct sh_packet *p, struct sh_seg *seg)
{
	int err = real->decode(bytes, n, slid, dlid, p, seg);
	unsigned char *payload = (unsigned char *)(uintptr_t)seg->addr;

	if (!err && encoded == at)
		for (uint64_t i = 0; i < p->payload.len; i++)
			payload[i] ^= 0xff;
	return err;
}

static const struct sh_loop_ops watched = {.encode = counting_encode, .decode = changing_decode};

static void open_looped(struct tpair *p, uint32_t type)
{
	tpair_open(p, &(struct tpair_opts){.type = type});
	p->m->inst->faults.active = SH_ACTIVE_LOOPBACK;
	sh_loopback_begin(&p->m->dev);
	real = p->m->dev.loop;
	assert_non_null(real);
	p->m->dev.loop = &watched;
	encoded = at = 0;
	tfill(p->amem, TMEM / 2, 1);
	tfill(p->bmem, TMEM / 2, 2);
}

static void close_looped(struct tpair *p)
{
	const struct sh_wire *wire = &p->m->inst->wire;

	assert_int_equal(wire->unsent, 0);
	assert_int_equal(wire->malformed, 0);
	assert_int_equal(wire->sent, encoded);
	assert_int_equal(wire->received + wire->bad_icrc, encoded);
	tpair_close(p);
}

static bool reads(uint8_t op)
{
	return op == MLX4_OPCODE_RDMA_READ;
}

static bool takes_receive(uint8_t op)
{
	return op == MLX4_OPCODE_SEND || op == MLX4_OPCODE_SEND_IMM ||
	       op == MLX4_OPCODE_RDMA_WRITE_IMM;
}

static void test_operations(void **state)
{
	static const uint32_t types[] = {SH_QPT_RC, SH_QPT_XRC, SH_QPT_UC};
	static const uint8_t ops[] = {MLX4_OPCODE_SEND, MLX4_OPCODE_SEND_IMM,
				      MLX4_OPCODE_RDMA_WRITE, MLX4_OPCODE_RDMA_WRITE_IMM,
				      MLX4_OPCODE_RDMA_READ};
	static const uint32_t lengths[] = {
		0, 1, 3, 4, TMTU - 1, TMTU, TMTU + 1, 3 * TMTU, 70 * TMTU + 5};

	(void)state;
	for (unsigned int t = 0; t < 3; t++)
		for (unsigned int i = 0; i < sizeof(ops); i++)
			for (unsigned int k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
				uint32_t len = lengths[k];
				struct tpair p;
				struct twr wr;

				if (types[t] == SH_QPT_UC && reads(ops[i]))
					continue;
				open_looped(&p, types[t]);
				wr = tpair_wr(&p, ops[i], len);
				wr.imm = 0x12345678;
				tpair_recv(&p, 0, TMEM / 2);
				tqp_send(&p.a, &wr);
				texpect(&p.acq[0], ops[i], true, 0);
				assert_memory_equal(p.amem, p.bmem, len);
				/* Behind it nothing has changed. */
				assert_int_not_equal(memcmp(p.amem + len, p.bmem + len, 64), 0);
				if (takes_receive(ops[i])) {
					struct mlx4_cqe cqe;

					assert_true(tcq_poll(&p.bcq[1], &cqe));
					assert_int_equal(be32toh((uint32_t)cqe.byte_cnt), len);
					if (ops[i] != MLX4_OPCODE_SEND)
						assert_int_equal(
							be32toh((uint32_t)cqe.immed_rss_invalid),
							0x12345678);
				}
				assert_true(encoded >= (len + TMTU - 1) / TMTU);
				close_looped(&p);
			}
}

static void fault(struct mock *m, enum sh_fault_kind kind, uint32_t count, uint32_t rate)
{
	m->inst->faults.rule[kind].count = count;
	m->inst->faults.rule[kind].rate = rate;
	m->inst->faults.rule[SH_FAULT_DELAY].delay_ns = 100000;
	sh_faults_settle(&m->inst->faults);
}

/*
 * The first answer to a READ is lost, and those behind it are late: they show one loss, as they do
 * without the loopback (softhca_transport_retry.c).
 */
static void test_late_answers(void **state)
{
	struct tpair p;
	struct twr rd;

	(void)state;
	open_looped(&p, SH_QPT_RC);
	rd = tpair_wr(&p, MLX4_OPCODE_RDMA_READ, 32768);
	fault(p.m, SH_FAULT_DELAY, 0, 1000000);
	tqp_send(&p.a, &rd);
	fault(p.m, SH_FAULT_DROP, 1, 0);
	mock_advance(p.m, 1 * MS);
	assert_int_equal(p.m->inst->faults.rule[SH_FAULT_DROP].done, 1);
	texpect(&p.acq[0], MLX4_OPCODE_RDMA_READ, true, 0);
	assert_memory_equal(p.amem, p.bmem, 32768);
	assert_int_equal(tqp_ctx(&p.a)->retries, 1);
	assert_int_equal(tqp_state(&p.a), SH_QPS_RTS);
	close_looped(&p);
}

static void test_atomics(void **state)
{
	(void)state;
	for (int swap = 0; swap < 2; swap++) {
		uint8_t op = swap ? MLX4_OPCODE_ATOMIC_CS : MLX4_OPCODE_ATOMIC_FA;
		struct tpair p;
		struct twr wr;
		uint64_t was;

		open_looped(&p, SH_QPT_RC);
		memcpy(&was, p.bmem, 8);
		wr = tpair_wr(&p, op, 8);
		wr.compare = was;
		wr.swap_add = 5;
		tqp_send(&p.a, &wr);
		texpect(&p.acq[0], op, true, 0);
		assert_memory_equal(p.amem, &was, 8);
		assert_int_equal(*(uint64_t *)p.bmem, swap ? 5 : was + 5);
		assert_int_equal(encoded, 2);
		close_looped(&p);
	}
}

/* What the bytes say is what arrives: of a WRITE's second packet, of a READ's second answer. */
static void test_bytes_count(void **state)
{
	(void)state;
	for (int read = 0; read < 2; read++) {
		struct tpair p;
		uint8_t *from, *to;
		struct twr wr;

		open_looped(&p, SH_QPT_RC);
		from = read ? p.bmem : p.amem;
		to = read ? p.amem : p.bmem;
		at = read ? 3 : 2;
		wr = tpair_wr(&p, read ? MLX4_OPCODE_RDMA_READ : MLX4_OPCODE_RDMA_WRITE, 3 * TMTU);
		tqp_send(&p.a, &wr);
		texpect(&p.acq[0], wr.opcode, true, 0);
		assert_memory_equal(to, from, TMTU);
		for (int i = TMTU; i < 2 * TMTU; i++)
			assert_int_equal(to[i], from[i] ^ 0xff);
		assert_memory_equal(to + 2 * TMTU, from + 2 * TMTU, TMTU);
		close_looped(&p);
	}
}

/* Each packet of a message and of its answers is damaged once, one in each run. */
static void test_wrong_bits(void **state)
{
	static const uint8_t ops[] = {MLX4_OPCODE_SEND, MLX4_OPCODE_RDMA_READ};

	(void)state;
	for (int i = 0; i < 2; i++)
		for (int from = 0; from < 2; from++) {
			struct tpair p;
			const struct sh_fault_scope scope = {SH_FAULT_CORRUPT, (uint32_t)from,
							     SH_FAULT_ANY, SH_FAULT_ANY};
			struct sh_fault_rule *rule;
			struct sh_counters c[2];
			struct twr wr;

			open_looped(&p, SH_QPT_RC);
			sh_hca(&p.m->dev, 1)->host = 1;
			rule = &p.m->inst->faults.rule[SH_FAULT_KINDS];
			rule->scope = sh_fault_pack(&scope);
			rule->count = 1;
			sh_faults_settle(&p.m->inst->faults);
			wr = tpair_wr(&p, ops[i], 2 * TMTU + 3);
			tpair_recv(&p, 0, TMEM / 2);
			tqp_send(&p.a, &wr);
			mock_advance(p.m, 1000 * MS);
			texpect(&p.acq[0], ops[i], true, 0);
			assert_memory_equal(p.amem, p.bmem, wr.sge[0].len);
			assert_int_equal(p.m->inst->wire.bad_icrc, 1);
			sh_counters(&p.m->daemon, 0, &c[0]);
			sh_counters(&p.m->daemon, 1, &c[1]);
			assert_int_equal(c[!from].drops_icrc, 1);
			assert_int_equal(c[from].drops_icrc, 0);
			/* The loopback stays when the last rule is over. */
			assert_int_equal(p.m->inst->faults.active, SH_ACTIVE_LOOPBACK);
			close_looped(&p);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations), cmocka_unit_test(test_late_answers),
		cmocka_unit_test(test_atomics),	   cmocka_unit_test(test_bytes_count),
		cmocka_unit_test(test_wrong_bits),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
