// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What wire_peers does about an end: of the other process, or of what sends for the two, which may
 * also only stand still.
 */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "wire_peers.h"

/* Has the other process ended? */
static bool alone(void)
{
	char byte;
	ssize_t n = recv(tcp, &byte, 1, MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static void signal_them(int number)
{
	const char *list = getenv("KILLED");
	char *end;

	CHECK(list && *list);
	for (; *list; list = end) {
		CHECK(!kill((pid_t)strtol(list, &end, 10), number) && end != list);
		end += strspn(end, " ");
	}
}

void waits(void)
{
	while (!alone())
		usleep(1000);
}

#define DEPTH 8 /* requests that are on their way at a time */

/* WRITEs and READs of all lengths. Each half of the peer's memory holds what was written last. */
static void post_some(unsigned int i)
{
	uint32_t len = sizes[i % SIZES];

	post(i % 3 == 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, i % 3 == 2 ? HALF : 0, len,
	     theirs.addr, theirs.rkey, 0, 0);
}

/*
 * They are stopped until a request of the second QP has failed. Returns how many of the first QP's
 * have ended meanwhile.
 */
static unsigned int stop_them(void)
{
	unsigned int ended = 0;
	struct ibv_wc wc;

	signal_them(SIGSTOP);
	qp = second;
	post_some(0);
	while ((wc = completion()).qp_num == first->qp_num) {
		CHECK(!wc.status);
		ended++;
	}
	CHECK(wc.status == IBV_WC_RETRY_EXC_ERR);
	signal_them(SIGCONT);
	qp = first;
	return ended;
}

static unsigned int kill_them(void)
{
	signal_them(SIGKILL);
	return 0;
}

static unsigned int halt_them(void)
{
	signal_them(SIGSTOP);
	return 0;
}

/* Something happens while requests are on their way, and none of them fails. */
static void goes_on(unsigned int (*happens)(void))
{
	const unsigned int all = 400;
	unsigned int posted = 0;

	qp = first;
	fill(HALF);
	for (unsigned int i = 0; i < all; i++) {
		if (i == all / 4)
			i += happens();
		/* All that were on their way may have ended meanwhile. */
		while (posted < all && posted < i + DEPTH)
			post_some(posted++);
		done();
	}
	post(IBV_WR_RDMA_WRITE, 0, HALF, theirs.addr, theirs.rkey, 0, 0);
	done();
	memset(buf + HALF, 0, HALF);
	post(IBV_WR_RDMA_READ, HALF, HALF, theirs.addr, theirs.rkey, 0, 0);
	done();
	check(HALF);
}

void outlives(void)
{
	goes_on(kill_them);
}

void stopped(void)
{
	goes_on(stop_them);
}

void standing(void)
{
	goes_on(halt_them);
	signal_them(SIGCONT);
}

/* Each of n requests of this QP ends, the first that fails as one whose peer has died. */
static void all_end(unsigned int n, bool failed)
{
	while (n--) {
		struct ibv_wc wc = completion();

		CHECK(wc.qp_num == qp->qp_num);
		if (!wc.status && !failed)
			continue;
		CHECK(wc.status == (failed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR));
		failed = true;
	}
	CHECK(failed);
}

void is_left(void)
{
	unsigned int posted = 0, ended = 0;
	struct ibv_wc wc;

	qp = first;
	do {
		while (posted < ended + DEPTH)
			post_some(posted++);
		if (ended == 100) {
			/* At any instant of what the engine does with these. */
			usleep((useconds_t)(getpid() % 16) * 100);
			signal_them(SIGKILL);
		}
		/*
		 * All that were posted before may be done by then, and a killed process may take a
		 * moment to end. So requests follow each other until one of them fails.
		 */
		wc = completion();
		ended++;
	} while (!wc.status);
	CHECK(ended > 100 && wc.qp_num == first->qp_num && wc.status == IBV_WC_RETRY_EXC_ERR);
	all_end(posted - ended, true);
	qp = second;
	post_some(0);
	post_some(2);
	all_end(2, false);
}

void is_killed(void)
{
	while (!*(volatile unsigned char *)buf)
		usleep(100);
	raise(SIGKILL);
}

/*
 * The first QP has messages on their way when the other process dies. What becomes of them takes as
 * long as that QP is patient, so the second one tells.
 */
void survives(void)
{
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	memset(buf, 1, HALF);
	qp = first;
	post(IBV_WR_RDMA_WRITE, 0, HALF, theirs.addr, theirs.rkey, 0, 0);
	while (!alone())
		if (!wc.status && ibv_poll_cq(cq, 1, &wc) == 1 && !wc.status)
			post(IBV_WR_RDMA_WRITE, 0, HALF, theirs.addr, theirs.rkey, 0, 0);
	qp = second;
	/* The other instance may take a moment to see it. */
	do {
		post(IBV_WR_RDMA_WRITE, 0, 8, theirs.addr, theirs.rkey, 0, 0);
		do
			wc = completion();
		while (wc.qp_num != second->qp_num);
	} while (!wc.status);
	CHECK(wc.status == IBV_WC_RETRY_EXC_ERR);
	CHECK(!ibv_destroy_qp(first));
}

/* WRITEs go on into the other process's memory, whoever has it, until nobody answers. */
void is_old(void)
{
	struct ibv_wc wc;

	memset(buf, 0xee, HALF);
	do {
		post(IBV_WR_RDMA_WRITE, 0, 4097, theirs.addr, theirs.rkey, 0, 0);
		wc = completion();
	} while (!wc.status);
	CHECK(wc.status == IBV_WC_RETRY_EXC_ERR);
}
