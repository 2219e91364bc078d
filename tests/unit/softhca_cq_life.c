// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: completion queues are resized, and end, without losing or inventing an entry. A
 * queue that has ended, whose owner is dead, or that a client has overwritten gets none.
 */
#include <stdlib.h>

#include "softhca_cq_rig.h"

/*
 * Does what libmlx4 does after RESIZE_CQ: copies the entries up to the marker, each to the next
 * index.
 */
static void copy_over(struct cq *c, const struct sh_umem *old, uint32_t old_log)
{
	uint32_t i = c->ci, on = 1u << old_log, nn = 1u << c->log_size;

	for (;; i++) {
		struct mlx4_cqe *from =
			(struct mlx4_cqe *)((char *)mock_ptr(old) + (i & (on - 1)) * c->size +
					    c->size - 32);
		struct mlx4_cqe *to = entry(c, i + 1);

		if ((from->owner_sr_opcode & MLX4_CQE_OPCODE_MASK) == MLX4_CQE_RESIZE)
			break;
		*to = *from;
		to->owner_sr_opcode &= 0x7f;
		if ((i + 1) & nn)
			to->owner_sr_opcode |= MLX4_CQE_OWNER;
	}
	c->ci++;
}

static void resizes_at_every_phase(void **state)
{
	const char *tier = getenv("TIER");
	/*
	 * The quick tier begins at every fifth phase, which are all phases of the ring, each in one
	 * round.
	 */
	uint32_t done, left, to, kind, apart = tier && !strcmp(tier, "full") ? 1 : 5;

	(void)state;
	for (kind = 0; kind < 4; kind++)
		for (done = 0; done < 40; done++)
			for (left = 0; left < 7; left++)
				for (to = 2; to < 6; to++) {
					struct sh_umem old, new;
					struct cq c;
					uint32_t i;
					int err;

					if (kind ? done % 7 || left % 3 : done % apart)
						continue;
					cq_open(&c, kind & 1 ? 64 : 32, 3, !(kind & 2));
					for (i = 0; i < done; i++) {
						assert_int_equal(put_n(&c, 0), 0);
						assert_non_null(poll(&c));
						set_ci(&c);
					}
					for (i = 0; i < left; i++)
						assert_int_equal(put_n(&c, (uint16_t)(i + 1)), 0);
					old = c.buf;
					new = mock_umem(c.m, c.ctx, (size_t)c.size << to,
							!(kind & 2));
					err = sh_cq_resize(&c.m->daemon, 0, CQN, &new, to);
					if (left + 1 > 1u << to) {
						assert_int_equal(err, -EINVAL);
						cq_close(&c);
						continue;
					}
					assert_int_equal(err, 0);
					if (to != 3) {
						c.buf = new;
						c.log_size = to;
						/* An entry arrives before the provider copies. */
						if (left + 2 <= 1u << to)
							assert_int_equal(
								put_n(&c, (uint16_t)(left + 1)), 0);
						copy_over(&c, &old, 3);
						set_ci(&c);
					} else {
						assert_int_equal(put_n(&c, (uint16_t)(left + 1)),
								 0);
					}
					for (i = 1; peek(&c); i++)
						assert_int_equal(be16toh(poll(&c)->wqe_index), i);
					assert_in_range(i, left + 1, left + 2);
					set_ci(&c);
					for (i = 0; i < 50; i++) {
						assert_int_equal(put_n(&c, (uint16_t)i), 0);
						assert_int_equal(be16toh(poll(&c)->wqe_index), i);
						assert_null(peek(&c));
						set_ci(&c);
					}
					cq_close(&c);
				}
}

static void a_resize_keeps_what_was_announced(void **state)
{
	struct sh_umem old, new;
	struct cq c;

	(void)state;
	cq_open(&c, 32, 3, true);
	put_n(&c, 1);
	arm_kick(&c, MLX4_CQ_ARM_NEXT);
	assert_int_equal(events(&c), 1);
	old = c.buf;
	new = mock_umem(c.m, c.ctx, 32 << 5, true);
	assert_int_equal(sh_cq_resize(&c.m->daemon, 0, CQN, &new, 5), 0);
	c.buf = new;
	c.log_size = 5;
	copy_over(&c, &old, 3);
	c.sn++;
	arm_kick(&c, MLX4_CQ_ARM_NEXT); /* an event has announced the one entry before */
	assert_int_equal(events(&c), 1);
	put_n(&c, 2);
	assert_int_equal(events(&c), 2);
	cq_close(&c);
}

static void a_destroyed_queue_gets_nothing(void **state)
{
	uint32_t comp = 99, async = 99;
	struct sh_cq_info info;
	struct cq c;
	uint8_t before[512];

	(void)state;
	cq_open(&c, 32, 4, true);
	arm_kick(&c, MLX4_CQ_ARM_NEXT);
	put_n(&c, 0);
	memcpy(before, mock_ptr(&c.buf), sizeof(before));
	assert_int_equal(sh_cq_destroy(&c.m->daemon, 0, CQN + 1, &comp, &async), -ENOENT);
	assert_int_equal(comp, 99);
	assert_int_equal(sh_cq_destroy(&c.m->daemon, 0, CQN, &comp, &async), 0);
	assert_int_equal(comp, 1);
	assert_int_equal(async, 0);
	assert_int_equal(put_n(&c, 1), -ENODEV);
	c.sn++;
	arm_kick(&c, MLX4_CQ_ARM_NEXT);
	assert_int_equal(events(&c), 1);
	assert_memory_equal(before, mock_ptr(&c.buf), sizeof(before));
	assert_int_equal(sh_cq_query(&c.m->daemon, 0, CQN, &info), -ENOENT);
	assert_int_equal(sh_cq_destroy(&c.m->daemon, 0, CQN, &comp, &async), -ENOENT);
	cq_close(&c);
}

