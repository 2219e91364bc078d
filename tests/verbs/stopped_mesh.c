// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: processes that are stopped (SIGSTOP) at random in a mesh. Each process has one SRQ
 * and one CQ for all others, and sends to each of them, writes, reads and adds. Nothing is lost,
 * done twice, torn or failed, and those that run go on with each other. STOPS=1000 in the
 * environment stops so often, for 1 ms to 10 s; how long the others waited is printed. SEED=n
 * repeats the choices of a run.
 * Quick: half
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "verbs_test.h"

#define N	    4
#define RECEIVES    64
#define LEN	    200
#define WRITTEN	    20000 /* more than is copied in one step */
#define PATIENCE_MS 1000  /* for what others do among themselves */
/* With none in the environment, of 1 to 200 ms. */
#define STOPS_QUICK 10
#define STOPS_FULL  40

/* Of the board: by process, or from one process to another. */
enum {
	QPN,
	GOT = QPN + N * N,
	DONE = GOT + N * N,
	SENT = DONE + N * N,
	ADDED = SENT + N * N,
	WROTE = ADDED + N * N,
	LID = WROTE + N * N,
	BASE = LID + N,
	RKEY = BASE + N,
	DEREGISTERED = RKEY + N,
	END = DEREGISTERED + N,
	FINISHED
};

enum step { SEND, WRITE, READ, ADD, STEPS };

/* What this process has for one of the others. */
struct peer {
	struct ibv_qp *qp;
	uint64_t step; /* the one that is under way */
	uint64_t sent, got, wrote, added;
};

/* Of each process's memory, for one of the others. */
struct place {
	uint8_t written[WRITTEN], mine[WRITTEN], read[WRITTEN], message[LEN];
	uint64_t counter, before;
} __attribute__((aligned(64)));

static int me;
static unsigned int seconds;
static struct side side;
static struct ibv_srq *srq;
static struct peer peer[N];

static unsigned int between(int from, int to)
{
	return (unsigned int)(from * N + to);
}

static size_t place_of(int other)
{
	return RECEIVES * LEN + (size_t)other * sizeof(struct place);
}

static struct place *mine(int other)
{
	return (struct place *)(side.buf + place_of(other));
}

static uint64_t seed(int from, int to, uint64_t n)
{
	return n * N * N + between(from, to);
}

static void begin(int other)
{
	struct peer *p = &peer[other];
	uint64_t there = board->word[BASE + other] + place_of(me);
	uint32_t rkey = (uint32_t)board->word[RKEY + other];
	size_t here = place_of(other);
	struct place *m = mine(other);
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	switch (p->step % STEPS) {
	case SEND:
		memcpy(m->message, &(uint64_t[2]){(uint64_t)me, p->sent}, 16);
		fill(m->message + 16, LEN - 16, seed(me, other, p->sent));
		CHECK_EQ(post_send1(p->qp, &side, (uint64_t)other,
				    here + offsetof(struct place, message), LEN, IBV_SEND_SIGNALED),
			 0);
		p->sent++;
		break;
	case WRITE:
		fill(m->mine, WRITTEN, seed(me, other, ++p->wrote));
		CHECK_EQ(post_rdma1(p->qp, &side, IBV_WR_RDMA_WRITE, (uint64_t)other,
				    here + offsetof(struct place, mine), WRITTEN,
				    there + offsetof(struct place, written), rkey,
				    IBV_SEND_SIGNALED),
			 0);
		break;
	case READ:
		memset(m->read, 0, WRITTEN);
		CHECK_EQ(post_rdma1(p->qp, &side, IBV_WR_RDMA_READ, (uint64_t)other,
				    here + offsetof(struct place, read), WRITTEN,
				    there + offsetof(struct place, written), rkey,
				    IBV_SEND_SIGNALED),
			 0);
		break;
	default:
		sge = (struct ibv_sge){
			.addr = (uintptr_t)&m->before, .length = 8, .lkey = side.mr->lkey};
		wr = (struct ibv_send_wr){.wr_id = (uint64_t)other,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					  .send_flags = IBV_SEND_SIGNALED};
		wr.wr.atomic.remote_addr = there + offsetof(struct place, counter);
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
		CHECK_EQ(ibv_post_send(p->qp, &wr, &bad), 0);
	}
}

