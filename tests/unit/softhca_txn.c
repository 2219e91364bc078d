// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the transition of a dead holder is finished or dropped exactly once, whichever
 * thread recovers it, and in whatever order the locks are taken.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "softhca/device/memory/tables.h"
#include "softhca/device/queues/cq.h"
#include "softhca/device/queues/cqe.h"
#include "softhca_mock.h"

/*
 * Two objects with locks, and words in each of them. An SRQ slot serves as such, and behind it in
 * the order of locks the place of CQs.
 */
struct pair {
	struct mock *m;
	struct sh_srq *a, *b;
};

static void pair_open(struct pair *p)
{
	p->m = mock_new(NULL);
	p->a = (struct sh_srq *)sh_hca_table(&p->m->dev, 0, SH_HCA_SRQS) + 100;
	p->b = (struct sh_srq *)((struct sh_cq *)sh_hca_table(&p->m->dev, 0, SH_HCA_CQS) + 100);
	sh_lock_init(&p->a->lock);
	sh_lock_init(&p->b->lock);
}

enum die { DIE_HOLDING, DIE_BEFORE_COMMIT, DIE_COMMITTED, DIE_HALF_DONE, DIE_CLEARED };

/* Starts a child that takes both locks, works in a's log, and dies at the point given. */
static void child_dies(struct pair *p, enum die where)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		struct sh_dev *d = &p->m->dev;
		struct sh_txn_open t;

		sh_lock(d, &p->a->lock);
		sh_lock(d, &p->b->lock);
		if (where == DIE_HOLDING)
			_exit(0);
		sh_txn_begin(&t, d, &p->a->txn, &p->a->lock);
		sh_txn_covers(&t, &p->b->lock);
		sh_txn_store32(&t, &p->a->pdn, 11);
		sh_txn_store32(&t, &p->b->pdn, 22);
		sh_txn_store64(&t, &p->b->user_handle, 33);
		if (where == DIE_COMMITTED || where == DIE_HALF_DONE)
			p->a->txn.commit = t.n + 1;
		if (where == DIE_HALF_DONE)
			p->a->pdn = 11;
		if (where == DIE_CLEARED)
			sh_txn_commit(&t);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void finishes_or_drops(void **state)
{
	struct pair p;
	int where, order;

	(void)state;
	for (where = DIE_HOLDING; where <= DIE_CLEARED; where++)
		for (order = 0; order < 2; order++) {
			bool done = where >= DIE_COMMITTED;
			struct sh_lock *first, *second;

			pair_open(&p);
			child_dies(&p, where);
			first = order ? &p.b->lock : &p.a->lock;
			second = order ? &p.a->lock : &p.b->lock;
			sh_lock(&p.m->dev, first);
			/* The whole transition is there before any thread has the other lock. */
			assert_int_equal(p.a->pdn, done ? 11 : 0);
			assert_int_equal(p.b->pdn, done ? 22 : 0);
			assert_int_equal(p.b->user_handle, done ? 33 : 0);
			assert_int_equal(p.a->txn.commit, 0);
			sh_unlock(&p.m->dev, first);
			assert_int_equal(sh_lock_bounded(&p.m->daemon, second), 0);
			sh_unlock(&p.m->daemon, second);
			assert_int_equal(p.m->shared->complaints, 0);
			mock_free(p.m);
		}
}

/*
 * The first thread that recovers is already in the middle of a new transaction in the same log
 * while the other lock is still to be recovered.
 */
