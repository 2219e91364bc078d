// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a client is killed after each of its stores into shared memory, in each transition.
 * The next owner of the locks finds either all of the transition or nothing of it, and can go on.
 *
 * The test single-steps the client once to learn how many instructions change device memory. It
 * then runs a client up to each of these changes, and one to a point before the first, and kills it
 * there.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mlx4-format.h"
#include "softhca_mock.h"
#include "softhca_step.h"
#include "softhca/device/memory/event.h"
#include "softhca/device/queues/cq.h"
#include "softhca/device/queues/cqe.h"
#include "softhca/device/queues/srq.h"
#include "softhca/device/queues/srq_receives.h"

#define CQN   200
#define SRQN  70
#define SLOTS 8

#define SRQ_LIMIT_REACHED 15

/* Instrumented code takes ten times the steps, so fewer points have to do. */
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STRIDE 9
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define STRIDE 9
#endif
#ifndef STRIDE
#define STRIDE 1
#endif

/* Where a record goes that does not go into the pipe, and why not. */
enum detour {
	NO_DETOUR,
	PIPE_FULL,    /* to the spill, after an attempt */
	PIPE_REFUSED, /* to the spill, at once */
	SPILL_FULL,   /* nowhere */
};

struct world {
	struct mock *m;
	uint32_t ctx, evq;
	struct sh_umem cq_buf, cq_db, srq_buf, srq_db;
	struct sh_cq *cq;
	struct sh_srq *srq;
	uint32_t limit;
	bool armed, shared;
	enum detour detour;
	uint32_t earlier; /* events of each object that were raised before */
};

static void fire(struct world *w);

static void world_open(struct world *w)
{
	w->m = mock_new(NULL);
	w->ctx = mock_ctx(w->m, 0);
	w->evq = mock_evq(w->m, w->ctx, 8);
	w->cq_buf = mock_umem(w->m, w->ctx, SLOTS * 32, w->shared);
	w->cq_db = mock_umem(w->m, w->ctx, 8, w->shared);
	w->srq_buf = mock_umem(w->m, w->ctx, SLOTS * 32, w->shared);
	w->srq_db = mock_umem(w->m, w->ctx, 4, w->shared);
}

/*
 * Makes new objects in the places of the old ones: what a death left there must not matter to them.
 */
static void world_begin(struct world *w)
{
	struct sh_srq_init srq = {.ctx = w->ctx,
				  .pdn = 4,
				  .log_size = 3,
				  .wqe_shift = 5,
				  .max_sge = 1,
				  .user_handle = 2,
				  .cqn = CQN,
				  .buf = w->srq_buf,
				  .db = w->srq_db};
	struct sh_cq_init cq = {.ctx = w->ctx,
				.log_size = 3,
				.user_handle = 1,
				.comp_evq = w->evq,
				.buf = w->cq_buf,
				.db = w->cq_db};
	uint32_t i;

	for (i = 0; i < SLOTS; i++)
		((struct mlx4_wqe_srq_next *)((char *)mock_ptr(&srq.buf) + i * 32))
			->next_wqe_index = htobe16((uint16_t)((i * 3 + 1) % SLOTS));
	*(__be32 *)mock_ptr(&srq.db) = htobe32(6);
	memset(mock_ptr(&w->cq_db), 0, 8);
	w->m->shared->nrecords = 0;
	w->m->shared->room = MOCK_RECORDS;
	assert_int_equal(sh_cq_create(&w->m->daemon, 0, CQN, &cq), 0);
	assert_int_equal(sh_srq_create(&w->m->daemon, 0, SRQN, &srq), 0);
	if (w->limit)
		assert_int_equal(sh_srq_limit(&w->m->daemon, 0, SRQN, w->limit), 0);
	w->cq = sh_cq_get(&w->m->dev, 0, CQN);
	w->srq = sh_srq_get(&w->m->dev, 0, SRQN);
	if (w->armed) {
		((struct mlx4_cq_dbrec *)mock_ptr(&w->cq_db))->arm =
			htobe32(1u << 28 | MLX4_CQ_ARM_NEXT << 24);
		sh_arm(&w->m->dev, w->ctx, CQN, 0, 0);
	}
	/* The pipes have been written to before, as they have been as a rule. */
	w->earlier = w->detour != NO_DETOUR;
	if (w->earlier) {
		fire(w);
		sh_affiliated_event(&w->m->dev, 0, SRQ_LIMIT_REACHED, SRQN);
	}
	if (w->detour == PIPE_FULL)
		w->m->shared->room = 0;
	w->m->shared->refuses = w->detour == PIPE_REFUSED || w->detour == SPILL_FULL;
	if (w->detour == SPILL_FULL)
		for (i = 0; i < SH_EVQ_SPILL; i++)
			fire(w);
}

