/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A CQ of the mock device, and a provider that polls it.
 */
#ifndef TESTS_UNIT_SOFTHCA_CQ_RIG_H
#define TESTS_UNIT_SOFTHCA_CQ_RIG_H

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

static inline void cq_open(struct cq *c, uint32_t cqe_size, uint32_t log_size, bool shared)
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

static inline void cq_close(struct cq *c)
{
	mock_free(c->m);
}

static inline int put(struct cq *c, const struct sh_cqe *cqe)
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

static inline int put_n(struct cq *c, uint16_t index)
{
	struct sh_cqe cqe = {
		.qpn = 0x48, .wqe_index = index, .opcode = MLX4_OPCODE_SEND, .send = 1};

	return put(c, &cqe);
}

static inline struct mlx4_cqe *entry(struct cq *c, uint32_t i)
{
	return (struct mlx4_cqe *)((char *)mock_ptr(&c->buf) +
				   (i & ((1u << c->log_size) - 1)) * c->size + c->size - 32);
}

/* Returns the next entry if software owns it, else NULL. */
static inline struct mlx4_cqe *peek(struct cq *c)
{
	struct mlx4_cqe *e = entry(c, c->ci);

	return !!(e->owner_sr_opcode & MLX4_CQE_OWNER) == !!(c->ci & 1u << c->log_size) ? e : NULL;
}

static inline struct mlx4_cqe *poll(struct cq *c)
{
	struct mlx4_cqe *e = peek(c);

	if (e)
		c->ci++;
	return e;
}

static inline void set_ci(struct cq *c)
{
	((struct mlx4_cq_dbrec *)mock_ptr(&c->db))->set_ci = htobe32(c->ci & MLX4_CQ_DB_CI_MASK);
}

static inline uint32_t arm_word(struct cq *c, uint32_t cmd)
{
	uint32_t word = (c->sn & 3) << 28 | cmd << 24 | (c->ci & 0xffffff);

	((struct mlx4_cq_dbrec *)mock_ptr(&c->db))->arm = htobe32(word);
	return word;
}

static inline void arm_kick(struct cq *c, uint32_t cmd)
{
	arm_word(c, cmd);
	sh_arm(&c->m->dev, c->ctx, CQN, 0, 0);
}

static inline void arm_trap(struct cq *c, uint32_t cmd)
{
	uint32_t word = arm_word(c, cmd);

	sh_arm(&c->m->dev, c->ctx, CQN, (word & 0xff000000) | CQN, word & 0xffffff);
}

static inline unsigned int events(struct cq *c)
{
	return mock_records(c->m, c->evq);
}

#endif