static void a_later_transaction_is_not_taken_for_the_old_one(void **state)
{
	struct sh_txn_open t;
	struct pair p;
	int committed;

	(void)state;
	for (committed = 0; committed < 2; committed++) {
		pair_open(&p);
		child_dies(&p, committed ? DIE_COMMITTED : DIE_BEFORE_COMMIT);
		sh_lock(&p.m->dev, &p.a->lock);
		assert_int_equal(p.b->pdn, committed ? 22 : 0);
		sh_txn_begin(&t, &p.m->dev, &p.a->txn, &p.a->lock);
		sh_txn_store32(&t, &p.a->xrcd, 44);
		p.a->txn.commit = t.n + 1; /* committed, but not carried out */
		sh_lock(&p.m->dev, &p.b->lock);
		assert_int_equal(p.a->xrcd, 0);
		assert_int_equal(p.a->txn.commit, t.n + 1);
		sh_unlock(&p.m->dev, &p.b->lock);
		p.a->txn.commit = 0;
		sh_txn_commit(&t);
		assert_int_equal(p.a->xrcd, 44);
		sh_unlock(&p.m->dev, &p.a->lock);
		mock_free(p.m);
	}
}

/* A new value written under a recovered lock is not overwritten by the second recovery. */
static void nothing_is_applied_twice_across_new_work(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p);
	child_dies(&p, DIE_COMMITTED);
	sh_lock(&p.m->dev, &p.a->lock);
	p.a->pdn = 77;
	sh_unlock(&p.m->dev, &p.a->lock);
	sh_lock(&p.m->dev, &p.b->lock);
	assert_int_equal(p.a->pdn, 77);
	sh_unlock(&p.m->dev, &p.b->lock);
	mock_free(p.m);
}

/*
 * The provider has seen the CQE that a dead holder wrote, and has put another entry in its place
 * since.
 */
static void an_entry_that_was_seen_is_not_written_again(void **state)
{
	struct sh_cq_init init = {.log_size = 2};
	struct sh_txn_open t;
	struct sh_umem buf;
	struct sh_cq *cq;
	struct pair p;
	uint8_t *entry;
	int shared, seen;

	(void)state;
	for (shared = 0; shared < 2; shared++)
		for (seen = 0; seen < 2; seen++) {
			struct sh_cqe cqe = {.qpn = 0x48, .opcode = 1};
			pid_t pid;

			pair_open(&p);
			init.ctx = mock_ctx(p.m, 0);
			buf = init.buf = mock_umem(p.m, init.ctx, 128, shared);
			init.db = mock_umem(p.m, init.ctx, 8, shared);
			assert_int_equal(sh_cq_create(&p.m->daemon, 0, 150, &init), 0);
			cq = sh_cq_get(&p.m->dev, 0, 150);
			pid = fork();
			assert_true(pid >= 0);
			if (!pid) {
				sh_lock(&p.m->dev, &cq->lock);
				sh_txn_begin(&t, &p.m->dev, &cq->txn, &cq->lock);
				if (sh_cq_put(&t, sh_hca(&p.m->dev, 0), cq, &cqe))
					_exit(1);
				cq->txn.commit = t.n + 1;
				_exit(0);
			}
			assert_int_equal(waitpid(pid, NULL, 0), pid);
			entry = mock_ptr(&buf);
			assert_int_equal(entry[31], 0xcc);
			if (seen)
				entry[31] = 0x01;
			sh_lock(&p.m->dev, &cq->lock);
			sh_unlock(&p.m->dev, &cq->lock);
			assert_int_equal(cq->producer, 1);
			assert_int_equal(entry[31], 0x01);
			assert_int_equal(entry[3], seen ? 0xcc : 0x48);
			mock_free(p.m);
		}
}

static void a_transaction_given_up_leaves_nothing(void **state)
{
	struct sh_txn_open t;
	struct pair p;

	(void)state;
	pair_open(&p);
	sh_lock(&p.m->dev, &p.a->lock);
	sh_txn_begin(&t, &p.m->dev, &p.a->txn, &p.a->lock);
	sh_txn_store32(&t, &p.a->pdn, 5);
	sh_unlock(&p.m->dev, &p.a->lock);
	assert_int_equal(p.a->lock.txn, SH_LOCK_MADE);
	sh_lock(&p.m->dev, &p.a->lock);
	assert_int_equal(p.a->pdn, 0);
	sh_unlock(&p.m->dev, &p.a->lock);
	mock_free(p.m);
}

