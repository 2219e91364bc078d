// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests that find a process stopped in device code: the daemon serves other clients meanwhile,
 * and the request succeeds in the end. Waits are bounded by alarm().
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca_armed.h"
#include "softhca_inside_rig.h"

/*
 * The command is sent; another client, asking later, is answered meanwhile, for a deregistration
 * before it, which waits the longest; and then it succeeds, though the process has not moved.
 */
static void succeeds_meanwhile(struct client *c, uint32_t number, void *cmd, size_t len, size_t out)
{
	struct sh_command m = {
		.type = SH_MSG_COMMAND,
		.ctx = c->ctx,
		.tid = gettid(),
		.cap_ipc_lock = 1,
		.addr = (uintptr_t)cmd,
		.len = len,
	};
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	struct sh_command_reply r;

	*(struct uv_hdr *)cmd =
		(struct uv_hdr){.command = number, .in_words = len / 4, .out_words = out / 4};
	assert_int_equal(send(c->fd, &m, sizeof(m), MSG_NOSIGNAL), sizeof(m));
	assert_int_equal(daemon_processes(), 2);
	if (number == UV_DEREG_MR)
		assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(recv(c->fd, &r, sizeof(r), 0), SH_COMMAND_REPLY(0));
	assert_int_equal(r.error, 0);
	/* Nor does the caller look at the QP, whose lock it would wait for. */
	assert_int_equal(r.nrings, 0);
}

static void take_away(struct client *c, uint32_t number, uint32_t handle)
{
	uint32_t resp[2] = {77, 77};
	struct uv_object cmd = {.response = (uintptr_t)resp, .handle = handle};

	succeeds_meanwhile(c, number, &cmd, sizeof(cmd), sizeof(resp));
	assert_int_equal(resp[0], 0);
}

static void set_state(struct client *c, uint32_t qp, uint32_t state, bool held)
{
	struct uv_modify_qp cmd = {.qp_handle = qp,
				   .attr = {.attr_mask = UV_QP_STATE, .qp_state = state}};
	struct sh_command_reply r;
	int fd;

	if (held)
		succeeds_meanwhile(c, UV_MODIFY_QP, &cmd, sizeof(cmd), 0);
	else
		assert_int_equal(client_command(c, UV_MODIFY_QP, &cmd, sizeof(cmd), 0, &r, &fd), 0);
}

/*
 * What a stopped process is in the midst of is taken away all the same, and is given back when it
 * has left.
 */
