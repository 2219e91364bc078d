// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections to the daemon: what it says to clients that do not follow the protocol, what is left
 * of clients that die, and what it does when it is short of room. Waits are bounded by alarm().
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
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/host/client.h"
#include "softhca/kernel/rdmacm/rdmacm-abi.h"
#include "softhca/kernel/uverbs/uverbs-abi.h"
#include "softhca_daemon.h"

static json_t *first_context(json_t *j)
{
	return json_array_get(json_object_get(daemon_hca(j), "contexts"), 0);
}

/*
 * The daemon closes the connection of a client that sends nonsense. Other clients do not notice.
 */
static void refuse(const void *msg, size_t len, bool greet)
{
	struct sh_hello_reply r;
	int fd = greet ? daemon_hello(true, 0, &r) : daemon_connect();
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
	pid_t pid = daemon_start();
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
	fd = daemon_hello(true, 0, &r);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	assert_int_equal(send(fd, big, sizeof(big), MSG_NOSIGNAL), sizeof(big));
	assert_int_equal(recv(fd, big, sizeof(big), 0), 0);
	close(fd);
	/* Said politely, it is answered politely. */
	fd = daemon_connect();
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
	/* A device that is not there, a context that no process has opened. */
	client_hello(&c, 0);
	open_msg.device = 1;
	{
		struct sh_open_reply o;

		assert_int_equal(sh_client_request(c.fd, &open_msg, sizeof(open_msg), &o, sizeof(o),
						   NULL, NULL),
				 0);
		assert_int_equal(o.error, ENOENT);
	}
	c.ctx = 999;
	cmd.tid = gettid();
	assert_int_equal(
		sh_client_request(c.fd, &cmd, sizeof(cmd), &reply, sizeof(reply), NULL, NULL), 0);
	assert_int_equal(reply.error, ENODEV);
	close(c.fd);
	assert_int_equal(daemon_count("contexts"), 0);
	daemon_stop(pid);
}

static void wait_for(size_t (*now)(void), size_t n)
{
	while (now() != n)
		usleep(1000);
}

static size_t contexts(void)
{
	return daemon_count("contexts");
}

