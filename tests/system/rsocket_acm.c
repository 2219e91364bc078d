// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: rsockets that connect where ibacm is slow. No call waits for its answer but one that
 * waits for the connection, and the connection is made by whatever it answers, or without it. The
 * ibacm is a thread of this program, which gives its answer when it is told to.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <rdma/rdma_cma_abi.h>

#include "rsocket_pair.h"

#define SOCKET "/var/run/ibacm.sock"

/* What librspreload.so asks librdmacm by (librdmacm/src/kept.h) */
enum { OPTION_KEPT = 0x10000 };

/* ---- The service ---- */

static struct sockaddr_un service = {.sun_family = AF_UNIX};
static socklen_t service_len;
static int asked, answers; /* atomic */

static bool is_service(const char *path)
{
	return service_len && !strcmp(path, SOCKET);
}

/* These come before the C library's and softhca's: to librdmacm the service is where ibacm is. */
int access(const char *path, int mode)
{
	int (*next)(const char *, int) = dlsym(RTLD_NEXT, "access");

	return is_service(path) ? 0 : next(path, mode);
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	int (*next)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");

	if (addr->sa_family == AF_UNIX && is_service(((const struct sockaddr_un *)addr)->sun_path))
		return next(fd, (struct sockaddr *)&service, service_len);
	return next(fd, addr, len);
}

/* Who asks it waits as long as it takes: no time decides this test. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int (*next)(int, int, int, const void *, socklen_t) = dlsym(RTLD_NEXT, "setsockopt");

	if (level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO))
		return 0;
	return next(fd, level, name, value, len);
}

/* Holds the command that asks the kernel for a route, if it is told to. */
static int holds, held; /* atomic */

ssize_t write(int fd, const void *data, size_t size)
{
	ssize_t (*next)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
	struct ucma_abi_cmd_hdr hdr = {0};

	if (__atomic_load_n(&holds, __ATOMIC_SEQ_CST) &&
	    size == sizeof(struct ucma_abi_resolve_route)) {
		memcpy(&hdr, data, sizeof(hdr));
		if (hdr.cmd == UCMA_CMD_RESOLVE_ROUTE) {
			__atomic_store_n(&held, 1, __ATOMIC_SEQ_CST);
			while (__atomic_load_n(&holds, __ATOMIC_SEQ_CST))
				sched_yield();
		}
	}
	return next(fd, data, size);
}

/* Says that it knows no path, after as many answers as it is allowed. */
static void *serve(void *arg)
{
	int door = *(int *)arg, n = 0;

	for (;;) {
		uint8_t message[1024];
		int fd = accept(door, NULL, NULL);

		CHECK(fd >= 0);
		CHECK(recv(fd, message, sizeof(message), 0) > 16);
		__atomic_store_n(&asked, ++n, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&answers, __ATOMIC_SEQ_CST) < n)
			sched_yield();
		message[1] = 0x81;
		message[2] = 1;
		/* Who has asked may not want to know any more. */
		(void)send(fd, message, 16, MSG_NOSIGNAL);
		close(fd);
	}
	return NULL;
}

static void start_service(void)
{
	static int door;
	pthread_t thread;

	alarm(LONG_MS / 1000);
	door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* Of no name in the file system */
	snprintf(service.sun_path + 1, sizeof(service.sun_path) - 1, "rsocket_acm.%d",
		 (int)getpid());
	service_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				  strlen(service.sun_path + 1));
	CHECK(!bind(door, (struct sockaddr *)&service, service_len));
	CHECK(!listen(door, 8));
	CHECK(!pthread_create(&thread, NULL, serve, &door));
}

static void allow(int n)
{
	__atomic_store_n(&answers, n, __ATOMIC_SEQ_CST);
}

/* ---- Who asks it ---- */

/* Takes the steps of a connection until ibacm has been asked so often. */
static int begin(const struct sockaddr_in *addr, int n)
{
	int rs = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct pollfd fd = {.fd = rs, .events = POLLOUT};

	CHECK(rs >= 0);
	FAILS(rconnect(rs, (const struct sockaddr *)addr, sizeof(*addr)), EINPROGRESS);
	while (__atomic_load_n(&asked, __ATOMIC_SEQ_CST) < n)
		CHECK(!rpoll(&fd, 1, 1));
	return rs;
}

/* The other end of the connection that is being made. */
static int finish(int rs, int other)
{
	struct pollfd fds[2];
	int one;

	do {
		fds[0] = (struct pollfd){.fd = rs, .events = POLLIN};
		fds[1] = (struct pollfd){.fd = other, .events = POLLOUT};
		CHECK(rpoll(fds, 2, LONG_MS) > 0);
	} while (!(fds[0].revents & POLLIN));
	one = raccept(rs, NULL, NULL);
	CHECK(one >= 0);
	CHECK(wait_for(other, POLLOUT) == POLLOUT);
	return one;
}

