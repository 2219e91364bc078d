// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The daemon itself, as a process: what it says to clients that do not follow the protocol, what is left of clients that
 * die, and that it leaves nothing behind. Waits are bounded by alarm().
 */
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
#include <sys/file.h>
#include <sys/mman.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

#include "libmlx4/src/mlx4-abi.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/tables.h"
#include "softhca/kernel/kernel.h"
#include "softhca/kernel/uverbs/command.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"
#include "softhca/host/client.h"
#include "softhca/host/process.h"
#include "softhca/host/witness.h"

static char base[] = "/tmp/softhca-server.XXXXXX";
static char dir[64];

/* ---- the daemon ---- */

static bool old_kernel;	/* the next daemon has a kernel without close_range() */

/* Has the kernel answer close_range() as Linux before 5.9 does. */
static int forget_close_range(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static pid_t launch(bool leased, struct sh_status *st)
{
	struct sh_kernel_config cfg = {
		.dir = dir, .leased = leased,
		.device = {.hosts = 2, .hcas_per_host = 1, .ports = 1, .cqe_size = 32, .driver_abi = 3, .face = SH_FACE_OFED,
			   .pool_size = 64 << 20},
	};
	int ready[2];
	pid_t pid;

	alarm(60);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid && old_kernel && forget_close_range())
		_exit(77);
	if (!pid)
		_exit(prctl(PR_SET_PDEATHSIG, SIGKILL) ? 1 : sh_kernel_main(&cfg, ready[1]));
	close(ready[1]);
	assert_int_equal(read(ready[0], st, sizeof(*st)), sizeof(*st));
	close(ready[0]);
	return pid;
}

static pid_t start(void)
{
	struct sh_status st;
	pid_t pid = launch(false, &st);

	assert_int_equal(st.error, 0);
	return pid;
}

static int connect_raw(void)
{
	int fd = sh_client_connect(dir);

	assert_true(fd >= 0);
	return fd;
}

static int hello(bool shim, uint32_t again, struct sh_hello_reply *r)
{
	int fd = connect_raw(), memfd = -1;

	assert_int_equal(sh_client_hello(fd, 0, again, r, shim ? &memfd : NULL), 0);
	assert_int_equal(r->error, 0);
	if (memfd >= 0)
		close(memfd);
	return fd;
}

static void stop(pid_t pid)
{
	struct sh_stop m = {.type = SH_MSG_STOP};
	struct sh_hello_reply r;
	struct sh_status st;
	struct stat s;
	int fd = hello(false, 0, &r), status;

	assert_int_equal(sh_client_request(fd, &m, sizeof(m), &st, sizeof(st), NULL, NULL), 0);
	assert_int_equal(st.error, 0);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(stat(dir, &s), -1);
}

static json_t *show(void)
{
	struct sh_show m = {.type = SH_MSG_SHOW};
	struct sh_hello_reply r;
	struct sh_status st;
	unsigned int nfds;
	int fds[SH_CLIENT_FDS], fd = hello(false, 0, &r);
	json_t *j;

	assert_int_equal(sh_client_request(fd, &m, sizeof(m), &st, sizeof(st), fds, &nfds), 0);
	assert_int_equal(st.error, 0);
	assert_int_equal(nfds, 1);
	close(fd);
	j = json_loadfd(fds[0], 0, NULL);
	close(fds[0]);
	assert_non_null(j);
	return j;
}

static json_t *hca_of(json_t *j)
{
	return json_array_get(json_object_get(json_array_get(json_object_get(j, "hosts"), 0), "hcas"), 0);
}

static size_t count(const char *what)
{
	json_t *j = show();
	size_t n = json_array_size(json_object_get(hca_of(j), what));

	json_decref(j);
	return n;
}

static size_t processes(void)
{
	json_t *j = show();
	size_t n = json_array_size(json_object_get(j, "processes"));

	json_decref(j);
	return n;
}

/* ---- a client ---- */