static void sent(int other)
{
	struct peer *p = &peer[other];
	const struct place *m = mine(other);

	if (p->step % STEPS == READ)
		CHECK_EQ(differs(m->read, WRITTEN, seed(me, other, p->wrote)), -1);
	if (p->step % STEPS == ADD)
		CHECK_EQ(m->before, p->added++);
	p->step++;
	post(DONE + between(me, other), p->step);
}

static void received(const struct ibv_wc *wc)
{
	const uint8_t *at = side.buf + wc->wr_id * LEN;
	uint64_t head[2];

	CHECK_EQ(wc->byte_len, LEN);
	memcpy(head, at, sizeof(head));
	CHECK(head[0] < N);
	CHECK_EQ(wc->qp_num, peer[head[0]].qp->qp_num);
	CHECK_EQ(head[1], peer[head[0]].got++);
	CHECK_EQ(differs(at + 16, LEN - 16, seed((int)head[0], me, head[1])), -1);
	CHECK_EQ(post_srq1(srq, &side, wc->wr_id, wc->wr_id * LEN, LEN), 0);
}

/* Takes one completion, if there is one. To whom the request went that is done; -1: none is. */
static int look(void)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(side.rcq, 1, &wc);

	CHECK(n >= 0);
	if (!n)
		return -1;
	if (wc.status != IBV_WC_SUCCESS)
		fprintf(stderr, "%d: %s, %s\n", me, ibv_wc_status_str(wc.status),
			wc.opcode & IBV_WC_RECV ? "receive" : "send");
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	if (wc.opcode & IBV_WC_RECV) {
		received(&wc);
		return -1;
	}
	sent((int)wc.wr_id);
	return (int)wc.wr_id;
}

static void register_more(void)
{
	static uint8_t other[8192];
	struct ibv_mr *mr = ibv_reg_mr(side.pd, other, sizeof(other), IBV_ACCESS_LOCAL_WRITE);
	int err;

	CHECK(mr);
	while ((err = ibv_dereg_mr(mr)))
		CHECK_EQ(err, EBUSY);
	post(DEREGISTERED + (unsigned int)me, board->word[DEREGISTERED + me] + 1);
}

static void connect_all(void)
{
	for (int i = 0; i < N; i++) {
		if (i == me)
			continue;
		peer[i].qp = make_qp(&side, IBV_QPT_RC, srq, NULL, NULL);
		post(QPN + between(me, i), peer[i].qp->qp_num);
	}
	post(BASE + (unsigned int)me, (uintptr_t)side.buf);
	post(RKEY + (unsigned int)me, side.mr->rkey);
	post(LID + (unsigned int)me, side.lid);
	meet(N);
	for (int i = 0; i < N; i++) {
		struct link l;

		if (i == me)
			continue;
		link_defaults(&l, (uint16_t)board->word[LID + i],
			      (uint32_t)board->word[QPN + between(i, me)]);
		connect_qp(peer[i].qp, &l);
	}
	meet(N);
}

static bool all_here(void)
{
	for (int i = 0; i < N; i++)
		if (i != me && peer[i].got != board->word[SENT + between(i, me)])
			return false;
	return true;
}

static void rank(int number)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = RECEIVES, .max_sge = 1}};
	unsigned int turn = 0, left = N - 1;

	alarm(seconds);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	me = number;
	side_open(&side, RECEIVES * LEN + N * sizeof(struct place), 2 * RECEIVES, SIDE_ONE_CQ);
	memset(side.buf, 0, side.size);
	srq = ibv_create_srq(side.pd, &init);
	CHECK(srq);
	for (unsigned int i = 0; i < RECEIVES; i++)
		CHECK_EQ(post_srq1(srq, &side, i, i * LEN, LEN), 0);
	connect_all();
	for (int i = 0; i < N; i++)
		if (i != me)
			begin(i);
	while (left) {
		int other = look();

		if (other >= 0 && !__atomic_load_n(&board->word[END], __ATOMIC_ACQUIRE))
			begin(other);
		else if (other >= 0)
			left--;
		if (++turn % 20000 == 0)
			register_more();
	}
	for (int i = 0; i < N; i++) {
		post(SENT + between(me, i), peer[i].sent);
		post(ADDED + between(me, i), peer[i].added);
		post(WROTE + between(me, i), peer[i].wrote);
	}
	__atomic_fetch_add(&board->word[FINISHED], 1, __ATOMIC_SEQ_CST);
	/* The last requests of the others need receives. */
	while (__atomic_load_n(&board->word[FINISHED], __ATOMIC_SEQ_CST) < N || !all_here())
		look();
	meet(N);
	for (int i = 0; i < N; i++) {
		if (i == me)
			continue;
		CHECK_EQ(mine(i)->counter, board->word[ADDED + between(i, me)]);
		if (board->word[WROTE + between(i, me)])
			CHECK_EQ(differs(mine(i)->written, WRITTEN,
					 seed(i, me, board->word[WROTE + between(i, me)])),
				 -1);
		CHECK_EQ(real_state(peer[i].qp), IBV_QPS_RTS);
	}
	meet(N);
}

