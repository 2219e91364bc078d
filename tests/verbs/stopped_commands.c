// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: processes are stopped (SIGSTOP) at random, often inside the device, while their
 * threads send, write, read and add. Meanwhile the process at the other end takes apart what they
 * use: its QPs (ERR, RESET, destroy), its memory, SRQ, CQ and XRC domain. No command waits until
 * the daemon gives up the stopped threads, which `softhca show` counts, but in a few rounds. No CQ
 * is armed, because a thread that is stopped while it raises an event holds up others
 * (docs/architecture.md). ROUNDS=300 in the environment stops them so often; SEED=n repeats the
 * choices of a run.
 * Quick: half
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "xrc_test.h"

#define VICTIMS	 2
#define THREADS	 2
#define SENDERS	 (VICTIMS * THREADS)
#define RECEIVES 64
#define LEN	 256
#define LONG	 20000 /* more than is copied in one step */
/* What the taker has for each sender, behind the receives. */
#define AREA (LONG + 64)

/* Of the board. THERE: of a sender; the others: of the taker, in this round. */
enum {
	ROUND,
	READY,
	STOPPED,
	TAKEN,
	END,
	KIND,
	LID,
	BASE,
	RKEY,
	SRQN,
	QPN,
	THERE = QPN + SENDERS,
	THERE_XRC = THERE + SENDERS,
	WORK = THERE_XRC + SENDERS,
};

/* What a round is like. */
enum { XRC = 1, SCARCE = 2 };

static unsigned int seconds;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t see(unsigned int word)
{
	return __atomic_load_n(&board->word[word], __ATOMIC_ACQUIRE);
}

/* A packet of an earlier round is not one of this. */
static uint32_t psn_of(uint64_t round)
{
	return (uint32_t)(round * 65536 & 0xffffff);
}

/* ---- the senders ---- */

struct sender {
	struct side *side;
	unsigned int number;
	struct ibv_qp *qp[2]; /* RC, XRC */
	struct ibv_cq *cq;
};

static int begin(struct sender *s, struct ibv_qp *qp, uint64_t n)
{
	size_t here = (size_t)(s->number % THREADS) * AREA;
	uint64_t there = see(BASE) + RECEIVES * LEN + (uint64_t)s->number * AREA;
	struct ibv_sge sge = {
		.addr = (uintptr_t)s->side->buf + here, .length = LEN, .lkey = s->side->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = n,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED,
				 .xrc_remote_srq_num = (uint32_t)see(SRQN)};
	struct ibv_send_wr second = wr, *bad;

	wr.wr.rdma.remote_addr = there;
	wr.wr.rdma.rkey = (uint32_t)see(RKEY);
	switch (n % 6) {
	case 0:
		wr.opcode = IBV_WR_SEND;
		break;
	case 1:
		wr.opcode = IBV_WR_RDMA_WRITE;
		break;
	case 2:
		/* A chain. */
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.send_flags = 0;
		second = wr;
		second.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		second.send_flags = IBV_SEND_SIGNALED;
		wr.next = &second;
		break;
	case 3:
		wr.opcode = IBV_WR_RDMA_WRITE;
		sge.length = LONG;
		break;
	case 4:
		wr.opcode = IBV_WR_RDMA_READ;
		break;
	default:
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		sge.length = 8;
		wr.wr.atomic.remote_addr = there + LONG;
		wr.wr.atomic.rkey = (uint32_t)see(RKEY);
		wr.wr.atomic.compare_add = 1;
	}
	return ibv_post_send(qp, &wr, &bad);
}

static void one_round(struct sender *s, uint64_t round)
{
	struct ibv_qp *qp = s->qp[see(KIND) & XRC ? 1 : 0];
	struct link l;

	CHECK_EQ(to_state(qp, IBV_QPS_RESET), 0);
	link_defaults(&l, (uint16_t)see(LID), (uint32_t)see(QPN + s->number));
	l.psn_mine = l.psn_theirs = psn_of(round);
	l.timeout = 1;
	l.retry_cnt = 0;
	connect_qp(qp, &l);
	__atomic_fetch_add(&board->word[READY], 1, __ATOMIC_SEQ_CST);
	for (uint64_t n = s->number;; n++) {
		struct ibv_wc wc;
		int got;

		CHECK_EQ(begin(s, qp, n), 0);
		while (!(got = ibv_poll_cq(s->cq, 1, &wc)))
			if (see(TAKEN) >= round)
				return;
		CHECK_EQ(got, 1);
		if (wc.status != IBV_WC_SUCCESS)
			return;
		__atomic_fetch_add(&board->word[WORK], 1, __ATOMIC_RELAXED);
	}
}