static void death(void **state)
{
	pid_t pid = daemon_start(), child;
	struct client c;
	int status, fd, go[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(go), 0);
	child = fork();
	if (!child) {
		client_hello(&c, 0);
		client_open(&c);
		if (client_plain(&c, UV_GET_CONTEXT, 16, &fd) ||
		    client_plain(&c, UV_ALLOC_PD, 12, &fd) ||
		    client_plain(&c, UV_CREATE_COMP_CHANNEL, 4, &fd))
			_exit(1);
		if (write(go[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(go[0], &byte, 1), 1);
	assert_int_equal(daemon_count("contexts"), 1);
	assert_int_equal(daemon_count("pds"), 1);
	/* While it is stopped, it does not hold up other processes. */
	kill(child, SIGSTOP);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	client_hello(&c, 0);
	client_open(&c);
	assert_int_equal(client_plain(&c, UV_GET_CONTEXT, 16, &fd), 0);
	close(fd);
	close(c.file);
	close(c.life);
	close(c.fd);
	assert_int_equal(daemon_count("contexts"), 1);
	/* Killed, it is gone when its parent knows. */
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(daemon_count("contexts"), 0);
	assert_int_equal(daemon_count("pds"), 0);
	wait_for(daemon_processes, 1); /* this one: its image still lives */
	close(go[0]);
	close(go[1]);
	daemon_stop(pid);
}

static void ends(void **state)
{
	pid_t pid = daemon_start();
	struct sh_open m = {.type = SH_MSG_OPEN};
	struct sh_open_reply o;
	struct client c, again;
	json_t *j;
	int fd, channel;

	(void)state;
	client_hello(&c, 0);
	/* An open that is never confirmed goes with the connection. */
	assert_int_equal(sh_client_request(c.fd, &m, sizeof(m), &o, sizeof(o), NULL, NULL), 0);
	assert_int_equal(daemon_count("contexts"), 1);
	close(c.fd);
	wait_for(contexts, 0);
	/* A process that lost its connection goes on in its old slot, with what it had. */
	client_hello(&again, c.slot + 1);
	assert_int_equal(again.slot, c.slot);
	client_open(&again);
	assert_int_equal(client_plain(&again, UV_GET_CONTEXT, 16, &fd), 0);
	close(again.fd);
	c = again;
	client_hello(&again, c.slot + 1);
	assert_int_equal(again.slot, c.slot);
	c.fd = again.fd;
	assert_int_equal(client_plain(&c, UV_ALLOC_PD, 12, &channel), 0);
	/* A completion channel ends when the client closes its end of it. */
	assert_int_equal(client_plain(&c, UV_CREATE_COMP_CHANNEL, 4, &channel), 0);
	j = daemon_show();
	assert_int_equal(json_array_size(json_object_get(first_context(j), "event_queues")), 2);
	json_decref(j);
	close(channel);
	j = daemon_show();
	assert_int_equal(json_array_size(json_object_get(first_context(j), "event_queues")), 1);
	json_decref(j);
	/* The memory goes before the file. */
	close(c.life);
	j = daemon_show();
	assert_string_equal(json_string_value(json_object_get(first_context(j), "state")),
			    "memory gone");
	json_decref(j);
	close(c.file);
	assert_int_equal(daemon_count("contexts"), 0);
	close(fd);
	close(c.fd);
	daemon_stop(pid);
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
	pid_t pid = daemon_start();
	struct client c;
	struct pollfd p = {.events = POLLIN};
	char path[128];
	int fd, fill;
	size_t n = 0;
	json_t *j, *ctx;

	(void)state;
	client_hello(&c, 0);
	client_open(&c);
	assert_int_equal(client_plain(&c, UV_GET_CONTEXT, 16, &fd), 0);
	j = daemon_show();
	ctx = first_context(j);
	snprintf(path, sizeof(path), "%s/events/%d.1", daemon_dir,
		 (int)json_integer_value(json_object_get(
			 json_array_get(json_object_get(ctx, "event_queues"), 0), "queue")));
	json_decref(j);
	fill = open(path, O_WRONLY | O_NONBLOCK);
	assert_true(fill >= 0);
	while (write(fill, &rec, sizeof(rec)) == sizeof(rec))
		n++;
	close(fill);
	port(&c, SH_PORT_DOWN);
	port(&c, SH_PORT_UP);
	j = daemon_show();
	ctx = first_context(j);
	assert_int_equal(
		json_integer_value(json_object_get(
			json_array_get(json_object_get(ctx, "event_queues"), 0), "spilled")),
		2);
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
	daemon_stop(pid);
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
	pid = daemon_start();
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &few, NULL), 0);
	for (i = 0; i < CONNECTIONS; i++)
		fd[i] = daemon_connect();
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
	daemon_stop(pid);
}

/*
 * A descriptor that a client hands over, and for which the daemon has no room: the client is told
 * so.
 */
static void no_room_for_given(void **state)
{
	struct uv_open_xrc_domain_resp resp[3];
	struct uv_open_xrc_domain cmd = {.response = (uintptr_t)resp, .oflags = O_CREAT};
	struct rlimit all, none;
	struct sh_command_reply r;
	pid_t pid = daemon_start();
	struct client c;
	int fd;

	(void)state;
	client_hello(&c, 0);
	client_open(&c);
	assert_int_equal(client_plain(&c, UV_GET_CONTEXT, 32, &fd), 0);
	cmd.fd = (uint32_t)fd;
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, NULL, &all), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = all.rlim_max};
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &none, NULL), 0);
	assert_int_equal(sh_client_give(c.fd, fd), 0);
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &all, NULL), 0);
	assert_int_equal(
		client_command(&c, UV_OPEN_XRC_DOMAIN, &cmd, sizeof(cmd), sizeof(resp), &r, NULL),
		ENOMEM);
	/* The same when it looks for itself. */
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &none, NULL), 0);
	assert_int_equal(
		client_command(&c, UV_OPEN_XRC_DOMAIN, &cmd, sizeof(cmd), sizeof(resp), &r, NULL),
		ENOMEM);
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &all, NULL), 0);
	assert_int_equal(
		client_command(&c, UV_OPEN_XRC_DOMAIN, &cmd, sizeof(cmd), sizeof(resp), &r, NULL),
		0);
	close(fd);
	close(c.fd);
	daemon_stop(pid);
}