static void stopped_inside(void **state)
{
	static const enum what held[] = {W_NONE, W_QP, W_QP, W_QP, W_CQ, W_SRQ, W_EVENTS};
	struct sh_command_reply r;
	struct objects o;
	struct client c;
	pid_t pid, other;
	int fd, async;

	(void)state;
	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
		uint32_t resp[2];
		struct uv_object qp = {.response = (uintptr_t)resp}, cq = qp, srq = qp;
		struct uv_handle mr = {0}, pd = {0};

		pid = begin(&c, &o, &async);
		qp.handle = o.qp;
		cq.handle = o.cq;
		srq.handle = o.srq;
		mr.handle = o.mr;
		pd.handle = o.pd;
		other = stop_inside(held[i], &o, c.ctx, -1);
		if (i == 0) {
			succeeds_meanwhile(&c, UV_DEREG_MR, &mr, sizeof(mr), 0);
			mr.handle = UINT32_MAX;
		} else if (i == 1) {
			take_away(&c, UV_DESTROY_QP, o.qp);
			qp.handle = UINT32_MAX;
		} else if (i == 2) {
			set_state(&c, o.qp, SH_QPS_ERR, true);
			set_state(&c, o.qp, SH_QPS_RESET, true);
			take_away(&c, UV_DESTROY_QP, o.qp);
			qp.handle = UINT32_MAX;
		} else if (i == 3) {
			set_state(&c, o.qp, SH_QPS_RESET, true);
		} else if (i == 4) {
			/* Its QP first, which asks for no lock of the CQ. */
			assert_int_equal(client_command(&c, UV_DESTROY_QP, &qp, sizeof(qp),
							sizeof(resp), &r, &fd),
					 0);
			take_away(&c, UV_DESTROY_CQ, o.cq);
			qp.handle = cq.handle = UINT32_MAX;
		} else if (i == 5) {
			take_away(&c, UV_DESTROY_SRQ, o.srq);
			srq.handle = UINT32_MAX;
		} else {
			take_away(&c, UV_DESTROY_QP, o.qp);
			qp.handle = UINT32_MAX;
		}
		/*
		 * The daemon waits for a process to go on only where that process may still store
		 * into memory that the program has back, and once for each process. What is left of
		 * a CQ are CQEs.
		 */
		assert_int_equal(late_commands(), held[i] != W_CQ);
		/* Nothing of it is in the way of what is left, or of what comes. */
		if (i == 0)
			make_mr(&c, &o);
		go_on(other);
		if (mr.handle == UINT32_MAX)
			mr.handle = o.mr;
		if (qp.handle != UINT32_MAX)
			assert_int_equal(client_command(&c, UV_DESTROY_QP, &qp, sizeof(qp),
							sizeof(resp), &r, &fd),
					 0);
		if (srq.handle != UINT32_MAX)
			assert_int_equal(client_command(&c, UV_DESTROY_SRQ, &srq, sizeof(srq),
							sizeof(resp), &r, &fd),
					 0);
		if (cq.handle != UINT32_MAX)
			assert_int_equal(client_command(&c, UV_DESTROY_CQ, &cq, sizeof(cq),
							sizeof(resp), &r, &fd),
					 0);
		assert_int_equal(client_command(&c, UV_DEREG_MR, &mr, sizeof(mr), 0, &r, &fd), 0);
		assert_int_equal(client_command(&c, UV_DEALLOC_PD, &pd, sizeof(pd), 0, &r, &fd), 0);
		end(pid, &c, &o, async);
	}
}

/*
 * A process of its own that is in device code with the lock of the QP, and waits for that of the
 * SRQ.
 */
static pid_t wait_inside(const struct objects *o)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		struct sh_lock *first, *second;
		struct sh_dev dev = {0};

		attach(&dev);
		first = &sh_qp_get(&dev, 0, o->qpn)->lock;
		second = &sh_srq_get(&dev, 0, o->srqn)->lock;
		if (!sh_enter(&dev))
			_exit(1);
		sh_lock(&dev, first);
		close(ready[0]);
		close(ready[1]);
		sh_lock(&dev, second);
		sh_unlock(&dev, second);
		sh_unlock(&dev, first);
		sh_leave(&dev);
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	return pid;
}

/* A process that is stopped holds up another one, and neither holds up the commands of a third. */
static void stopped_in_a_row(void **state)
{
	uint32_t resp[2];
	struct uv_object qp = {.response = (uintptr_t)resp};
	struct sh_command_reply r;
	struct objects o;
	struct client c;
	pid_t pid, holds, waits;
	int fd, async, status;

	(void)state;
	pid = begin(&c, &o, &async);
	qp.handle = o.qp;
	holds = stop_inside(W_SRQ, &o, c.ctx, -1);
	waits = wait_inside(&o);
	set_state(&c, o.qp, SH_QPS_ERR, false);
	assert_int_equal(client_command(&c, UV_DESTROY_QP, &qp, sizeof(qp), sizeof(resp), &r, &fd),
			 0);
	/* The one that waits may have a message to store when it goes on. */
	assert_int_equal(late_commands(), 1);
	go_on(holds);
	assert_int_equal(waitpid(waits, &status, 0), waits);
	assert_int_equal(status, 0);
	end(pid, &c, &o, async);
}

/* ---- a thread that can be thrown (softhca/device/memory/life.h) ---- */

/* Shared with the process that is stopped. */
struct lingering {
	struct lives lives;
	uint32_t go, late;
	uint32_t reached; /* the process that it copies into */
};