static void stores_to_one_word_combine(void **state)
{
	struct sh_txn_open t;
	struct pair p;

	(void)state;
	pair_open(&p);
	p.a->pdn = 1;
	p.a->ctx = 2;
	sh_lock(&p.m->dev, &p.a->lock);
	sh_txn_begin(&t, &p.m->dev, &p.a->txn, &p.a->lock);
	sh_txn_store32(&t, &p.a->head, 3);
	sh_txn_store32(&t, &p.a->consumed, 4);
	sh_txn_store32(&t, &p.a->head, 5);
	sh_txn_store64(&t, &p.a->user_handle, 6);
	sh_txn_store64(&t, &p.a->user_handle, 7);
	assert_int_equal(p.a->head, 0); /* not before the commit */
	sh_txn_commit(&t);
	sh_unlock(&p.m->dev, &p.a->lock);
	assert_int_equal(p.a->head, 5);
	assert_int_equal(p.a->consumed, 4);
	assert_int_equal(p.a->user_handle, 7);
	assert_int_equal(p.a->pdn, 1);
	assert_int_equal(p.a->ctx, 2);
	mock_free(p.m);
}

static void damaged_logs_and_locks_are_not_followed(void **state)
{
	static const uint64_t scribbles[] = {
		UINT64_C(0x5a5a5a5a5a5a5a5a),	    UINT64_MAX,	     SH_OWNER_SLEEPERS,
		UINT64_C(1) << SH_OWNER_GENERATION, SH_MAX_EXEC + 1, 0x10001,
	};
	struct pair p;
	int kind;

	(void)state;
	for (kind = 0; kind < 6; kind++) {
		pair_open(&p);
		child_dies(&p, DIE_COMMITTED);
		switch (kind) {
		case 0:
			p.a->txn.commit = 5000;
			break;
		case 1:
			p.a->txn.store[0].off = UINT64_MAX - 7;
			break;
		case 2:
			p.a->txn.store[0].off = 0;
			break;
		case 3:
			p.a->txn.store[1].off += 3;
			break;
		case 4:
			p.a->lock.txn = SH_LOCK_TXN_OFF | SH_LOCK_MADE;
			break;
		case 5:
			p.a->lock.txn = 0x100 | SH_LOCK_MADE;
			break;
		}
		sh_lock(&p.m->dev, &p.a->lock);
		assert_int_equal(p.a->pdn, 0);
		assert_int_equal(p.m->shared->complaints, 1);
		sh_unlock(&p.m->dev, &p.a->lock);
		sh_lock(&p.m->dev, &p.b->lock);
		sh_unlock(&p.m->dev, &p.b->lock);
		mock_free(p.m);
	}
	/* An overwritten word names no owner. */
	for (size_t i = 0; i < sizeof(scribbles) / sizeof(*scribbles); i++) {
		pair_open(&p);
		p.a->lock.owner = scribbles[i];
		assert_int_equal(sh_lock_bounded(&p.m->daemon, &p.a->lock), 0);
		sh_unlock(&p.m->daemon, &p.a->lock);
		assert_int_equal(p.a->lock.owner, 0);
		assert_int_equal(p.m->shared->complaints, 1);
		mock_free(p.m);
	}
}

struct held {
	struct pair *p;
	struct sh_lock *lock;
};

static void hold(void *arg)
{
	const struct held *held = arg;

	sh_lock(&held->p->m->dev, held->lock);
}

