// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: completion queues write entries as ConnectX does, and notice an overrun. Arming is
 * neither late nor early.
 */
#include "softhca_cq_rig.h"

static void a_new_queue_looks_empty(void **state)
{
	struct cq c;
	int i;

	(void)state;
	cq_open(&c, 32, 4, true);
	assert_null(peek(&c));
	for (i = 0; i < 16; i++)
		assert_int_equal(entry(&c, i)->owner_sr_opcode & MLX4_CQE_OWNER, MLX4_CQE_OWNER);
	cq_close(&c);
}

static void writes_the_worked_example(void **state)
{
	const uint8_t want[32] = {0, 0, 0, 0x48, [25] = 2, [31] = 0x4a};
	const uint8_t flushed[32] = {
		0, 0, 0, 0x48, [25] = 3, [26] = 0xf9, [27] = 0x05, [31] = 0x9e};
	struct sh_cqe cqe = {.qpn = 0x48, .wqe_index = 2, .opcode = MLX4_OPCODE_SEND, .send = 1};
	struct sh_cqe flush = {.qpn = 0x48,
			       .wqe_index = 3,
			       .opcode = MLX4_CQE_ERROR,
			       .syndrome = MLX4_SYNDROME_WR_FLUSH,
			       .vendor = 0xf9};
	struct cq c;
	int shared;

	(void)state;
	for (shared = 0; shared < 2; shared++) {
		cq_open(&c, 32, 1, shared);
		assert_int_equal(put(&c, &cqe), 0);
		assert_memory_equal(entry(&c, 0), want, 32);
		assert_int_equal(put_n(&c, 1), 0);
		assert_non_null(poll(&c));
		assert_non_null(poll(&c));
		assert_null(poll(&c));
		set_ci(&c);
		assert_int_equal(put(&c, &flush), 0);
		assert_memory_equal(entry(&c, 2), flushed, 32);
		cq_close(&c);
	}
}

static void fills_in_every_field(void **state)
{
	struct sh_cqe cqe = {.qpn = 0x800123,
			     .imm_be = htobe32(0x01020304),
			     .srqn_srcqp = 0x80000456,
			     .sl_vid = 0x3000,
			     .slid = 17,
			     .byte_cnt = 100000,
			     .wqe_index = 0xfffe,
			     .opcode = MLX4_CQE_RECV_SEND_IMM,
			     .syndrome = 1,
			     .vendor = 2};
	struct mlx4_cqe *e;
	struct cq c;

	(void)state;
	cq_open(&c, 64, 3, true);
	assert_int_equal(put(&c, &cqe), 0);
	e = poll(&c);
	assert_non_null(e);
	assert_int_equal(be32toh(e->vlan_my_qpn), 0x800123);
	assert_int_equal(be32toh(e->immed_rss_invalid), 0x01020304);
	assert_int_equal(be32toh(e->g_mlpath_rqpn), 0x80000456);
	assert_int_equal(be16toh(e->sl_vid), 0x3000);
	assert_int_equal(be16toh(e->rlid), 17);
	assert_int_equal(be32toh(e->byte_cnt), 100000);
	assert_int_equal(be16toh(e->wqe_index), 0xfffe);
	assert_int_equal(e->checksum, 0); /* no syndromes on success */
	assert_int_equal(e->owner_sr_opcode, MLX4_CQE_RECV_SEND_IMM);
	/* The first half of a large entry stays what it was. */
	assert_int_equal(*(uint8_t *)mock_ptr(&c.buf), 0xcc);
	cq_close(&c);
}

static void wraps_many_times(void **state)
{
	struct mlx4_cqe *e;
	struct cq c;
	uint32_t i;
	int kind;

	(void)state;
	for (kind = 0; kind < 4; kind++) {
		cq_open(&c, kind & 1 ? 64 : 32, 3, kind & 2);
		sh_cq_get(&c.m->dev, 0, CQN)->producer = 0; /* see indices_wrap_at_24_bits() */
		for (i = 0; i < 100; i++) {
			assert_int_equal(put_n(&c, (uint16_t)i), 0);
			assert_int_equal(put_n(&c, (uint16_t)(i + 1000)), 0);
			e = poll(&c);
			assert_non_null(e);
			assert_int_equal(be16toh(e->wqe_index), i);
			assert_non_null(poll(&c));
			assert_null(poll(&c));
			set_ci(&c);
		}
		cq_close(&c);
	}
}

