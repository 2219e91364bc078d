// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a program closes all descriptors that it does not know, while other threads of it
 * use the device. Its own are closed, no file of its own gets a byte from elsewhere or is closed by
 * somebody else, and the device goes on. Calls return what they return without a device. The part
 * about a process that gives up its user first needs root.
 * Quick: half
 */
#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <rdma/ib_user_mad.h>

#include "verbs_test.h"

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define NOBODY 65534

/* Numbers of the program's below BASE are in use; it knows of no descriptor from there on. */
enum { BASE = 100, FEW = 20, TOP = 1100, ROUNDS = 150 };

/* The C library has them since 2.34. */
int close_range(unsigned int first, unsigned int last, int flags);
void closefrom(int first);
#pragma weak close_range
#pragma weak closefrom

static struct side s, other;
static struct ibv_qp *a, *b;
static bool done;

/* Sends a message and takes the event of its completion. */
static void one_message(uint64_t id)
{
	send_with_event(&s, a, b, id);
}

/* This has the shim ask the kernel about the process's memory, and the daemon for objects. */
static void register_once(void)
{
	size_t len = 16 * 4096;
	char *buf = malloc(len);
	struct ibv_mr *mr;
	struct ibv_cq *cq;

	CHECK(buf);
	memset(buf, 1, len);
	mr = ibv_reg_mr(other.pd, buf, len, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	free(buf);
	cq = ibv_create_cq(other.context, 16, NULL, NULL, 0);
	CHECK(cq);
	CHECK_EQ(ibv_destroy_cq(cq), 0);
}

static void *messages(void *arg)
{
	for (uint64_t id = 1; !__atomic_load_n(&done, __ATOMIC_ACQUIRE); id++)
		one_message(id);
	return arg;
}

static void *registers(void *arg)
{
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		register_once();
	return arg;
}

static pthread_t user[2];

static void begin_use(void)
{
	done = false;
	CHECK_EQ(pthread_create(&user[0], NULL, messages, NULL), 0);
	CHECK_EQ(pthread_create(&user[1], NULL, registers, NULL), 0);
}

static void end_use(void)
{
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(user[0], NULL), 0);
	CHECK_EQ(pthread_join(user[1], NULL), 0);
}

/* ---- ways to close from a number on ---- */

static void by_range(int first)
{
	if (close_range)
		CHECK_EQ(close_range((unsigned int)first, ~0U, 0), 0);
}

static void by_from(int first)
{
	if (closefrom)
		closefrom(first);
}

static void by_each(int first)
{
	for (int fd = first; fd < TOP; fd++)
		(void)close(fd);
}

static void (*const close_all[])(int first) = {by_range, by_from, by_each};
#define WAYS ((int)(sizeof(close_all) / sizeof(close_all[0])))

static bool may(int way)
{
	return way == 0	  ? close_range && syscall(SYS_close_range, TOP, TOP, 0) == 0
	       : way == 1 ? closefrom != NULL
			  : true;
}

/* ---- the program's own files ---- */

/* All numbers below BASE are taken, so what the shim opens for a moment does not begin there. */
static void fill_low(void)
{
	struct rlimit files;
	int fd;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = files.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
	do
		CHECK((fd = open("/dev/null", O_RDONLY)) >= 0);
	while (fd < BASE - 1);
	if (fd >= BASE)
		CHECK_EQ(close(fd), 0);
}

static int pipe_of[2]; /* nobody but the program writes to it */
static struct stat pipe_is;

static void make_pipe(void)
{
	int fd[2];

	CHECK_EQ(pipe2(fd, O_NONBLOCK), 0);
	/* Two of those that fill the low numbers make room. */
	for (int i = 0; i < 2; i++) {
		pipe_of[i] = BASE - 1 - i;
		CHECK_EQ(dup2(fd[i], pipe_of[i]), pipe_of[i]);
		CHECK_EQ(close(fd[i]), 0);
	}
	CHECK_EQ(fstat(pipe_of[1], &pipe_is), 0);
}

