// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a sender is stopped (SIGSTOP) at random, often inside the device. Another sender to
 * the same SRQ and CQ sends meanwhile, and memory there is registered and deregistered. Each
 * message of both arrives once, whole and in order, and no QP fails. So it is without restartable
 * sequences, where the other sender's messages may wait for the stopped one, and its calls do not.
 * STOPS=1000 in the environment stops it so often; how often others had to wait is printed. SEED=n
 * repeats the choices of a run.
 * Quick: half
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "verbs_test.h"

#define RECEIVES    256
#define LEN	    64
#define GO_ON	    20 /* messages of the other sender while the first one is stopped */
#define PATIENCE_MS 1000
#define RETURN_MS   20000
#define SECONDS	    20 /* limit for all stops together */

enum word {
	QPN_HERE,
	QPN_THERE = 2,
	LID = 4,
	SENT = 6,
	TOTAL = 8,
	DEREGISTERED = 10,
	END,
	CALLS,
	RETURNS = CALLS + 2
};
#define WITHOUT "STOPPED_INSIDE_WITHOUT_SEQUENCES"

enum sender { STOPPED, OTHER };

static void receiver(int unused)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = RECEIVES, .max_sge = 1}};
	uint64_t got[2] = {0}, turn = 0;
	struct ibv_qp *qp[2];
	struct ibv_srq *srq;
	struct side s;

	(void)unused;
	side_open(&s, RECEIVES * LEN, 2 * RECEIVES, SIDE_ONE_CQ);
	srq = ibv_create_srq(s.pd, &init);
	CHECK(srq);
	for (unsigned int i = 0; i < RECEIVES; i++)
		CHECK_EQ(post_srq1(srq, &s, i, i * LEN, LEN), 0);
	for (int i = 0; i < 2; i++) {
		qp[i] = make_qp(&s, IBV_QPT_RC, srq, NULL, NULL);
		post(QPN_HERE + i, qp[i]->qp_num);
	}
	post(LID, s.lid);
	for (int i = 0; i < 2; i++) {
		struct link l;

		await(QPN_THERE + i, 1);
		link_defaults(&l, s.lid, (uint32_t)board->word[QPN_THERE + i]);
		connect_qp(qp[i], &l);
	}
	meet(3);
	while (!board->word[TOTAL] || !board->word[TOTAL + 1] || got[0] + 1 < board->word[TOTAL] ||
	       got[1] + 1 < board->word[TOTAL + 1]) {
		static uint8_t other[8192];
		struct ibv_wc wc;
		struct ibv_mr *mr;
		uint64_t seq;
		int from, err;

		if (ibv_poll_cq(s.rcq, 1, &wc)) {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			from = wc.qp_num == qp[1]->qp_num;
			memcpy(&seq, s.buf + wc.wr_id * LEN, sizeof(seq));
			CHECK_EQ(seq, got[from]);
			CHECK_EQ(differs(s.buf + wc.wr_id * LEN + 8, LEN - 8, seq), -1);
			got[from]++;
			CHECK_EQ(post_srq1(srq, &s, wc.wr_id, wc.wr_id * LEN, LEN), 0);
		}
		if (++turn % 5000)
			continue;
		mr = ibv_reg_mr(s.pd, other, sizeof(other), IBV_ACCESS_LOCAL_WRITE);
		CHECK(mr);
		while ((err = ibv_dereg_mr(mr)))
			CHECK_EQ(err, EBUSY);
		post(DEREGISTERED, board->word[DEREGISTERED] + 1);
	}
	CHECK_EQ(got[0] + 1, board->word[TOTAL]);
	CHECK_EQ(got[1] + 1, board->word[TOTAL + 1]);
	meet(3);
	CHECK_EQ(real_state(qp[0]), IBV_QPS_RTS);
	CHECK_EQ(real_state(qp[1]), IBV_QPS_RTS);
}

