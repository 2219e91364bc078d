/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A victim (softhca_stop_rig.h) whose life in the device cannot be ended stays stopped while the
 * test makes calls.
 */
#ifndef SOFTHCA_STANDS_RIG_H
#define SOFTHCA_STANDS_RIG_H

#include "softhca_stop_rig.h"

#define NOTICE_MS 700 /* what each look at the clock seems to take: the waits of lock.h are long */
#define LATER_NS  UINT64_C(20000000000)

static struct sh_host_ops ops;
static uint64_t (*real_now)(void *host);

static inline uint64_t passing_now(void *host)
{
	struct mock *m = host;

	__atomic_fetch_add(&m->shared->now, NOTICE_MS * UINT64_C(1000000), __ATOMIC_SEQ_CST);
	return real_now(host);
}

/* As on a system without restartable sequences. The victim, a copy of this process, keeps it so. */
static inline void without_ends(struct mock *m)
{
	ops = *m->dev.ops;
	real_now = ops.now;
	ops.divert = NULL;
	m->dev.ops = m->daemon.ops = &ops;
}

/* How a call that returns at once is told from one that waits for the victim. */
static inline void begin_calls(struct scene *s)
{
	s->p.m->dev.proc = 2;
	ops.now = passing_now;
	alarm(60);
}

static inline void end_calls(struct scene *s, pid_t pid)
{
	alarm(0);
	ops.now = real_now;
	kill(pid, SIGCONT);
	ended(pid);
	mock_advance(s->p.m, LATER_NS);
}

static inline unsigned int completions(struct tcq *cq, uint8_t opcode)
{
	struct mlx4_cqe cqe;
	unsigned int n = 0;

	while (tcq_poll(cq, &cqe)) {
		assert_int_equal(cqe.owner_sr_opcode & 0x1f, opcode);
		n++;
	}
	return n;
}

/* What the locks say that the thread holds. */
static inline uint64_t word_of_thread(struct mock *m, pid_t tid)
{
	const struct sh_exec *e = sh_at(&m->dev, SH_EXEC_OFF);

	for (uint64_t i = 0; i < SH_MAX_EXEC; i++)
		if (e[i].tid == (uint32_t)tid)
			return (uint64_t)e[i].life << SH_OWNER_GENERATION | (i + 1);
	fail_msg("the thread has no slot");
	return 0;
}

/* The victim is stopped before it does anything, and then has this lock. */
static inline pid_t stand_with(struct scene *s, struct sh_lock *lock)
{
	pid_t pid = victim(s);

	assert_true(single_step(pid));
	stop(pid);
	lock->owner = word_of_thread(s->p.m, pid);
	begin_calls(s);
	return pid;
}

/* It goes on: it lets the lock go, and sends its message. */
static inline void go_on_from(struct scene *s, pid_t pid, struct sh_lock *lock)
{
	assert_true(lock->owner != 0);
	__atomic_store_n(&lock->owner, 0, __ATOMIC_SEQ_CST);
	end_calls(s, pid);
}

static inline struct sh_lock *lock_of_cq(const struct tcq *cq)
{
	return &sh_cq_get(&cq->m->dev, cq->hca, cq->cqn)->lock;
}

/* A region of p->b, of which the pages are no more. */
static inline uint32_t without_memory(struct tpair *p, uint8_t *at, size_t len)
{
	mock_map(p->m, p->b.ctx, at, len);
	assert_int_equal(
		sh_mr_create(&p->m->daemon, 1, 0x4200, p->b.ctx, p->b.pdn, (uintptr_t)at, len, 0xf),
		0);
	mock_unmap(p->m, p->b.ctx, at);
	return 0x4200;
}

static struct {
	struct sh_lock *lock;
	uint64_t word;
} taken_next;

/*
 * The victim is stopped before it does anything, and will seem to have taken the requester's lock
 * of this QP as soon as that is free: taking_copy() sees to it, or what else the test puts in
 * place.
 */
static pid_t stand_to_take(struct scene *s, struct tqp *qp)
{
	pid_t pid = victim(s);

	assert_true(single_step(pid));
	stop(pid);
	taken_next.lock = &tqp_ctx(qp)->lock;
	taken_next.word = word_of_thread(s->p.m, pid);
	begin_calls(s);
	return pid;
}

static enum sh_copy (*real_copy)(void *host, uint32_t dst_ctx, const struct sh_seg *dst,
				 unsigned int ndst, uint32_t src_ctx, const struct sh_seg *src,
				 unsigned int nsrc, uint64_t len);

/* While the sender copies, it holds no requester's lock. */
static inline enum sh_copy taking_copy(void *host, uint32_t dst_ctx, const struct sh_seg *dst,
				       unsigned int ndst, uint32_t src_ctx,
				       const struct sh_seg *src, unsigned int nsrc, uint64_t len)
{
	if (taken_next.lock && !taken_next.lock->owner)
		taken_next.lock->owner = taken_next.word;
	return real_copy(host, dst_ctx, dst, ndst, src_ctx, src, nsrc, len);
}

static inline void take_while_copying(void)
{
	real_copy = ops.copy;
	ops.copy = taking_copy;
}

#endif
