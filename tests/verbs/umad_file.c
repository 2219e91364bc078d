// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a umad file as a descriptor: nothing to read, poll and epoll, a read that sleeps,
 * signals, cancellation, addresses that cannot be read or written, copies of the descriptor by dup,
 * fork, exec and a socket, a file that is opened once more, a descriptor whose number is reused
 * while a thread reads; and issm.
 */
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include <rdma/ib_user_mad.h>

#include "verbs_test.h"

struct message {
	struct ib_user_mad_hdr hdr;
	uint8_t mad[256];
};
_Static_assert(sizeof(struct message) == 320, "the header with its P_Key index");

static const char path[] = "/dev/infiniband/umad0";
static uint32_t tid;

static int open_umad(int flags)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | flags);

	CHECK(fd >= 0);
	CHECK_EQ(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), 0);
	return fd;
}

/* For requests of a class, which this agent does not answer. */
static uint32_t reg(int fd, uint8_t class, uint8_t qpn)
{
	struct ib_user_mad_reg_req r = {.qpn = qpn, .mgmt_class = class, .mgmt_class_version = 1};

	CHECK_EQ(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r), 0);
	return r.id;
}

/* Get(NodeInfo) to a LID. */
static uint32_t ask(int fd, uint32_t agent, uint16_t lid, uint32_t timeout)
{
	struct message m = {.hdr = {.id = agent, .timeout_ms = timeout, .lid = htobe16(lid)},
			    .mad = {1, 1, 1, 1}};

	tid++;
	memcpy(m.mad + 12, &tid, 4);
	m.mad[17] = 0x11;
	CHECK_EQ(write(fd, &m, sizeof(m)), sizeof(m));
	return tid;
}

static void check(const struct message *m, long len, uint32_t asked)
{
	CHECK_EQ(len, sizeof(*m));
	CHECK_EQ(m->hdr.status, 0);
	CHECK_EQ(m->hdr.length, sizeof(*m));
	CHECK_EQ(m->mad[3], 0x81);
	CHECK_EQ(memcmp(m->mad + 12, &asked, 4), 0);
}

static void answer(int fd, uint32_t asked)
{
	struct message m;

	check(&m, read(fd, &m, sizeof(m)), asked);
}

static void nothing_to_read(void)
{
	int fd = open_umad(O_NONBLOCK), ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev = {.events = EPOLLIN};
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint32_t agent = reg(fd, 1, 0), n;
	struct message m;

	CHECK_EQ(read(fd, &m, sizeof(m)), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(read(fd, &m, 20), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(poll(&p, 1, 0), 0);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), 0);
	n = ask(fd, agent, 1, 1000);
	CHECK_EQ(poll(&p, 1, 20000), 1);
	CHECK_EQ(p.revents & POLLIN, POLLIN);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 20000), 1);
	answer(fd, n);
	CHECK_EQ(poll(&p, 1, 0), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), -1);
	CHECK_EQ(errno, ESPIPE);
	close(ep);
	close(fd);
}

/* Nobody has the LID, and nobody takes a Send: the time is over, or nothing comes. */
static void no_answer(void)
{
	int fd = open_umad(0);
	uint32_t agent = reg(fd, 1, 0);
	struct message m;

	ask(fd, agent, 77, 20);
	CHECK_EQ(read(fd, &m, sizeof(m)), sizeof(m.hdr) + 24);
	CHECK_EQ(m.hdr.status, ETIMEDOUT);
	memset(&m, 0, sizeof(m));
	m.hdr.id = agent;
	m.hdr.timeout_ms = 20;
	m.hdr.lid = htobe16(1);
	memcpy(m.mad, (uint8_t[]){1, 1, 1, 3}, 4);
	CHECK_EQ(write(fd, &m, sizeof(m)), sizeof(m));
	CHECK_EQ(read(fd, &m, sizeof(m)), sizeof(m.hdr) + 24);
	CHECK_EQ(m.hdr.status, ETIMEDOUT);
	close(fd);
}

