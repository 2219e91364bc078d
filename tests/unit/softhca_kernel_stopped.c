// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a process is stopped in device code, with a lock or without. If an object is
 * destroyed meanwhile, it is gone for its owner at once, and the owner gets the right number of
 * events. The daemon does not give out its number and its pages again before the process has left.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/host.h"
#include "softhca/device/memory/announce.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/life.h"
#include "softhca/device/memory/mr.h"
#include "softhca/host/moves.h"
#include "softhca/host/witness.h"
#include "softhca/kernel/aside.h"
#include "softhca/kernel/uverbs/evq.h"
#include "softhca/kernel/uverbs/objects.h"
#include "softhca_armed.h"
#include "softhca_kernel.h"

struct rig {
	struct kt *t;
	struct kctx *ctx;
	uint32_t pd;
	struct kt_queue cq, srq, qp;
	pid_t pid;
};

static void rig_open(struct rig *r)
{
	alarm(60);
	r->t = kt_start(SH_FACE_MAINLINE, 1, 1);
	r->ctx = kt_open(r->t, 0);
	assert_int_equal(kt_pd(r->t, r->ctx, &r->pd), 0);
	assert_int_equal(kt_cq(r->t, r->ctx, 10, -1, &r->cq), 0);
	assert_int_equal(kt_srq(r->t, r->ctx, r->pd, 10, 1, &r->srq), 0);
	assert_int_equal(kt_qp(r->t, r->ctx, UV_QPT_RC, r->pd, r->cq.handle, -1, &r->qp), 0);
}

static void rig_close(struct rig *r)
{
	kt_queue_free(&r->cq);
	kt_queue_free(&r->srq);
	kt_queue_free(&r->qp);
	kt_stop(r->t);
}

static int shut = -1;	       /* a descriptor that the process does not keep open */
static int stay[2] = {-1, -1}; /* if it is a pipe, the process stays inside until that is closed */

/* Starts a process that enters device code, takes the lock (NULL: none) and stops. */
static void stop_inside(struct rig *r, struct sh_lock *lock)
{
	int status;

	r->pid = fork();
	assert_true(r->pid >= 0);
	if (!r->pid) {
		struct sh_dev dev = r->t->k.dev;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (shut >= 0)
			close(shut);
		dev.proc = r->t->proc->slot;
		if (!sh_enter(&dev))
			_exit(1);
		if (lock)
			sh_lock(&dev, lock);
		raise(SIGSTOP);
		if (stay[1] >= 0) {
			close(stay[1]);
			if (read(stay[0], &dev, 1) != 0)
				_exit(1);
		}
		if (lock)
			sh_unlock(&dev, lock);
		sh_leave(&dev);
		_exit(0);
	}
	assert_int_equal(waitpid(r->pid, &status, WUNTRACED), r->pid);
	assert_true(WIFSTOPPED(status));
}

static void leave(struct rig *r)
{
	int status;

	kill(r->pid, SIGCONT);
	assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
	assert_int_equal(status, 0);
}

/* Checks that the daemon has set something aside, and keeps it while the process is inside. */
static void set_aside(struct rig *r)
{
	assert_true(r->t->k.graced || r->t->k.locked);
	aside_sweep(&r->t->k);
	assert_true(r->t->k.graced || r->t->k.locked);
}

/* Lets the process leave, and checks that the daemon then keeps nothing aside. */
static void finished(struct rig *r)
{
	leave(r);
	aside_sweep(&r->t->k);
	assert_null(r->t->k.graced);
	assert_null(r->t->k.locked);
}

static void go_on(struct rig *r)
{
	set_aside(r);
	finished(r);
}

static uint64_t pages(const struct rig *r)
{
	return r->t->k.pool.used;
}

static struct sh_qp *qp_of(struct rig *r)
{
	return sh_qp_get(&r->t->k.dev, 0, r->qp.number);
}