struct client {
	int fd, file, life;
	uint32_t slot, ctx, generation;
};

static void client_hello(struct client *c, uint32_t again)
{
	struct sh_hello_reply r;

	c->fd = hello(true, again, &r);
	c->slot = r.proc;
}

static void client_open(struct client *c)
{
	struct sh_open m = {.type = SH_MSG_OPEN};
	struct sh_opened done = {.type = SH_MSG_OPENED};
	struct sh_open_reply r;
	struct sh_status st;
	char path[128];

	assert_int_equal(sh_client_request(c->fd, &m, sizeof(m), &r, sizeof(r), NULL, NULL), 0);
	assert_int_equal(r.error, 0);
	c->ctx = done.ctx = r.ctx;
	c->generation = r.generation;
	snprintf(path, sizeof(path), "%s/files/c%u.%u", dir, r.ctx, r.generation);
	c->file = open(path, O_RDWR | O_CLOEXEC);
	assert_true(c->file >= 0);
	snprintf(path, sizeof(path), "%s/files/l%u.%u", dir, r.ctx, r.generation);
	c->life = open(path, O_RDWR | O_CLOEXEC);
	assert_true(c->life >= 0);
	assert_int_equal(sh_client_request(c->fd, &done, sizeof(done), &st, sizeof(st), NULL, NULL), 0);
	assert_int_equal(st.error, 0);
}

static int command(struct client *c, uint32_t number, void *buf, size_t len, size_t out, struct sh_command_reply *r, int *fd)
{
	struct sh_command m = {.type = SH_MSG_COMMAND, .ctx = c->ctx, .tid = gettid(), .cap_ipc_lock = 1, .addr = (uintptr_t)buf, .len = len};
	unsigned int nfds;
	int fds[SH_CLIENT_FDS];

	*(struct uv_hdr *)buf = (struct uv_hdr){.command = number, .in_words = len / 4, .out_words = out / 4};
	assert_int_equal(sh_client_request(c->fd, &m, sizeof(m), r, sizeof(*r), fds, &nfds), 0);
	assert_int_equal(nfds, r->nfds);
	if (nfds)
		*fd = fds[0];
	return r->error;
}

static int plain(struct client *c, uint32_t number, size_t out, int *fd)
{
	uint32_t resp[8];
	struct uv_plain cmd = {.response = (uintptr_t)resp};
	struct sh_command_reply r;

	return command(c, number, &cmd, sizeof(cmd), out, &r, fd);
}

/* ---- tests ---- */

static void life(void **state)
{
	struct sh_status st;
	struct stat s;
	pid_t first, second;
	int status;

	(void)state;
	first = start();
	assert_int_equal(stat(dir, &s), 0);
	assert_int_equal(s.st_mode & 0777, 0700);
	/* Its name is taken, with words about what to do. */
	second = launch(false, &st);
	assert_int_equal(st.error, EEXIST);
	assert_non_null(strstr(st.text, "softhca stop instance"));
	assert_int_equal(waitpid(second, &status, 0), second);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	/* Killed, it leaves its directory, and the next one takes that over. */
	kill(first, SIGKILL);
	waitpid(first, &status, 0);
	assert_int_equal(stat(dir, &s), 0);
	stop(start());
	/* A signal is as good as a message. */
	first = start();
	kill(first, SIGTERM);
	assert_int_equal(waitpid(first, &status, 0), first);
	assert_int_equal(status, 0);
	assert_int_equal(stat(dir, &s), -1);
}

/* A descriptor that the daemon inherits would keep a pipe or a terminal of its starter's open. */
static void keeps_nothing(void **state)
{
	int low[2], high, byte;
	struct sh_status st;
	pid_t pid;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe(low), 0);
		high = fcntl(low[1], F_DUPFD, 700);
		assert_true(high >= 700);
		old_kernel = i;
		pid = launch(false, &st);
		old_kernel = false;
		assert_int_equal(st.error, 0);
		close(low[1]);
		close(high);
		/* It has told that it is ready, on the descriptor that it kept, and has closed the rest. */
		assert_int_equal(fcntl(low[0], F_SETFL, O_NONBLOCK), 0);
		assert_int_equal(read(low[0], &byte, 1), 0);
		close(low[0]);
		stop(pid);
	}
}

