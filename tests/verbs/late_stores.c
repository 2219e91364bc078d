// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a sender is stopped in the middle of a long message, by a tracer, so that no other
 * process can end its life in the device. Its peer takes the QP and the memory away, or gives up
 * what the memory holds, and uses the memory for something else. When the sender goes on, nothing
 * of the message comes there. The pages that the sender stored to are then given out again.
 * Quick: half
 */
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "shared_memory_test.h"

#define LEN   (6 << 20) /* a user may lock 8 MiB */
#define EARLY (LEN / 8)
#define OURS  7

enum word { START, LID, QPN_HERE, QPN_THERE, BASE, RKEY, READY, POSTED, DONE, END, CAUGHT };
enum { SENDS = 1, MEMORY_FIRST = 2, AGAIN = 4, GIVE_UP = 8 };

static bool over(const volatile uint8_t *mem)
{
	return mem[LEN - 1] != OURS;
}

/* Each message is as long as the peer's memory. Its bytes are not those that the peer stores. */
static void sender(int way)
{
	struct ibv_sge sge = {.length = LEN};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = way & SENDS ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED};
	uint8_t *mem = pages(LEN / PAGE);
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct link l;

	await(START, 1);
	side_open(&s, PAGE, 16, SIDE_ONE_CQ);
	memset(mem, OURS + 1, LEN);
	mr = reg(mem, LEN);
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	post(QPN_THERE, qp->qp_num);
	await(READY, 1);
	link_defaults(&l, (uint16_t)board->word[LID], (uint32_t)board->word[QPN_HERE]);
	connect_qp(qp, &l);
	sge.addr = (uintptr_t)mem;
	sge.lkey = mr->lkey;
	wr.wr.rdma.remote_addr = board->word[BASE];
	wr.wr.rdma.rkey = (uint32_t)board->word[RKEY];
	for (uint64_t n = 1;; n++) {
		struct ibv_wc wc;

		/* The message before may have been counted as arrived when the peer had ended. */
		while (__atomic_load_n(&board->word[POSTED], __ATOMIC_ACQUIRE) < n) {
			if (__atomic_load_n(&board->word[END], __ATOMIC_ACQUIRE))
				return;
			sleep_ms(1);
		}
		CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
		post(DONE, n);
		while (!ibv_poll_cq(s.scq, 1, &wc))
			if (__atomic_load_n(&board->word[END], __ATOMIC_ACQUIRE))
				return;
		if (wc.status != IBV_WC_SUCCESS)
			return;
	}
}

/* Stops the sender in the middle of a message to that memory. False: it was not in the middle. */
static bool stop(pid_t pid, const volatile uint8_t *mem)
{
	int status;

	while (mem[EARLY] == OURS)
		;
	CHECK_EQ(ptrace(PTRACE_SEIZE, pid, NULL, (void *)PTRACE_O_EXITKILL), 0);
	CHECK_EQ(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSTOPPED(status));
	if (!over(mem))
		return true;
	CHECK_EQ(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	return false;
}

static bool all_stopped(pid_t pid)
{
	const struct dirent *d;
	bool stopped = true;
	char path[300], state;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	CHECK(dir);
	while ((d = readdir(dir))) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, d->d_name);
		if (d->d_name[0] == '.' || !(f = fopen(path, "r")))
			continue;
		stopped &= fscanf(f, "%*d (%*[^)]) %c", &state) == 1 && (state | ' ') == 't';
		fclose(f);
	}
	closedir(dir);
	return stopped;
}

static void receive(struct ibv_qp *qp, struct ibv_mr *mr)
{
	struct ibv_sge sge = {.addr = (uintptr_t)mr->addr, .length = LEN, .lkey = mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_wc wc;

	while (ibv_poll_cq(s.rcq, 1, &wc))
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_post_recv(qp, &wr, &bad), 0);
}

/* In either order. */
static void take_away(struct ibv_qp *qp, struct ibv_mr *mr, int way)
{
	if (way & MEMORY_FIRST)
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(to_state(qp, IBV_QPS_ERR), 0);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	if (!(way & MEMORY_FIRST))
		CHECK_EQ(ibv_dereg_mr(mr), 0);
}

/* What the memory held is gone, and so is what the sender still stores. */
static void give_up(uint8_t *mem)
{
	CHECK_EQ(madvise(mem, LEN, MADV_DONTNEED), 0);
	for (size_t i = 0; i < LEN; i++)
		CHECK_EQ(mem[i], 0);
}

/* Sets CAUGHT, unless the sender was between two steps of the message. */
static void taker(int way)
{
	struct ibv_mr *mr, *again = NULL;
	uint64_t used, late, n = 0;
	struct ibv_qp *qp;
	struct link l;
	uint8_t *mem;
	pid_t pid;

	memset(board->word, 0, sizeof(board->word));
	pid = spawn(sender, way);
	side_open(&s, PAGE, 16, 0);
	used = hca_counter("shared_pages_used");
	late = hca_counter("late");
	mem = pages(LEN / PAGE);
	memset(mem, OURS, LEN);
	CHECK(shares(mem, LEN, &mr));
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	post(START, 1);
	await(QPN_THERE, 1);
	link_defaults(&l, s.lid, (uint32_t)board->word[QPN_THERE]);
	connect_qp(qp, &l);
	post(LID, s.lid);
	post(QPN_HERE, qp->qp_num);
	post(BASE, (uintptr_t)mem);
	post(RKEY, mr->rkey);
	post(READY, 1);
	do {
		if (n)
			await(DONE, n);
		memset(mem, OURS, LEN);
		if (way & SENDS)
			receive(qp, mr);
		post(POSTED, ++n);
	} while (!stop(pid, mem));
	/* Its other thread, too. */
	CHECK_EQ(kill(pid, SIGSTOP), 0);
	while (!all_stopped(pid))
		sleep_ms(1);
	if (way & GIVE_UP)
		give_up(mem);
	take_away(qp, mr, way);
	if (hca_counter("late") > late)
		post(CAUGHT, 1);
	memset(mem, OURS, LEN);
	for (int i = 0; way & AGAIN && i < 4; i++) {
		if (again)
			CHECK_EQ(ibv_dereg_mr(again), 0);
		again = reg(mem, LEN);
		/*
		 * The sender's pages, those that it still stores to, and those of the memory now.
		 */
		CHECK(hca_counter("shared_pages_used") <= used + 3 * LEN / PAGE + 2);
	}
	CHECK_EQ(kill(pid, SIGCONT), 0);
	CHECK_EQ(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	await(DONE, n);
	for (size_t i = 0; i < LEN; i++)
		if (mem[i] != OURS)
			CHECK_EQ(i, LEN);
	if (again)
		CHECK_EQ(ibv_dereg_mr(again), 0);
	post(END, 1);
	join(pid);
	given_back(used);
}

int main(void)
{
	static const int ways[] = {MEMORY_FIRST, SENDS, AGAIN, GIVE_UP};

	test_begin();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		do
			join(spawn(taker, ways[i]));
		while (!board->word[CAUGHT]);
	return 0;
}