static void the_daemon_gives_up_and_nothing_is_lost(void **state)
{
	struct pair p;
	pid_t pid;

	(void)state;
	pair_open(&p);
	pid = mock_child(hold, &(struct held){&p, &p.a->lock});
	assert_int_equal(sh_lock_bounded(&p.m->daemon, &p.a->lock), -EBUSY);
	assert_int_equal(sh_trylock(&p.m->daemon, &p.a->lock), -EBUSY);
	mock_kill(pid);
	assert_int_equal(sh_trylock(&p.m->daemon, &p.a->lock), 0);
	sh_unlock(&p.m->daemon, &p.a->lock);

	/*
	 * If another process's recovery takes too long, the daemon gives up. The next owner still
	 * finds the log.
	 */
	child_dies(&p, DIE_COMMITTED);
	pid = mock_child(hold, &(struct held){&p, &p.m->inst->recovery});
	assert_int_equal(sh_lock_bounded(&p.m->daemon, &p.a->lock), -EBUSY);
	assert_int_equal(p.a->pdn, 0);
	mock_kill(pid);
	sh_lock(&p.m->dev, &p.a->lock);
	assert_int_equal(p.a->pdn, 11);
	assert_int_equal(p.b->pdn, 22);
	sh_unlock(&p.m->dev, &p.a->lock);
	mock_free(p.m);
}

/*
 * Processes that move tokens between two objects are killed again and again. The sum stays the
 * same.
 */
static void sums_survive_random_kills(void **state)
{
	enum { PROCS = 3, KILLS = 300 };
	struct pair p;
	pid_t pid[PROCS];
	unsigned int i, k;
	uint32_t *moves;
	int status = 0;

	(void)state;
	pair_open(&p);
	p.a->head = 1000000;
	moves = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(moves, MAP_FAILED);
	memset(pid, 0, sizeof(pid));
	for (k = 0; k < KILLS + PROCS; k++) {
		i = k % PROCS;
		if (pid[i]) {
			uint32_t seen = __atomic_load_n(moves, __ATOMIC_RELAXED);

			/*
			 * Waits for progress, not for time: each process moves some tokens or dies
			 * in the attempt.
			 */
			while (__atomic_load_n(moves, __ATOMIC_RELAXED) - seen < 50 + k % 13 &&
			       !waitpid(pid[i], &status, WNOHANG))
				usleep(10);
			kill(pid[i], SIGKILL);
			waitpid(pid[i], &status, 0);
			assert_true(WIFSIGNALED(status)); /* no process saw a wrong sum */
		}
		pid[i] = 0;
		if (k >= KILLS)
			continue;
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			struct sh_txn_open t;
			struct sh_dev *d = &p.m->dev;

			sh_lock(d, &p.a->lock);
			sh_lock(d, &p.b->lock);
			if (p.a->head + p.b->head != 1000000)
				_exit(1);
			sh_txn_begin(&t, d, &p.a->txn, &p.a->lock);
			sh_txn_covers(&t, &p.b->lock);
			sh_txn_store32(&t, &p.a->head, p.a->head - 1);
			sh_txn_store32(&t, &p.b->head, p.b->head + 1);
			sh_txn_commit(&t);
			sh_unlock(d, &p.a->lock); /* in either order */
			sh_unlock(d, &p.b->lock);
			sh_lock(d, &p.b->lock); /* alone: may recover by a's log */
			sh_unlock(d, &p.b->lock);
			__atomic_fetch_add(moves, 1, __ATOMIC_RELAXED);
		}
	}
	sh_lock(&p.m->dev, &p.a->lock);
	sh_lock(&p.m->dev, &p.b->lock);
	assert_int_equal(p.a->head + p.b->head, 1000000);
	assert_true(*moves > 0);
	sh_unlock(&p.m->dev, &p.b->lock);
	sh_unlock(&p.m->dev, &p.a->lock);
	assert_int_equal(p.m->shared->complaints, 0);
	munmap(moves, 4096);
	mock_free(p.m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finishes_or_drops),
		cmocka_unit_test(a_later_transaction_is_not_taken_for_the_old_one),
		cmocka_unit_test(nothing_is_applied_twice_across_new_work),
		cmocka_unit_test(an_entry_that_was_seen_is_not_written_again),
		cmocka_unit_test(a_transaction_given_up_leaves_nothing),
		cmocka_unit_test(stores_to_one_word_combine),
		cmocka_unit_test(damaged_logs_and_locks_are_not_followed),
		cmocka_unit_test(the_daemon_gives_up_and_nothing_is_lost),
		cmocka_unit_test(sums_survive_random_kills),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