/* The connection of a client that talks nonsense is closed; nobody else notices. */
static void refuse(const void *msg, size_t len, bool greet)
{
	struct sh_hello_reply r;
	int fd = greet ? hello(true, 0, &r) : connect_raw();
	char buf[64];

	assert_int_equal(send(fd, msg, len, MSG_NOSIGNAL), len);
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), 0);
	close(fd);
}

static void nonsense(void **state)
{
	static char big[SH_MSG_MAX + 4096];
	struct sh_open open_msg = {.type = SH_MSG_OPEN};
	struct {
		struct sh_command cmd;
		uint32_t more;
	} longer = {.cmd = {.type = SH_MSG_COMMAND}};
	struct sh_command cmd = {.type = SH_MSG_COMMAND};
	struct sh_hello h = {.type = SH_MSG_HELLO, .version = SH_WIRE_VERSION, .client = 1};
	struct sh_hello_reply r;
	struct sh_command_reply reply;
	struct client c;
	uint32_t type;
	pid_t pid = start();
	int fd, size = sizeof(big) * 2;

	(void)state;
	for (type = 0; type < 12; type++) {
		refuse(&type, sizeof(type), false);
		refuse(&type, sizeof(type), true);
	}
	refuse("x", 1, false);
	refuse("x", 1, true);
	refuse(&open_msg, sizeof(open_msg), false);
	refuse(&open_msg, sizeof(open_msg) - 4, true);
	refuse(&longer, sizeof(cmd) + 4, true);
	fd = hello(true, 0, &r);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	assert_int_equal(send(fd, big, sizeof(big), MSG_NOSIGNAL), sizeof(big));
	assert_int_equal(recv(fd, big, sizeof(big), 0), 0);
	close(fd);
	/* Said politely, it is answered politely. */
	fd = connect_raw();
	h.witness = (uintptr_t)&type;
	assert_int_equal(sh_client_request(fd, &h, sizeof(h), &r, sizeof(r), NULL, NULL), 0);
	assert_int_equal(r.error, EPERM);
	h.witness = 8;
	assert_int_equal(sh_client_request(fd, &h, sizeof(h), &r, sizeof(r), NULL, NULL), 0);
	assert_int_equal(r.error, EPERM);
	h.host = 2;
	assert_int_equal(sh_client_request(fd, &h, sizeof(h), &r, sizeof(r), NULL, NULL), 0);
	assert_int_equal(r.error, EINVAL);
	h.host = 0;
	h.version++;
	assert_int_equal(sh_client_request(fd, &h, sizeof(h), &r, sizeof(r), NULL, NULL), 0);
	assert_int_equal(r.error, EPROTO);
	close(fd);
	/* A device that is not there, a context that is nobody's. */
	client_hello(&c, 0);
	open_msg.device = 1;
	{
		struct sh_open_reply o;

		assert_int_equal(sh_client_request(c.fd, &open_msg, sizeof(open_msg), &o, sizeof(o), NULL, NULL), 0);
		assert_int_equal(o.error, ENOENT);
	}
	c.ctx = 999;
	cmd.tid = gettid();
	assert_int_equal(sh_client_request(c.fd, &cmd, sizeof(cmd), &reply, sizeof(reply), NULL, NULL), 0);
	assert_int_equal(reply.error, ENODEV);
	close(c.fd);
	assert_int_equal(count("contexts"), 0);
	stop(pid);
}

static void wait_for(size_t (*now)(void), size_t n)
{
	while (now() != n)
		usleep(1000);
}

static size_t contexts(void)
{
	return count("contexts");
}