static void read_by_elements(void)
{
	int fd = open_umad(0);
	uint32_t agent = reg(fd, 1, 0), n = ask(fd, agent, 1, 1000);
	struct message m;
	struct iovec in[3] = {{NULL, 0}, {&m, 24}, {&m, sizeof(m)}};

	CHECK_EQ(readv(fd, in, 2), -1);
	CHECK_EQ(errno, EINVAL);
	in[1] = in[2];
	check(&m, readv(fd, in, 2), n);
	close(fd);
}

/* Nothing is sent then, and what cannot be given away stays. */
static void bad_addresses(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open_umad(O_NONBLOCK);
	uint32_t agent = reg(fd, 1, 0), n;
	struct message m = {.hdr = {.id = agent, .timeout_ms = 1000, .lid = htobe16(1)},
			    .mad = {1, 1, 1, 1, [17] = 0x11}};
	const size_t here[] = {0, 20, sizeof(m.hdr), sizeof(m.hdr) + 24, sizeof(m) - 1};
	struct iovec iov = {at + page, sizeof(m)};

	CHECK(at != MAP_FAILED);
	CHECK_EQ(mprotect(at + page, page, PROT_NONE), 0);
	for (size_t i = 0; i < sizeof(here) / sizeof(*here); i++) {
		char *from = at + page - here[i];

		memcpy(from, &m, here[i]);
		CHECK_EQ(write(fd, from, sizeof(m)), -1);
		CHECK_EQ(errno, EFAULT);
	}
	CHECK_EQ(writev(fd, &iov, 1), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(read(fd, &m, sizeof(m)), -1);
	CHECK_EQ(errno, EAGAIN);
	n = ask(fd, agent, 1, 1000);
	CHECK_EQ(read(fd, at + page - 20, sizeof(m)), -1);
	CHECK_EQ(errno, EFAULT);
	answer(fd, n);
	close(fd);
	munmap(at, 2 * page);
}

static void copies(void)
{
	int fd = open_umad(0), twin = dup(fd), to[2];
	uint32_t agent = reg(twin, 1, 0), n = ask(fd, agent, 1, 1000);
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.space,
			     .msg_controllen = sizeof(control.space)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	pid_t pid;

	CHECK(twin >= 0);
	answer(twin, n);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, to), 0);
	n = ask(twin, agent, 1, 1000);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		int passed;

		alarm(test_seconds());
		answer(fd, n);
		ask(fd, agent, 1, 1000);
		close(fd);
		close(twin);
		post(4, 1);
		CHECK_EQ(recvmsg(to[1], &msg, 0), 1);
		memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(passed));
		answer(passed, n + 2);
		_exit(0);
	}
	await(4, 1);
	answer(fd, n + 1);
	tid = n + 1;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	ask(fd, agent, 1, 1000);
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	CHECK_EQ(sendmsg(to[0], &msg, 0), 1);
	join(pid);
	close(to[0]);
	close(to[1]);
	close(fd);
	close(twin);
}

/* What read() is in a program that was compiled with _FORTIFY_SOURCE. */
ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);

enum how { BY_READ, BY_READ_CHK, BY_READV, WAYS };

static void answer_by(enum how how, int fd, uint32_t asked)
{
	struct message m;
	struct iovec in[2] = {{NULL, 0}, {&m, sizeof(m)}};

	if (how == BY_READ)
		check(&m, read(fd, &m, sizeof(m)), asked);
	else if (how == BY_READ_CHK)
		check(&m, __read_chk(fd, &m, sizeof(m), sizeof(m)), asked);
	else
		check(&m, readv(fd, in, 2), asked);
}

/*
 * Another program has the descriptor. Before anything else it reads what was sent before it began.
 */