static void a_key(void **state)
{
	static char buf[8192];
	struct rig r;
	uint32_t handle, key, other, used, out;

	(void)state;
	rig_open(&r);
	used = r.t->k.uverbs->objects[0].mpt.used;
	assert_int_equal(kt_mr(r.t, r.ctx, r.pd, buf, 4096, SH_LOCAL_WRITE, &handle, &key), 0);
	stop_inside(&r, NULL);
	assert_int_equal(kt_dealloc(r.t, r.ctx, UV_DEREG_MR, handle), 0);
	assert_int_equal(sh_mr_check(&r.t->k.dev, 0, key, 4, (uintptr_t)buf, 1, 0, &out), -ENOENT);
	assert_int_equal(r.t->k.uverbs->objects[0].mpt.used, used + 1);
	/*
	 * The daemon gives out the lowest free number next, but not this one. And no command waits
	 * for the same thread again.
	 */
	assert_int_equal(kt_mr(r.t, r.ctx, r.pd, buf, 4096, SH_LOCAL_WRITE, &handle, &other), 0);
	assert_int_not_equal(other, key);
	r.t->tries = 0;
	assert_int_equal(kt_dealloc(r.t, r.ctx, UV_DEREG_MR, handle), 0);
	assert_int_equal(r.t->tries, 0);
	go_on(&r);
	assert_int_equal(r.t->k.uverbs->objects[0].mpt.used, used);
	assert_int_equal(kt_dealloc(r.t, r.ctx, UV_DEALLOC_PD, r.pd), EBUSY); /* the QP uses it */
	rig_close(&r);
}

/*
 * The process goes on and is still inside. It may be about to store what it had begun, so a command
 * waits for it again.
 */
static void a_process_that_goes_on(void **state)
{
	static char buf[8192];
	struct rig r;
	uint32_t one, two, three, key;

	(void)state;
	rig_open(&r);
	assert_int_equal(kt_mr(r.t, r.ctx, r.pd, buf, 4096, SH_LOCAL_WRITE, &one, &key), 0);
	assert_int_equal(kt_mr(r.t, r.ctx, r.pd, buf, 4096, SH_LOCAL_WRITE, &two, &key), 0);
	assert_int_equal(kt_mr(r.t, r.ctx, r.pd, buf, 4096, SH_LOCAL_WRITE, &three, &key), 0);
	assert_int_equal(pipe2(stay, O_CLOEXEC), 0);
	stop_inside(&r, NULL);
	assert_int_equal(kt_dealloc(r.t, r.ctx, UV_DEREG_MR, one), 0);
	kill(r.pid, SIGCONT);
	assert_int_equal(waitpid(r.pid, NULL, WCONTINUED), r.pid);
	r.t->tries = 0;
	assert_int_equal(kt_dealloc(r.t, r.ctx, UV_DEREG_MR, two), 0);
	assert_int_not_equal(r.t->tries, 0);
	/*
	 * A command does not wait if the process has kept another one waiting for the longest
	 * allowed time.
	 */
	r.t->tries = 0;
	assert_int_equal(kt_dealloc(r.t, r.ctx, UV_DEREG_MR, three), 0);
	assert_int_equal(r.t->tries, 0);
	set_aside(&r);
	close(stay[1]);
	finished(&r);
	close(stay[0]);
	stay[0] = stay[1] = -1;
	rig_close(&r);
}