/* In its first life it stores when it is told to go on; in its next one it finds nothing to do. */
static void linger(struct sh_dev *dev, uint32_t a, uint32_t b, uint64_t at)
{
	struct lingering *l = (void *)(uintptr_t)at;
	struct sh_reach r;

	(void)dev, (void)a, (void)b;
	if (!first_life(&l->lives))
		return;
	(void)sh_reach_begin(&dev->inst->moves, &r, &(struct sh_reached){.pid = l->reached},
			     &(struct sh_reached){0});
	while (!__atomic_load_n(&l->go, __ATOMIC_SEQ_CST))
		sh_rearm();
	__atomic_store_n(&l->late, 1, __ATOMIC_SEQ_CST);
}

static void be_inside(struct lingering *l, const struct objects *o, bool lock)
{
	struct sh_dev dev = {0};
	int err;

	sh_moves_forked();
	attach(&dev);
	dev.witness = sh_witness(&err);
	if (!sh_enter(&dev))
		_exit(1);
	show_door(&l->lives);
	if (lock)
		sh_lock(&dev, &sh_qp_get(&dev, 0, o->qpn)->lock);
	sh_catch(&dev, 0, 0, (uintptr_t)l, linger);
	sh_leave(&dev);
	_exit(0);
}

static bool can_exchange(void)
{
	struct sh_hello_reply r;
	struct sh_instance *inst;
	int memfd, word, fd = daemon_connect();

	assert_int_equal(sh_client_hello(fd, 0, 0, &r, &memfd), 0);
	assert_int_equal(r.error, 0);
	inst = mmap(NULL, SH_HCA_OFF, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	assert_ptr_not_equal(inst, MAP_FAILED);
	word = sh_move_begin(&inst->moves, 0, UINT64_MAX);
	if (word >= 0)
		sh_move_end(&inst->moves, word);
	munmap(inst, SH_HCA_OFF);
	close(memfd);
	close(fd);
	return word >= 0;
}

/*
 * The daemon answers that memory is deregistered, or that a QP is gone, while a process is stopped
 * in device code, without a lock and with the QP's. No other client waits for that process. When it
 * goes on it executes nothing of what it was about to do, so it stores nothing after the answer.
 */
static void nothing_late(void **state)
{
	struct lingering *l =
		mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool can = true;

	(void)state;
	assert_ptr_not_equal(l, MAP_FAILED);
	for (int lock = 0; lock < 2 && can; lock++) {
		struct sh_command_reply r;
		struct uv_handle mr = {0};
		uint32_t resp[2];
		struct uv_object qp = {.response = (uintptr_t)resp};
		struct objects o;
		struct client c;
		pid_t pid, other;
		int fd, async;

		memset(l, 0, sizeof(*l));
		l->reached = (uint32_t)getpid();
		pid = begin(&c, &o, &async);
		mr.handle = o.mr;
		qp.handle = o.qp;
		other = fork();
		if (!other)
			be_inside(l, &o, lock);
		can = stop_armed(other, &l->lives);
		if (can) {
			if (lock)
				assert_int_equal(client_command(&c, UV_DESTROY_QP, &qp, sizeof(qp),
								sizeof(resp), &r, &fd),
						 0);
			else
				assert_int_equal(client_command(&c, UV_DEREG_MR, &mr, sizeof(mr), 0,
								&r, &fd),
						 0);
			/*
			 * Nor does this process, when it exchanges pages, for what the thread had
			 * begun to copy here.
			 */
			assert_true(can_exchange());
			__atomic_store_n(&l->go, 1, __ATOMIC_SEQ_CST);
			go_on(other);
			assert_int_equal(l->late, 0);
			assert_int_equal(l->lives.begun, 2);
		}
		end(pid, &c, &o, async);
	}
	munmap(l, sizeof(*l));
	if (!can)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped_inside),
		cmocka_unit_test(stopped_in_a_row),
		cmocka_unit_test(nothing_late),
	};

	return cmocka_run_group_tests(tests, daemon_make_base, daemon_remove_base);
}
