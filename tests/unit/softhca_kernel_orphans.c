// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: when the daemon has heard of the death of a process, no thread of that process holds
 * a lock any more. It does not matter which object the lock belongs to, or which process noticed
 * the death first. Living threads keep their locks.
 * If a stopped thread is in the way, or the death is noticed later, the daemon's loop comes back.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/tables.h"
#include "softhca/host/moves.h"
#include "softhca/host/witness.h"
#include "softhca/kernel/orphans.h"
#include "softhca/kernel/server.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"
#include "softhca/kernel/uverbs/evq.h"
#include "softhca_kernel.h"

enum { QP_LOCK, QP_RLOCK, SRQ_LOCK, CQ_LOCK, EVQ_LOCK, ATOMIC_LOCK, LOCKS };

struct world {
	struct kt *t;
	struct kt_queue cq, srq, qp;
	struct sh_lock *lock[LOCKS];
};

static void make(struct world *w)
{
	struct kctx *ctx;
	struct sh_qp *qp;
	uint32_t pd;

	w->t = kt_start(SH_FACE_MAINLINE, 2, 1);
	ctx = kt_open_host(w->t, 1, 0);
	assert_int_equal(kt_pd(w->t, ctx, &pd), 0);
	assert_int_equal(kt_cq(w->t, ctx, 10, -1, &w->cq), 0);
	assert_int_equal(kt_srq(w->t, ctx, pd, 10, 1, &w->srq), 0);
	assert_int_equal(kt_qp(w->t, ctx, UV_QPT_RC, pd, w->cq.handle, w->srq.handle, &w->qp), 0);
	qp = sh_qp_get(&w->t->k.dev, 1, w->qp.number);
	w->lock[QP_LOCK] = &qp->lock;
	w->lock[QP_RLOCK] = &qp->rlock;
	w->lock[SRQ_LOCK] = &sh_srq_get(&w->t->k.dev, 1, w->srq.number)->lock;
	w->lock[CQ_LOCK] = &sh_cq_get(&w->t->k.dev, 1, w->cq.number)->lock;
	w->lock[EVQ_LOCK] = &sh_evq(&w->t->k.dev, ctx->async->index)->lock;
	w->lock[ATOMIC_LOCK] = &sh_hca(&w->t->k.dev, 1)->atomic_lock[SH_ATOMIC_LOCKS - 1];
}

static void unmake(struct world *w)
{
	kt_queue_free(&w->qp);
	kt_queue_free(&w->srq);
	kt_queue_free(&w->cq);
	kt_stop(w->t);
}

/* Goes into device code as a thread of that process, and takes these locks, a bit each. */
static void take(struct world *w, uint32_t proc, unsigned int which)
{
	static struct sh_dev dev;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dev = w->t->k.dev;
	dev.proc = proc;
	if (!sh_enter(&dev))
		_exit(1);
	for (int i = 0; i < LOCKS; i++)
		if (which >> i & 1)
			sh_lock(&dev, w->lock[i]);
}

/*
 * Starts a process of the instance that enters device code and takes these locks, a bit for each.
 * It keeps them until it is killed.
 */
static struct kproc *holder(struct world *w, unsigned int which, pid_t *pid)
{
	uint64_t witness;
	struct kproc *p;
	int told[2], err;

	assert_int_equal(pipe(told), 0);
	*pid = fork();
	assert_true(*pid >= 0);
	if (!*pid) {
		/* The daemon will give the process the next slot, which is this one. */
		take(w, 2, which);
		sh_moves_forked();
		witness = sh_witness(&err);
		if (write(told[1], &witness, sizeof(witness)) != sizeof(witness))
			_exit(1);
		for (;;)
			pause();
	}
	close(told[1]);
	assert_int_equal(read(told[0], &witness, sizeof(witness)), sizeof(witness));
	close(told[0]);
	assert_int_equal(proc_attach(&w->t->k, *pid, 0, 0, witness, &p), 0);
	assert_int_equal(p->slot, 2);
	return p;
}

