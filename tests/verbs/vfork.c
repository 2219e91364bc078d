// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a child of vfork(), which uses its parent's memory, calls what softhca acts on: it forks, changes its
 * root, opens the device, and changes mappings of registered memory. Its parent's device is as before, also for a
 * thread that uses it meanwhile.
 * Quick: half
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_test.h"

#define PAGE 4096
#define MUCH (16 * PAGE)

static struct side s;
static struct ibv_qp *a, *b;
static struct ibv_mr *mr;
static uint8_t *pool;

static void forks(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void changes_root(void)
{
	(void)!chroot("/nowhere");
}

static void opens(void)
{
	(void)!open("/dev/infiniband/uverbs0", O_RDWR);
}

/* Also what is softhca's. */
static void closes_all(void)
{
	for (int fd = 3; fd < 1024; fd++)
		syscall(SYS_close, fd);
}

static void closes_all_and_opens(void)
{
	closes_all();
	opens();
}

static void protects(void)
{
	mprotect(pool, MUCH, PROT_READ);
	mprotect(pool, MUCH, PROT_READ | PROT_WRITE);
}

static void closes_all_and_protects(void)
{
	closes_all();
	protects();
}

static void throws_away(void)
{
	madvise(pool + PAGE, PAGE, MADV_DONTNEED);
}

static void unmaps(void)
{
	munmap(pool + 4 * PAGE, PAGE);
	(void)!mmap(pool + 4 * PAGE, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void deregisters(void)
{
	ibv_dereg_mr(mr);
	mr = NULL;
}

static void lends(void)
{
	struct iovec part = {pool, PAGE};
	int ends[2];

	if (!pipe(ends))
		(void)!vmsplice(ends[1], &part, 1, 0);
}

static void executes(void)
{
	execl("/bin/true", "true", NULL);
}

static const struct scenario {
	const char *name;
	void (*does)(void);
} scenario[] = {
	{"forks", forks},
	{"changes_root", changes_root},
	{"opens", opens},
	{"closes_all_and_opens", closes_all_and_opens},
	{"protects", protects},
	{"closes_all_and_protects", closes_all_and_protects},
	{"throws_away", throws_away},
	{"unmaps", unmaps},
	{"deregisters", deregisters},
	{"lends", lends},
	{"executes", executes},
};

/* A message from there to the middle of the pool's first page. */
static void write_to_pool(uint8_t with)
{
	memset(s.buf, with, 64);
	CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, 7, 0, 64, (uintptr_t)pool + 1000, mr->rkey,
			    IBV_SEND_SIGNALED),
		 0);
	expect_wc(s.scq, 7, IBV_WC_SUCCESS);
	CHECK_EQ(pool[1000], with);
	CHECK_EQ(pool[1063], with);
}

static bool over;

static void *sends(void *arg)
{
	struct side *other = arg;
	struct ibv_qp *from = make_qp(other, IBV_QPT_RC, NULL, NULL, NULL),
		      *to = make_qp(other, IBV_QPT_RC, NULL, NULL, NULL);

	connect_pair(other, from, to);
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		CHECK_EQ(post_recv1(to, other, 1, 64, 64), 0);
		CHECK_EQ(post_send1(from, other, 2, 0, 64, IBV_SEND_SIGNALED), 0);
		expect_wc(other->rcq, 1, IBV_WC_SUCCESS);
		expect_wc(other->scq, 2, IBV_WC_SUCCESS);
	}
	CHECK_EQ(ibv_destroy_qp(from), 0);
	CHECK_EQ(ibv_destroy_qp(to), 0);
	return NULL;
}

static void in_child(const struct scenario *which)
{
	int status;
	pid_t pid = vfork();

	CHECK(pid >= 0);
	if (!pid) {
		which->does();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void one(int beside)
{
	struct side other;
	pthread_t thread;

	side_open(&s, 4 * PAGE, 16, 0);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
	over = false;
	if (beside) {
		side_open(&other, 4 * PAGE, 16, 0);
		CHECK_EQ(pthread_create(&thread, NULL, sends, &other), 0);
	}
	for (size_t i = 0; i < sizeof(scenario) / sizeof(scenario[0]); i++) {
		printf("# %s%s\n", scenario[i].name, beside ? ", beside a thread" : "");
		pool = mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(pool != MAP_FAILED);
		memset(pool, (int)i + 1, MUCH);
		mr = ibv_reg_mr(s.pd, pool, MUCH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		CHECK(mr);
		write_to_pool(0x55);
		in_child(&scenario[i]);
		if (!mr)
			mr = ibv_reg_mr(s.pd, pool, MUCH,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		CHECK(mr);
		write_to_pool(0x66);
		CHECK_EQ(pool[0], i + 1);
		CHECK_EQ(pool[MUCH - 1], i + 1);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		CHECK_EQ(munmap(pool, MUCH), 0);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	if (beside) {
		CHECK_EQ(pthread_join(thread, NULL), 0);
		side_close(&other);
	}
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
}

int main(void)
{
	test_begin();
	join(spawn(one, false));
	join(spawn(one, true));
	return 0;
}