static void indices_wrap_at_24_bits(void **state)
{
	struct sh_cq *cq;
	struct cq c;
	uint32_t i;

	(void)state;
	cq_open(&c, 32, 2, true);
	cq = sh_cq_get(&c.m->dev, 0, CQN);
	cq->producer = cq->consumer_seen = cq->last_notified = cq->solicited_producer = c.ci =
		0xfffffe;
	memset(mock_ptr(&c.buf), 0x7f, 128); /* odd pass: software owns those with the bit set */
	set_ci(&c);
	for (i = 0; i < 8; i++) {
		assert_int_equal(put_n(&c, (uint16_t)i), 0);
		assert_int_equal(be16toh(poll(&c)->wqe_index), i);
		set_ci(&c);
		arm_kick(&c, MLX4_CQ_ARM_NEXT);
		assert_int_equal(events(&c), i);
		assert_int_equal(put_n(&c, (uint16_t)(100 + i)), 0);
		assert_int_equal(events(&c), i + 1);
		c.sn++;
		assert_int_equal(be16toh(poll(&c)->wqe_index), 100 + i);
		set_ci(&c);
	}
	assert_int_equal(cq->producer, 0xfffffe + 16);
	cq_close(&c);
}

static void an_overrun_is_reported_once(void **state)
{
	struct sh_ctx *ctx;
	struct sh_cq_info info;
	struct cq c;
	int i;

	(void)state;
	cq_open(&c, 32, 2, true);
	ctx = sh_ctx(&c.m->dev, c.ctx);
	for (i = 0; i < 4; i++)
		assert_int_equal(put_n(&c, (uint16_t)i), 0);
	/* The provider has polled an entry, but stores its index too late: the CQ overruns. */
	assert_non_null(poll(&c));
	assert_int_equal(mock_records(c.m, ctx->async_evq), 0);
	assert_int_equal(put_n(&c, 4), -ENOSPC);
	assert_int_equal(mock_records(c.m, ctx->async_evq), 1);
	assert_int_equal(mock_record(c.m, ctx->async_evq, 0)->type, 0);
	assert_int_equal(mock_record(c.m, ctx->async_evq, 0)->element, 0x1122334455667788);
	assert_int_equal(mock_record(c.m, ctx->async_evq, 0)->len, 16);
	set_ci(&c);
	assert_int_equal(put_n(&c, 4), -ENOSPC);
	assert_int_equal(mock_records(c.m, ctx->async_evq), 1);
	assert_int_equal(sh_cq_query(&c.m->daemon, 0, CQN, &info), 0);
	assert_int_equal(info.overrun, 1);
	assert_int_equal(info.producer, 4);
	assert_int_equal(info.consumer, 1);
	cq_close(&c);
}

static void reads_the_consumer_only_when_full(void **state)
{
	struct cq c;
	uint64_t before;
	int i;

	(void)state;
	cq_open(&c, 32, 3, false);
	before = c.m->shared->copies;
	for (i = 0; i < 8; i++) {
		assert_int_equal(put_n(&c, (uint16_t)i), 0);
		poll(&c);
	}
	assert_int_equal(c.m->shared->copies - before, 8); /* one per CQE, none for its record */
	set_ci(&c);
	assert_int_equal(put_n(&c, 8), 0);
	assert_int_equal(c.m->shared->copies - before, 10);
	cq_close(&c);
}

static void arming_is_neither_late_nor_early(void **state)
{
	struct cq c;
	int trap;

	(void)state;
	for (trap = 0; trap < 2; trap++) {
		void (*arm)(struct cq * c, uint32_t cmd) = trap ? arm_trap : arm_kick;

		cq_open(&c, 32, 4, true);
		/* Not armed: no event. */
		put_n(&c, 0);
		assert_int_equal(events(&c), 0);
		/* An entry that was not polled before the arm raises the event at once. */
		arm(&c, MLX4_CQ_ARM_NEXT);
		assert_int_equal(events(&c), 1);
		assert_int_equal(mock_record(c.m, c.evq, 0)->element, 0x1122334455667788);
		assert_int_equal(mock_record(c.m, c.evq, 0)->len, 8);
		/* Armed again before the entry is polled: an event has announced it already. */
		c.sn++;
		arm(&c, MLX4_CQ_ARM_NEXT);
		assert_int_equal(events(&c), 1);
		poll(&c);
		put_n(&c, 1);
		assert_int_equal(events(&c), 2);
		put_n(&c, 2); /* no event until armed again */
		assert_int_equal(events(&c), 2);
		/* Armed after everything was polled: the event comes with the next entry. */
		poll(&c);
		poll(&c);
		set_ci(&c);
		c.sn++;
		arm(&c, MLX4_CQ_ARM_NEXT);
		arm(&c, MLX4_CQ_ARM_NEXT); /* idempotent */
		assert_int_equal(events(&c), 2);
		put_n(&c, 3);
		assert_int_equal(events(&c), 3);
		assert_int_equal(sh_cq_get(&c.m->dev, 0, CQN)->comp_events, 3);
		cq_close(&c);
	}
}

