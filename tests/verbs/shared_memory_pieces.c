// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: other processes reach into one that registers and deregisters a large buffer. A
 * message to other memory of it does not wait for the buffer, not even while the process is
 * stopped. What is written to the buffer itself gets there, and its writer has its turn many times
 * in one registration. If a registration stops halfway, because a process keeps on copying from the
 * buffer, its pages stay right. A message to the very pages that a stopped process was exchanging
 * is lost after a while.
 *
 * Quick: half
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "shared_memory_test.h"

#define BIG  (64UL << 20)
#define MORE (8UL << 20)

enum { PID = 20, ADDR, STOP, READY, WAITED, RKEY = 34, OTHER, GO, GONE_ON, FORKING };

/* How often this thread has slept. */
static long sleeps(void)
{
	struct rusage use;

	CHECK_EQ(getrusage(RUSAGE_THREAD, &use), 0);
	return use.ru_nvcsw;
}

static bool over(void)
{
	return __atomic_load_n(&board->word[STOP], __ATOMIC_ACQUIRE);
}

static uint8_t *buffer(void)
{
	uint8_t *mem = pages(BIG / PAGE);

	for (size_t at = 0; at < BIG; at += PAGE)
		mem[at] = (uint8_t)(at / PAGE);
	return mem;
}

static void tell(const uint8_t *mem)
{
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	board->word[PID] = (uint64_t)getpid();
	board->word[ADDR] = (uintptr_t)mem;
	board->word[READY] = board->word[STOP] = board->word[WAITED] = 0;
}

/* ---- into the buffer itself ---- */

/* Writes one word after another, and checks the one that it has written to that page before. */
static void writes_there(int arg)
{
	static uint64_t written[BIG / PAGE];
	uint64_t n = 0, waited = 0, back;
	struct iovec from = {&n, 8}, to = {&back, 8}, there = {NULL, 8};

	(void)arg;
	await(READY, 1);
	while (!over()) {
		size_t page = n++ * 7919 % (BIG / PAGE);
		long before = sleeps();

		there.iov_base = (uint8_t *)(uintptr_t)board->word[ADDR] + page * PAGE + 512;
		CHECK_EQ(process_vm_readv((pid_t)board->word[PID], &to, 1, &there, 1, 0), 8);
		CHECK_EQ(back, written[page]);
		CHECK_EQ(process_vm_writev((pid_t)board->word[PID], &from, 1, &there, 1, 0), 8);
		written[page] = n;
		waited += sleeps() > before;
	}
	for (size_t page = 0; page < BIG / PAGE; page++) {
		there.iov_base = (uint8_t *)(uintptr_t)board->word[ADDR] + page * PAGE + 512;
		CHECK_EQ(process_vm_readv((pid_t)board->word[PID], &to, 1, &there, 1, 0), 8);
		CHECK_EQ(back, written[page]);
	}
	post(WAITED, waited);
	post(STOP, 2);
}

/* Each exchange is one of many pieces, between which the writer has its turn. */
static void turns(int arg)
{
	const int n = rounds(8);
	uint8_t *mem = buffer();
	pid_t pid;

	(void)arg;
	tell(mem);
	pid = spawn(writes_there, 0);
	side_open(&s, PAGE, 16, 0);
	post(READY, 1);
	for (int i = 0; i < n; i++)
		CHECK_EQ(ibv_dereg_mr(reg(mem, BIG)), 0);
	post(STOP, 1);
	await(STOP, 2);
	printf("# the writer waited %lld times in %d exchanges\n", (long long)board->word[WAITED],
	       2 * n);
	fflush(stdout);
	CHECK(board->word[WAITED] > 2 * (uint64_t)n * 4);
	for (size_t at = 0; at < BIG; at += PAGE)
		CHECK_EQ(mem[at], (uint8_t)(at / PAGE));
	join(pid);
	munmap(mem, BIG);
	side_close(&s);
}

/* ---- into other memory, while the process is stopped ---- */