static void world_end(struct world *w)
{
	uint32_t comp, async;

	assert_int_equal(sh_cq_destroy(&w->m->daemon, 0, CQN, &comp, &async), 0);
	assert_int_equal(sh_srq_destroy(&w->m->daemon, 0, SRQN, &async), 0);
}

/* ---- transitions ---- */

static void put_cqe(struct world *w, struct sh_txn_open *t, uint16_t index)
{
	struct sh_cqe cqe = {.qpn = 0x48,
			     .wqe_index = index,
			     .byte_cnt = 0x11111111,
			     .opcode = MLX4_CQE_RECV_SEND};

	if (sh_cq_put(t, sh_hca(&w->m->dev, 0), w->cq, &cqe))
		abort();
}

static void complete(struct world *w)
{
	struct sh_dev *d = &w->m->dev;
	struct sh_txn_open t;

	sh_lock(d, &w->cq->lock);
	sh_txn_begin(&t, d, &w->cq->txn, &w->cq->lock);
	put_cqe(w, &t, 0);
	sh_txn_commit(&t);
	sh_unlock(d, &w->cq->lock);
}

static void receive(struct world *w)
{
	struct sh_dev *d = &w->m->dev;
	struct sh_txn_open t;
	uint32_t index;

	sh_lock(d, &w->srq->lock);
	sh_txn_begin(&t, d, &w->srq->txn, &w->srq->lock);
	if (sh_srq_take(&t, sh_hca(d, 0), w->srq, &index))
		abort();
	sh_lock(d, &w->cq->lock);
	sh_txn_covers(&t, &w->cq->lock);
	put_cqe(w, &t, (uint16_t)index);
	sh_txn_commit(&t);
	sh_unlock(d, &w->cq->lock);
	sh_unlock(d, &w->srq->lock);
}

static void arm(struct world *w)
{
	((struct mlx4_cq_dbrec *)mock_ptr(&w->cq_db))->arm =
		htobe32(2u << 28 | MLX4_CQ_ARM_NEXT << 24);
	sh_arm(&w->m->dev, w->ctx, CQN, 0, 0);
}

static void fire(struct world *w)
{
	sh_lock(&w->m->dev, &w->cq->lock);
	sh_comp_event(&w->m->dev, 0, CQN);
	sh_unlock(&w->m->dev, &w->cq->lock);
}

/* ---- stepping ---- */

static uint64_t digest(const void *p, size_t len, uint64_t h)
{
	const uint64_t *q = p;
	size_t i;

	for (i = 0; i < len / 8; i++)
		h = (h ^ q[i]) * UINT64_C(0x100000001b3) + (h >> 29);
	return h;
}

static uint64_t watched(const struct world *w)
{
	uint64_t h = digest(w->cq, sizeof(*w->cq), 1);

	h = digest(w->srq, sizeof(*w->srq), h);
	h = digest(sh_evq(&w->m->dev, w->evq), 128, h);
	h = digest(sh_evq(&w->m->dev, sh_ctx(&w->m->dev, w->ctx)->async_evq), 128, h);
	h = digest(mock_ptr(&w->cq_buf), SLOTS * 32, h);
	return digest(w->m->shared, 128, h);
}

/* Starts a traced child and stops it just before the transition. */
static pid_t traced(struct world *w, void (*transition)(struct world *))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* no child outlives a failing test */
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(77);
		raise(SIGSTOP);
		transition(w);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status))
		return -1;
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL);
	return pid;
}

/*
 * Steps until shared memory has changed so many times. Returns how many times it has changed if the
 * child ends before.
 */
static unsigned int step_changes(const struct world *w, pid_t pid, unsigned int changes)
{
	uint64_t before = watched(w);
	unsigned int seen = 0;

	while (seen < changes && single_step(pid)) {
		uint64_t h = watched(w);

		seen += h != before;
		before = h;
	}
	return seen;
}

/* Returns how many stops there are; -1: the system allows no tracing. */
static int count_stops(struct world *w, void (*transition)(struct world *))
{
	int n = -1;
	pid_t pid;

	world_begin(w);
	pid = traced(w, transition);
	if (pid > 0)
		n = (int)step_changes(w, pid, UINT32_MAX);
	world_end(w);
	return n;
}

