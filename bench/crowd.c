// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * More polling processes than processors: pairs of processes send 8 bytes back and forth, all at
 * the same time (bench/messages --part crowd).
 *
 * Usage: crowd HOW PAIRS ITERATIONS BUSY. Prints one number: milliseconds from the common start,
 * after set-up, to the end of the slowest pair. BUSY other processes compute meanwhile. HOW:
 *	verbs		RC SENDs; both sides poll their CQ and do nothing else
 *	yield, futex	a word of shared memory, no device; both sides yield between looks, or sleep
 * Or: crowd HOW compute ITERATIONS MICROSECONDS. Prints the microseconds of a round of a program
 * that computes for that long and then, with verbs, polls an empty CQ.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "bench.h"

#define PATIENCE   120 /* seconds; a run that takes longer has failed */
#define MOST_PAIRS 64

static struct board {
	uint32_t ready, go;
	double began, ended[MOST_PAIRS];
	struct {
		uint32_t word, qpn, lid;
	} __attribute__((aligned(128))) side[2 * MOST_PAIRS];
} * board;

static enum { VERBS, YIELD, FUTEX } how;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;

static void die(const char *what)
{
	fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void futex_wait(uint32_t *word, uint32_t value)
{
	if (syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0) && errno != EAGAIN &&
	    errno != EINTR)
		die("futex wait");
}

static void futex_wake(uint32_t *word)
{
	if (syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0) < 0)
		die("futex wake");
}

static uint32_t load(uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/* ---- verbs ---- */

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 8},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	void *buf = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!pd || buf == MAP_FAILED)
		die("open a device");
	cq = init.send_cq = init.recv_cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, buf, 4096, IBV_ACCESS_LOCAL_WRITE);
	qp = cq && mr ? ibv_create_qp(pd, &init) : NULL;
	if (!qp)
		die("make a QP");
}

static void connect_to(uint32_t qpn, uint32_t lid)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS))
		die("INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_2048,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.dlid = (uint16_t)lid, .port_num = 1},
	};
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("RTR");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 1};
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("RTS");
}

static void post_recv(void)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr + 64, 8, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(qp, &wr, &bad))
		die("post a receive");
}

static void send_and_complete(bool send, bool wait)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, 8, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE},
			   *bad;
	static int sends, receives; /* completions that were polled early */
	struct ibv_wc wc;

	if (send) {
		if (ibv_post_send(qp, &wr, &bad))
			die("post a send");
		sends--;
	}
	if (wait)
		receives--;
	while (sends < 0 || receives < 0) {
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n < 0 || (n && wc.status != IBV_WC_SUCCESS))
			die("a completion");
		if (n && wc.opcode == IBV_WC_SEND)
			sends++;
		else if (n)
			receives++;
	}
	if (wait)
		post_recv();
}

/* ---- one side of a pair ---- */

static void say(uint32_t *word, uint32_t number)
{
	__atomic_store_n(word, number, __ATOMIC_SEQ_CST);
	if (how == FUTEX)
		futex_wake(word);
}

static void hear(uint32_t *word, uint32_t number)
{
	while (load(word) != number) {
		if (how == YIELD)
			sched_yield();
		else
			futex_wait(word, number - 1);
	}
}

static void round_trip(int me, uint32_t number)
{
	uint32_t *mine = &board->side[me].word, *other = &board->side[me ^ 1].word;

	if (how == VERBS) {
		send_and_complete(!(me & 1), true);
		if (me & 1)
			send_and_complete(true, false);
		return;
	}
	if (!(me & 1))
		say(other, number);
	hear(mine, number);
	if (me & 1)
		say(other, number);
}

static void side(int me, uint32_t iterations)
{
	struct ibv_port_attr port;

	alarm(PATIENCE);
	if (how == VERBS) {
		open_device();
		if (ibv_query_port(qp->context, 1, &port))
			die("query the port");
		board->side[me].qpn = qp->qp_num;
		board->side[me].lid = port.lid;
	}
	/* Twice: when all sides have stored their numbers, and when all are connected. */
	for (uint32_t round = 1; round <= 2; round++) {
		__atomic_add_fetch(&board->ready, 1, __ATOMIC_SEQ_CST);
		futex_wake(&board->ready);
		while (load(&board->go) < round)
			futex_wait(&board->go, round - 1);
		if (round == 1 && how == VERBS) {
			connect_to(board->side[me ^ 1].qpn, board->side[me ^ 1].lid);
			post_recv();
		}
	}
	for (uint32_t i = 1; i <= iterations; i++)
		round_trip(me, i);
	if (!(me & 1))
		board->ended[me / 2] = now_us();
}

static void start_together(uint32_t sides)
{
	for (uint32_t round = 1, n; round <= 2; round++) {
		while ((n = load(&board->ready)) < round * sides)
			futex_wait(&board->ready, n);
		board->began = now_us();
		__atomic_store_n(&board->go, round, __ATOMIC_SEQ_CST);
		futex_wake(&board->go);
	}
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid && prctl(PR_SET_PDEATHSIG, SIGKILL))
		die("prctl");
	return pid;
}

static double crowd(uint32_t pairs, uint32_t iterations, int busy)
{
	pid_t pid[2 * MOST_PAIRS], hog[64];
	double last = 0;
	int status;

	for (uint32_t i = 0; i < 2 * pairs; i++) {
		pid[i] = child();
		if (!pid[i]) {
			side((int)i, iterations);
			_exit(0);
		}
	}
	for (int i = 0; i < busy; i++) {
		hog[i] = child();
		if (!hog[i])
			for (volatile unsigned int n = 0;; n++)
				;
	}
	start_together(2 * pairs);
	for (uint32_t i = 0; i < 2 * pairs; i++)
		if (waitpid(pid[i], &status, 0) < 0 || status) {
			fprintf(stderr, "crowd: a process ended with status %#x\n", status);
			exit(1);
		}
	for (int i = 0; i < busy; i++) {
		kill(hog[i], SIGKILL);
		waitpid(hog[i], NULL, 0);
	}
	for (uint32_t i = 0; i < pairs; i++)
		last = board->ended[i] > last ? board->ended[i] : last;
	return (last - board->began) / 1e3;
}

/* A function of its own, so that callgrind counts what is in here (bench/device). */
static __attribute__((noinline)) int measured_poll(void)
{
	struct ibv_wc wc;

	return ibv_poll_cq(cq, 1, &wc);
}

static double compute(uint32_t iterations, double us)
{
	double began;

	if (how == VERBS)
		open_device();
	began = now_us();
	for (uint32_t i = 0; i < iterations; i++) {
		double until = now_us() + us;

		while (now_us() < until)
			;
		if (how == VERBS && measured_poll())
			die("an empty CQ");
	}
	return (now_us() - began) / iterations;
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: crowd verbs|yield|futex PAIRS|compute ITERATIONS "
				"BUSY|MICROSECONDS\n");
		return 2;
	}
	how = !strcmp(argv[1], "verbs") ? VERBS : !strcmp(argv[1], "yield") ? YIELD : FUTEX;
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		die("shared memory");
	if (!strcmp(argv[2], "compute")) {
		printf("%.4f\n", compute(atoi(argv[3]), atof(argv[4])));
		return 0;
	}
	if (atoi(argv[2]) < 1 || atoi(argv[2]) > MOST_PAIRS || atoi(argv[4]) > 64) {
		fprintf(stderr, "crowd: 1 to %d pairs, 64 busy processes at most\n", MOST_PAIRS);
		return 2;
	}
	printf("%.3f\n", crowd(atoi(argv[2]), atoi(argv[3]), atoi(argv[4])));
	return 0;
}
