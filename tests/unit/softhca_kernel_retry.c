// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests that find a process in device code, which runs or is stopped there: the daemon serves
 * other clients meanwhile, and the request succeeds in the end. Waits are bounded by alarm().
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
#include "softhca/kernel/freezer.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"
#include "softhca_daemon.h"

enum what { W_NONE, W_QP, W_CQ, W_SRQ, W_EVENTS, W_QP_LEFT, W_QP_TAKEN };

/* Objects of one context, made over the wire. */
struct objects {
	uint32_t pd, mr, key, cq, cqn, srq, srqn, qp, qpn;
	char *mem;
};

static uint32_t make(struct client *c, uint32_t number, void *cmd, size_t len, size_t out)
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

static void make_mr(struct client *c, struct objects *o)
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

static void make_objects(struct client *c, struct objects *o)
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

static pid_t begin(struct client *c, struct objects *o, int *async)
{
	pid_t pid = daemon_start();

	client_hello(c, 0);
	client_open(c);
	assert_int_equal(client_plain(c, UV_GET_CONTEXT, 16, async), 0);
	make_objects(c, o);
	return pid;
}

static void end(pid_t pid, struct client *c, struct objects *o, int async)
{
	munmap(o->mem, 16 * 4096);
	close(async);
	close(c->file);
	close(c->life);
	close(c->fd);
	daemon_stop(pid);
}

/* A process of its own attaches to the instance. Ends the process if it cannot. */
static void attach(struct sh_dev *dev)
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
 * A process of its own that is in device code, with that lock, and stopped. When it continues it lets go, leaves and ends; but
 * first, unless busy is -1, it reads a byte from there. If nothing is there yet, it sleeps, or tries again if the
 * descriptor says so.
 */
static pid_t stop_inside(enum what what, const struct objects *o, uint32_t ctx, int busy)
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

static void go_on(pid_t pid)
{
	int status;

	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/*
 * The command is sent; another client, asking later, is answered meanwhile, for a deregistration before it, which waits the
 * longest; and then it succeeds, though the process has not moved.
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

static json_int_t late_commands(void)
{
	json_t *j = daemon_show();
	json_int_t n = json_integer_value(json_object_get(json_object_get(j, "daemon"), "late"));

	json_decref(j);
	return n;
}

/*
 * The daemon waits for a thread that runs, or sleeps as one does whose page comes from a file server (for longer than for one
 * that stands still): what the thread copies must not come after the answer.
 */
static void copies_inside(int how)
{
	struct sh_command_reply r;
	struct uv_handle mr = {0};
	struct sh_command m;
	struct objects o;
	struct client c;
	int async, go[2], status;
	struct pollfd p;
	pid_t pid, other;
	char byte = 0;

	pid = begin(&c, &o, &async);
	assert_int_equal(pipe2(go, how), 0);
	other = stop_inside(W_NONE, &o, c.ctx, go[0]);
	kill(other, SIGCONT);
	assert_int_equal(waitpid(other, &status, WCONTINUED), other);
	mr.handle = o.mr;
	mr.hdr = (struct uv_hdr){.command = UV_DEREG_MR, .in_words = sizeof(mr) / 4};
	m = (struct sh_command){
		.type = SH_MSG_COMMAND,
		.ctx = c.ctx,
		.tid = gettid(),
		.cap_ipc_lock = 1,
		.addr = (uintptr_t)&mr,
		.len = sizeof(mr),
	};
	assert_int_equal(send(c.fd, &m, sizeof(m), MSG_NOSIGNAL), sizeof(m));
	p = (struct pollfd){.fd = c.fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 3000), 0);
	assert_int_equal(daemon_processes(), 2);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(recv(c.fd, &r, sizeof(r), 0), SH_COMMAND_REPLY(0));
	assert_int_equal(r.error, 0);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
	close(go[0]);
	close(go[1]);
	end(pid, &c, &o, async);
}

static void busy_inside(void **state)
{
	(void)state;
	copies_inside(O_NONBLOCK);
}

static void asleep_inside(void **state)
{
	(void)state;
	copies_inside(0);
}