/* ---- who stops them ---- */

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Between the others, each way: all have gone on. */
static bool gone_on(int victim, const uint64_t *before)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			if (i != j && i != victim && j != victim &&
			    __atomic_load_n(&board->word[DONE + between(i, j)], __ATOMIC_ACQUIRE) ==
				    before[between(i, j)])
				return false;
	return true;
}

/* Stops it for so long. Until the others had gone on, in us; -1: they had not when it went on. */
static int64_t stop_one(pid_t pid, int victim, uint64_t us)
{
	uint64_t before[N * N], begun;
	int64_t waited = -1;
	int status;

	CHECK_EQ(kill(pid, SIGSTOP), 0);
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status));
	memcpy(before, &board->word[DONE], sizeof(before));
	begun = now_us();
	while (now_us() - begun < us) {
		const struct timespec nap = {.tv_nsec = 500000};

		if (waited < 0 && gone_on(victim, before))
			waited = (int64_t)(now_us() - begun);
		nanosleep(&nap, NULL);
	}
	CHECK_EQ(kill(pid, SIGCONT), 0);
	return waited;
}

/* 1 ms, doubled less than so often, and as much again at most; never more than 10 s. */
static uint64_t how_long(unsigned int doublings)
{
	uint64_t least = UINT64_C(1000) << (random() % doublings);
	uint64_t us = least + (uint64_t)random() % least;

	return us < 10000000 ? us : 10000000;
}

int main(void)
{
	const char *wanted = getenv("STOPS"), *tier = getenv("TIER");
	unsigned int stops = tier && !strcmp(tier, "full") ? STOPS_FULL : STOPS_QUICK;
	unsigned int over[3] = {0}, held = 0, watched = 0;
	uint64_t total = 0, deregistered = 0, stood = 0;
	int64_t longest = 0;
	pid_t pid[N];

	test_begin();
	if (wanted)
		stops = (unsigned int)atoi(wanted);
	test_seed();
	seconds = wanted ? stops * 3 + 120 : test_seconds();
	alarm(seconds);
	for (int i = 0; i < N; i++)
		pid[i] = spawn(rank, i);
	for (int i = 0; i < N; i++)
		await(DONE + between(i, (i + 1) % N), 1);
	for (unsigned int i = 0; i < stops; i++) {
		uint64_t us = how_long(wanted ? 14 : 8);
		int victim = (int)(random() % N);
		int64_t waited = stop_one(pid[victim], victim, us);
		const struct timespec nap = {.tv_nsec = random() % 20000000};

		stood += us;
		/* A shorter stop does not tell. */
		if (us >= PATIENCE_MS * 1000) {
			watched++;
			held += waited < 0;
		}
		if (waited > longest)
			longest = waited;
		over[0] += waited > 20000;
		over[1] += waited > 100000;
		over[2] += waited > PATIENCE_MS * 1000;
		nanosleep(&nap, NULL);
	}
	post(END, 1);
	for (int i = 0; i < N; i++)
		join(pid[i]);
	for (unsigned int i = 0; i < N * N; i++)
		total += board->word[DONE + i];
	for (unsigned int i = 0; i < N; i++)
		deregistered += board->word[DEREGISTERED + i];
	printf("# %u stops, %llu s in all; %llu requests, %llu regions; the others went on after "
	       "more than 20 ms %u times, "
	       "100 ms %u times, 1 s %u times, %lld ms at most; of %u stops of 1 s or more %u held "
	       "them up to the end\n",
	       stops, (unsigned long long)stood / 1000000, (unsigned long long)total,
	       (unsigned long long)deregistered, over[0], over[1], over[2],
	       (long long)longest / 1000, watched, held);
	return 0;
}