static void death(void **state)
{
	pid_t pid = start(), child;
	struct client c;
	int status, fd, go[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(go), 0);
	child = fork();
	if (!child) {
		client_hello(&c, 0);
		client_open(&c);
		if (plain(&c, UV_GET_CONTEXT, 16, &fd) || plain(&c, UV_ALLOC_PD, 12, &fd) ||
		    plain(&c, UV_CREATE_COMP_CHANNEL, 4, &fd))
			_exit(1);
		if (write(go[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(go[0], &byte, 1), 1);
	assert_int_equal(count("contexts"), 1);
	assert_int_equal(count("pds"), 1);
	/* Stopped, it holds nobody up. */
	kill(child, SIGSTOP);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	client_hello(&c, 0);
	client_open(&c);
	assert_int_equal(plain(&c, UV_GET_CONTEXT, 16, &fd), 0);
	close(fd);
	close(c.file);
	close(c.life);
	close(c.fd);
	assert_int_equal(count("contexts"), 1);
	/* Killed, it is gone when its parent knows. */
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(count("contexts"), 0);
	assert_int_equal(count("pds"), 0);
	wait_for(processes, 1);		/* this one: its image still lives */
	close(go[0]);
	close(go[1]);
	stop(pid);
}

static void ends(void **state)
{
	pid_t pid = start();
	struct sh_open m = {.type = SH_MSG_OPEN};
	struct sh_open_reply o;
	struct client c, again;
	json_t *j;
	int fd, channel;

	(void)state;
	client_hello(&c, 0);
	/* An open that is never confirmed goes with the connection. */
	assert_int_equal(sh_client_request(c.fd, &m, sizeof(m), &o, sizeof(o), NULL, NULL), 0);
	assert_int_equal(count("contexts"), 1);
	close(c.fd);
	wait_for(contexts, 0);
	/* A process that lost its connection goes on in its old slot, with what it had. */
	client_hello(&again, c.slot + 1);
	assert_int_equal(again.slot, c.slot);
	client_open(&again);
	assert_int_equal(plain(&again, UV_GET_CONTEXT, 16, &fd), 0);
	close(again.fd);
	c = again;
	client_hello(&again, c.slot + 1);
	assert_int_equal(again.slot, c.slot);
	c.fd = again.fd;
	assert_int_equal(plain(&c, UV_ALLOC_PD, 12, &channel), 0);
	/* A completion channel ends when the client closes its end of it. */
	assert_int_equal(plain(&c, UV_CREATE_COMP_CHANNEL, 4, &channel), 0);
	j = show();
	assert_int_equal(json_array_size(json_object_get(json_array_get(json_object_get(hca_of(j), "contexts"), 0), "event_queues")), 2);
	json_decref(j);
	close(channel);
	j = show();
	assert_int_equal(json_array_size(json_object_get(json_array_get(json_object_get(hca_of(j), "contexts"), 0), "event_queues")), 1);
	json_decref(j);
	/* The memory goes before the file. */
	close(c.life);
	j = show();
	assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(hca_of(j), "contexts"), 0), "state")),
			    "memory gone");
	json_decref(j);
	close(c.file);
	assert_int_equal(count("contexts"), 0);
	close(fd);
	close(c.fd);
	stop(pid);
}

static void port(struct client *c, uint32_t what)
{
	struct sh_port_msg m = {.type = SH_MSG_PORT, .port = 1, .what = what};
	struct sh_status st;

	assert_int_equal(sh_client_request(c->fd, &m, sizeof(m), &st, sizeof(st), NULL, NULL), 0);
	assert_int_equal(st.error, 0);
}