static void *sends(void *arg)
{
	struct sender *s = arg;

	for (uint64_t round = 1;; round++) {
		struct ibv_wc wc;

		while (see(ROUND) < round && !see(END))
			sleep_ms(1);
		if (see(ROUND) < round)
			return NULL;
		one_round(s, round);
		while (ibv_poll_cq(s->cq, 1, &wc))
			;
	}
}

static void victim(int number)
{
	struct ibv_xrc_domain *domain;
	struct sender s[THREADS];
	pthread_t thread[THREADS];
	struct side side;

	alarm(seconds);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	side_open(&side, THREADS * AREA, 16, 0);
	domain = ibv_open_xrc_domain(side.context, -1, O_CREAT);
	CHECK(domain);
	for (unsigned int i = 0; i < THREADS; i++) {
		struct side own = side;

		s[i] = (struct sender){.side = &side, .number = (unsigned int)number * THREADS + i};
		s[i].cq = ibv_create_cq(side.context, 64, NULL, NULL, 0);
		CHECK(s[i].cq);
		own.scq = own.rcq = s[i].cq;
		s[i].qp[0] = make_qp(&own, IBV_QPT_RC, NULL, NULL, NULL);
		s[i].qp[1] = make_qp(&own, IBV_QPT_XRC, NULL, domain, NULL);
		post(THERE + s[i].number, s[i].qp[0]->qp_num);
		post(THERE_XRC + s[i].number, s[i].qp[1]->qp_num);
	}
	meet(VICTIMS + 2);
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, sends, &s[i]), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
}

/* ---- who takes apart ---- */

static struct side side;
static struct ibv_xrc_domain *domain;
static struct ibv_srq *srq;
static struct ibv_qp *qp[SENDERS];
static unsigned int kind, slow, rounds, late_rounds;

/* Notes a command that took long, which decides nothing. */
#define TIMED(what, call)                                                                          \
	do {                                                                                       \
		uint64_t before = now_ms();                                                        \
		CHECK_EQ(call, 0);                                                                 \
		if (now_ms() - before >= 1000) {                                                   \
			slow++;                                                                    \
			printf("# %s took %llu ms\n", what,                                        \
			       (unsigned long long)(now_ms() - before));                           \
		}                                                                                  \
	} while (0)

static void set_up(uint64_t round)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = RECEIVES, .max_sge = 1}};

	side.rcq = side.scq = ibv_create_cq(side.context, 8 * RECEIVES, NULL, NULL, 0);
	CHECK(side.rcq);
	side.mr = ibv_reg_mr(side.pd, side.buf, side.size,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(side.mr);
	if (kind & XRC) {
		domain = ibv_open_xrc_domain(side.context, -1, O_CREAT);
		CHECK(domain);
		srq = make_xrc_srq(&side, domain, RECEIVES);
		post(SRQN, srq->xrc_srq_num);
	} else {
		srq = ibv_create_srq(side.pd, &init);
		CHECK(srq);
	}
	for (unsigned int i = 0; i < RECEIVES; i++)
		CHECK_EQ(post_srq1(srq, &side, i, i * LEN, LEN), 0);
	for (unsigned int i = 0; i < SENDERS; i++) {
		struct link l;

		link_defaults(&l, side.lid, (uint32_t)see((kind & XRC ? THERE_XRC : THERE) + i));
		l.psn_mine = l.psn_theirs = psn_of(round);
		if (kind & XRC) {
			uint32_t qpn = make_rcv_qp(domain);

			connect_rcv(domain, qpn, &l);
			post(QPN + i, qpn);
		} else {
			qp[i] = make_qp(&side, IBV_QPT_RC, srq, NULL, NULL);
			connect_qp(qp[i], &l);
			post(QPN + i, qp[i]->qp_num);
		}
	}
	post(LID, side.lid);
	post(BASE, (uintptr_t)side.buf);
	post(RKEY, side.mr->rkey);
	post(KIND, kind);
	post(READY, 0);
	post(ROUND, round);
}

/* Receives until the victims are stopped. */
static void receive(uint64_t round)
{
	while (see(STOPPED) < round) {
		struct ibv_wc wc;

		while (ibv_poll_cq(side.rcq, 1, &wc) > 0)
			if (wc.status == IBV_WC_SUCCESS && wc.wr_id < RECEIVES)
				CHECK_EQ(post_srq1(srq, &side, wc.wr_id, wc.wr_id * LEN, LEN), 0);
		if (kind & SCARCE)
			sleep_ms(1);
	}
}

