// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: registered memory and processes. With fork support, smaps marks registered pages
 * "dc" as long as any region has them. A child cannot access them, and the device goes on using
 * them. Without fork support, or if it came too late, they are not marked. Also system(), children
 * that end, huge pages; exec with the device open closes what was open.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "verbs_test.h"

#define PAGE 4096UL

static struct side s;
static struct ibv_qp *a, *b;

static void up(void)
{
	side_open(&s, 16 * PAGE, 64, 0);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
}

static void down(void)
{
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
}

static void traffic(uint64_t seed)
{
	for (int i = 0; i < 3; i++) {
		fill(s.buf, 5000, seed + i);
		CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, i, 0, 5000,
				    (uintptr_t)s.buf + 8 * PAGE, s.mr->rkey, IBV_SEND_SIGNALED),
			 0);
		expect_wc(s.scq, i, IBV_WC_SUCCESS);
		CHECK_EQ(differs(s.buf + 8 * PAGE, 5000, seed + i), -1);
	}
}

/* Is the page of this address kept from children? */
static bool kept(const void *addr)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long start, end;
	bool here = false, found = false, dc = false;
	char line[512];

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
			here = (uintptr_t)addr >= start && (uintptr_t)addr < end;
		} else if (here && !strncmp(line, "VmFlags:", 8)) {
			found = true;
			dc = strstr(line, " dc") != NULL;
		}
	}
	fclose(f);
	CHECK(found);
	return dc;
}

/* Returns the wait status of a child that writes there. */
static int child_writes(volatile uint8_t *addr)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_DUMPABLE, 0);
		*addr = 0xcc;
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static void children_keep_off(volatile uint8_t *addr)
{
	int status = child_writes(addr);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static struct ibv_mr *reg(void *addr, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(s.pd, addr, len, IBV_ACCESS_LOCAL_WRITE);

	CHECK(mr);
	return mr;
}

static void with_support(int how)
{
	uint8_t *mem =
		mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *one, *two;
	int last;

	CHECK(mem != MAP_FAILED);
	if (how == 0)
		CHECK_EQ(ibv_fork_init(), 0);
	else
		CHECK_EQ(setenv(how == 1 ? "RDMAV_FORK_SAFE" : "IBV_FORK_SAFE", "1", 1), 0);
	up();
	CHECK_EQ(ibv_fork_init(), 0); /* calling it again has no effect */
	CHECK(kept(s.buf));
	CHECK(kept(s.buf + s.size - 1));
	memset(mem, 1, 8 * PAGE);
	children_keep_off(s.buf);
	CHECK_EQ(child_writes(mem), 0);
	traffic(10);

	/* Whole pages are marked, each as long as its last user exists. */
	one = reg(mem + PAGE + 100, PAGE);
	two = reg(mem + 2 * PAGE + 200, 8);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(kept(mem + i * PAGE), i == 1 || i == 2);
	children_keep_off(mem + 2 * PAGE);
	CHECK_EQ(child_writes(mem + 3 * PAGE), 0);
	CHECK_EQ(ibv_dereg_mr(one), 0);
	CHECK(!kept(mem + PAGE));
	CHECK(kept(mem + 2 * PAGE));
	CHECK_EQ(child_writes(mem + PAGE), 0);
	children_keep_off(mem + 2 * PAGE);
	CHECK_EQ(ibv_dereg_mr(two), 0);
	CHECK(!kept(mem + 2 * PAGE));
	CHECK_EQ(child_writes(mem + 2 * PAGE), 0);
	CHECK_EQ(mem[2 * PAGE], 1);

	/* Parent and device see the same pages, however many children have come and gone. */
	last = system("exit 7");
	CHECK(WIFEXITED(last) && WEXITSTATUS(last) == 7);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(child_writes(mem), 0);
		traffic(100 + i);
	}
	down();
	munmap(mem, 8 * PAGE);
}

/*
 * Fork support was never requested, or only after memory had been registered: children inherit the
 * pages, and traffic goes on.
 */