static void an_arm_record_takes_effect_once(void **state)
{
	struct cq c;

	(void)state;
	cq_open(&c, 32, 4, true);
	arm_trap(&c, MLX4_CQ_ARM_NEXT);
	put_n(&c, 0);
	assert_int_equal(events(&c), 1);
	/* The device looks at the arm record, after a doorbell has brought the same arm. */
	sh_arm(&c.m->dev, c.ctx, CQN, 0, 0);
	put_n(&c, 1);
	assert_int_equal(events(&c), 1);
	cq_close(&c);
}

static void solicited_arms_wait_for_solicited_entries(void **state)
{
	struct sh_cqe plain = {.qpn = 1, .opcode = MLX4_CQE_RECV_SEND};
	struct sh_cqe solicited = {.qpn = 1, .opcode = MLX4_CQE_RECV_SEND, .solicited = 1};
	struct sh_cqe error = {
		.qpn = 1, .opcode = MLX4_CQE_ERROR, .syndrome = MLX4_SYNDROME_WR_FLUSH};
	struct cq c;

	(void)state;
	cq_open(&c, 32, 4, true);
	put(&c, &plain);
	arm_kick(&c, MLX4_CQ_ARM_SOLICITED);
	assert_int_equal(events(&c), 0);
	put(&c, &plain);
	assert_int_equal(events(&c), 0);
	put(&c, &solicited);
	assert_int_equal(events(&c), 1);
	while (poll(&c))
		;
	c.sn++;
	arm_kick(&c, MLX4_CQ_ARM_SOLICITED);
	put(&c, &error);
	assert_int_equal(events(&c), 2);
	/* Between the last poll and the arm come a solicited entry and then a plain one. */
	while (poll(&c))
		;
	put(&c, &solicited);
	put(&c, &plain);
	c.sn++;
	arm_kick(&c, MLX4_CQ_ARM_SOLICITED);
	assert_int_equal(events(&c), 3);
	/*
	 * Arming for the next entry overrides a pending arm for a solicited one, but not the other
	 * way round.
	 */
	while (poll(&c))
		;
	c.sn++;
	arm_kick(&c, MLX4_CQ_ARM_SOLICITED);
	arm_kick(&c, MLX4_CQ_ARM_NEXT);
	arm_kick(&c, MLX4_CQ_ARM_SOLICITED);
	put(&c, &plain);
	assert_int_equal(events(&c), 4);
	cq_close(&c);
}

static void foreign_and_invalid_arms_do_nothing(void **state)
{
	uint32_t other;
	struct cq c;

	(void)state;
	cq_open(&c, 32, 4, true);
	other = mock_ctx(c.m, 0);
	put_n(&c, 0);
	arm_word(&c, MLX4_CQ_ARM_NEXT);
	sh_arm(&c.m->dev, other, CQN, 0, 0);
	sh_arm(&c.m->dev, 0, CQN, 0, 0);
	sh_arm(&c.m->dev, SH_MAX_CTX, CQN, 0, 0);
	sh_arm(&c.m->dev, c.ctx, CQN + 1, 0, 0);
	sh_arm(&c.m->dev, c.ctx, 0xffffff, 0, 0);
	sh_arm(&c.m->dev, c.ctx, CQN, 3u << 24 | CQN, 0);
	sh_arm(&c.m->dev, c.ctx, CQN, 7u << 24 | CQN, 0);
	assert_int_equal(events(&c), 0);
	sh_arm(&c.m->dev, c.ctx, CQN, 0, 0);
	assert_int_equal(events(&c), 1);
	cq_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_queue_looks_empty),
		cmocka_unit_test(writes_the_worked_example),
		cmocka_unit_test(fills_in_every_field),
		cmocka_unit_test(wraps_many_times),
		cmocka_unit_test(indices_wrap_at_24_bits),
		cmocka_unit_test(an_overrun_is_reported_once),
		cmocka_unit_test(reads_the_consumer_only_when_full),
		cmocka_unit_test(arming_is_neither_late_nor_early),
		cmocka_unit_test(an_arm_record_takes_effect_once),
		cmocka_unit_test(solicited_arms_wait_for_solicited_entries),
		cmocka_unit_test(foreign_and_invalid_arms_do_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