/* The bytes of a command come with its message, all of them or none. */
static void command_in_message(void **state)
{
	uint32_t resp[8] = {0};
	struct uv_plain plain = {
		.hdr = {.command = UV_ALLOC_PD, .in_words = sizeof(plain) / 4, .out_words = 2},
		.response = (uintptr_t)resp,
	};
	struct {
		struct sh_command cmd;
		struct uv_plain text;
		char more[32];
	} m = {.cmd = {.type = SH_MSG_COMMAND, .tid = gettid(), .len = sizeof(plain)}};
	const size_t whole = sizeof(m.cmd) + sizeof(plain);
	const uint32_t wrong[] = {1, sizeof(plain) - 1, sizeof(plain) + 1, SH_COMMAND_MAX};
	struct sh_command_reply r;
	pid_t pid = daemon_start();
	struct client c;
	int fd;

	(void)state;
	client_hello(&c, 0);
	client_open(&c);
	assert_int_equal(client_plain(&c, UV_GET_CONTEXT, 32, &fd), 0);
	close(fd);
	m.cmd.ctx = c.ctx;
	m.text = plain;
	/* Nothing is at that address, and nothing is read there. */
	m.cmd.addr = 8;
	m.cmd.here = sizeof(plain);
	assert_int_equal(sh_client_request(c.fd, &m, whole, &r, sizeof(r), NULL, NULL), 0);
	assert_int_equal(r.error, 0);
	/* Without the bytes, the daemon reads what there is. */
	m.cmd.here = 0;
	assert_int_equal(sh_client_request(c.fd, &m, sizeof(m.cmd), &r, sizeof(r), NULL, NULL), 0);
	assert_int_equal(r.error, EFAULT);
	m.cmd.addr = (uintptr_t)&plain;
	assert_int_equal(sh_client_request(c.fd, &m, sizeof(m.cmd), &r, sizeof(r), NULL, NULL), 0);
	assert_int_equal(r.error, 0);
	close(c.fd);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		m.cmd.here = wrong[i];
		refuse(&m, whole, true);
		refuse(&m, sizeof(m.cmd), true);
		refuse(&m, sizeof(m.cmd) + (wrong[i] < 32 ? wrong[i] : 32), true);
	}
	close(c.file);
	close(c.life);
	daemon_stop(pid);
}

/* As command_in_message, of rdma_cm. */
static void cm_command_in_message(void **state)
{
	struct cm_number_resp resp = {.value = 77};
	struct {
		struct cm_hdr hdr;
		struct cm_create_id body;
	} plain = {
		.hdr = {.number = CM_CREATE_ID, .in = sizeof(plain.body), .out = sizeof(resp)},
		.body = {.response = (uintptr_t)&resp, .ps = 0x106, .qp_type = 2},
	};
	struct {
		struct sh_cm_command cmd;
		char text[sizeof(plain)];
		char more[32];
	} m = {.cmd = {.type = SH_MSG_CM_COMMAND, .tid = gettid(), .len = sizeof(plain)}};
	const size_t whole = sizeof(m.cmd) + sizeof(plain);
	const uint32_t wrong[] = {1, sizeof(plain) - 1, sizeof(plain) + 1, SH_COMMAND_MAX};
	struct sh_cm_open open = {.type = SH_MSG_CM_OPEN};
	unsigned int nfds = 0;
	struct sh_cm_reply r;
	pid_t pid = daemon_start();
	char link[64], path[256];
	struct client c;
	int fds[4];
	ssize_t n;

	(void)state;
	client_hello(&c, 0);
	assert_int_equal(sh_client_request(c.fd, &open, sizeof(open), &r, sizeof(r), fds, &nfds),
			 0);
	assert_int_equal(r.error, 0);
	assert_int_equal(nfds, 1);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fds[0]);
	n = readlink(link, path, sizeof(path) - 1);
	assert_true(n > 0);
	path[n] = '\0';
	assert_int_equal(sscanf(strrchr(path, '/'), "/%u.%u", &m.cmd.channel, &m.cmd.generation),
			 2);
	memcpy(m.text, &plain, sizeof(plain));
	/* Nothing is at that address, and nothing is read there. */
	m.cmd.addr = 8;
	m.cmd.here = sizeof(plain);
	assert_int_equal(sh_client_request(c.fd, &m, whole, &r, sizeof(r), NULL, NULL), 0);
	assert_int_equal(r.error, 0);
	assert_int_equal(resp.value, 0);
	/* Without the bytes, the daemon reads what there is. */
	m.cmd.here = 0;
	assert_int_equal(sh_client_request(c.fd, &m, sizeof(m.cmd), &r, sizeof(r), NULL, NULL), 0);
	assert_int_equal(r.error, EFAULT);
	m.cmd.addr = (uintptr_t)&plain;
	assert_int_equal(sh_client_request(c.fd, &m, sizeof(m.cmd), &r, sizeof(r), NULL, NULL), 0);
	assert_int_equal(r.error, 0);
	assert_int_equal(resp.value, 1);
	close(fds[0]);
	close(c.fd);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		m.cmd.here = wrong[i];
		refuse(&m, whole, true);
		refuse(&m, sizeof(m.cmd), true);
	}
	daemon_stop(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nonsense),
		cmocka_unit_test(death),
		cmocka_unit_test(ends),
		cmocka_unit_test(full_pipe),
		cmocka_unit_test(command_in_message),
		cmocka_unit_test(cm_command_in_message),
		cmocka_unit_test(no_descriptors),
		cmocka_unit_test(no_room_for_given),
	};

	return cmocka_run_group_tests(tests, daemon_make_base, daemon_remove_base);
}