static void other_program(enum how how)
{
	int fd = open_umad(0), twin = dup(fd);
	uint32_t agent = reg(fd, 1, 0), n;
	char arg[4][16];
	pid_t pid;

	ask(fd, agent, 1, 1000);
	n = ask(fd, agent, 1, 1000);
	pid = fork();
	CHECK(pid >= 0 && twin >= 0);
	if (!pid) {
		snprintf(arg[0], sizeof(arg[0]), "%d", twin);
		snprintf(arg[1], sizeof(arg[1]), "%u", agent);
		snprintf(arg[2], sizeof(arg[2]), "%u", n);
		snprintf(arg[3], sizeof(arg[3]), "%d", how);
		execl("/proc/self/exe", "umad_file", arg[0], arg[1], arg[2], arg[3], NULL);
		_exit(1);
	}
	close(twin);
	join(pid);
	answer(fd, n + 2);
	tid = n + 2;
	close(fd);
}

static int executed(char **arg)
{
	enum how how = (enum how)atoi(arg[4]);
	int fd = atoi(arg[1]);

	alarm(test_seconds());
	tid = (uint32_t)strtoul(arg[3], NULL, 10);
	answer_by(how, fd, tid - 1);
	answer_by(how, fd, tid);
	ask(fd, (uint32_t)atoi(arg[2]), 1, 1000);
	answer_by(how, fd, tid);
	ask(fd, (uint32_t)atoi(arg[2]), 1, 1000);
	return 0;
}

/* To read too little, in a program that does not know the file yet, takes nothing away. */
static void too_little(void)
{
	int fd = open_umad(O_NONBLOCK);
	uint32_t agent = reg(fd, 1, 0), n;
	struct message m;

	n = ask(fd, agent, 1, 1000);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(read(fd, &m, 20), -1);
		CHECK_EQ(errno, EINVAL);
	}
	answer(fd, n);
	close(fd);
}

/* A second open file of the same kind, and a look at it, are no ends of the first. */
static void opened_again(void)
{
	char name[64];
	int fd = open_umad(0), again;
	uint32_t agent = reg(fd, 1, 0);

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	for (int i = 0; i < 3; i++) {
		again = open(name, (i == 2 ? O_PATH : O_RDONLY) | O_CLOEXEC);
		CHECK(again >= 0);
		if (i == 1)
			answer(again, ask(fd, agent, 1, 1000));
		close(again);
		answer(fd, ask(fd, agent, 1, 1000));
	}
	close(fd);
	/* Its methods are free at once, and so is what the next one registers. */
	for (int i = 0; i < 20; i++) {
		struct ib_user_mad_reg_req r = {.qpn = 1,
						.mgmt_class = 0x0c,
						.mgmt_class_version = 1,
						.method_mask = {1 << 3}};

		fd = open_umad(0);
		CHECK_EQ(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r), 0);
		close(fd);
	}
}

static volatile sig_atomic_t hits;

static void on_signal(int sig)
{
	(void)sig;
	hits++;
}

static void *reads(void *arg)
{
	int fd = *(int *)arg;
	struct message m;
	long n;

	post(1, (uint64_t)gettid());
	n = read(fd, &m, sizeof(m));
	post(2, n < 0 ? (uint64_t)-errno : (uint64_t)n);
	return NULL;
}

/* Does the thread sleep in a system call? */
static bool sleeps(pid_t thread)
{
	char name[64], text[512] = "", *state;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", thread);
	f = fopen(name, "r");
	CHECK(f);
	CHECK(fread(text, 1, sizeof(text) - 1, f));
	fclose(f);
	state = strrchr(text, ')');
	CHECK(state);
	return state[2] == 'S';
}

/* It may also sleep on its way there, which is as good for what follows. */
static void until_it_sleeps(void)
{
	for (int i = 0; i < 10; i++) {
		while (!sleeps((pid_t)board->word[1]))
			sleep_ms(1);
		sleep_ms(5);
	}
}

static pthread_t begin_read(int *fd)
{
	pthread_t t;

	post(1, 0);
	post(2, 0);
	CHECK_EQ(pthread_create(&t, NULL, reads, fd), 0);
	await(1, 1);
	until_it_sleeps();
	return t;
}

/*
 * Handlers with SA_RESTART run, and the thread reads on. A thread that is cancelled takes nothing
 * away.
 */