static void a_queue_pair(void **state)
{
	struct rig r;
	uint32_t used, cqs, srqs;
	uint64_t mem;
	struct kt_queue other;

	(void)state;
	for (int half = 0; half < 2; half++) {
		rig_open(&r);
		used = r.t->k.uverbs->objects[0].qpn.used;
		cqs = r.t->k.uverbs->objects[0].cqn.used;
		srqs = r.t->k.uverbs->objects[0].srqn.used;
		mem = pages(&r);
		stop_inside(&r, half ? &qp_of(&r)->rlock : &qp_of(&r)->lock);
		assert_int_equal(kt_destroy(r.t, r.ctx, UV_DESTROY_QP, r.qp.handle), 0);
		assert_null(qp_of(&r));
		assert_int_equal(r.t->k.uverbs->objects[0].qpn.used, used);
		assert_true(pages(&r) > mem - 4);
		/* The objects that the QP referred to can end, too. Its number is not given out. */
		assert_int_equal(kt_qp(r.t, r.ctx, UV_QPT_RC, r.pd, r.cq.handle, -1, &other), 0);
		assert_int_not_equal(other.number, r.qp.number);
		assert_int_equal(kt_destroy(r.t, r.ctx, UV_DESTROY_QP, other.handle), 0);
		assert_int_equal(kt_destroy(r.t, r.ctx, UV_DESTROY_CQ, r.cq.handle), 0);
		assert_int_equal(kt_destroy(r.t, r.ctx, UV_DESTROY_SRQ, r.srq.handle), 0);
		/*
		 * Their numbers stay set aside. The thread that holds the QP's lock may be about to
		 * use them.
		 */
		assert_int_equal(r.t->k.uverbs->objects[0].cqn.used, cqs);
		assert_int_equal(r.t->k.uverbs->objects[0].srqn.used, srqs);
		assert_int_equal(kt_dealloc(r.t, r.ctx, UV_DEALLOC_PD, r.pd), 0);
		go_on(&r);
		assert_int_equal(r.t->k.uverbs->objects[0].qpn.used, used - 1);
		assert_int_equal(r.t->k.uverbs->objects[0].cqn.used, cqs - 1);
		assert_int_equal(r.t->k.uverbs->objects[0].srqn.used, srqs - 1);
		assert_int_equal(pages(&r), 0);
		kt_queue_free(&other);
		rig_close(&r);
	}
}

/* The QP of a target ends with its last registration. A handle ends when its events are dropped. */
static void a_target_handle(void **state)
{
	struct uv_create_qp_resp resp = {0};
	struct uv_create_qp cmd = {
		.response = (uintptr_t)&resp, .user_handle = 7, .qp_type = UV_QPT_XRC_TGT};
	struct kqp_handle *h;
	struct sh_evq *events;
	struct rig r;
	uint32_t async;

	(void)state;
	rig_open(&r);
	assert_int_equal(kt_xrcd(r.t, r.ctx, -1, O_CREAT, &cmd.pd_handle), 0);
	assert_int_equal(kt_cmd(r.t, r.ctx, UV_CREATE_QP, &cmd, sizeof(cmd), sizeof(resp)), 0);
	h = uobj_get(r.ctx, UO_QP, resp.qp_handle);
	assert_non_null(h);
	events = sh_evq(&r.t->k.dev, r.ctx->async->index);
	events->uncounted = 1;
	stop_inside(&r, &events->lock);
	assert_int_equal(qp_free(h, false, &async), -EINPROGRESS);
	/*
	 * Only the command that ends the handle finds it. Code that goes through all handles skips
	 * it.
	 */
	assert_null(uobj_get(r.ctx, UO_QP, resp.qp_handle));
	assert_ptr_equal(uobj_ending(r.ctx, UO_QP, resp.qp_handle), h);
	ctx_gone(r.ctx);
	leave(&r);
	assert_int_equal(qp_free(h, false, &async), 0);
	rig_close(&r);
}

static void a_completion_queue(void **state)
{
	struct rig r;
	uint32_t used;
	uint64_t mem;

	(void)state;
	rig_open(&r);
	assert_int_equal(kt_destroy(r.t, r.ctx, UV_DESTROY_QP, r.qp.handle), 0);
	used = r.t->k.uverbs->objects[0].cqn.used;
	mem = pages(&r);
	stop_inside(&r, &sh_cq_get(&r.t->k.dev, 0, r.cq.number)->lock);
	assert_int_equal(kt_destroy(r.t, r.ctx, UV_DESTROY_CQ, r.cq.handle), 0);
	assert_int_equal(sh_cq_get(&r.t->k.dev, 0, r.cq.number)->live, SH_NONE);
	assert_int_equal(r.t->k.uverbs->objects[0].cqn.used, used);
	assert_true(pages(&r) >= mem - 1); /* all but the page of its doorbell record */
	go_on(&r);
	assert_int_equal(r.t->k.uverbs->objects[0].cqn.used, used - 1);
	assert_true(pages(&r) < mem - 1);
	rig_close(&r);
}