static bool is_pipe(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_ino == pipe_is.st_ino && st.st_dev == pipe_is.st_dev;
}

static void pipe_is_empty(void)
{
	char byte;

	CHECK_EQ(read(pipe_of[0], &byte, 1), -1);
	CHECK_EQ(errno, EAGAIN);
}

/* Opens some, closes all, and looks that nothing has become of them but that. */
static void round_of(int way)
{
	int mine[FEW];

	for (int i = 0; i < FEW; i++) {
		mine[i] = dup(pipe_of[1]);
		CHECK(mine[i] >= BASE);
	}
	/* At numbers that the shim may have */
	CHECK_EQ(dup2(pipe_of[1], TOP - 1), TOP - 1);
	sched_yield();
	for (int i = 0; i < FEW; i++)
		CHECK(is_pipe(mine[i]));
	CHECK(is_pipe(TOP - 1));
	CHECK_EQ(close(mine[0]), 0);
	close_all[way](BASE);
	for (int i = 0; i < FEW; i++)
		CHECK(!is_pipe(mine[i]));
	CHECK(!is_pipe(TOP - 1));
}

static void beside_threads(int way)
{
	if (!may(way))
		return;
	begin_use();
	for (int i = 0; i < ROUNDS; i++)
		round_of(way);
	end_use();
	pipe_is_empty();
}

/* ---- numbers that are the shim's ---- */

/* The lowest one from there on, or 0. */
static int next_shims(int from)
{
	DIR *dir = opendir("/proc/self/fd");
	int found = 0;
	struct dirent *d;

	CHECK(dir);
	while ((d = readdir(dir))) {
		int fd = atoi(d->d_name);

		if (fd >= from && fd >= BASE && fd != dirfd(dir) && (!found || fd < found))
			found = fd;
	}
	closedir(dir);
	return found;
}

