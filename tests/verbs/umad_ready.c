// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: poll, select and epoll say of a umad file that it can be written, whether there is
 * something to read or not; of an issm file that it can be read and written, and epoll does not
 * take it.
 */
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>

#include <rdma/ib_user_mad.h>

#include "verbs_test.h"

enum { FOR_EVER = -1, SOON = 20000 };

static const struct timespec soon = {.tv_sec = 20};
static uint32_t agent, asked;

static int open_umad(void)
{
	struct ib_user_mad_reg_req r = {.mgmt_class = 1, .mgmt_class_version = 1};
	int fd = open("/dev/infiniband/umad0", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), 0);
	CHECK_EQ(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r), 0);
	agent = r.id;
	return fd;
}

struct message {
	struct ib_user_mad_hdr hdr;
	uint8_t mad[256];
};

/* Get(NodeInfo) to the own port, whose answer is there when write() returns. */
static void ask(int fd)
{
	struct message m = {.hdr = {.id = agent, .timeout_ms = 1000, .lid = htobe16(1)},
			    .mad = {1, 1, 1, 1}};

	asked++;
	memcpy(m.mad + 12, &asked, 4);
	m.mad[17] = 0x11;
	CHECK_EQ(write(fd, &m, sizeof(m)), sizeof(m));
}

static void answer(int fd)
{
	struct message m;

	CHECK_EQ(read(fd, &m, sizeof(m)), sizeof(m));
}

static void by_poll(int fd, int issm, int pipe_end)
{
	struct pollfd p[] = {
		{.fd = fd, .events = POLLIN | POLLOUT | POLLWRNORM},
		{.fd = -1, .events = POLLOUT},
		{.fd = 1000, .events = POLLOUT},
		{.fd = issm, .events = POLLIN},
		{.fd = pipe_end, .events = POLLIN},
	};

	CHECK_EQ(poll(p, 2, FOR_EVER), 1);
	CHECK_EQ(p[0].revents, POLLOUT | POLLWRNORM);
	CHECK_EQ(p[1].revents, 0);
	CHECK_EQ(ppoll(p, 1, NULL, NULL), 1);
	CHECK_EQ(p[0].revents, POLLOUT | POLLWRNORM);
	CHECK_EQ(poll(p, 5, FOR_EVER), 3);
	CHECK_EQ(p[2].revents, POLLNVAL);
	CHECK_EQ(p[3].revents, POLLIN);
	CHECK_EQ(p[4].revents, 0);
	ask(fd);
	CHECK_EQ(poll(p, 1, FOR_EVER), 1);
	CHECK_EQ(p[0].revents, POLLIN | POLLOUT | POLLWRNORM);
	answer(fd);
	p[0].events = POLLIN;
	CHECK_EQ(poll(p, 1, 0), 0);
	CHECK_EQ(ppoll(p, 1, &(struct timespec){.tv_nsec = 1000}, NULL), 0);
	ask(fd);
	CHECK_EQ(poll(p, 1, SOON), 1);
	CHECK_EQ(p[0].revents, POLLIN);
	answer(fd);
	p[3].events = POLLIN | POLLOUT | POLLPRI;
	CHECK_EQ(poll(p + 3, 1, FOR_EVER), 1);
	CHECK_EQ(p[3].revents, POLLIN | POLLOUT);
}

/*
 * A set that ends with its page: kernels look at none of the descriptors behind the process's
 * table.
 */
static void by_short_set(int fd)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *mem =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timeval left = {.tv_sec = 20};
	fd_set *out;

	CHECK(mem != MAP_FAILED);
	CHECK_EQ(mprotect(mem + page, page, PROT_NONE), 0);
	out = (fd_set *)(mem + page - sizeof(*out));
	FD_SET(fd, out);
	CHECK_EQ(select(32768, NULL, out, NULL, &left), 1);
	CHECK(FD_ISSET(fd, out));
	munmap(mem, 2 * page);
}

static void by_select(int fd, int issm, int pipe_end)
{
	struct timeval left = {.tv_sec = 20};
	fd_set in, out;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fd, &in);
	FD_SET(pipe_end, &in);
	FD_SET(fd, &out);
	CHECK_EQ(select(100, &in, &out, NULL, &left), 1);
	CHECK(FD_ISSET(fd, &out) && !FD_ISSET(fd, &in) && !FD_ISSET(pipe_end, &in));
	ask(fd);
	FD_SET(fd, &in);
	CHECK_EQ(pselect(100, &in, &out, NULL, &soon, NULL), 2);
	CHECK(FD_ISSET(fd, &out) && FD_ISSET(fd, &in));
	answer(fd);
	left = (struct timeval){.tv_usec = 1000};
	CHECK_EQ(select(100, &in, NULL, NULL, &left), 0);
	FD_ZERO(&out);
	FD_SET(issm, &in);
	FD_SET(issm, &out);
	CHECK_EQ(select(100, &in, &out, NULL, NULL), 2);
	CHECK(FD_ISSET(issm, &out) && FD_ISSET(issm, &in));
	by_short_set(fd);
}