static void end_qps(unsigned int how)
{
	for (unsigned int i = 0; i < SENDERS; i++, how /= 3) {
		uint32_t qpn = (uint32_t)see(QPN + i);

		if (how % 3 == 1 && kind & XRC)
			TIMED("ERR of a receive QP", rcv_to_state(domain, qpn, IBV_QPS_ERR));
		else if (how % 3 == 1)
			TIMED("ERR", to_state(qp[i], IBV_QPS_ERR));
		else if (how % 3 == 2 && kind & XRC)
			TIMED("RESET of a receive QP", rcv_to_state(domain, qpn, IBV_QPS_RESET));
		else if (how % 3 == 2)
			TIMED("RESET", to_state(qp[i], IBV_QPS_RESET));
	}
	for (unsigned int i = 0; i < SENDERS; i++) {
		if (kind & XRC)
			TIMED("unregistering a receive QP",
			      ibv_unreg_xrc_rcv_qp(domain, (uint32_t)see(QPN + i)));
		else
			TIMED("destroy_qp", ibv_destroy_qp(qp[i]));
	}
}

static void take_apart(void)
{
	unsigned int order = (unsigned int)random();
	uint64_t before = hca_counter("late"), late;

	if (order & 1)
		TIMED("dereg_mr", ibv_dereg_mr(side.mr));
	end_qps(order / 4);
	TIMED("destroy_srq", ibv_destroy_srq(srq));
	/* Its buffer is in device memory, and a CQE there does no harm. */
	late = hca_counter("late");
	TIMED("destroy_cq", ibv_destroy_cq(side.rcq));
	CHECK_EQ(hca_counter("late"), late);
	if (!(order & 1))
		TIMED("dereg_mr", ibv_dereg_mr(side.mr));
	if (kind & XRC)
		TIMED("close of a domain", ibv_close_xrc_domain(domain));
	late_rounds += hca_counter("late") > before;
}

static void taker(int unused)
{
	(void)unused;
	alarm(seconds);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	side_open(&side, RECEIVES * LEN + SENDERS * AREA, 64, SIDE_ONE_CQ);
	CHECK_EQ(ibv_dereg_mr(side.mr), 0);
	CHECK_EQ(ibv_destroy_cq(side.rcq), 0);
	meet(VICTIMS + 2);
	for (uint64_t round = 1; !see(END); round++) {
		kind = (unsigned int)random() % 4;
		set_up(round);
		receive(round);
		take_apart();
		post(TAKEN, round);
	}
	printf("# %u commands took a second or longer, in %u rounds\n", slow, late_rounds);
	/*
	 * A thread that was switched out and then stopped is not armed for less than a microsecond,
	 * longer where its memory is private (under a sanitizer). But to stop a process of several
	 * threads takes some switches, so that it happens in one of a hundred rounds. Only the
	 * first command then waits for it, or a few if others work meanwhile.
	 */
	CHECK(late_rounds <= (SANITIZED ? rounds / 2 : 3 + rounds / 20));
}

/* ---- who stops them ---- */

static void stop_for_one(const pid_t *pid, unsigned int which, uint64_t round, bool last)
{
	int status;

	for (unsigned int i = 0; i < VICTIMS; i++) {
		if (!(which >> i & 1))
			continue;
		CHECK_EQ(kill(pid[i], SIGSTOP), 0);
		CHECK_EQ(waitpid(pid[i], &status, WUNTRACED), pid[i]);
		CHECK(WIFSTOPPED(status));
	}
	/* Not before: a process that has ended cannot be stopped. */
	if (last)
		post(END, 1);
	post(STOPPED, round);
	await(TAKEN, round);
	for (unsigned int i = 0; i < VICTIMS; i++)
		if (which >> i & 1)
			CHECK_EQ(kill(pid[i], SIGCONT), 0);
}

int main(void)
{
	const char *wanted = getenv("ROUNDS"), *tier = getenv("TIER");
	pid_t pid[VICTIMS + 1];

	rounds = tier && !strcmp(tier, "full") ? 100 : 25;
	test_begin();
	if (wanted)
		rounds = (unsigned int)atoi(wanted);
	test_seed();
	seconds = wanted ? rounds * 25 + 120 : test_seconds();
	alarm(seconds);
	for (int i = 0; i < VICTIMS; i++)
		pid[i] = spawn(victim, i);
	pid[VICTIMS] = spawn(taker, 0);
	meet(VICTIMS + 2);
	for (uint64_t round = 1; round <= rounds; round++) {
		const struct timespec nap = {.tv_nsec = random() % 4000000};

		await(ROUND, round);
		await(READY, SENDERS);
		nanosleep(&nap, NULL);
		stop_for_one(pid, 1 + (unsigned int)random() % ((1 << VICTIMS) - 1), round,
			     round == rounds);
	}
	for (int i = 0; i <= VICTIMS; i++)
		join(pid[i]);
	printf("# %u rounds, %llu requests\n", rounds, (unsigned long long)see(WORK));
	printf("# %llu commands were late\n", (unsigned long long)hca_counter("late"));
	return 0;
}