static void kill_at(struct world *w, void (*transition)(struct world *), unsigned int stop)
{
	pid_t pid = traced(w, transition);

	assert_true(pid > 0);
	/*
	 * There may be fewer changes than in new memory, which may hold what is written already.
	 * The child then dies after the end.
	 */
	step_changes(w, pid, stop);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- what must hold ---- */

static struct mlx4_cqe *entry(struct world *w, uint32_t i)
{
	return (struct mlx4_cqe *)mock_ptr(&w->cq_buf) + i % SLOTS;
}

static bool is_whole(struct world *w, uint32_t i, uint16_t index)
{
	struct mlx4_cqe *e = entry(w, i);

	if (!!(e->owner_sr_opcode & MLX4_CQE_OWNER) != !!(i & SLOTS))
		return false;
	assert_int_equal(be32toh(e->vlan_my_qpn), 0x48);
	assert_int_equal(be32toh(e->byte_cnt), 0x11111111);
	assert_int_equal(be16toh(e->wqe_index), index);
	assert_int_equal(e->syndrome, 0);
	assert_int_equal(e->owner_sr_opcode & MLX4_CQE_OPCODE_MASK, MLX4_CQE_RECV_SEND);
	return true;
}

/* Takes the two locks one after the other; how varies their order and the kind of lock call. */
static void recover(struct world *w, unsigned int how)
{
	struct sh_lock *lock[2] = {&w->cq->lock, &w->srq->lock};
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct sh_lock *l = lock[(i + how) & 1];

		if (how & 2)
			assert_int_equal(sh_lock_bounded(&w->m->daemon, l), 0);
		else
			sh_lock(&w->m->dev, l);
		sh_unlock(&w->m->dev, l);
	}
	w->m->shared->refuses = 0;
	w->m->shared->room = MOCK_RECORDS;
	/* The next user of an event queue puts it in order. */
	assert_int_equal(sh_evq_flush(&w->m->daemon, w->evq), 0);
	assert_int_equal(sh_evq_flush(&w->m->daemon, sh_ctx(&w->m->dev, w->ctx)->async_evq), 0);
	assert_int_equal(w->m->shared->complaints, 0);
}

static void check_events(struct world *w, bool happened)
{
	uint32_t async = sh_ctx(&w->m->dev, w->ctx)->async_evq;
	unsigned int comp = mock_records(w->m, w->evq), limit = mock_records(w->m, async);

	/* None is missing, none is written twice, and none is counted that was not written. */
	assert_int_equal(comp, w->cq->comp_events);
	assert_int_equal(limit, w->srq->async_events);
	if (w->armed && happened) {
		assert_int_equal(comp, w->earlier + 1);
		assert_int_equal(w->cq->armed, SH_ARM_NONE);
		assert_int_equal(w->cq->last_notified, 1);
	} else {
		assert_int_equal(comp, w->earlier);
		assert_int_equal(w->cq->armed, w->armed ? SH_ARM_ANY : SH_ARM_NONE);
	}
	if (w->limit && happened) {
		assert_int_equal(limit, w->earlier + 1);
		assert_int_equal(w->srq->limit, 0);
	} else {
		assert_int_equal(limit, w->earlier);
		assert_int_equal(w->srq->limit, w->limit);
	}
}

/* The objects still work: new completions fit and come out in order. */
static void go_on(struct world *w, bool takes)
{
	static const uint16_t order[] = {0, 1, 4, 5}; /* by the links */
	uint32_t i;

	for (i = w->cq->producer; i < 3; i++) {
		if (takes)
			receive(w);
		else
			complete(w);
	}
	for (i = 0; i < 3; i++)
		assert_true(is_whole(w, i, takes ? order[i] : 0));
	assert_false(is_whole(w, 3, 0));
}

static void each_stop(struct world w, void (*transition)(struct world *),
		      void (*check)(struct world *), unsigned int *before, unsigned int *after)
{
	const char *tier = getenv("TIER");
	/*
	 * The full tier stops at each change, and recovers in two ways. The quick one stops at
	 * every third and at the end, and takes each way in turn.
	 */
	int i, n, second, ways = tier && !strcmp(tier, "full") ? 2 : 1;
	int apart = ways == 1 && STRIDE == 1 ? 3 : STRIDE;

	world_open(&w);
	n = count_stops(&w, transition);
	for (i = 0; i <= n; i += i < n && i + apart > n ? n - i : apart)
		for (second = 0; second < ways; second++) {
			unsigned int how = ways == 1 ? i & 3 : second ? 3 - (i & 1) : i & 1;

			world_begin(&w);
			kill_at(&w, transition, (unsigned int)i);
			recover(&w, how);
			if (w.cq->producer)
				++*after;
			else
				++*before;
			check(&w);
			world_end(&w);
		}
	mock_free(w.m);
	if (n < 0)
		skip();
	/*
	 * With fewer changes the test has not seen the transition: the shortest changes memory ten
	 * times.
	 */
	assert_true(n >= 8);
}