/* What does not fit into the pipe comes when there is room. */
static void full_pipe(void **state)
{
	struct uv_async_record rec = {.event_type = 99};
	pid_t pid = start();
	struct client c;
	struct pollfd p = {.events = POLLIN};
	char path[128];
	int fd, fill;
	size_t n = 0;
	json_t *j, *ctx;

	(void)state;
	client_hello(&c, 0);
	client_open(&c);
	assert_int_equal(plain(&c, UV_GET_CONTEXT, 16, &fd), 0);
	j = show();
	ctx = json_array_get(json_object_get(hca_of(j), "contexts"), 0);
	snprintf(path, sizeof(path), "%s/events/%d.1", dir,
		 (int)json_integer_value(json_object_get(json_array_get(json_object_get(ctx, "event_queues"), 0), "queue")));
	json_decref(j);
	fill = open(path, O_WRONLY | O_NONBLOCK);
	assert_true(fill >= 0);
	while (write(fill, &rec, sizeof(rec)) == sizeof(rec))
		n++;
	close(fill);
	port(&c, SH_PORT_DOWN);
	port(&c, SH_PORT_UP);
	j = show();
	ctx = json_array_get(json_object_get(hca_of(j), "contexts"), 0);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(json_object_get(ctx, "event_queues"), 0), "spilled")), 2);
	json_decref(j);
	while (n--) {
		assert_int_equal(read(fd, &rec, sizeof(rec)), sizeof(rec));
		assert_int_equal(rec.event_type, 99);
	}
	assert_int_equal(read(fd, &rec, sizeof(rec)), sizeof(rec));
	assert_int_equal(rec.event_type, UV_EV_PORT_ERR);
	assert_int_equal(read(fd, &rec, sizeof(rec)), sizeof(rec));
	assert_int_equal(rec.event_type, UV_EV_PORT_ACTIVE);
	p.fd = fd;
	assert_int_equal(poll(&p, 1, 0), 0);
	close(fd);
	close(c.fd);
	close(c.file);
	close(c.life);
	stop(pid);
}

/*
 * The main thread sleeps: seen so a number of times in a row. A daemon that spins never does, and
 * the alarm ends the test.
 */
static void wait_for_sleep(pid_t pid)
{
	char path[64], text[512], *at;
	int fd, seen = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (seen < 20) {
		fd = open(path, O_RDONLY);
		assert_true(fd >= 0);
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		assert_true(n > 0);
		text[n] = 0;
		at = strrchr(text, ')');
		assert_non_null(at);
		seen = at[2] == 'S' ? seen + 1 : 0;
		usleep(2000);
	}
}

/*
 * More connections than the daemon may have descriptors: those that wait cost nothing, and come to
 * their turn.
 */
static void no_descriptors(void **state)
{
	enum { CONNECTIONS = 60 };
	const struct rlimit few = {.rlim_cur = 40, .rlim_max = 40};
	struct sh_hello_reply r;
	int fd[CONNECTIONS], i;
	pid_t pid;

	(void)state;
	pid = start();
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &few, NULL), 0);
	for (i = 0; i < CONNECTIONS; i++)
		fd[i] = connect_raw();
	/*
	 * This one has been accepted; when it is answered, so have as many of the others as could
	 * be.
	 */
	assert_int_equal(sh_client_hello(fd[0], 0, 0, &r, NULL), 0);
	wait_for_sleep(pid);
	for (i = 0; i < CONNECTIONS - 1; i++)
		close(fd[i]);
	assert_int_equal(sh_client_hello(fd[i], 0, 0, &r, NULL), 0);
	assert_int_equal(r.error, 0);
	close(fd[i]);
	stop(pid);
}

/* ---- processes that are stopped inside device code ---- */

enum what { W_NONE, W_QP, W_CQ, W_SRQ, W_EVENTS };

/* Objects of one context, made over the wire. */
struct objects {
	uint32_t pd, mr, key, cq, cqn, srq, srqn, qp, qpn;
	char *mem;
};