static void returns(void)
{
	int n = 0;

	for (int fd = BASE; (fd = next_shims(fd)); fd++, n++) {
		struct stat before, after;

		CHECK_EQ(fstat(fd, &before), 0);
		errno = 0;
		CHECK_EQ(close(fd), -1);
		CHECK_EQ(errno, EBADF);
		errno = ENOTTY;
		if (may(0)) {
			CHECK_EQ(close_range((unsigned int)fd, (unsigned int)fd, 0), 0);
			CHECK_EQ(close_range((unsigned int)fd, (unsigned int)fd,
					     (int)CLOSE_RANGE_CLOEXEC),
				 0);
			CHECK_EQ(errno, ENOTTY);
		}
		CHECK_EQ(fstat(fd, &after), 0);
		CHECK_EQ(after.st_ino, before.st_ino);
	}
	CHECK(n > 0);
	CHECK_EQ(close(-1), -1);
	CHECK_EQ(errno, EBADF);
	CHECK_EQ(close(TOP + 7), -1);
	CHECK_EQ(errno, EBADF);
	if (!may(0))
		return;
	CHECK_EQ(close_range(BASE + 1, BASE, 0), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(close_range(BASE, ~0U, 1 << 20), -1);
	CHECK_EQ(errno, EINVAL);
}

/* The program puts a file of its own where the shim has one. */
static void takes_numbers(void)
{
	static int taken[TOP];
	int n = 0;

	for (int fd = BASE; n < FEW && (fd = next_shims(fd)); fd++) {
		if (n % 2)
			CHECK_EQ(dup3(pipe_of[1], fd, O_CLOEXEC), fd);
		else
			CHECK_EQ(dup2(pipe_of[1], fd), fd);
		CHECK(is_pipe(fd));
		taken[n++] = fd;
		register_once();
		one_message((uint64_t)fd);
	}
	CHECK(n > 0);
	for (int i = 0; i < n; i++) {
		CHECK(is_pipe(taken[i]));
		CHECK_EQ(close(taken[i]), 0);
	}
	pipe_is_empty();
	register_once();
	one_message(5);
}

/* The same beside threads that use the device. */
static void takes_numbers_beside_threads(void)
{
	begin_use();
	for (int i = 0; i < ROUNDS; i++)
		for (int fd = 895; fd < 920; fd++) {
			CHECK_EQ(dup2(pipe_of[1], fd), fd);
			CHECK(is_pipe(fd));
			CHECK_EQ(close(fd), 0);
		}
	end_use();
	pipe_is_empty();
}

/* ---- the same while a thread sleeps in a read ---- */

struct message {
	struct ib_user_mad_hdr hdr;
	uint8_t mad[256];
};

static void *reads(void *arg)
{
	struct message m;

	post(1, (uint64_t)gettid());
	CHECK_EQ(read(*(int *)arg, &m, sizeof(m)), sizeof(m));
	post(2, 1);
	return NULL;
}

static bool is_asleep(pid_t thread)
{
	char name[64], text[512] = "", *state;
	int fd;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", thread);
	CHECK((fd = open(name, O_RDONLY)) >= 0);
	CHECK(read(fd, text, sizeof(text) - 1) > 0);
	CHECK_EQ(close(fd), 0);
	state = strrchr(text, ')');
	CHECK(state);
	return state[2] == 'S';
}

/* It may also sleep on its way there, which is as good for what follows. */
static void until_it_sleeps(void)
{
	for (int i = 0; i < 10; i++) {
		while (!is_asleep((pid_t)board->word[1]))
			sleep_ms(1);
		sleep_ms(5);
	}
}

static void ask(int fd, uint32_t agent)
{
	struct message m = {.hdr = {.id = agent, .timeout_ms = 1000, .lid = htobe16(1)},
			    .mad = {1, 1, 1, 1}};

	m.mad[15] = 7;
	m.mad[17] = 0x11;
	CHECK_EQ(write(fd, &m, sizeof(m)), sizeof(m));
}

/* All numbers of the shim's are the program's pipe then, in which there is a byte. */
static int take_all(int *taken)
{
	int n = 0;

	for (int fd = BASE; n < TOP && (fd = next_shims(fd)); fd++) {
		if (is_pipe(fd))
			continue;
		CHECK_EQ(dup2(pipe_of[0], fd), fd);
		taken[n++] = fd;
	}
	return n;
}

static void give_back(const int *taken, int n)
{
	for (int i = 0; i < n; i++) {
		CHECK(is_pipe(taken[i]));
		CHECK_EQ(close(taken[i]), 0);
	}
}

/*
 * What the thread sleeps in is the shim's, and cannot move. Another reader may have taken what has
 * woken it, and it goes back to sleep: here a byte of nobody's wakes it.
 */
static void takes_numbers_of_a_sleeper(bool woken)
{
	struct ib_user_mad_reg_req r = {.mgmt_class = 1, .mgmt_class_version = 1};
	static int taken[TOP];
	int fd = BASE - 3, n, opened = open("/dev/infiniband/umad0", O_RDWR), fifo;
	char name[64], byte = 1;
	pthread_t t;

	CHECK(opened >= 0);
	if (opened != fd) {
		CHECK_EQ(dup2(opened, fd), fd);
		CHECK_EQ(close(opened), 0);
	}
	CHECK_EQ(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), 0);
	CHECK_EQ(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r), 0);
	post(1, 0);
	post(2, 0);
	CHECK_EQ(pthread_create(&t, NULL, reads, &fd), 0);
	await(1, 1);
	until_it_sleeps();
	n = take_all(taken);
	CHECK(n > 0);
	CHECK_EQ(write(pipe_of[1], &byte, 1), 1);
	if (woken) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		fifo = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_NONBLOCK);
		CHECK(fifo >= 0);
		CHECK_EQ(syscall(SYS_write, fifo, &byte, 1), 1);
		CHECK_EQ(syscall(SYS_close, fifo), 0);
		until_it_sleeps();
		CHECK_EQ(board->word[2], 0);
	}
	ask(fd, r.id);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(board->word[2], 1);
	give_back(taken, n);
	CHECK_EQ(read(pipe_of[0], &byte, 1), 1);
	pipe_is_empty();
	CHECK_EQ(close(fd), 0);
	register_once();
	one_message(7);
}