static void a_shared_receive_queue(void **state)
{
	struct rig r;
	uint32_t used;
	uint64_t mem;

	(void)state;
	rig_open(&r);
	used = r.t->k.uverbs->objects[0].srqn.used;
	mem = pages(&r);
	stop_inside(&r, &sh_srq_get(&r.t->k.dev, 0, r.srq.number)->lock);
	assert_int_equal(kt_destroy(r.t, r.ctx, UV_DESTROY_SRQ, r.srq.handle), 0);
	assert_int_equal(sh_srq_get(&r.t->k.dev, 0, r.srq.number)->live, SH_NONE);
	assert_int_equal(r.t->k.uverbs->objects[0].srqn.used, used);
	assert_true(pages(&r) >= mem - 1);
	go_on(&r);
	assert_int_equal(r.t->k.uverbs->objects[0].srqn.used, used - 1);
	assert_true(pages(&r) < mem - 1);
	rig_close(&r);
}

/*
 * A sender of a long message copies without the lock of the SRQ that has given the receive. The QPs
 * that use an ordinary SRQ have ended before it; those that send to one of XRC have not. So its end
 * waits until such a copy is over: it goes into buffers that are the program's afterwards.
 */
static void senders_of_xrc(void **state)
{
	struct kt_queue xsrq;
	struct rig r;
	uint32_t xrcd;

	(void)state;
	rig_open(&r);
	assert_int_equal(kt_xrcd(r.t, r.ctx, -1, O_CREAT, &xrcd), 0);
	assert_int_equal(kt_xsrq(r.t, r.ctx, r.pd, xrcd, r.cq.handle, &xsrq), 0);
	assert_int_equal(pipe2(stay, O_CLOEXEC), 0);
	stop_inside(&r, NULL);
	kill(r.pid, SIGCONT);
	assert_int_equal(waitpid(r.pid, NULL, WCONTINUED), r.pid);
	r.t->tries = 0;
	assert_int_equal(kt_destroy(r.t, r.ctx, UV_DESTROY_SRQ, r.srq.handle), 0);
	assert_int_equal(r.t->tries, 0);
	assert_int_equal(kt_destroy(r.t, r.ctx, UV_DESTROY_SRQ, xsrq.handle), 0);
	assert_int_not_equal(r.t->tries, 0);
	assert_int_equal(sh_srq_get(&r.t->k.dev, 0, xsrq.number)->live, SH_NONE);
	/*
	 * The thread has kept the command waiting for the longest allowed time: no other one waits
	 * for it again.
	 */
	assert_int_equal(kt_xsrq(r.t, r.ctx, r.pd, xrcd, r.cq.handle, &xsrq), 0);
	r.t->tries = 0;
	assert_int_equal(kt_destroy(r.t, r.ctx, UV_DESTROY_SRQ, xsrq.handle), 0);
	assert_int_equal(r.t->tries, 0);
	close(stay[1]);
	leave(&r);
	close(stay[0]);
	stay[0] = stay[1] = -1;
	/* Without a sender, nothing is waited for. */
	assert_int_equal(kt_xsrq(r.t, r.ctx, r.pd, xrcd, r.cq.handle, &xsrq), 0);
	assert_int_equal(kt_destroy(r.t, r.ctx, UV_DESTROY_SRQ, xsrq.handle), 0);
	assert_int_equal(r.t->tries, 0);
	kt_queue_free(&xsrq);
	rig_close(&r);
}

static int to_state(struct rig *r, uint32_t state)
{
	struct uv_modify_qp cmd = {.qp_handle = r->qp.handle,
				   .attr = {.attr_mask = UV_QP_STATE, .qp_state = state}};

	if (state == SH_QPS_INIT) {
		cmd.attr.attr_mask |= UV_QP_PKEY_INDEX | UV_QP_PORT | UV_QP_ACCESS_FLAGS;
		cmd.attr.port_num = 1;
	}
	return kt_cmd(r->t, r->ctx, UV_MODIFY_QP, &cmd, sizeof(cmd), 0);
}

static uint32_t state_of(struct rig *r)
{
	struct uv_query_qp_resp resp;
	struct uv_query_qp cmd = {.response = (uintptr_t)&resp, .qp_handle = r->qp.handle};

	assert_int_equal(kt_cmd(r->t, r->ctx, UV_QUERY_QP, &cmd, sizeof(cmd), sizeof(resp)), 0);
	return resp.qp_state;
}

