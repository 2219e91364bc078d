/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A client of a daemon, with an object of each type, and other processes that are in device code,
 * with one of its locks.
 */
#ifndef TESTS_UNIT_SOFTHCA_INSIDE_RIG_H
#define TESTS_UNIT_SOFTHCA_INSIDE_RIG_H

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
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "libmlx4/src/mlx4-abi.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/instance.h"
#include "softhca/device/memory/tables.h"
#include "softhca/host/client.h"
#include "softhca/host/moves.h"
#include "softhca/host/process.h"
#include "softhca/host/witness.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"
#include "softhca_daemon.h"

enum what { W_NONE, W_QP, W_CQ, W_SRQ, W_EVENTS, W_QP_LEFT, W_QP_TAKEN };

/* Objects of one context, made over the wire. */
struct objects {
	uint32_t pd, mr, key, cq, cqn, srq, srqn, qp, qpn;
	char *mem;
};

static inline uint32_t make(struct client *c, uint32_t number, void *cmd, size_t len, size_t out)
{
	struct sh_command_reply r;
	int fd;

	assert_int_equal(client_command(c, number, cmd, len, out, &r, &fd), 0);
	for (uint32_t i = 0; i < r.nactions; i++)
		assert_ptr_not_equal(mmap((void *)(uintptr_t)r.action[i].uaddr, r.action[i].len,
					  PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
				     MAP_FAILED);
	return r.pin_check;
}

static inline void make_mr(struct client *c, struct objects *o)
{
	struct uv_reg_mr_resp resp;
	struct {
		struct sh_command m;
		struct sh_pin_result pin;
	} second;
	struct uv_reg_mr cmd = {
		.response = (uintptr_t)&resp,
		.start = (uintptr_t)o->mem,
		.length = 4096,
		.hca_va = (uintptr_t)o->mem,
		.pd_handle = o->pd,
		.access_flags = SH_LOCAL_WRITE,
	};
	struct sh_command_reply r;

	assert_int_equal(make(c, UV_REG_MR, &cmd, sizeof(cmd), sizeof(resp)), 1);
	second.m = (struct sh_command){
		.type = SH_MSG_COMMAND,
		.ctx = c->ctx,
		.tid = gettid(),
		.cap_ipc_lock = 1,
		.addr = (uintptr_t)&cmd,
		.len = sizeof(cmd),
	};
	second.pin = (struct sh_pin_result){.done = 1};
	assert_int_equal(
		sh_client_request(c->fd, &second, sizeof(second), &r, sizeof(r), NULL, NULL), 0);
	assert_int_equal(r.error, 0);
	o->mr = resp.mr_handle;
	o->key = resp.lkey;
}

static inline void make_objects(struct client *c, struct objects *o)
{
	struct {
		struct uv_alloc_pd_resp core;
		struct mlx4_abi_alloc_pd_resp drv;
	} pd_resp;
	struct uv_plain pd = {.response = (uintptr_t)&pd_resp};
	struct {
		struct uv_create_cq_resp core;
		struct mlx4_abi_create_cq_resp drv;
	} cq_resp;
	struct {
		struct uv_create_cq core;
		struct mlx4_abi_create_cq drv;
	} cq = {.core = {.response = (uintptr_t)&cq_resp, .cqe = 15, .comp_channel = -1}};
	struct {
		struct uv_create_srq_resp core;
		struct mlx4_abi_create_srq_resp drv;
	} srq_resp;
	struct {
		struct uv_create_srq core;
		struct mlx4_abi_create_srq drv;
	} srq = {.core = {.response = (uintptr_t)&srq_resp, .max_wr = 15, .max_sge = 1}};
	struct uv_create_qp_resp qp_resp;
	struct {
		struct uv_create_qp core;
		struct mlx4_abi_create_qp drv;
	} qp = {
		.core = {.response = (uintptr_t)&qp_resp,
			 .max_send_wr = 10,
			 .max_recv_wr = 10,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .qp_type = UV_QPT_RC},
		.drv = {.log_sq_bb_count = 5, .log_sq_stride = 6},
	};

	o->mem = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(o->mem, MAP_FAILED);
	make(c, UV_ALLOC_PD, &pd, sizeof(pd), sizeof(pd_resp));
	o->pd = pd_resp.core.pd_handle;
	make_mr(c, o);
	cq.drv.buf_addr = (uintptr_t)o->mem + 4096;
	cq.drv.db_addr = (uintptr_t)o->mem + 5 * 4096;
	make(c, UV_CREATE_CQ, &cq, sizeof(cq), sizeof(cq_resp));
	o->cq = cq_resp.core.cq_handle;
	o->cqn = cq_resp.drv.cqn;
	srq.core.pd_handle = o->pd;
	srq.drv.buf_addr = (uintptr_t)o->mem + 6 * 4096;
	srq.drv.db_addr = (uintptr_t)o->mem + 5 * 4096 + 64;
	make(c, UV_CREATE_SRQ, &srq, sizeof(srq), sizeof(srq_resp));
	o->srq = srq_resp.core.srq_handle;
	o->srqn = srq_resp.drv.srqn;
	qp.core.pd_handle = o->pd;
	qp.core.send_cq_handle = qp.core.recv_cq_handle = o->cq;
	qp.drv.buf_addr = (uintptr_t)o->mem + 8 * 4096;
	qp.drv.db_addr = (uintptr_t)o->mem + 5 * 4096 + 128;
	make(c, UV_CREATE_QP, &qp, sizeof(qp), sizeof(qp_resp));
	o->qp = qp_resp.qp_handle;
	o->qpn = qp_resp.qpn;
}

static inline pid_t begin(struct client *c, struct objects *o, int *async)
{
	pid_t pid = daemon_start();

	client_hello(c, 0);
	client_open(c);
	assert_int_equal(client_plain(c, UV_GET_CONTEXT, 16, async), 0);
	make_objects(c, o);
	return pid;
}

static inline void end(pid_t pid, struct client *c, struct objects *o, int async)
{
	munmap(o->mem, 16 * 4096);
	close(async);
	close(c->file);
	close(c->life);
	close(c->fd);
	daemon_stop(pid);
}

/* A process of its own attaches to the instance. Ends the process if it cannot. */
static inline void attach(struct sh_dev *dev)
{
	struct sh_hello_reply r;
	int memfd, fd = daemon_connect();
	void *base;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sh_client_hello(fd, 0, 0, &r, &memfd) || r.error)
		_exit(1);
	base = mmap(NULL, r.size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (base == MAP_FAILED || sh_dev_attach(dev, base, r.size) ||
	    sh_process_init(dev, daemon_dir))
		_exit(1);
	dev->proc = r.proc;
}

/*
 * A process of its own that is stopped in device code, with that lock. When it continues, it lets
 * go, leaves and ends. Before that, unless busy is -1, it reads a byte from there; while nothing is
 * there it sleeps, or tries again if the descriptor is non-blocking.
 */
static inline pid_t stop_inside(enum what what, const struct objects *o, uint32_t ctx, int busy)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct sh_dev dev = {0};
		struct sh_lock *lock = NULL;
		char byte;

		attach(&dev);
		if (what == W_QP || what == W_QP_LEFT || what == W_QP_TAKEN)
			lock = &sh_qp_get(&dev, 0, o->qpn)->lock;
		else if (what == W_CQ)
			lock = &sh_cq_get(&dev, 0, o->cqn)->lock;
		else if (what == W_SRQ)
			lock = &sh_srq_get(&dev, 0, o->srqn)->lock;
		else if (what == W_EVENTS)
			lock = &sh_evq(&dev, sh_ctx(&dev, ctx)->async_evq)->lock;
		if (!sh_enter(&dev))
			_exit(1);
		/* From the one before, which does not let it go. */
		if (what == W_QP_TAKEN)
			__atomic_store_n(&lock->owner, sh_self_word(&dev), __ATOMIC_SEQ_CST);
		else if (lock)
			sh_lock(&dev, lock);
		raise(SIGSTOP);
		while (busy >= 0 && read(busy, &byte, 1) != 1)
			if (errno != EAGAIN)
				_exit(1);
		if (lock && what != W_QP_LEFT)
			sh_unlock(&dev, lock);
		sh_leave(&dev);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static inline void go_on(pid_t pid)
{
	int status;

	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static inline json_int_t late_commands(void)
{
	json_t *j = daemon_show();
	json_int_t n = json_integer_value(json_object_get(json_object_get(j, "daemon"), "late"));

	json_decref(j);
	return n;
}

#endif