static void check_complete(struct world *w)
{
	bool happened = w->cq->producer == 1;

	assert_in_range(w->cq->producer, 0, 1);
	assert_int_equal(is_whole(w, 0, 0), happened);
	check_events(w, happened);
	go_on(w, false);
}

static void check_receive(struct world *w)
{
	bool happened = w->cq->producer == 1;

	assert_in_range(w->cq->producer, 0, 1);
	assert_int_equal(is_whole(w, 0, 0), happened);
	assert_int_equal(w->srq->consumed, happened);
	assert_int_equal(w->srq->head, happened);
	check_events(w, happened);
	go_on(w, true);
}

static void a_completion_is_all_or_nothing(void **state)
{
	int kind;

	(void)state;
	for (kind = 0; kind < 4; kind++) {
		struct world w = {.shared = kind & 1, .armed = kind & 2};
		unsigned int before = 0, after = 0;

		each_stop(w, complete, check_complete, &before, &after);
		assert_true(before > 0 && after > 0);
	}
}

static void a_receive_is_all_or_nothing(void **state)
{
	int kind;

	(void)state;
	for (kind = 1; kind < 4; kind++) {
		struct world w = {.shared = kind & 1, .armed = kind & 2, .limit = kind & 2 ? 6 : 0};
		unsigned int before = 0, after = 0;

		each_stop(w, receive, check_receive, &before, &after);
		assert_true(before > 0 && after > 0);
	}
}

/*
 * If a client dies while it arms the CQ, the arming does not matter any more. The CQ must stay
 * sound for the clients that share it.
 */
static void check_arm(struct world *w)
{
	assert_in_range(w->cq->armed, SH_ARM_NONE, SH_ARM_ANY);
	assert_int_equal(mock_records(w->m, w->evq), w->cq->comp_events);
	complete(w);
	assert_int_equal(mock_records(w->m, w->evq), 1);
	assert_int_equal(w->cq->comp_events, 1);
	go_on(w, false);
}

/* If the client was killed before the doorbell acted, the doorbell record still has the arming. */
static void check_arm_record(struct world *w)
{
	if (w->cq->armed == SH_ARM_NONE) {
		if (!((struct mlx4_cq_dbrec *)mock_ptr(&w->cq_db))->arm)
			((struct mlx4_cq_dbrec *)mock_ptr(&w->cq_db))->arm =
				htobe32(2u << 28 | MLX4_CQ_ARM_NEXT << 24);
		sh_arm(&w->m->dev, w->ctx, CQN, 0, 0);
	}
	assert_int_equal(w->cq->armed, SH_ARM_ANY);
	check_arm(w);
}

static void an_arm_is_all_or_nothing(void **state)
{
	struct world w = {.shared = true};
	unsigned int before = 0, after = 0;

	(void)state;
	each_stop(w, arm, check_arm_record, &before, &after);
}

/*
 * The records take a detour into the spill. None is missing, none is raised twice, and each that
 * was not written is not counted.
 */
static void events_that_take_a_detour(void **state)
{
	enum detour detour;

	(void)state;
	for (detour = PIPE_FULL; detour <= PIPE_REFUSED; detour++) {
		struct world w = {.shared = true, .armed = true, .limit = 6, .detour = detour};
		unsigned int before = 0, after = 0;

		each_stop(w, receive, check_receive, &before, &after);
		assert_true(before > 0 && after > 0);
	}
}

/* Events outside of a transition: as many are counted as were written. */
static void check_fire(struct world *w)
{
	unsigned int records = mock_records(w->m, w->evq);

	assert_int_equal(w->cq->comp_events, records);
	fire(w);
	assert_int_equal(mock_records(w->m, w->evq), records + 1);
	assert_int_equal(w->cq->comp_events, records + 1);
	assert_int_equal(sh_evq(&w->m->dev, w->evq)->flight_off, 0);
}

static void an_event_in_flight_is_settled(void **state)
{
	enum detour detour;

	(void)state;
	for (detour = NO_DETOUR; detour <= SPILL_FULL; detour++) {
		struct world w = {.shared = true, .detour = detour};
		unsigned int before = 0, after = 0;

		each_stop(w, fire, check_fire, &before, &after);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_completion_is_all_or_nothing),
		cmocka_unit_test(a_receive_is_all_or_nothing),
		cmocka_unit_test(events_that_take_a_detour),
		cmocka_unit_test(an_arm_is_all_or_nothing),
		cmocka_unit_test(an_event_in_flight_is_settled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