/* The same of a thread that has come after the command, and taken the lock that the command wants. */
static void younger_inside(void **state)
{
	uint32_t resp[2];
	struct uv_object qp = {.response = (uintptr_t)resp,
			       .hdr = {.command = UV_DESTROY_QP,
				       .in_words = sizeof(qp) / 4,
				       .out_words = sizeof(resp) / 4}};
	struct sh_command_reply r;
	struct sh_command m;
	struct objects o;
	struct client c;
	int async, go[2], status;
	struct pollfd p;
	pid_t pid, older, younger;
	char byte = 0;

	(void)state;
	pid = begin(&c, &o, &async);
	assert_int_equal(pipe2(go, O_NONBLOCK), 0);
	older = stop_inside(W_QP_LEFT, &o, c.ctx, -1);
	qp.handle = o.qp;
	m = (struct sh_command){
		.type = SH_MSG_COMMAND,
		.ctx = c.ctx,
		.tid = gettid(),
		.cap_ipc_lock = 1,
		.addr = (uintptr_t)&qp,
		.len = sizeof(qp),
	};
	assert_int_equal(send(c.fd, &m, sizeof(m), MSG_NOSIGNAL), sizeof(m));
	assert_int_equal(daemon_processes(), 2);
	younger = stop_inside(W_QP_TAKEN, &o, c.ctx, go[0]);
	kill(younger, SIGCONT);
	assert_int_equal(waitpid(younger, &status, WCONTINUED), younger);
	go_on(older);
	p = (struct pollfd){.fd = c.fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 3000), 0);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(recv(c.fd, &r, sizeof(r), 0), SH_COMMAND_REPLY(0));
	assert_int_equal(r.error, 0);
	assert_int_equal(waitpid(younger, &status, 0), younger);
	assert_int_equal(status, 0);
	close(go[0]);
	close(go[1]);
	end(pid, &c, &o, async);
}

/* Writes the file that says of the cgroup of this process whether it is frozen, below a root of the test's own. */
static void write_state(const char *root, const char *cgroup, const char *file, const char *text)
{
	char path[8192];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, cgroup);
	for (char *at = path + strlen(root); at && *at; at = strchr(at + 1, '/')) {
		char kept = *at;

		*at = 0;
		(void)mkdir(path, 0700);
		*at = kept;
	}
	(void)mkdir(path, 0700);
	strcat(path, "/");
	strcat(path, file);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* False: the machine has no cgroups. */
static bool make_frozen(const char *root)
{
	char line[4096];
	bool any = false;
	FILE *f = fopen("/proc/self/cgroup", "r");

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "0::", 3))
			continue;
		write_state(root, line + 3, "cgroup.events", "populated 1\nfrozen 1\n");
		any = true;
	}
	if (f)
		fclose(f);
	return any;
}

/*
 * A cgroup's freezer stops a process so that it looks like one that sleeps. Such a process holds up commands no longer than
 * one that a signal has stopped.
 */
static void frozen_inside(void **state)
{
	char root[] = "/tmp/softhca-retry-XXXXXX", command[64];
	const char *usual = freezer_root;
	uint32_t resp[2];
	struct uv_object qp = {.response = (uintptr_t)resp}, cq = qp;
	struct sh_command_reply r;
	struct objects o;
	struct client c;
	int fd, async, go[2], status;
	pid_t pid, other;
	char byte = 0;

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(command, sizeof(command), "rm -rf %s", root);
	if (!make_frozen(root)) {
		assert_int_equal(system(command), 0);
		skip();
	}
	freezer_root = root;
	pid = begin(&c, &o, &async);
	qp.handle = o.qp;
	cq.handle = o.cq;
	assert_int_equal(pipe(go), 0);
	other = stop_inside(W_CQ, &o, c.ctx, go[0]);
	kill(other, SIGCONT);
	assert_int_equal(waitpid(other, &status, WCONTINUED), other);
	assert_int_equal(client_command(&c, UV_DESTROY_QP, &qp, sizeof(qp), sizeof(resp), &r, &fd),
			 0);
	assert_int_equal(client_command(&c, UV_DESTROY_CQ, &cq, sizeof(cq), sizeof(resp), &r, &fd),
			 0);
	assert_int_equal(late_commands(), 0);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
	close(go[0]);
	close(go[1]);
	end(pid, &c, &o, async);
	freezer_root = usual;
	assert_int_equal(system(command), 0);
}