static void restarted_and_cancelled(void)
{
	struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	int fd = open_umad(0);
	uint32_t agent = reg(fd, 1, 0);
	pthread_t t = begin_read(&fd);
	void *result;

	CHECK_EQ(sigaction(SIGUSR1, &a, NULL), 0);
	for (int i = 0; i < 20; i++) {
		int before = hits;

		CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
		while (hits == before)
			sleep_ms(1);
	}
	until_it_sleeps();
	CHECK_EQ(board->word[2], 0);
	ask(fd, agent, 1, 1000);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(board->word[2], sizeof(struct message));
	t = begin_read(&fd);
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	answer(fd, ask(fd, agent, 1, 1000));
	close(fd);
}

static void sleeping(void)
{
	struct sigaction a = {.sa_handler = on_signal};
	int fd = open_umad(0), twin = dup(fd), other;
	uint32_t agent = reg(fd, 1, 0);
	pthread_t t = begin_read(&fd);

	CHECK(twin >= 0);
	CHECK_EQ(sigaction(SIGUSR1, &a, NULL), 0);
	while (!board->word[2]) {
		CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
		sleep_ms(1);
	}
	CHECK_EQ((int64_t)board->word[2], -EINTR);
	CHECK_EQ(pthread_join(t, NULL), 0);
	/* The thread goes on reading the file that it has begun with. */
	t = begin_read(&fd);
	other = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	CHECK_EQ(dup3(other, fd, O_CLOEXEC), fd);
	ask(twin, agent, 1, 1000);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(board->word[2], sizeof(struct message));
	close(other);
	close(fd);
	close(twin);
}

static uint32_t capabilities(void)
{
	struct ibv_context *c = open_device(0);
	struct ibv_port_attr a;

	CHECK_EQ(ibv_query_port(c, 1, &a), 0);
	CHECK_EQ(ibv_close_device(c), 0);
	return a.port_cap_flags;
}

static void waits_for_issm(int arg)
{
	int fd;

	close(arg); /* the parent's, which would still be open */
	post(3, 1);
	fd = open("/dev/infiniband/issm0", O_RDONLY);
	CHECK(fd >= 0);
	post(3, 2);
	pause();
}

static void subnet_manager(void)
{
	uint32_t none = capabilities();
	struct stat st;
	pid_t pid;
	char byte;
	int fd = open("/dev/char/231:64", O_NONBLOCK | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(fstat(fd, &st), 0);
	CHECK(S_ISCHR(st.st_mode));
	CHECK_EQ(st.st_rdev, makedev(231, 64));
	CHECK_EQ(none & 2, 0);
	CHECK_EQ(capabilities(), none | 2);
	CHECK_EQ(open("/dev/infiniband/issm0", O_NONBLOCK), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(read(fd, &byte, 1), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), -1);
	CHECK_EQ(errno, ENOTTY);
	/* Who does not say O_NONBLOCK waits. */
	pid = spawn(waits_for_issm, fd);
	await(3, 1);
	sleep_ms(50);
	CHECK_EQ(board->word[3], 1);
	close(fd);
	await(3, 2);
	CHECK_EQ(capabilities(), none | 2);
	kill(pid, SIGKILL);
	join_killed(pid, SIGKILL);
	while (capabilities() != none)
		sleep_ms(1);
}

static void newer_ioctl(void)
{
	struct ib_user_mad_reg_req2 r = {.mgmt_class = 1, .mgmt_class_version = 1};
	bool mainline = !access("/sys/class/infiniband/mlx4_0/hw_counters", F_OK);
	int fd = open(path, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &r), mainline ? 0 : -1);
	CHECK(mainline || errno == ENOTTY);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc == 5)
		return executed(argv);
	test_begin();
	nothing_to_read();
	no_answer();
	read_by_elements();
	bad_addresses();
	copies();
	for (int how = 0; how < WAYS; how++)
		other_program((enum how)how);
	too_little();
	opened_again();
	sleeping();
	restarted_and_cancelled();
	subnet_manager();
	newer_ioctl();
	return 0;
}
