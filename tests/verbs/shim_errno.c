// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: calls that softhca stands in front of leave errno alone when they succeed, as the
 * system's do: on memory that is registered, device files, what is below /sys, signals, and
 * processes and threads.
 * Quick: half
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include "verbs_test.h"

#define PAGE 4096
#define SIZE (64 * PAGE)
#define MARK 4242 /* no error has this number */

static unsigned int wrong;

/* Calls it, which must succeed. */
#define KEEPS(call)                                                                                \
	do {                                                                                       \
		errno = MARK;                                                                      \
		bool good_ = (call);                                                               \
		int left_ = errno;                                                                 \
		CHECK(good_);                                                                      \
		if (left_ != MARK) {                                                               \
			fprintf(stderr, "errno is %d (%s) after %s\n", left_, strerror(left_),     \
				#call);                                                            \
			wrong++;                                                                   \
		}                                                                                  \
	} while (0)
/* The same if the kernel knows the call. */
#define MAY_KEEP(call)                                                                             \
	do {                                                                                       \
		errno = MARK;                                                                      \
		bool good_ = (call);                                                               \
		int left_ = errno;                                                                 \
		if (good_ && left_ != MARK) {                                                      \
			fprintf(stderr, "errno is %d (%s) after %s\n", left_, strerror(left_),     \
				#call);                                                            \
			wrong++;                                                                   \
		}                                                                                  \
	} while (0)

static struct side s;

/* Memory that is registered, with contents. */
static uint8_t *fresh(struct ibv_mr **mr)
{
	uint8_t *mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(mem != MAP_FAILED);
	memset(mem, 7, SIZE);
	*mr = ibv_reg_mr(s.pd, mem, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(*mr);
	return mem;
}

static void advice(void)
{
	static const int what[] = {MADV_RANDOM,	  MADV_NORMAL,	  MADV_DONTFORK, MADV_DOFORK,
				   MADV_WILLNEED, MADV_FREE,	  MADV_DONTDUMP, MADV_DODUMP,
				   MADV_HUGEPAGE, MADV_WIPEONFORK};
	struct ibv_mr *mr;
	uint8_t *mem;

	for (unsigned int i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		mem = fresh(&mr);
		MAY_KEEP(!madvise(mem, SIZE, what[i]));
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		KEEPS(!munmap(mem, SIZE));
	}
	mem = fresh(&mr);
	KEEPS(!madvise(mem, SIZE, MADV_DONTNEED));
	CHECK_EQ(mem[PAGE], 0);
	KEEPS(!posix_madvise(mem, SIZE, POSIX_MADV_SEQUENTIAL));
	MAY_KEEP(!madvise(mem, SIZE, 102 /* MADV_GUARD_INSTALL */));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	KEEPS(!munmap(mem, SIZE));
}

static void mappings(void)
{
	struct ibv_mr *mr;
	uint8_t *mem = fresh(&mr), *to;

	KEEPS(!munmap(mem + SIZE - PAGE, PAGE));
	KEEPS(!mprotect(mem, PAGE, PROT_READ));
	KEEPS(!mprotect(mem, PAGE, PROT_READ | PROT_WRITE));
	KEEPS(mmap(mem + 4 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == mem + 4 * PAGE);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	KEEPS(!munmap(mem, SIZE));
	mem = fresh(&mr);
	KEEPS((to = mremap(mem, SIZE, 2 * SIZE, MREMAP_MAYMOVE)) != MAP_FAILED);
	CHECK_EQ(to[PAGE], 7);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	KEEPS(!munmap(to, 2 * SIZE));
	MAY_KEEP(!mlockall(MCL_CURRENT));
	KEEPS(!munlockall());
}

static void *nothing(void *arg)
{
	return arg;
}

static void processes(void)
{
	struct ibv_mr *mr;
	pthread_t thread;
	uint8_t *mem = fresh(&mr);
	int status;
	pid_t pid;

	errno = MARK;
	pid = fork();
	if (!pid)
		_exit(errno != MARK);
	KEEPS(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (status) {
		fprintf(stderr, "errno has changed in the child of fork()\n");
		wrong++;
	}
	KEEPS(!pthread_create(&thread, NULL, nothing, NULL));
	/* Beside a thread. */
	KEEPS(!madvise(mem, SIZE, MADV_DONTNEED));
	pthread_join(thread, NULL);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	KEEPS(!munmap(mem, SIZE));
}

static void files(void)
{
	struct pollfd p = {.fd = s.channel->fd, .events = POLLIN};
	struct epoll_event ev = {.events = EPOLLIN};
	struct timeval now = {0};
	struct utsname name;
	struct stat st;
	char text[256];
	fd_set set;
	DIR *dir;
	int fd, ep;

	KEEPS((fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC)) >= 0);
	KEEPS(!fstat(fd, &st));
	KEEPS(!close(fd));
	KEEPS(!stat("/dev/infiniband/uverbs0", &st));
	KEEPS(!access("/sys/class/infiniband/mlx4_0", R_OK));
	KEEPS(!lstat("/sys/class/infiniband/mlx4_0", &st));
	KEEPS((dir = opendir("/sys/class/infiniband")) != NULL);
	KEEPS(readdir(dir) != NULL);
	KEEPS(!closedir(dir));
	KEEPS((fd = open("/sys/class/infiniband/mlx4_0/ports/1/counters/port_xmit_data",
			 O_RDONLY)) >= 0);
	KEEPS(read(fd, text, sizeof(text)) > 0);
	KEEPS(!close(fd));
	KEEPS((fd = open("/dev/infiniband/rdma_cm", O_RDWR)) >= 0);
	KEEPS(!close(fd));
	KEEPS(poll(&p, 1, 0) == 0);
	FD_ZERO(&set);
	FD_SET(p.fd, &set);
	KEEPS(select(p.fd + 1, &set, NULL, NULL, &now) == 0);
	ep = epoll_create1(EPOLL_CLOEXEC);
	KEEPS(!epoll_ctl(ep, EPOLL_CTL_ADD, p.fd, &ev));
	KEEPS(epoll_wait(ep, &ev, 1, 0) == 0);
	close(ep);
	KEEPS(!uname(&name));
	KEEPS(!gethostname(text, sizeof(text)));
}

static void handler(int number)
{
	(void)number;
}

static void signals(void)
{
	struct sigaction act = {.sa_handler = handler}, old;
	sigset_t set, before;

	KEEPS(!sigaction(SIGUSR1, &act, &old));
	KEEPS(!sigaction(SIGBUS, NULL, &old));
	KEEPS(!sigaction(SIGBUS, &act, &old));
	KEEPS(!sigaction(SIGBUS, &old, NULL));
	sigfillset(&set);
	KEEPS(!sigprocmask(SIG_BLOCK, &set, &before));
	KEEPS(!sigprocmask(SIG_SETMASK, &before, NULL));
	KEEPS(!pthread_sigmask(SIG_BLOCK, &set, &before));
	KEEPS(!pthread_sigmask(SIG_SETMASK, &before, NULL));
	KEEPS(signal(SIGUSR2, handler) != SIG_ERR);
}

/* The doorbell and the poll are no calls of the system, and set no errno on a card. */
static void messages(void)
{
	struct ibv_qp *a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL),
		      *b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	struct ibv_wc wc;
	bool sent = false;
	int n = 0;

	connect_pair(&s, a, b);
	KEEPS(!post_recv1(b, &s, 1, 0, 64));
	KEEPS(!ibv_req_notify_cq(s.rcq, 0));
	KEEPS((sent = !post_send1(a, &s, 2, 64, 64, IBV_SEND_SIGNALED)));
	CHECK(sent);
	errno = MARK;
	while (!n)
		n = ibv_poll_cq(s.scq, 1, &wc);
	KEEPS(n == 1 && wc.status == IBV_WC_SUCCESS);
	expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
}

int main(void)
{
	test_begin();
	side_open(&s, PAGE, 16, SIDE_CHANNEL);
	advice();
	mappings();
	files();
	signals();
	messages();
	processes();
	side_close(&s);
	CHECK_EQ(wrong, 0);
	return 0;
}