static void sender(int me)
{
	struct ibv_qp *qp;
	uint64_t seq = 0;
	struct link l;
	struct side s;

	side_open(&s, LEN, 16, SIDE_ONE_CQ);
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	post(QPN_THERE + me, qp->qp_num);
	await(LID, 1);
	link_defaults(&l, (uint16_t)board->word[LID], (uint32_t)board->word[QPN_HERE + me]);
	l.rnr_retry = 7;
	connect_qp(qp, &l);
	meet(3);
	while (!__atomic_load_n(&board->word[END], __ATOMIC_ACQUIRE)) {
		memcpy(s.buf, &seq, sizeof(seq));
		fill(s.buf + 8, LEN - 8, seq);
		post(CALLS + me, seq + 1);
		CHECK_EQ(post_send1(qp, &s, seq, 0, LEN, IBV_SEND_SIGNALED), 0);
		post(RETURNS + me, seq + 1);
		expect_wc(s.scq, seq, IBV_WC_SUCCESS);
		post(SENT + me, ++seq);
	}
	post(TOTAL + me, seq + 1);
	meet(3);
	CHECK_EQ(real_state(qp), IBV_QPS_RTS);
}

static bool reached(unsigned int word, uint64_t value)
{
	for (unsigned int ms = 0; __atomic_load_n(&board->word[word], __ATOMIC_ACQUIRE) < value;
	     ms++) {
		if (ms == PATIENCE_MS)
			return false;
		sleep_ms(1);
	}
	return true;
}

/* Each call of the other sender returns, whatever the stopped one holds. */
static void all_returned(void)
{
	for (unsigned int ms = 0;; ms++) {
		uint64_t calls = __atomic_load_n(&board->word[CALLS + OTHER], __ATOMIC_ACQUIRE);

		if (__atomic_load_n(&board->word[RETURNS + OTHER], __ATOMIC_ACQUIRE) >= calls)
			return;
		CHECK(ms < RETURN_MS);
		sleep_ms(1);
	}
}

static void without_sequences(int unused)
{
	(void)unused;
	setenv(WITHOUT, "1", 1);
	setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
	execl("/proc/self/exe", "stopped_inside", (char *)NULL);
	CHECK(false);
}

int main(void)
{
	const bool ends = !getenv(WITHOUT);
	const char *wanted = getenv("STOPS");
	unsigned int stops = wanted ? (unsigned int)atoi(wanted) : 30, waited = 0;
	time_t until = time(NULL) + SECONDS;
	struct timespec nap = {0};
	pid_t pid[3];

	test_begin();
	test_seed();
	if (wanted)
		alarm(0);
	pid[0] = spawn(receiver, 0);
	pid[1] = spawn(sender, STOPPED);
	pid[2] = spawn(sender, OTHER);
	await(SENT + STOPPED, 1);
	await(SENT + OTHER, 1);
	for (unsigned int i = 0; i < stops && (wanted || time(NULL) < until); i++) {
		uint64_t sent, deregistered;
		int status;

		nap.tv_nsec = random() % 3000000;
		nanosleep(&nap, NULL);
		CHECK_EQ(kill(pid[1], SIGSTOP), 0);
		CHECK_EQ(waitpid(pid[1], &status, WUNTRACED), pid[1]);
		CHECK(WIFSTOPPED(status));
		sent = board->word[SENT + OTHER];
		deregistered = board->word[DEREGISTERED];
		if (!ends)
			waited += !reached(SENT + OTHER, sent + GO_ON);
		else if (!reached(SENT + OTHER, sent + GO_ON) ||
			 !reached(DEREGISTERED, deregistered + 1))
			waited++;
		all_returned();
		CHECK_EQ(kill(pid[1], SIGCONT), 0);
	}
	printf("# up to %u stops, %u of them made others wait, %llu and %llu messages\n", stops,
	       waited, (unsigned long long)board->word[SENT],
	       (unsigned long long)board->word[SENT + 1]);
	post(END, 1);
	for (int i = 0; i < 3; i++)
		join(pid[i]);
	if (ends)
		join(spawn(without_sequences, 0));
	return 0;
}