/* What a stopped process is in the midst of is taken away all the same, and is given back when it has left. */
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

/* A process of its own that is in device code with the lock of the QP, and waits for that of the SRQ. */
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
	uint64_t cs, door; /* where its kernel looks, and what is there when it is armed */
	uint32_t lives, go, late;
	uint32_t reached; /* the process that it copies into */
};

/* In its first life it stores when it is told to go on; in its next one it finds nothing to do. */
static void linger(struct sh_dev *dev, uint32_t a, uint32_t b, uint64_t at)
{
	struct lingering *l = (void *)(uintptr_t)at;
	struct sh_reach r;

	(void)dev, (void)a, (void)b;
	if (__atomic_fetch_add(&l->lives, 1, __ATOMIC_SEQ_CST))
		return;
	sh_reach_begin(&dev->inst->moves, &r, l->reached, 0);
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
	if (!sh_self.catches)
		_exit(77);
	if (lock)
		sh_lock(&dev, &sh_qp_get(&dev, 0, o->qpn)->lock);
	__atomic_store_n(&l->cs, (uintptr_t)sh_self.cs, __ATOMIC_SEQ_CST);
	__atomic_store_n(&l->door, (uintptr_t)sh_self.catches, __ATOMIC_SEQ_CST);
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
	word = sh_move_begin(&inst->moves);
	if (word >= 0)
		sh_move_end(&inst->moves, word);
	munmap(inst, SH_HCA_OFF);
	close(memfd);
	close(fd);
	return word >= 0;
}

static bool is_armed(pid_t pid, const struct lingering *l)
{
	uint64_t says = 0;
	struct iovec local = {&says, sizeof(says)},
		     remote = {(void *)(uintptr_t)l->cs, sizeof(says)};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(says) && says == l->door;
}

/* Stopped in the loop, where nothing but a switch right before leaves it disarmed. false: it cannot be thrown here. */
static bool stop_armed(pid_t pid, const struct lingering *l)
{
	int status;

	while (!__atomic_load_n(&l->lives, __ATOMIC_SEQ_CST)) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 77);
			return false;
		}
		usleep(1000);
	}
	for (;;) {
		assert_int_equal(kill(pid, SIGSTOP), 0);
		assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
		assert_true(WIFSTOPPED(status));
		if (is_armed(pid, l))
			return true;
		kill(pid, SIGCONT);
		assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
		usleep(1000);
	}
}

/*
 * The daemon answers that memory is deregistered, or that a QP is gone, while a process is stopped in device code, without a
 * lock and with the QP's. No other client waits for that process. When it goes on it executes nothing of what it was about to
 * do, so it stores nothing after the answer.
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
		can = stop_armed(other, l);
		if (can) {
			if (lock)
				assert_int_equal(client_command(&c, UV_DESTROY_QP, &qp, sizeof(qp),
								sizeof(resp), &r, &fd),
						 0);
			else
				assert_int_equal(client_command(&c, UV_DEREG_MR, &mr, sizeof(mr), 0,
								&r, &fd),
						 0);
			/* Nor does this process, when it exchanges pages, for what the thread had begun to copy here. */
			assert_true(can_exchange());
			__atomic_store_n(&l->go, 1, __ATOMIC_SEQ_CST);
			go_on(other);
			assert_int_equal(l->late, 0);
			assert_int_equal(l->lives, 2);
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
		cmocka_unit_test(stopped_inside), cmocka_unit_test(stopped_in_a_row),
		cmocka_unit_test(nothing_late),	  cmocka_unit_test(frozen_inside),
		cmocka_unit_test(busy_inside),	  cmocka_unit_test(younger_inside),
		cmocka_unit_test(asleep_inside),
	};

	return cmocka_run_group_tests(tests, daemon_make_base, daemon_remove_base);
}
