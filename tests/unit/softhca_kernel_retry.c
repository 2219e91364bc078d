// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests that find a process in device code, which runs, sleeps or is frozen there: the daemon
 * waits for it, serves other clients meanwhile, and the request succeeds in the end. Waits are
 * bounded by alarm().
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
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/kernel/freezer.h"
#include "softhca_inside_rig.h"

/* Longer than the daemon waits for threads that stand still, and less than for one that sleeps. */
#define PATIENCE_PAST_NS UINT64_C(2500000000)
/* More than it reads its clock in one round of trying again. */
#define READS 100

/* The daemon's clock, which the test stops and moves. */
static struct {
	uint64_t at, reads; /* at: what it says; 0: the time */
	pid_t daemon;
} * daemon_clock;

uint64_t __real_sh_now(void);
uint64_t __wrap_sh_now(void);
uint64_t __wrap_sh_now(void)
{
	uint64_t at = daemon_clock ? __atomic_load_n(&daemon_clock->at, __ATOMIC_SEQ_CST) : 0;

	if (!at || getpid() != daemon_clock->daemon)
		return __real_sh_now();
	__atomic_fetch_add(&daemon_clock->reads, 1, __ATOMIC_SEQ_CST);
	return at;
}

static void stop_clock(pid_t daemon)
{
	daemon_clock->daemon = daemon;
	__atomic_store_n(&daemon_clock->at, __real_sh_now(), __ATOMIC_SEQ_CST);
}

/* The daemon's patience is over, and it has tried again since: the client has no answer. */
static void still_waits(const struct client *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	uint64_t reads;

	__atomic_fetch_add(&daemon_clock->at, PATIENCE_PAST_NS, __ATOMIC_SEQ_CST);
	reads = __atomic_load_n(&daemon_clock->reads, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&daemon_clock->reads, __ATOMIC_SEQ_CST) - reads < READS) {
		assert_int_equal(poll(&p, 1, 0), 0);
		usleep(1000);
	}
	assert_int_equal(poll(&p, 1, 0), 0);
}

static int make_clock(void **state)
{
	daemon_clock = mmap(NULL, sizeof(*daemon_clock), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return daemon_clock == MAP_FAILED ? -1 : daemon_make_base(state);
}

/*
 * The daemon waits for a thread that runs, or sleeps as one does whose page comes from a file
 * server (for longer than for one that stands still): what the thread copies must not come after
 * the answer.
 */
static void copies_inside(int how)
{
	struct sh_command_reply r;
	struct uv_handle mr = {0};
	struct sh_command m;
	struct objects o;
	struct client c;
	int async, go[2], status;
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
	stop_clock(pid);
	assert_int_equal(send(c.fd, &m, sizeof(m), MSG_NOSIGNAL), sizeof(m));
	assert_int_equal(daemon_processes(), 2);
	still_waits(&c);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(recv(c.fd, &r, sizeof(r), 0), SH_COMMAND_REPLY(0));
	assert_int_equal(r.error, 0);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
	close(go[0]);
	close(go[1]);
	daemon_clock->at = 0;
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

/*
 * The same of a thread that has come after the command, and taken the lock that the command wants.
 */
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
	stop_clock(pid);
	assert_int_equal(send(c.fd, &m, sizeof(m), MSG_NOSIGNAL), sizeof(m));
	assert_int_equal(daemon_processes(), 2);
	younger = stop_inside(W_QP_TAKEN, &o, c.ctx, go[0]);
	kill(younger, SIGCONT);
	assert_int_equal(waitpid(younger, &status, WCONTINUED), younger);
	go_on(older);
	still_waits(&c);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(recv(c.fd, &r, sizeof(r), 0), SH_COMMAND_REPLY(0));
	assert_int_equal(r.error, 0);
	assert_int_equal(waitpid(younger, &status, 0), younger);
	assert_int_equal(status, 0);
	close(go[0]);
	close(go[1]);
	daemon_clock->at = 0;
	end(pid, &c, &o, async);
}

/*
 * Writes the file that says of the cgroup of this process whether it is frozen, below a root of the
 * test's own.
 */
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
 * A cgroup's freezer stops a process so that it looks like one that sleeps. Such a process holds up
 * commands no longer than one that a signal has stopped.
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busy_inside),
		cmocka_unit_test(asleep_inside),
		cmocka_unit_test(younger_inside),
		cmocka_unit_test(frozen_inside),
	};

	return cmocka_run_group_tests(tests, make_clock, daemon_remove_base);
}