static void a_queue_of_a_dead_owner_gets_nothing(void **state)
{
	struct cq c;
	uint8_t before[512];

	(void)state;
	cq_open(&c, 32, 4, true);
	memcpy(before, mock_ptr(&c.buf), sizeof(before));
	sh_ctx(&c.m->dev, c.ctx)->state = SH_CTX_GONE;
	assert_int_equal(put_n(&c, 1), -ENODEV);
	assert_memory_equal(before, mock_ptr(&c.buf), sizeof(before));
	cq_close(&c);
}

static void bad_creations_change_nothing(void **state)
{
	struct sh_cq_init init = {0};
	struct cq c;

	(void)state;
	cq_open(&c, 32, 4, true);
	init.ctx = c.ctx;
	init.log_size = 4;
	init.buf = c.buf;
	init.db = c.db;
	assert_int_equal(sh_cq_create(&c.m->daemon, 0, CQN, &init), -EEXIST);
	assert_int_equal(sh_cq_create(&c.m->daemon, 0, 1 << 16, &init), -EINVAL);
	assert_int_equal(sh_cq_create(&c.m->daemon, 9, CQN + 1, &init), -EINVAL);
	init.log_size = 5;
	assert_int_equal(sh_cq_create(&c.m->daemon, 0, CQN + 1, &init), -EINVAL);
	init.log_size = 40;
	assert_int_equal(sh_cq_create(&c.m->daemon, 0, CQN + 1, &init), -EINVAL);
	init.log_size = 4;
	init.db.uaddr += 4;
	assert_int_equal(sh_cq_create(&c.m->daemon, 0, CQN + 1, &init), -EINVAL);
	init.db.uaddr -= 4;
	init.ctx = 77;
	assert_int_equal(sh_cq_create(&c.m->daemon, 0, CQN + 1, &init), -EINVAL);
	/* The pages of the buffer are missing. */
	init.ctx = c.ctx;
	init.buf = mock_umem(c.m, c.ctx, 512, false);
	mock_unmap(c.m, c.ctx, mock_ptr(&init.buf));
	assert_int_equal(sh_cq_create(&c.m->daemon, 0, CQN + 1, &init), -EFAULT);
	assert_null(sh_cq_get(&c.m->dev, 0, CQN + 1));
	cq_close(&c);
}

static void a_damaged_queue_is_not_used(void **state)
{
	uint32_t comp, async;
	struct sh_cq_info info;
	struct sh_ctx *ctx;
	struct sh_cq *cq;
	struct cq c;
	int kind;

	(void)state;
	for (kind = 0; kind < 3; kind++) {
		cq_open(&c, 32, 4, true);
		ctx = sh_ctx(&c.m->dev, c.ctx);
		cq = sh_cq_get(&c.m->dev, 0, CQN);
		switch (kind) {
		case 0:
			cq->log_size = 77;
			break;
		case 1: /* larger than the buffer */
			cq->log_size = 20;
			cq->producer = cq->consumer_seen = 500;
			break;
		case 2:
			cq->log_size = 20;
			cq->buf.len = 64;
			cq->producer = cq->consumer_seen = 0xfffff;
			break;
		}
		assert_int_equal(put_n(&c, 1), -ENODEV);
		assert_int_equal(put_n(&c, 1), -ENODEV);
		arm_kick(&c, MLX4_CQ_ARM_NEXT);
		assert_int_equal(c.m->shared->complaints, 1);
		/* The owner gets one event, and can still destroy the CQ. */
		assert_int_equal(mock_records(c.m, ctx->async_evq), 1);
		assert_int_equal(mock_record(c.m, ctx->async_evq, 0)->type, 0);
		assert_int_equal(sh_cq_query(&c.m->daemon, 0, CQN, &info), -ENOENT);
		assert_int_equal(sh_cq_destroy(&c.m->daemon, 0, CQN, &comp, &async), 0);
		assert_int_equal(comp, 0);
		assert_int_equal(async, 1);
		cq_close(&c);
	}
	/* The buffer lies beyond device memory. */
	cq_open(&c, 32, 4, true);
	cq = sh_cq_get(&c.m->dev, 0, CQN);
	cq->buf.len = UINT64_MAX;
	cq->buf.shm_off = UINT64_MAX - 64;
	put_n(&c, 1);
	assert_int_equal(c.m->shared->complaints, 1);
	cq_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resizes_at_every_phase),
		cmocka_unit_test(a_resize_keeps_what_was_announced),
		cmocka_unit_test(a_destroyed_queue_gets_nothing),
		cmocka_unit_test(a_queue_of_a_dead_owner_gets_nothing),
		cmocka_unit_test(bad_creations_change_nothing),
		cmocka_unit_test(a_damaged_queue_is_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
