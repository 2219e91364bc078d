// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Runs a daemon in a process of its own, in a directory that the program makes, and speaks to it as
 * the shim and the command do. Waits are bounded by alarm().
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/host/client.h"
#include "softhca/kernel/kernel.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"
#include "softhca_daemon.h"
#include "softhca_place.h"

static char base[48];
char daemon_dir[64];

/* ---- the daemon ---- */

bool daemon_old_kernel;

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

pid_t daemon_launch(bool leased, struct sh_status *st)
{
	struct sh_kernel_config cfg = {
		.dir = daemon_dir,
		.leased = leased,
		.device = {.hosts = 2,
			   .hcas_per_host = 1,
			   .ports = 1,
			   .cqe_size = 32,
			   .driver_abi = 3,
			   .face = SH_FACE_OFED,
			   .pool_size = 64 << 20},
	};
	int ready[2];
	pid_t pid;

	alarm(60);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid && daemon_old_kernel && forget_close_range())
		_exit(77);
	if (!pid)
		_exit(prctl(PR_SET_PDEATHSIG, SIGKILL) ? 1 : sh_kernel_main(&cfg, ready[1]));
	close(ready[1]);
	assert_int_equal(read(ready[0], st, sizeof(*st)), sizeof(*st));
	close(ready[0]);
	return pid;
}

pid_t daemon_start(void)
{
	struct sh_status st;
	pid_t pid = daemon_launch(false, &st);

	assert_int_equal(st.error, 0);
	return pid;
}

int daemon_connect(void)
{
	int fd = sh_client_connect(daemon_dir);

	assert_true(fd >= 0);
	return fd;
}

int daemon_hello(bool shim, uint32_t again, struct sh_hello_reply *r)
{
	int fd = daemon_connect(), memfd = -1;

	assert_int_equal(sh_client_hello(fd, 0, again, r, shim ? &memfd : NULL), 0);
	assert_int_equal(r->error, 0);
	if (memfd >= 0)
		close(memfd);
	return fd;
}

void daemon_stop(pid_t pid)
{
	struct sh_stop m = {.type = SH_MSG_STOP};
	struct sh_hello_reply r;
	struct sh_status st;
	struct stat s;
	int fd = daemon_hello(false, 0, &r), status;

	assert_int_equal(sh_client_request(fd, &m, sizeof(m), &st, sizeof(st), NULL, NULL), 0);
	assert_int_equal(st.error, 0);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(stat(daemon_dir, &s), -1);
}

json_t *daemon_show(void)
{
	struct sh_show m = {.type = SH_MSG_SHOW};
	struct sh_hello_reply r;
	struct sh_status st;
	unsigned int nfds;
	int fds[SH_CLIENT_FDS], fd = daemon_hello(false, 0, &r);
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

json_t *daemon_hca(json_t *j)
{
	return json_array_get(
		json_object_get(json_array_get(json_object_get(j, "hosts"), 0), "hcas"), 0);
}

size_t daemon_count(const char *what)
{
	json_t *j = daemon_show();
	size_t n = json_array_size(json_object_get(daemon_hca(j), what));

	json_decref(j);
	return n;
}

size_t daemon_processes(void)
{
	json_t *j = daemon_show();
	size_t n = json_array_size(json_object_get(j, "processes"));

	json_decref(j);
	return n;
}

/* ---- a client ---- */

void client_hello(struct client *c, uint32_t again)
{
	struct sh_hello_reply r;

	c->fd = daemon_hello(true, again, &r);
	c->slot = r.proc;
}

void client_open(struct client *c)
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
	snprintf(path, sizeof(path), "%s/files/c%u.%u", daemon_dir, r.ctx, r.generation);
	c->file = open(path, O_RDWR | O_CLOEXEC);
	assert_true(c->file >= 0);
	snprintf(path, sizeof(path), "%s/files/l%u.%u", daemon_dir, r.ctx, r.generation);
	c->life = open(path, O_RDWR | O_CLOEXEC);
	assert_true(c->life >= 0);
	assert_int_equal(sh_client_request(c->fd, &done, sizeof(done), &st, sizeof(st), NULL, NULL),
			 0);
	assert_int_equal(st.error, 0);
}

int client_command(struct client *c, uint32_t number, void *buf, size_t len, size_t out,
		   struct sh_command_reply *r, int *fd)
{
	struct sh_command m = {.type = SH_MSG_COMMAND,
			       .ctx = c->ctx,
			       .tid = gettid(),
			       .cap_ipc_lock = 1,
			       .addr = (uintptr_t)buf,
			       .len = len};
	unsigned int nfds;
	int fds[SH_CLIENT_FDS];

	*(struct uv_hdr *)buf =
		(struct uv_hdr){.command = number, .in_words = len / 4, .out_words = out / 4};
	assert_int_equal(sh_client_request(c->fd, &m, sizeof(m), r, sizeof(*r), fds, &nfds), 0);
	assert_int_equal(nfds, r->nfds);
	if (nfds)
		*fd = fds[0];
	return r->error;
}

int client_plain(struct client *c, uint32_t number, size_t out, int *fd)
{
	uint32_t resp[8];
	struct uv_plain cmd = {.response = (uintptr_t)resp};
	struct sh_command_reply r;

	return client_command(c, number, &cmd, sizeof(cmd), out, &r, fd);
}

/* ---- around all tests ---- */

int daemon_make_base(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "%s/softhca-server.XXXXXX", place());
	if (!mkdtemp(base))
		return -1;
	snprintf(daemon_dir, sizeof(daemon_dir), "%s/instance", base);
	return 0;
}

int daemon_remove_base(void **state)
{
	(void)state;
	/* Empty: each instance has removed itself. */
	return rmdir(base);
}