static uint32_t make(struct client *c, uint32_t number, void *cmd, size_t len, size_t out)
{
	struct sh_command_reply r;
	int fd;

	assert_int_equal(command(c, number, cmd, len, out, &r, &fd), 0);
	for (uint32_t i = 0; i < r.nactions; i++)
		assert_ptr_not_equal(mmap((void *)(uintptr_t)r.action[i].uaddr, r.action[i].len, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), MAP_FAILED);
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
		.response = (uintptr_t)&resp, .start = (uintptr_t)o->mem, .length = 4096, .hca_va = (uintptr_t)o->mem,
		.pd_handle = o->pd, .access_flags = SH_LOCAL_WRITE,
	};
	struct sh_command_reply r;

	assert_int_equal(make(c, UV_REG_MR, &cmd, sizeof(cmd), sizeof(resp)), 1);
	second.m = (struct sh_command){
		.type = SH_MSG_COMMAND, .ctx = c->ctx, .tid = gettid(), .cap_ipc_lock = 1, .addr = (uintptr_t)&cmd,
		.len = sizeof(cmd),
	};
	second.pin = (struct sh_pin_result){.done = 1};
	assert_int_equal(sh_client_request(c->fd, &second, sizeof(second), &r, sizeof(r), NULL, NULL), 0);
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
		.core = {.response = (uintptr_t)&qp_resp, .max_send_wr = 10, .max_recv_wr = 10, .max_send_sge = 1,
			 .max_recv_sge = 1, .qp_type = UV_QPT_RC},
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

/*
 * A process of its own that is in device code, with that lock, and stopped. When it continues it lets go, leaves and ends; but
 * first, unless busy is -1, it reads a byte from there.
 */