static void kill_it(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void each_kind_of_lock(void **state)
{
	(void)state;
	for (int i = 0; i < LOCKS; i++) {
		struct world w;
		struct kproc *p;
		pid_t pid;

		make(&w);
		p = holder(&w, 1u << i, &pid);
		assert_true(w.lock[i]->owner != 0);
		kill_it(pid);
		assert_true(w.lock[i]->owner != 0);
		proc_detach(&w.t->k, p);
		assert_true(w.lock[i]->owner == 0);
		unmake(&w);
	}
}

static void all_at_once(void **state)
{
	struct world w;
	struct kproc *p;
	pid_t pid;

	(void)state;
	make(&w);
	p = holder(&w, (1u << LOCKS) - 1, &pid);
	kill_it(pid);
	/*
	 * Another process takes one of the locks. So it learns before the daemon that the holder is
	 * dead.
	 */
	assert_int_equal(sh_trylock(&w.t->k.dev, w.lock[CQ_LOCK]), 0);
	sh_unlock(&w.t->k.dev, w.lock[CQ_LOCK]);
	proc_detach(&w.t->k, p);
	for (int i = 0; i < LOCKS; i++)
		assert_true(w.lock[i]->owner == 0);
	unmake(&w);
}

/* When a process that holds no lock dies, a living one keeps its locks. */
static void living_threads_keep_their_locks(void **state)
{
	struct world w;
	struct kproc *p;
	uint64_t owner;
	pid_t pid;

	(void)state;
	make(&w);
	p = holder(&w, 1u << CQ_LOCK | 1u << QP_LOCK, &pid);
	owner = w.lock[CQ_LOCK]->owner;
	w.t->k.dev.inst->died_inside++; /* as if another process had died */
	orphans_free(&w.t->k);
	assert_true(w.lock[CQ_LOCK]->owner == owner);
	assert_true(w.lock[QP_LOCK]->owner == owner);
	kill_it(pid);
	proc_detach(&w.t->k, p);
	assert_true(w.lock[CQ_LOCK]->owner == 0);
	assert_true(w.lock[QP_LOCK]->owner == 0);
	unmake(&w);
}

/* ---- by the daemon's loop ---- */

/*
 * Serves what the loop brings until the lock is free. False: it is still held after many seconds.
 */
static bool freed_by_loop(struct server *s, const struct sh_lock *lock)
{
	struct epoll_event ev;

	/* The tick comes each second. */
	for (unsigned int ticks = 0; lock->owner && ticks < 20;
	     ticks += ev.data.u64 >> 32 == SRC_TICK) {
		assert_int_equal(epoll_wait(s->k->epoll, &ev, 1, 60000), 1);
		server_serve(s, ev.data.u64);
	}
	return !lock->owner;
}

static struct server *loop(struct world *w)
{
	struct server *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->k = &w->t->k;
	assert_int_equal(server_set_up(s), 0);
	return s;
}

static void end_loop(struct server *s)
{
	server_take_down(s);
	free(s);
}

static void died(struct server *s, const struct kproc *p)
{
	server_serve(s, (uint64_t)SRC_PIDFD << 32 | p->slot);
}

/* A thread is stopped in the middle of a recovery when a process dies. */
static void stopped_in_recovery(void **state)
{
	struct world w;
	struct kproc *p;
	struct server *s;
	pid_t pid, other;
	int status;

	(void)state;
	make(&w);
	s = loop(&w);
	p = holder(&w, 1u << CQ_LOCK, &pid);
	other = fork();
	assert_true(other >= 0);
	if (!other) {
		struct sh_dev *dev = &w.t->k.dev;

		take(&w, w.t->proc->slot, 0);
		sh_lock(dev, &dev->inst->recovery);
		raise(SIGSTOP);
		sh_unlock(dev, &dev->inst->recovery);
		sh_leave(dev);
		_exit(0);
	}
	assert_int_equal(waitpid(other, &status, WUNTRACED), other);
	assert_true(WIFSTOPPED(status));
	kill_it(pid);
	died(s, p);
	assert_true(w.lock[CQ_LOCK]->owner != 0);
	kill(other, SIGCONT);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
	assert_true(freed_by_loop(s, w.lock[CQ_LOCK]));
	end_loop(s);
	proc_detach(&w.t->k, p);
	unmake(&w);
}

/* A thread ends in device code while its process lives, so the daemon hears of no death. */
static void a_thread_alone(void **state)
{
	struct world w;
	struct server *s;
	pid_t pid;

	(void)state;
	make(&w);
	s = loop(&w);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		take(&w, w.t->proc->slot, 1u << CQ_LOCK | 1u << QP_LOCK);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* Another thread finds out, by one of the locks. */
	assert_int_equal(sh_trylock(&w.t->k.dev, w.lock[QP_LOCK]), 0);
	sh_unlock(&w.t->k.dev, w.lock[QP_LOCK]);
	assert_true(w.lock[CQ_LOCK]->owner != 0);
	assert_true(freed_by_loop(s, w.lock[CQ_LOCK]));
	end_loop(s);
	unmake(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_lock),
		cmocka_unit_test(all_at_once),
		cmocka_unit_test(living_threads_keep_their_locks),
		cmocka_unit_test(stopped_in_recovery),
		cmocka_unit_test(a_thread_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