static void registers(int arg)
{
	uint8_t *mem = buffer(), here[64]; /* a stack stays private */
	struct ibv_mr *mr;
	struct ibv_qp *qp;

	(void)arg;
	tell(mem);
	side_open(&s, PAGE, 16, 0);
	CHECK(!shares(here, sizeof(here), &mr));
	board->word[OTHER] = (uintptr_t)here;
	board->word[RKEY] = mr->rkey;
	qp = connect_to_other(0, false);
	while (!over())
		CHECK_EQ(ibv_dereg_mr(reg(mem, BIG)), 0);
	for (size_t at = 0; at < BIG; at += PAGE)
		CHECK_EQ(mem[at], (uint8_t)(at / PAGE));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	munmap(mem, BIG);
	side_close(&s);
}

/* It is nearly always stopped in the middle of an exchange. */
static void stopped(int arg)
{
	struct ibv_qp *qp;
	struct iovec back, there = {NULL, 8};
	uint64_t *mine;
	siginfo_t info;
	pid_t pid;

	(void)arg;
	board->word[STOP] = 0;
	pid = spawn(registers, 0);
	side_open(&s, PAGE, 64, 0);
	mine = (uint64_t *)s.buf;
	back = (struct iovec){mine + 16, 8};
	qp = connect_to_other(1, false);
	for (uint64_t n = 1; n <= (uint64_t)rounds(40); n++) {
		sleep_ms((unsigned int)(n * 7 % 20));
		CHECK_EQ(kill(pid, SIGSTOP), 0);
		CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
		mine[0] = n;
		CHECK_EQ(post_rdma1(qp, &s, IBV_WR_RDMA_WRITE, n, 0, 8, board->word[OTHER],
				    (uint32_t)board->word[RKEY], IBV_SEND_SIGNALED),
			 0);
		expect_wc(s.scq, n, IBV_WC_SUCCESS);
		CHECK_EQ(post_rdma1(qp, &s, IBV_WR_RDMA_READ, n, 64, 8, board->word[OTHER],
				    (uint32_t)board->word[RKEY], IBV_SEND_SIGNALED),
			 0);
		expect_wc(s.scq, n, IBV_WC_SUCCESS);
		CHECK_EQ(mine[8], n);
		there.iov_base = (void *)(uintptr_t)board->word[OTHER];
		CHECK_EQ(process_vm_readv(pid, &back, 1, &there, 1, 0), 8);
		CHECK_EQ(mine[16], n);
		CHECK_EQ(kill(pid, SIGCONT), 0);
	}
	post(STOP, 1);
	join(pid);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	side_close(&s);
}

/* ---- into a piece that a fork makes private, while the process is stopped ---- */

static void forks(int arg)
{
	uint8_t *mem = malloc(BIG); /* not the application's own mapping */
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	pid_t child;

	(void)arg;
	CHECK(mem);
	memset(mem, 1, BIG);
	side_open(&s, PAGE, 16, 0);
	qp = connect_to_other(0, true);
	while (!over()) {
		mr = reg(mem, BIG);
		board->word[RKEY] = mr->rkey;
		board->word[ADDR] = (uintptr_t)mem;
		post(FORKING, 1);
		child = fork();
		post(FORKING, 0);
		CHECK(child >= 0);
		if (!child)
			_exit(0);
		CHECK_EQ(waitpid(child, NULL, 0), child);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	free(mem);
	side_close(&s);
}

/* One message to each piece. Each is done, or counts as lost after a while. */
static enum ibv_wc_status to_each_piece(struct ibv_qp *qp)
{
	struct ibv_wc wc = {0};

	for (uint64_t at = 512; at < BIG && !wc.status; at += 4UL << 20) {
		CHECK_EQ(post_rdma1(qp, &s, IBV_WR_RDMA_WRITE, at, 0, 8, board->word[ADDR] + at,
				    (uint32_t)board->word[RKEY], IBV_SEND_SIGNALED),
			 0);
		wc = next_wc(s.scq);
		CHECK_EQ(wc.wr_id, at);
	}
	return wc.status;
}

static void stopped_forking(int arg)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	struct ibv_qp *qp;
	siginfo_t info;
	pid_t pid;

	(void)arg;
	board->word[STOP] = board->word[FORKING] = 0;
	pid = spawn(forks, 0);
	side_open(&s, PAGE, 64, 0);
	qp = connect_to_other(1, true);
	for (unsigned int n = 1; n <= 40 && !status; n++) {
		sleep_ms(n * 7 % 20);
		CHECK_EQ(kill(pid, SIGSTOP), 0);
		CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
		if (board->word[FORKING])
			status = to_each_piece(qp);
		CHECK_EQ(kill(pid, SIGCONT), 0);
	}
	CHECK(!status || status == IBV_WC_RETRY_EXC_ERR);
	post(STOP, 1);
	join(pid);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	side_close(&s);
}

