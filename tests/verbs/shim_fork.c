// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a forked child has copies of its parent's queues and shares none of them. It opens
 * the device for itself, and parent and child both go on. Pages that were marked not to be
 * inherited keep the mark when they are exchanged.
 * Quick: half
 */
#include <sys/wait.h>

#include "verbs_test.h"

static struct side s;
static struct ibv_qp *a, *b;

static void set_up(void)
{
	side_open(&s, 8192, 64, SIDE_CHANNEL);
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, a, b);
}

static void traffic(uint64_t seed, int n)
{
	struct ibv_cq *cq;
	void *cookie;

	for (int i = 0; i < n; i++) {
		CHECK_EQ(ibv_req_notify_cq(s.rcq, 0), 0);
		fill(s.buf, 4096, seed + i);
		CHECK_EQ(post_recv1(b, &s, i, 4096, 4096), 0);
		CHECK_EQ(post_send1(a, &s, i, 0, 4096, IBV_SEND_SIGNALED), 0);
		expect_wc(s.scq, i, IBV_WC_SUCCESS);
		CHECK_EQ(ibv_get_cq_event(s.channel, &cq, &cookie), 0);
		ibv_ack_cq_events(cq, 1);
		expect_wc(s.rcq, i, IBV_WC_SUCCESS);
		CHECK_EQ(differs(s.buf + 4096, 4096, seed + i), -1);
	}
}

/*
 * Returns the address where this process maps offset 0 of device memory as a whole. The rest
 * follows, in one or more mappings.
 */
static unsigned long whole(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start, off, base = 0;
	char line[512];

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "/memfd:") && sscanf(line, "%lx-%*x %*s %lx", &start, &off) == 2 &&
		    !off)
			base = start;
	fclose(f);
	CHECK(base);
	return base;
}

/*
 * Counts the mappings of device memory elsewhere: these are queue pages. *marked: how many of them
 * have the flag "dc" (MADV_DONTFORK).
 */
static unsigned int queue_pages(unsigned int *marked)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long start, off, base = whole();
	unsigned int n = 0;
	bool queue = false;
	char line[512];

	CHECK(f);
	*marked = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%*x %*s %lx", &start, &off) == 2) {
			queue = strstr(line, "/memfd:") && start - off != base;
			n += queue;
		} else if (queue && !strncmp(line, "VmFlags:", 8)) {
			*marked += strstr(line, " dc") != NULL;
		}
	}
	fclose(f);
	return n;
}

/* Has all of the parent's mappings as copies, and then opens a device of its own. */
static void child(int depth)
{
	unsigned int marked;

	CHECK_EQ(queue_pages(&marked), 0);
	/* What the child does to its copies must not reach the parent. */
	memset(s.buf, 0xdb, s.size);
	set_up();
	traffic(1000, 50);
	CHECK(queue_pages(&marked) > 0);
	if (!depth) {
		pid_t grandchild = spawn(child, 1);

		traffic(2000, 50);
		join(grandchild);
	}
	traffic(3000, 50);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
}

extern pid_t _Fork(void) __attribute__((weak));

/*
 * A child of _Fork(), for which no handlers run, has copies of registered memory and of queues,
 * too.
 */
static void bare_fork(int arg)
{
	unsigned int marked;
	int status;
	pid_t pid;

	(void)arg;
	if (!_Fork)
		return;
	set_up();
	traffic(1, 10);
	for (int i = 0; i < 10; i++) {
		fill(s.buf, s.size, 77 + i);
		pid = _Fork();
		CHECK(pid >= 0);
		if (!pid) {
			bool right =
				differs(s.buf, s.size, 77 + i) == -1 && queue_pages(&marked) == 0;

			memset(s.buf, 0xdb, s.size);
			_exit(!right);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
		CHECK_EQ(differs(s.buf, s.size, 77 + i), -1);
		traffic(100, 10);
	}
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
}

static void plain_fork(void)
{
	unsigned int marked;
	pid_t pid;

	set_up();
	traffic(1, 10);
	CHECK(queue_pages(&marked) > 0);
	CHECK_EQ(marked, 0);
	pid = spawn(child, 0);
	traffic(100, 100);
	join(pid);
	traffic(300, 10);
	CHECK_EQ(system("true"), 0);
	traffic(400, 10);
}

/* With fork support, a child does not have the pages of a queue at all. */
static void marked_fork(int arg)
{
	unsigned int marked, n;
	int status;
	pid_t pid;

	(void)arg;
	CHECK_EQ(ibv_fork_init(), 0);
	set_up();
	traffic(1, 10);
	n = queue_pages(&marked);
	CHECK(n > 0);
	CHECK_EQ(marked, n);
	pid = fork();
	if (pid == 0)
		_exit(queue_pages(&marked) != 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	traffic(100, 10);
	/*
	 * Pages that are given back can be inherited again. The mark must not stick to other
	 * memory.
	 */
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
	queue_pages(&marked);
	CHECK_EQ(marked, 0);
}

int main(void)
{
	test_begin();
	join(spawn(marked_fork, 0));
	join(spawn(bare_fork, 0));
	plain_fork();
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	side_close(&s);
	return 0;
}
