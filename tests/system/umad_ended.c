// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A program whose HCA ends while it has umad files open. Each of its threads that waits on such a
 * file is woken, each later call returns at once, with an error, and a thread that tries again and
 * again can be cancelled. It prints a line when it has opened the files. Standard input ends when
 * the HCA has.
 *
 * With an argument: other programs have such files, and one of rdma_cm, by exec() or from another
 * process. They have done nothing with them before.
 */
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/ib_user_mad.h>

#include "check.h"
#include "pass_fd.h"

#define PATH "/dev/infiniband/umad0"

struct message {
	struct ib_user_mad_hdr hdr;
	uint8_t mad[256];
};

static uint32_t agent;
static int full; /* has a datagram that is not read */

static int open_one(void)
{
	int fd = open(PATH, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(ioctl(fd, IB_USER_MAD_ENABLE_PKEY) == 0);
	return fd;
}

static struct message request(void)
{
	/* Get(NodeInfo) to LID 1. */
	struct message m = {.hdr = {.id = agent, .timeout_ms = 1000, .lid = htobe16(1)},
			    .mad = {1, 1, 1, 1, [17] = 0x11}};

	return m;
}

static void fill(void)
{
	struct ib_user_mad_reg_req r = {.mgmt_class = 1, .mgmt_class_version = 1};
	struct pollfd p = {.events = POLLIN};
	struct message m;

	full = p.fd = open_one();
	CHECK(ioctl(full, IB_USER_MAD_REGISTER_AGENT, &r) == 0);
	agent = r.id;
	m = request();
	CHECK(write(full, &m, sizeof(m)) == sizeof(m));
	CHECK(poll(&p, 1, -1) == 1);
}

static void *in_read(void *arg)
{
	struct message m;

	CHECK(read(*(int *)arg, &m, sizeof(m)) == -1 && errno == EIO);
	return NULL;
}

static void *in_readv(void *arg)
{
	struct message m;
	struct iovec iov = {&m, sizeof(m)};

	CHECK(readv(*(int *)arg, &iov, 1) == -1 && errno == EIO);
	return NULL;
}

static void *in_poll(void *arg)
{
	struct pollfd p = {.fd = *(int *)arg, .events = POLLIN};

	CHECK(poll(&p, 1, -1) == 1);
	CHECK(p.revents & (POLLERR | POLLHUP));
	return NULL;
}

static void *in_epoll(void *arg)
{
	struct epoll_event e = {.events = EPOLLIN};
	int set = epoll_create1(EPOLL_CLOEXEC);

	CHECK(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, *(int *)arg, &e) == 0);
	CHECK(epoll_wait(set, &e, 1, -1) == 1);
	CHECK(e.events & (EPOLLERR | EPOLLHUP));
	return NULL;
}

/* They make no other call at which a thread is cancelled. */
static void *reads(void *arg)
{
	struct message m;

	for (;;)
		CHECK(read(*(int *)arg, &m, sizeof(m)) == -1);
	return NULL;
}

static void *reads_vectors(void *arg)
{
	struct message m;
	struct iovec iov = {&m, sizeof(m)};

	for (;;)
		CHECK(readv(*(int *)arg, &iov, 1) == -1);
	return NULL;
}

static void *writes(void *arg)
{
	struct message m = request();

	for (;;)
		CHECK(write(*(int *)arg, &m, sizeof(m)) == -1);
	return NULL;
}

static void *writes_vectors(void *arg)
{
	struct message m = request();
	struct iovec iov = {&m, sizeof(m)};

	for (;;)
		CHECK(writev(*(int *)arg, &iov, 1) == -1);
	return NULL;
}

static void begin(pthread_t *thread, void *(*function)(void *), int *fd)
{
	int err = pthread_create(thread, NULL, function, fd);

	CHECK(err == 0);
}

/* The calls that a program makes without waiting. */
static void errors(void)
{
	struct ib_user_mad_reg_req r = {.mgmt_class = 3, .mgmt_class_version = 2, .qpn = 1};
	struct message m = request();

	/* Also where a datagram has come before. */
	CHECK(read(full, &m, sizeof(m)) == -1 && errno == EIO);
	m = request();
	CHECK(write(full, &m, sizeof(m)) == -1 && errno == EIO);
	CHECK(ioctl(full, IB_USER_MAD_REGISTER_AGENT, &r) == -1);
	CHECK(open(PATH, O_RDWR | O_CLOEXEC) == -1);
}

