// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A program whose HCA ends while it has umad files open. Each of its threads that waits on such a file is woken, each
 * later call returns at once, with an error, and a thread that tries again and again can be cancelled. It prints a line
 * when it has opened the files. Standard input ends when the HCA has.
 */
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/ib_user_mad.h>

#include "check.h"

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

int main(void)
{
	static void *(*const waiting[])(void *) = {in_read, in_readv, in_poll, in_epoll};
	static void *(*const trying[])(void *) = {reads, reads_vectors, writes, writes_vectors};
	pthread_t thread[4];
	void *result;
	char byte;
	int fd[4];

	fill();
	for (int i = 0; i < 4; i++) {
		fd[i] = open_one();
		begin(&thread[i], waiting[i], &fd[i]);
	}
	printf("pid=%d\n", (int)getpid());
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