static pid_t stop_inside(enum what what, const struct objects *o, uint32_t ctx, int busy)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct sh_hello_reply r;
		struct sh_dev dev = {0};
		struct sh_lock *lock = NULL;
		char byte;
		int memfd, fd = connect_raw();
		void *base;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (sh_client_hello(fd, 0, 0, &r, &memfd) || r.error)
			_exit(1);
		base = mmap(NULL, r.size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
		if (base == MAP_FAILED || sh_dev_attach(&dev, base, r.size) || sh_process_init(&dev, dir))
			_exit(1);
		dev.proc = r.proc;
		if (what == W_QP)
			lock = &sh_qp_get(&dev, 0, o->qpn)->lock;
		else if (what == W_CQ)
			lock = &sh_cq_get(&dev, 0, o->cqn)->lock;
		else if (what == W_SRQ)
			lock = &sh_srq_get(&dev, 0, o->srqn)->lock;
		else if (what == W_EVENTS)
			lock = &sh_evq(&dev, sh_ctx(&dev, ctx)->async_evq)->lock;
		if (!sh_enter(&dev))
			_exit(1);
		if (lock)
			sh_lock(&dev, lock);
		raise(SIGSTOP);
		if (busy >= 0 && read(busy, &byte, 1) != 1)
			_exit(1);
		if (lock)
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
 * The command is sent; another client, asking later, is answered before it, since that command has to wait; and then it
 * succeeds, though the process has not moved.
 */
static void succeeds_meanwhile(struct client *c, uint32_t number, void *cmd, size_t len, size_t out)
{
	struct sh_command m = {
		.type = SH_MSG_COMMAND, .ctx = c->ctx, .tid = gettid(), .cap_ipc_lock = 1, .addr = (uintptr_t)cmd, .len = len,
	};
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	struct sh_command_reply r;

	*(struct uv_hdr *)cmd = (struct uv_hdr){.command = number, .in_words = len / 4, .out_words = out / 4};
	assert_int_equal(send(c->fd, &m, sizeof(m), MSG_NOSIGNAL), sizeof(m));
	assert_int_equal(processes(), 2);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(recv(c->fd, &r, sizeof(r), 0), sizeof(r));
	assert_int_equal(r.error, 0);
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
	struct uv_modify_qp cmd = {.qp_handle = qp, .attr = {.attr_mask = UV_QP_STATE, .qp_state = state}};
	struct sh_command_reply r;
	int fd;

	if (held)
		succeeds_meanwhile(c, UV_MODIFY_QP, &cmd, sizeof(cmd), 0);
	else
		assert_int_equal(command(c, UV_MODIFY_QP, &cmd, sizeof(cmd), 0, &r, &fd), 0);
}

/* A thread that runs is waited for, however long it takes: what it copies must not come after the answer. */
static void busy_inside(void **state)
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

	(void)state;
	pid = start();
	client_hello(&c, 0);
	client_open(&c);
	assert_int_equal(plain(&c, UV_GET_CONTEXT, 16, &async), 0);
	make_objects(&c, &o);
	assert_int_equal(pipe(go), 0);
	other = stop_inside(W_NONE, &o, c.ctx, go[0]);
	kill(other, SIGCONT);
	assert_int_equal(waitpid(other, &status, WCONTINUED), other);
	mr.handle = o.mr;
	mr.hdr = (struct uv_hdr){.command = UV_DEREG_MR, .in_words = sizeof(mr) / 4};
	m = (struct sh_command){
		.type = SH_MSG_COMMAND, .ctx = c.ctx, .tid = gettid(), .cap_ipc_lock = 1, .addr = (uintptr_t)&mr,
		.len = sizeof(mr),
	};
	assert_int_equal(send(c.fd, &m, sizeof(m), MSG_NOSIGNAL), sizeof(m));
	p = (struct pollfd){.fd = c.fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 3000), 0);
	assert_int_equal(processes(), 2);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(recv(c.fd, &r, sizeof(r), 0), sizeof(r));
	assert_int_equal(r.error, 0);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
	munmap(o.mem, 16 * 4096);
	close(go[0]);
	close(go[1]);
	close(async);
	close(c.file);
	close(c.life);
	close(c.fd);
	stop(pid);
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

		pid = start();
		client_hello(&c, 0);
		client_open(&c);
		assert_int_equal(plain(&c, UV_GET_CONTEXT, 16, &async), 0);
		make_objects(&c, &o);
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
		} else if (i == 3) {
			set_state(&c, o.qp, SH_QPS_RESET, true);
		} else if (i == 4) {
			/* Its QP first, which asks for no lock of the CQ. */
			assert_int_equal(command(&c, UV_DESTROY_QP, &qp, sizeof(qp), sizeof(resp), &r, &fd), 0);
			take_away(&c, UV_DESTROY_CQ, o.cq);
			qp.handle = cq.handle = UINT32_MAX;
		} else if (i == 5) {
			take_away(&c, UV_DESTROY_SRQ, o.srq);
			srq.handle = UINT32_MAX;
		} else {
			take_away(&c, UV_DESTROY_QP, o.qp);
			qp.handle = UINT32_MAX;
		}
		/* Nothing of it is in the way of what is left, or of what comes. */
		if (i == 0)
			make_mr(&c, &o);
		go_on(other);
		if (mr.handle == UINT32_MAX)
			mr.handle = o.mr;
		if (qp.handle != UINT32_MAX)
			assert_int_equal(command(&c, UV_DESTROY_QP, &qp, sizeof(qp), sizeof(resp), &r, &fd), 0);
		if (srq.handle != UINT32_MAX)
			assert_int_equal(command(&c, UV_DESTROY_SRQ, &srq, sizeof(srq), sizeof(resp), &r, &fd), 0);
		if (cq.handle != UINT32_MAX)
			assert_int_equal(command(&c, UV_DESTROY_CQ, &cq, sizeof(cq), sizeof(resp), &r, &fd), 0);
		assert_int_equal(command(&c, UV_DEREG_MR, &mr, sizeof(mr), 0, &r, &fd), 0);
		assert_int_equal(command(&c, UV_DEALLOC_PD, &pd, sizeof(pd), 0, &r, &fd), 0);
		munmap(o.mem, 16 * 4096);
		close(async);
		close(c.file);
		close(c.life);
		close(c.fd);
		stop(pid);
	}
}