/* What read() is in a program that was compiled with _FORTIFY_SOURCE. */
ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);

enum what { BY_READ, BY_READ_CHK, BY_READV, BY_WRITE, CONNECTIONS, WHATS };

static long first_call(enum what what, int fd)
{
	struct message m = request();
	struct iovec iov[2] = {{NULL, 0}, {&m, sizeof(m)}};
	uint32_t id;
	struct {
		uint32_t number;
		uint16_t in, out;
		uint64_t uid, response;
		uint16_t ps;
		uint8_t qp_type, reserved[5];
	} create = {.in = 24, .out = 4, .response = (uintptr_t)&id, .ps = 0x106, .qp_type = 2};

	switch (what) {
	case BY_READ:
		return read(fd, &m, sizeof(m));
	case BY_READ_CHK:
		return __read_chk(fd, &m, sizeof(m), sizeof(m));
	case BY_READV:
		return readv(fd, iov, 2);
	case BY_WRITE:
		return write(fd, &m, sizeof(m));
	default:
		return write(fd, &create, sizeof(create));
	}
}

/* In the other program, which stops until the first one has seen that it is there. */
static int other(enum what what, int fd)
{
	char byte;

	CHECK(raise(SIGSTOP) == 0);
	CHECK(read(STDIN_FILENO, &byte, 1) == 0);
	for (int i = 0; i < 3; i++) {
		errno = 0;
		if (first_call(what, fd) == -1 && errno == EIO)
			continue;
		fprintf(stderr, "call %d of kind %d: %s\n", i, (int)what, strerror(errno));
		return 1;
	}
	return 0;
}

static void is_there(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	CHECK(kill(pid, SIGCONT) == 0);
}

static pid_t execute(enum what what)
{
	int fd = what == CONNECTIONS ? open("/dev/infiniband/rdma_cm", O_RDWR) : dup(open_one());
	char arg[2][16];
	pid_t pid;

	CHECK(fd >= 0);
	snprintf(arg[0], sizeof(arg[0]), "%d", (int)what);
	snprintf(arg[1], sizeof(arg[1]), "%d", fd);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		execl("/proc/self/exe", "umad_ended", arg[0], arg[1], NULL);
		_exit(1);
	}
	is_there(pid);
	close(fd);
	return pid;
}

/* A process that has begun before the first file was opened gets one from its parent. */
static pid_t pass(void)
{
	int to[2], fd;
	pid_t pid;

	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, to) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		fd = take_fd(to[1]);
		CHECK(fd >= 0);
		exit(other(BY_READ, fd));
	}
	fd = open_one();
	CHECK(!pass_fd(to[0], fd));
	is_there(pid);
	return pid;
}

static void others(void)
{
	pid_t pid[WHATS + 1];
	int status, failed = 0;

	pid[WHATS] = pass();
	for (int what = 0; what < WHATS; what++)
		pid[what] = execute((enum what)what);
	printf("pid=%d threads=1\n", (int)getpid());
	fflush(stdout);
	for (int i = 0; i <= WHATS; i++) {
		CHECK(waitpid(pid[i], &status, 0) == pid[i]);
		failed |= status;
	}
	CHECK(!failed);
	printf("over\n");
}

int main(int argc, char **argv)
{
	static void *(*const waiting[])(void *) = {in_read, in_readv, in_poll, in_epoll};
	static void *(*const trying[])(void *) = {reads, reads_vectors, writes, writes_vectors};
	pthread_t thread[4];
	void *result;
	char byte;
	int fd[4];

	if (argc > 2)
		return other((enum what)atoi(argv[1]), atoi(argv[2]));
	if (argc > 1) {
		others();
		return 0;
	}
	fill();
	for (int i = 0; i < 4; i++) {
		fd[i] = open_one();
		begin(&thread[i], waiting[i], &fd[i]);
	}
	printf("pid=%d threads=5\n", (int)getpid());
	fflush(stdout);
	CHECK(read(STDIN_FILENO, &byte, 1) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	printf("woken\n");
	errors();
	for (int i = 0; i < 4; i++) {
		begin(&thread[i], trying[i], i % 2 ? &full : &fd[0]);
		CHECK(pthread_cancel(thread[i]) == 0);
		CHECK(pthread_join(thread[i], &result) == 0);
		CHECK(result == PTHREAD_CANCELED);
	}
	printf("over\n");
	return 0;
}
