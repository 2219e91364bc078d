// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: completion queues write entries as ConnectX does, and notice an overrun. Arming
 * neither loses nor invents events. A resize keeps the entries.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mlx4-format.h"
#include "softhca_mock.h"
#include "softhca/device/memory/tables.h"
#include "softhca/device/queues/cq.h"
#include "softhca/device/queues/cqe.h"

#define CQN 200

/* A CQ, and a provider that polls it. */
struct cq {
	struct mock *m;
	uint32_t ctx, evq;
	struct sh_umem buf, db;
	uint32_t log_size, size;
	uint32_t ci;
	uint32_t sn;
};

static void cq_open(struct cq *c, uint32_t cqe_size, uint32_t log_size, bool shared)
{
	struct mock_config cfg = {.cqe_size = cqe_size};
	struct sh_cq_init init = {0};

	memset(c, 0, sizeof(*c));
	c->m = mock_new(&cfg);
	c->ctx = mock_ctx(c->m, 0);
	c->evq = mock_evq(c->m, c->ctx, 8);
	c->log_size = log_size;
	c->size = cqe_size;
	c->sn = 1;
	c->buf = mock_umem(c->m, c->ctx, (size_t)cqe_size << log_size, shared);
	c->db = mock_umem(c->m, c->ctx, 4096, shared);
	init.ctx = c->ctx;
	init.log_size = log_size;
	init.user_handle = 0x1122334455667788;
	init.comp_evq = c->evq;
	init.buf = c->buf;
	init.db = c->db;
	assert_int_equal(sh_cq_create(&c->m->daemon, 0, CQN, &init), 0);
}

static void cq_close(struct cq *c)
{
	mock_free(c->m);
}

static int put(struct cq *c, const struct sh_cqe *cqe)
{
	struct sh_cq *cq = sh_cq_get(&c->m->dev, 0, CQN);
	struct sh_txn_open t;
	int err;

	sh_lock(&c->m->dev, &cq->lock);
	sh_txn_begin(&t, &c->m->dev, &cq->txn, &cq->lock);
	err = sh_cq_put(&t, sh_hca(&c->m->dev, 0), cq, cqe);
	sh_txn_commit(&t);
	sh_unlock(&c->m->dev, &cq->lock);
	return err;
}

static int put_n(struct cq *c, uint16_t index)
{
	struct sh_cqe cqe = {
		.qpn = 0x48, .wqe_index = index, .opcode = MLX4_OPCODE_SEND, .send = 1};

	return put(c, &cqe);
}

static struct mlx4_cqe *entry(struct cq *c, uint32_t i)
{
	return (struct mlx4_cqe *)((char *)mock_ptr(&c->buf) +
				   (i & ((1u << c->log_size) - 1)) * c->size + c->size - 32);
}

/* Returns the next entry if software owns it, else NULL. */
static struct mlx4_cqe *peek(struct cq *c)
{
	struct mlx4_cqe *e = entry(c, c->ci);

	return !!(e->owner_sr_opcode & MLX4_CQE_OWNER) == !!(c->ci & 1u << c->log_size) ? e : NULL;
}

static struct mlx4_cqe *poll(struct cq *c)
{
	struct mlx4_cqe *e = peek(c);

	if (e)
		c->ci++;
	return e;
}

static void set_ci(struct cq *c)
{
	((struct mlx4_cq_dbrec *)mock_ptr(&c->db))->set_ci = htobe32(c->ci & MLX4_CQ_DB_CI_MASK);
}

static uint32_t arm_word(struct cq *c, uint32_t cmd)
{
	uint32_t word = (c->sn & 3) << 28 | cmd << 24 | (c->ci & 0xffffff);

	((struct mlx4_cq_dbrec *)mock_ptr(&c->db))->arm = htobe32(word);
	return word;
}

static void arm_kick(struct cq *c, uint32_t cmd)
{
	arm_word(c, cmd);
	sh_arm(&c->m->dev, c->ctx, CQN, 0, 0);
}

static void arm_trap(struct cq *c, uint32_t cmd)
{
	uint32_t word = arm_word(c, cmd);

	sh_arm(&c->m->dev, c->ctx, CQN, (word & 0xff000000) | CQN, word & 0xffffff);
}

static unsigned int events(struct cq *c)
{
	return mock_records(c->m, c->evq);
}

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
	uint32_t done, left, to, kind;

	(void)state;
	for (kind = 0; kind < 4; kind++)
		for (done = 0; done < 40; done++)
			for (left = 0; left < 7; left++)
				for (to = 2; to < 6; to++) {
					struct sh_umem old, new;
					struct cq c;
					uint32_t i;
					int err;

					if (kind && (done % 7 || left % 3))
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
		cmocka_unit_test(resizes_at_every_phase),
		cmocka_unit_test(a_resize_keeps_what_was_announced),
		cmocka_unit_test(a_destroyed_queue_gets_nothing),
		cmocka_unit_test(a_queue_of_a_dead_owner_gets_nothing),
		cmocka_unit_test(bad_creations_change_nothing),
		cmocka_unit_test(a_damaged_queue_is_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