/* ---- a thread that can be thrown (softhca/device/memory/life.h) ---- */

/* Shared with the process that is stopped. */
struct lingering {
	uint64_t cs, door;		/* where its kernel looks, and what is there when it is armed */
	uint32_t lives, go, late;
};

/* In its first life it stores when it is told to go on; in its next one it finds nothing to do. */
static void linger(struct sh_dev *dev, uint32_t a, uint32_t b, uint64_t at)
{
	struct lingering *l = (void *)(uintptr_t)at;

	(void)dev, (void)a, (void)b;
	if (__atomic_fetch_add(&l->lives, 1, __ATOMIC_SEQ_CST))
		return;
	while (!__atomic_load_n(&l->go, __ATOMIC_SEQ_CST))
		sh_rearm();
	__atomic_store_n(&l->late, 1, __ATOMIC_SEQ_CST);
}

static void be_inside(struct lingering *l, const struct objects *o, bool lock)
{
	struct sh_hello_reply r;
	struct sh_dev dev = {0};
	int memfd, err, fd = connect_raw();
	void *base;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sh_client_hello(fd, 0, 0, &r, &memfd) || r.error)
		_exit(1);
	base = mmap(NULL, r.size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (base == MAP_FAILED || sh_dev_attach(&dev, base, r.size) || sh_process_init(&dev, dir))
		_exit(1);
	dev.proc = r.proc;
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

static bool is_armed(pid_t pid, const struct lingering *l)
{
	uint64_t says = 0;
	struct iovec local = {&says, sizeof(says)}, remote = {(void *)(uintptr_t)l->cs, sizeof(says)};

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
	struct lingering *l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
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
		pid = start();
		client_hello(&c, 0);
		client_open(&c);
		assert_int_equal(plain(&c, UV_GET_CONTEXT, 16, &async), 0);
		make_objects(&c, &o);
		mr.handle = o.mr;
		qp.handle = o.qp;
		other = fork();
		if (!other)
			be_inside(l, &o, lock);
		can = stop_armed(other, l);
		if (can) {
			if (lock)
				assert_int_equal(command(&c, UV_DESTROY_QP, &qp, sizeof(qp), sizeof(resp), &r, &fd), 0);
			else
				assert_int_equal(command(&c, UV_DEREG_MR, &mr, sizeof(mr), 0, &r, &fd), 0);
			__atomic_store_n(&l->go, 1, __ATOMIC_SEQ_CST);
			go_on(other);
			assert_int_equal(l->late, 0);
			assert_int_equal(l->lives, 2);
		}
		munmap(o.mem, 16 * 4096);
		close(async);
		close(c.file);
		close(c.life);
		close(c.fd);
		stop(pid);
	}
	munmap(l, sizeof(*l));
	if (!can)
		skip();
}

static void lease(void **state)
{
	struct sh_status st;
	char path[128];
	pid_t pid = launch(true, &st);
	struct stat s;
	int fd, status;
	void *map;

	(void)state;
	assert_int_equal(st.error, 0);
	snprintf(path, sizeof(path), "%s/lease", dir);
	fd = open(path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	close(fd);
	/* The mapping holds it, longer than two looks take. */
	sleep(4);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	munmap(map, 4096);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(stat(dir, &s), -1);
}

static int make_base(void **state)
{
	(void)state;
	if (!mkdtemp(base))
		return -1;
	snprintf(dir, sizeof(dir), "%s/instance", base);
	return 0;
}

static int remove_base(void **state)
{
	(void)state;
	/* Empty: each instance has removed itself. */
	return rmdir(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life),
		cmocka_unit_test(keeps_nothing),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(death),
		cmocka_unit_test(ends),
		cmocka_unit_test(full_pipe),
		cmocka_unit_test(no_descriptors),
		cmocka_unit_test(stopped_inside),
		cmocka_unit_test(nothing_late),
		cmocka_unit_test(busy_inside),
		cmocka_unit_test(lease),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}