static void a_change_of_state(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r);
	assert_int_equal(to_state(&r, SH_QPS_INIT), 0);
	stop_inside(&r, &qp_of(&r)->lock);
	assert_int_equal(to_state(&r, SH_QPS_ERR), 0);
	assert_int_equal(state_of(&r), SH_QPS_ERR);
	assert_int_equal(to_state(&r, SH_QPS_RESET), 0);
	assert_int_equal(state_of(&r), SH_QPS_RESET);
	/* Until the thread leaves, the device sees a QP in ERR, which accepts nothing. */
	assert_int_equal(qp_of(&r)->state, SH_QPS_ERR);
	assert_int_equal(to_state(&r, SH_QPS_INIT), EBUSY);
	go_on(&r);
	assert_int_equal(qp_of(&r)->state, SH_QPS_RESET);
	assert_int_equal(to_state(&r, SH_QPS_INIT), 0);
	/* The QP is destroyed before it has reached its state. */
	stop_inside(&r, &qp_of(&r)->lock);
	assert_int_equal(to_state(&r, SH_QPS_ERR), 0);
	assert_int_equal(kt_destroy(r.t, r.ctx, UV_DESTROY_QP, r.qp.handle), 0);
	go_on(&r);
	rig_close(&r);
}

/*
 * The daemon drops the records of a destroyed object even if a stopped thread holds the lock of
 * their event queue.
 */