/*
 * The program has closed the shim's with system calls of its own, and its files have the numbers
 * since: it closes them like others.
 */
static void takes_closed_numbers(void)
{
	int n = 0;

	for (int fd = BASE; n < FEW && (fd = next_shims(fd)); fd++, n++) {
		CHECK_EQ(syscall(SYS_close, fd), 0);
		CHECK_EQ(syscall(SYS_dup3, pipe_of[1], fd, 0), fd);
		if (n % 2 && may(0))
			CHECK_EQ(close_range((unsigned int)fd, (unsigned int)fd, 0), 0);
		else
			CHECK_EQ(close(fd), 0);
		CHECK(!is_pipe(fd));
		register_once();
		one_message((uint64_t)fd);
	}
	CHECK(n > 0);
	pipe_is_empty();
}

/* A thread with a table of its own */
static void *unshares(void *arg)
{
	int fd = dup(pipe_of[1]);

	CHECK(fd >= BASE);
	CHECK_EQ(close_range(BASE, ~0U, (int)CLOSE_RANGE_UNSHARE), 0);
	CHECK(!is_pipe(fd));
	register_once();
	*(int *)arg = fd;
	return NULL;
}

static void in_a_thread(void)
{
	pthread_t t;
	int fd;

	if (!may(0))
		return;
	CHECK_EQ(pthread_create(&t, NULL, unshares, &fd), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	/* It was closed for that thread alone. */
	CHECK(is_pipe(fd));
	CHECK_EQ(close(fd), 0);
	register_once();
}

/* ---- children ---- */

static void children(void)
{
	pid_t pid;
	int status;

	for (int way = 0; way < WAYS; way++) {
		int fd = dup(pipe_of[1]);

		if (!may(way))
			continue;
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			close_all[way](3);
			_exit(fcntl(fd, F_GETFD) != -1 || fcntl(3, F_GETFD) != -1);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
		pid = vfork();
		CHECK(pid >= 0);
		if (!pid) {
			close_all[way](3);
			execl("/bin/true", "true", (char *)NULL);
			_exit(127);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
		CHECK(is_pipe(fd));
		CHECK_EQ(close(fd), 0);
		one_message(6);
		register_once();
	}
}

/* ---- a process that gives up its user, and then closes ---- */

static void open_all(void)
{
	side_open(&s, 8192, 16, SIDE_CHANNEL);
	side_open(&other, 8192, 16, 0);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
	fill_low();
	make_pipe();
	one_message(1);
	register_once();
}

static void becomes_nobody(int way)
{
	open_all();
	CHECK_EQ(setresgid(NOBODY, NOBODY, NOBODY), 0);
	CHECK_EQ(setresuid(NOBODY, NOBODY, NOBODY), 0);
	for (int i = 0; i < 3; i++) {
		close_all[way](BASE);
		one_message(2);
		register_once();
	}
}

int main(void)
{
	/* What came from whoever started this */
	by_each(3);
	test_begin();
	for (int way = 0; geteuid() == 0 && way < WAYS; way++)
		if (may(way))
			join(spawn(becomes_nobody, way));
	open_all();
	returns();
	for (int way = 0; way < WAYS; way++)
		beside_threads(way);
	in_a_thread();
	children();
	takes_numbers();
	takes_numbers_beside_threads();
	takes_numbers_of_a_sleeper(false);
	takes_numbers_of_a_sleeper(true);
	takes_closed_numbers();
	returns();
	return 0;
}