/* Each of these calls would wait for ever for one that waits for ibacm. */
static void test_does_not_block(void)
{
	struct sockaddr_in addr, name;
	socklen_t len = sizeof(name);
	struct pollfd fd;
	int rs, other, one;
	char data;

	start_service();
	rs = listener(&addr);
	other = begin(&addr, 1);
	FAILS(rconnect(other, (struct sockaddr *)&addr, sizeof(addr)), EALREADY);
	CHECK(get_int(other, SOL_SOCKET, SO_ERROR) == 0);
	FAILS(rsend(other, "x", 1, 0), EAGAIN);
	CHECK(!rgetsockname(other, (struct sockaddr *)&name, &len));
	fd = (struct pollfd){.fd = other, .events = POLLOUT};
	CHECK(!rpoll(&fd, 1, 0));

	allow(1);
	one = finish(rs, other);
	CHECK(rsend(other, "x", 1, 0) == 1);
	CHECK(rrecv(one, &data, 1, 0) == 1 && data == 'x');
	CHECK(!rclose(other));
	CHECK(!rclose(one));
	CHECK(!rclose(rs));
}

/*
 * The answer comes when the rsocket is closed, and its memory is another one's: that one goes its
 * own way.
 */
static void test_closed(void)
{
	struct sockaddr_in addr;
	int rs, other, one;

	start_service();
	rs = listener(&addr);
	other = begin(&addr, 1);
	CHECK(!rclose(other));
	allow(1);
	other = begin(&addr, 2);
	allow(2);
	one = finish(rs, other);
	CHECK(!rclose(other));
	CHECK(!rclose(one));
	CHECK(!rclose(rs));
}

static void *closes(void *arg)
{
	CHECK(!rclose(*(int *)arg));
	return NULL;
}

/* Another thread closes one that waits for its connection. */
static void test_closed_while_it_waits(void)
{
	struct sockaddr_in addr;
	pthread_t closer;
	int rs, fd;

	start_service();
	rs = listener(&addr);
	fd = begin(&addr, 1);
	CHECK(!rfcntl(fd, F_SETFL, 0));
	CHECK(!pthread_create(&closer, NULL, closes, &fd));
	FAILS(rconnect(fd, (struct sockaddr *)&addr, sizeof(addr)), EBADF);
	CHECK(!pthread_join(closer, NULL));
	allow(1);
	CHECK(!rclose(rs));
}

/* ---- The library's socket ---- */

/*
 * The number of a socket to the service that the library has, or -1; *kept: that a program's
 * close() of all must spare it.
 */
static int socket_to_service(bool *kept)
{
	struct sockaddr_un name;

	for (int fd = 0; fd < 1024; fd++) {
		socklen_t len = sizeof(name), size = sizeof(int);
		int next = fd;

		if (getpeername(fd, (struct sockaddr *)&name, &len) || len != service_len ||
		    memcmp(&name, &service, len))
			continue;
		CHECK(!rgetsockopt(-1, SOL_RDMA, OPTION_KEPT, &next, &size));
		*kept = next == fd;
		return fd;
	}
	return -1;
}

/*
 * Each question has a socket of its own, which is the library's until it is answered, whatever
 * becomes of the rsocket.
 */
static void test_own_socket(void)
{
	struct sockaddr_in addr;
	int rs, other, one;
	bool kept;

	start_service();
	rs = listener(&addr);
	for (int n = 1; n <= 6; n++) {
		other = begin(&addr, n);
		CHECK(socket_to_service(&kept) >= 0 && kept);
		if (n % 2) {
			CHECK(!rclose(other));
			CHECK(socket_to_service(&kept) >= 0 && kept);
			allow(n);
		} else {
			allow(n);
			one = finish(rs, other);
			CHECK(!rclose(other));
			CHECK(!rclose(one));
		}
		while (socket_to_service(&kept) >= 0)
			sched_yield();
	}
	CHECK(!rclose(rs));
}

/* ---- Forks ---- */

static void let_go(void)
{
	__atomic_store_n(&holds, 0, __ATOMIC_SEQ_CST);
}

/*
 * A program forks while the library's thread gives its command: its child can close the rsocket,
 * and it goes on itself. The command ends when fork() has begun, or not before it is over.
 */
static void fork_in_command(bool ends)
{
	struct sockaddr_in addr;
	int rs, other, status;
	pid_t child;

	start_service();
	rs = listener(&addr);
	other = begin(&addr, 1);
	__atomic_store_n(&holds, 1, __ATOMIC_SEQ_CST);
	allow(1);
	while (!__atomic_load_n(&held, __ATOMIC_SEQ_CST))
		sched_yield();
	/* Later than the library's: so it comes first. */
	CHECK(!pthread_atfork(ends ? let_go : NULL, NULL, NULL));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		alarm(LONG_MS / 1000);
		CHECK(get_int(other, SOL_SOCKET, SO_TYPE) == SOCK_STREAM);
		_exit(rclose(other) ? 1 : 0);
	}
	let_go();
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(!status);
	CHECK(!rclose(other));
	CHECK(!rclose(rs));
}

static void test_fork(void)
{
	fork_in_command(true);
}

static void test_fork_does_not_wait_for_ever(void)
{
	fork_in_command(false);
}

static const struct rsocket_test tests[] = {
	{"does_not_block", test_does_not_block},
	{"closed", test_closed},
	{"closed_while_it_waits", test_closed_while_it_waits},
	{"own_socket", test_own_socket},
	{"fork", test_fork},
	{"fork_does_not_wait_for_ever", test_fork_does_not_wait_for_ever},
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