static void events(void **state)
{
	struct uv_destroy_cq_resp resp = {0};
	struct uv_object destroy = {.response = (uintptr_t)&resp};
	struct kt_queue a, b;
	struct kevq *evq;
	struct rig r;
	uint64_t record;
	uint32_t index;
	int fd;

	(void)state;
	rig_open(&r);
	assert_int_equal(kt_channel(r.t, r.ctx, &fd), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	evq = r.ctx->evqs->next;
	assert_int_equal(kt_cq(r.t, r.ctx, 10, fd, &a), 0);
	assert_int_equal(kt_cq(r.t, r.ctx, 10, fd, &b), 0);
	for (int i = 0; i < 3; i++) {
		record = i == 1 ? b.user_handle : a.user_handle;
		assert_int_equal(write(evq->fifo.fd, &record, 8), 8);
	}
	sh_cq_get(&r.t->k.dev, 0, a.number)->comp_events = 2;
	sh_cq_get(&r.t->k.dev, 0, b.number)->comp_events = 1;
	assert_int_equal(read(fd, &record, 8), 8);
	assert_int_equal(record, a.user_handle);
	shut = fd;
	stop_inside(&r, &sh_evq(&r.t->k.dev, evq->index)->lock);
	shut = -1;
	destroy.handle = a.handle;
	assert_int_equal(kt_cmd(r.t, r.ctx, UV_DESTROY_CQ, &destroy, sizeof(destroy), sizeof(resp)),
			 0);
	assert_int_equal(resp.comp_events_reported, 1);
	assert_int_equal(read(fd, &record, 8), 8);
	assert_int_equal(record, b.user_handle);
	assert_int_equal(read(fd, &record, 8), -1);
	/* Nor does the stopped thread keep the channel from ending. */
	assert_int_equal(kt_destroy(r.t, r.ctx, UV_DESTROY_CQ, b.handle), 0);
	close(fd);
	index = evq->index;
	evq_client_closed(&r.t->k, evq->index, evq->generation);
	assert_null(r.ctx->evqs->next);
	assert_true(r.t->k.uverbs->evq_aside[index]);
	go_on(&r);
	assert_false(r.t->k.uverbs->evq_aside[index]);
	kt_queue_free(&a);
	kt_queue_free(&b);
	rig_close(&r);
}

/* ---- a thread that waits for one whose life can be ended (softhca/device/memory/life.h) ---- */

struct pair {
	uint64_t witness[2]; /* of the processes of the two threads; 0: not yet known */
	uint32_t slot[2];    /* likewise */
	struct lives lives;
};

/* A process of its own that the daemon knows, and that is inside, once it has its slot. */
static struct sh_dev enter_as(struct rig *r, struct pair *p, int i)
{
	struct sh_dev dev = r->t->k.dev;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sh_moves_forked();
	dev.witness = sh_witness(&err);
	__atomic_store_n(&p->witness[i], dev.witness, __ATOMIC_SEQ_CST);
	while (!(dev.proc = __atomic_load_n(&p->slot[i], __ATOMIC_SEQ_CST)))
		usleep(1000);
	if (!sh_enter(&dev))
		_exit(1);
	return dev;
}

static struct kproc *attach(struct rig *r, struct pair *p, int i, pid_t pid)
{
	struct kproc *proc;
	uint64_t witness;

	while (!(witness = __atomic_load_n(&p->witness[i], __ATOMIC_SEQ_CST)))
		usleep(1000);
	assert_int_equal(proc_attach(&r->t->k, pid, 0, 0, witness, &proc), 0);
	__atomic_store_n(&p->slot[i], proc->slot, __ATOMIC_SEQ_CST);
	return proc;
}

static void linger(struct sh_dev *dev, uint32_t a, uint32_t b, uint64_t at)
{
	struct pair *p = (void *)(uintptr_t)at;

	(void)dev, (void)a, (void)b;
	if (!first_life(&p->lives))
		return;
	for (;;)
		sh_rearm();
}

static void hold(struct rig *r, struct pair *p)
{
	struct sh_dev dev = enter_as(r, p, 0);

	show_door(&p->lives);
	sh_lock(&dev, &qp_of(r)->lock);
	sh_catch(&dev, 0, 0, (uintptr_t)p, linger);
	sh_leave(&dev);
	_exit(0);
}

/* It does not end the other one's life by itself, which it would do as soon as the daemon. */
static void wait_for_lock(struct rig *r, struct pair *p)
{
	struct sh_dev dev = enter_as(r, p, 1);
	struct sh_host_ops ops = *dev.ops;

	ops.divert = NULL;
	dev.ops = &ops;
	sh_lock(&dev, &qp_of(r)->lock);
	sh_unlock(&dev, &qp_of(r)->lock);
	sh_leave(&dev);
	_exit(0);
}

static bool waits(struct rig *r, uint32_t proc)
{
	const struct sh_exec *e = sh_at(&r->t->k.dev, SH_EXEC_OFF);

	for (uint32_t i = 0; i < SH_MAX_EXEC; i++)
		if (__atomic_load_n(&e[i].proc, __ATOMIC_SEQ_CST) == proc &&
		    __atomic_load_n(&e[i].waits, __ATOMIC_SEQ_CST) == SH_WAITS_LOCK)
			return true;
	return false;
}

/*
 * The look that ends the life of a stopped thread frees the lock for one that can go on. That one
 * is not waited for in vain.
 */
static void a_waiter_that_goes_on(void **state)
{
	struct pair *p =
		mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kproc *holder, *waiter;
	int status;
	struct rig r;
	pid_t other;
	bool can;

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	rig_open(&r);
	r.pid = fork();
	if (!r.pid)
		hold(&r, p);
	holder = attach(&r, p, 0, r.pid);
	can = stop_armed(r.pid, &p->lives);
	if (can) {
		other = fork();
		if (!other)
			wait_for_lock(&r, p);
		waiter = attach(&r, p, 1, other);
		while (!waits(&r, waiter->slot))
			usleep(1000);
		assert_false(one_runs(&r.t->k, UINT64_MAX));
		assert_false(waits_in_vain(&r.t->k, 0));
		leave(&r);
		assert_int_equal(p->lives.begun, 2);
		assert_int_equal(waitpid(other, &status, 0), other);
		assert_int_equal(status, 0);
		proc_detach(&r.t->k, waiter);
	}
	proc_detach(&r.t->k, holder);
	rig_close(&r);
	munmap(p, sizeof(*p));
	if (!can)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key),
		cmocka_unit_test(a_waiter_that_goes_on),
		cmocka_unit_test(a_process_that_goes_on),
		cmocka_unit_test(a_queue_pair),
		cmocka_unit_test(a_target_handle),
		cmocka_unit_test(a_completion_queue),
		cmocka_unit_test(a_shared_receive_queue),
		cmocka_unit_test(senders_of_xrc),
		cmocka_unit_test(a_change_of_state),
		cmocka_unit_test(events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