/* Not of every C library. */
int epoll_pwait2(int ep, struct epoll_event *e, int n, const struct timespec *timeout,
		 const sigset_t *mask) __attribute__((weak));

/* By one call after the other. */
static int wait_in(int ep, struct epoll_event *e, bool long_enough)
{
	const struct timespec none = {0};
	static int calls;
	int n;

	switch (calls++ % 3) {
	case 0:
		return epoll_wait(ep, e, 4, long_enough ? SOON : 0);
	case 1:
		return epoll_pwait(ep, e, 4, long_enough ? SOON : 0, NULL);
	default:
		n = epoll_pwait2 ? epoll_pwait2(ep, e, 4, long_enough ? &soon : &none, NULL) : -1;
		if (n >= 0 || (epoll_pwait2 && errno != ENOSYS))
			return n;
		printf("# no epoll_pwait2(): that part is left out\n");
		return epoll_wait(ep, e, 4, long_enough ? SOON : 0);
	}
}

static void expect(int ep, uint32_t events)
{
	struct epoll_event e[4];

	memset(e, 0, sizeof(e));
	CHECK_EQ(wait_in(ep, e, events), events ? 1 : 0);
	CHECK_EQ(e[0].events, events);
	CHECK_EQ(e[0].data.u64, events ? UINT64_C(0x123456789abcdef0) : 0);
}

static void by_epoll(int fd, int issm)
{
	struct epoll_event e = {.data.u64 = UINT64_C(0x123456789abcdef0)};
	struct epoll_event in = {.events = EPOLLIN}, one;
	int ep = epoll_create1(EPOLL_CLOEXEC), ends[2];
	char byte;
	pid_t pid;

	CHECK(ep >= 0);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, issm, &e), -1);
	CHECK_EQ(errno, EPERM);
	CHECK_EQ(epoll_ctl(-1, EPOLL_CTL_ADD, issm, &e), -1);
	CHECK_EQ(errno, EBADF);
	/* As long as it asks for that, it is told; a child that has the instance, too. */
	e.events = EPOLLIN | EPOLLOUT;
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e), 0);
	for (int i = 0; i < 3; i++)
		expect(ep, EPOLLOUT);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		alarm(test_seconds());
		expect(ep, EPOLLOUT);
		_exit(0);
	}
	join(pid);
	ask(fd);
	expect(ep, EPOLLIN | EPOLLOUT);
	answer(fd);
	e.events = EPOLLIN;
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e), 0);
	expect(ep, 0);
	/* Once, and then when there is something new. */
	e.events = EPOLLIN | EPOLLOUT | EPOLLET;
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e), 0);
	expect(ep, EPOLLOUT);
	expect(ep, 0);
	ask(fd);
	expect(ep, EPOLLIN | EPOLLOUT);
	expect(ep, 0);
	answer(fd);
	/* It waits for a place among what is reported. */
	CHECK_EQ(pipe(ends), 0);
	CHECK_EQ(write(ends[1], "x", 1), 1);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, ends[0], &in), 0);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e), 0);
	CHECK_EQ(epoll_wait(ep, &one, 1, SOON), 1);
	CHECK_EQ(one.events, EPOLLIN);
	CHECK_EQ(read(ends[0], &byte, 1), 1);
	expect(ep, EPOLLOUT);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_DEL, ends[0], NULL), 0);
	close(ends[0]);
	close(ends[1]);
	/* However many were closed before they had been told: files, or whole instances */
	for (int i = 0; i < 40; i++) {
		int copy = dup(fd), other = i < 20 ? ep : epoll_create1(EPOLL_CLOEXEC);

		CHECK(copy >= 0 && other >= 0);
		/* So that each has a number of its own */
		CHECK_EQ(dup2(copy, 100 + i), 100 + i);
		close(copy);
		CHECK_EQ(epoll_ctl(other, EPOLL_CTL_ADD, 100 + i, &e), 0);
		if (other != ep)
			close(other);
		else
			CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_DEL, 100 + i, &e), 0);
		close(100 + i);
	}
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e), 0);
	expect(ep, EPOLLOUT);
	expect(ep, 0);
	/* Once, until it asks again. */
	e.events = EPOLLIN | EPOLLOUT | EPOLLONESHOT;
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e), 0);
		if (i)
			ask(fd);
		expect(ep, i ? EPOLLIN | EPOLLOUT : EPOLLOUT);
		expect(ep, 0);
	}
	answer(fd);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL), 0);
	expect(ep, 0);
	close(ep);
}

int main(void)
{
	int fd, issm, ends[2];

	test_begin();
	fd = open_umad();
	issm = open("/dev/infiniband/issm0", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	CHECK(issm >= 0);
	CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
	by_poll(fd, issm, ends[0]);
	by_select(fd, issm, ends[0]);
	by_epoll(fd, issm);
	return 0;
}