static void without_support(int late)
{
	up();
	if (late)
		CHECK_EQ(ibv_fork_init(), EINVAL);
	CHECK(!kept(s.buf));
	traffic(1);
	CHECK_EQ(child_writes(s.buf), 0);
	CHECK_EQ(system("true"), 0);
	traffic(2);
	down();
}

static void huge_pages(int arg)
{
	size_t size = 2 << 20;
	struct ibv_mr *mr;
	uint8_t *mem;

	(void)arg;
	CHECK_EQ(setenv("RDMAV_HUGEPAGES_SAFE", "1", 1), 0);
	CHECK_EQ(ibv_fork_init(), 0);
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
		   -1, 0);
	if (mem == MAP_FAILED) {
		printf("# no huge pages here: that part is left out\n");
		return;
	}
	up();
	memset(mem, 2, size);
	mr = reg(mem + 5000, 100);
	CHECK(kept(mem));
	CHECK(kept(mem + size - 1));
	children_keep_off(mem + size - 1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK(!kept(mem));
	CHECK_EQ(child_writes(mem), 0);
	down();
	munmap(mem, size);
}

/* ---- exec ---- */

static int pipe_of[2];
enum { QPN, LID, PEER_QPN, PEER_LID };

static void executes(int arg)
{
	struct link l;

	(void)arg;
	side_open(&s, 4096, 16, 0);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	CHECK_EQ(post_recv1(a, &s, 1, 0, 64), 0);
	post(LID, s.lid);
	post(QPN, a->qp_num);
	await(PEER_QPN, 1);
	link_defaults(&l, (uint16_t)board->word[PEER_LID], (uint32_t)board->word[PEER_QPN]);
	connect_qp(a, &l);
	meet(2);
	expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(post_recv1(a, &s, 2, 0, 64), 0);
	meet(2);
	close(pipe_of[0]);
	execlp("sleep", "sleep", "40", (char *)NULL);
	CHECK(false);
}

/* softhca learns of the exec a moment later. Until then a message finds the old memory. */
static bool memory_is_gone(void)
{
	char command[4096];

	snprintf(command, sizeof(command), "'%s' show --json '%s' | grep -q 'memory gone'",
		 getenv("SOFTHCA"), getenv("SOFTHCA_INSTANCE"));
	return system(command) == 0;
}

static void exec_with_device(void)
{
	struct link l;
	pid_t pid;
	char c;

	CHECK_EQ(pipe(pipe_of), 0);
	CHECK_EQ(fcntl(pipe_of[1], F_SETFD, FD_CLOEXEC), 0);
	pid = spawn(executes, 0);
	close(pipe_of[1]);
	side_open(&s, 4096, 16, 0);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	post(PEER_LID, s.lid);
	post(PEER_QPN, b->qp_num);
	await(QPN, 1);
	link_defaults(&l, (uint16_t)board->word[LID], (uint32_t)board->word[QPN]);
	l.timeout = 8;
	l.retry_cnt = 2;
	connect_qp(b, &l);
	meet(2);
	CHECK_EQ(post_send1(b, &s, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	meet(2);
	CHECK_EQ(read(pipe_of[0], &c, 1), 0); /* closed by the exec */
	while (!memory_is_gone())
		sleep_ms(5);
	CHECK_EQ(post_send1(b, &s, 2, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 2, IBV_WC_RETRY_EXC_ERR);
	CHECK_EQ(kill(pid, 0), 0);
	CHECK_EQ(kill(pid, SIGTERM), 0);
	join_killed(pid, SIGTERM);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
}

int main(void)
{
	struct rlimit none = {0};

	test_begin();
	CHECK_EQ(setrlimit(RLIMIT_CORE, &none), 0);
	/* Each in a process of its own, because fork support cannot be undone. */
	for (int how = 0; how < 3; how++)
		join(spawn(with_support, how));
	for (int late = 0; late < 2; late++)
		join(spawn(without_support, late));
	join(spawn(huge_pages, 0));
	exec_with_device();
	return 0;
}