/* ---- an exchange that does not come to its end ---- */

/* Copies much, again and again. */
static void reads_there(int arg)
{
	enum { TIMES = 8 };
	uint8_t *to = malloc(MORE);
	struct iovec local[TIMES], remote[TIMES];

	(void)arg;
	CHECK(to);
	await(READY, 1);
	for (int i = 0; i < TIMES; i++) {
		local[i] = (struct iovec){to, MORE};
		remote[i] = (struct iovec){(void *)(uintptr_t)board->word[ADDR], MORE};
	}
	while (!over())
		CHECK_EQ(process_vm_readv((pid_t)board->word[PID], local, TIMES, remote, TIMES, 0),
			 (long long)(TIMES * MORE));
	free(to);
}

/*
 * Stops the reader, mostly in its copy, a while after an exchange has begun, for longer than that
 * waits.
 */
static void stops_reader(int reader)
{
	for (unsigned int i = 1; i <= (unsigned int)rounds(8); i++) {
		await(GO, i);
		sleep_ms(i * 11 % 40);
		CHECK_EQ(kill(reader, SIGSTOP), 0);
		sleep_ms(250);
		CHECK_EQ(kill(reader, SIGCONT), 0);
		post(GONE_ON, i);
	}
}

static void through_all(struct ibv_mr *mr, uint8_t *mem, uint64_t seed)
{
	for (size_t at = 512; at < BIG; at += BIG / 8)
		through(mr, mem + at, 64, seed);
}

/* The reader is stopped during some registrations, and later during some deregistrations. */
static void halfway(int arg)
{
	const uint64_t n = (uint64_t)rounds(8);
	uint8_t *mem = buffer();
	pid_t pid, stops;

	(void)arg;
	tell(mem);
	board->word[GO] = board->word[GONE_ON] = 0;
	pid = spawn(reads_there, 0);
	stops = spawn(stops_reader, (int)pid);
	up();
	post(READY, 1);
	for (uint64_t i = 1; i <= n; i++) {
		bool late = i > n / 2;
		struct ibv_mr *mr;

		if (!late)
			post(GO, i);
		mr = reg(mem, BIG);
		through_all(mr, mem, 2 * i);
		if (late)
			post(GO, i);
		else
			await(GONE_ON, i);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		await(GONE_ON, i);
		for (size_t at = 512; at < BIG; at += BIG / 8)
			CHECK_EQ(differs(mem + at, 64, 2 * i + 1), -1);
	}
	post(STOP, 1);
	join(stops);
	join(pid);
	for (size_t at = 0; at < BIG; at += PAGE)
		CHECK_EQ(mem[at], (uint8_t)(at / PAGE));
	munmap(mem, BIG);
	down();
}

int main(int argc, char **argv)
{
	test_begin();
	/* Each of these has many exchanges; REPEAT in the environment asks for more. */
	setenv("REPEAT", "1", 0);
	if (!may_lock(BIG + MORE, "registering a large buffer"))
		return test_end();
	repeat(argc, argv, "turns", turns);
	repeat(argc, argv, "stopped", stopped);
	/* It waits for two seconds. */
	if (rounds(1))
		repeat(argc, argv, "stopped_forking", stopped_forking);
	repeat(argc, argv, "halfway", halfway);
	return 0;
}
