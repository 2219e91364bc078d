// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: programs with low limits (setrlimit) use verbs like others. 1 GiB of address space
 * is enough, also for more queues and regions than are mapped at first. If a limit keeps a sender
 * from mapping its peer's memory, messages, RDMA and atomics arrive anyway. If a limit makes a call
 * fail, errno is ENOMEM or EMFILE, and all other processes go on. Whatever a limit leaves out,
 * requests time out. Much memory is 80 MiB, which a limit of locked memory may forbid.
 * Quick: half
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "verbs_test.h"

#define MIB    (UINT64_C(1) << 20)
#define CQE    65535	  /* 2 MiB, too large for a window: such CQs follow one another */
#define CQS    16	  /* more than the pool that is mapped at first */
#define REGION (33 * MIB) /* likewise */

#define LOCKED (80 * MIB) /* what take_much() and the queues and buffers beside it take */

enum { QPN = 10, LID = 12, ADDR = 14, RKEY = 16, READY = 18, DONE, FIRST };

static struct side s;
static struct ibv_cq *cq[CQS];

static bool limit(int which, uint64_t to)
{
	struct rlimit l = {.rlim_cur = to, .rlim_max = to};

	return setrlimit(which, &l) == 0;
}

/* Takes memory and keeps it, so that the next queues and regions are far from the first. */
static void take_much(void)
{
	uint8_t *mem =
		mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(mem != MAP_FAILED);
	CHECK(ibv_reg_mr(s.pd, mem, REGION, IBV_ACCESS_LOCAL_WRITE));
	for (int i = 0; i < CQS; i++) {
		cq[i] = ibv_create_cq(s.context, CQE, NULL, NULL, 0);
		CHECK(cq[i]);
	}
}

/* ---- two processes ---- */

static struct ibv_qp *connect_to(int me, int peer)
{
	struct ibv_qp *qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	struct link l;

	post(ADDR + me, (uintptr_t)s.buf);
	post(RKEY + me, s.mr->rkey);
	post(LID + me, s.lid);
	post(QPN + me, qp->qp_num);
	meet(2);
	link_defaults(&l, (uint16_t)board->word[LID + peer], (uint32_t)board->word[QPN + peer]);
	connect_qp(qp, &l);
	return qp;
}

/* Checks that the data that arrives is the data that was sent, and that answers are, too. */
static void receives(struct ibv_qp *qp)
{
	static const uint32_t len[] = {8, 100, 4096, 65536};

	for (int round = 0; round < 40; round++) {
		CHECK_EQ(post_recv1(qp, &s, 7, 0, 65536), 0);
		meet(2);
		CHECK_EQ(expect_wc(s.rcq, 7, IBV_WC_SUCCESS).byte_len, len[round % 4]);
		CHECK_EQ(differs(s.buf, len[round % 4], 100 + round), -1);
	}
	fill(s.buf + 65536, 4096, 1);
	memset(s.buf + 2 * 65536, 0, 8);
	meet(2);
	/* The peer's READ, WRITE and atomic. */
	meet(2);
	CHECK_EQ(differs(s.buf, 4096, 2), -1);
	CHECK_EQ(*(uint64_t *)(void *)(s.buf + 2 * 65536), 5);
}

static void sends(struct ibv_qp *qp)
{
	static const uint32_t len[] = {8, 100, 4096, 65536};
	uint64_t there = board->word[ADDR + 1];
	uint32_t rkey = (uint32_t)board->word[RKEY + 1];
	struct ibv_sge sge = {(uintptr_t)s.buf, 8, s.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 3,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED,
				 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD},
			   *bad;

	for (int round = 0; round < 40; round++) {
		fill(s.buf, len[round % 4], 100 + round);
		meet(2);
		CHECK_EQ(post_send1(qp, &s, 8, 0, len[round % 4], IBV_SEND_SIGNALED), 0);
		expect_wc(s.scq, 8, IBV_WC_SUCCESS);
	}
	meet(2);
	CHECK_EQ(post_rdma1(qp, &s, IBV_WR_RDMA_READ, 1, 0, 4096, there + 65536, rkey,
			    IBV_SEND_SIGNALED),
		 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s.buf, 4096, 1), -1);
	fill(s.buf, 4096, 2);
	CHECK_EQ(post_rdma1(qp, &s, IBV_WR_RDMA_WRITE, 2, 0, 4096, there, rkey, IBV_SEND_SIGNALED),
		 0);
	expect_wc(s.scq, 2, IBV_WC_SUCCESS);
	wr.wr.atomic.remote_addr = there + 2 * 65536;
	wr.wr.atomic.rkey = rkey;
	wr.wr.atomic.compare_add = 5;
	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
	expect_wc(s.scq, 3, IBV_WC_SUCCESS);
	CHECK_EQ(*(uint64_t *)(void *)s.buf, 0);
	meet(2);
}

/* With 1 GiB, and one side with queues and regions beyond what was mapped at first. */
static void peer_in_a_gibibyte(int me)
{
	uint64_t foreign, fallback;
	struct ibv_qp *qp;

	CHECK(limit(RLIMIT_AS, 1024 * MIB));
	if (me) {
		side_open(&s, 4096, 100, 0);
		take_much();
		side_open(&s, MIB, CQE, 0);
		/* All memory is accessed in place. */
		foreign = hca_counter("copies_foreign");
		fallback = hca_counter("copies_fallback");
		qp = connect_to(1, 0);
		receives(qp);
		CHECK_EQ(hca_counter("copies_foreign"), foreign);
		CHECK_EQ(hca_counter("copies_fallback"), fallback);
		return;
	}
	side_open(&s, MIB, 100, 0);
	qp = connect_to(0, 1);
	sends(qp);
}

/* The sender has the room that it needs itself, and no MiB more. */
static void peer_without_room(int me)
{
	uint64_t foreign;
	struct ibv_qp *qp;

	if (me) {
		await(FIRST, 1);
		side_open(&s, 4096, 100, 0);
		take_much();
		side_open(&s, MIB, CQE, 0);
		foreign = hca_counter("copies_foreign");
		qp = connect_to(1, 0);
		meet(2);
		receives(qp);
		/* The kernel copied the data. */
		CHECK(hca_counter("copies_foreign") > foreign);
		return;
	}
	side_open(&s, MIB, 100, 0);
	post(FIRST, 1);
	qp = connect_to(0, 1);
	CHECK(limit(RLIMIT_AS, address_space() + MIB));
	meet(2);
	sends(qp);
	/* The process can still make its own, too. */
	CHECK(!ibv_create_cq(s.context, 1 << 21, NULL, NULL, 0));
	CHECK_EQ(errno, ENOMEM);
	CHECK(ibv_create_cq(s.context, 10, NULL, NULL, 0));
}

static void two(void (*fn)(int))
{
	pid_t a = spawn(fn, 0), b = spawn(fn, 1);

	join(a);
	join(b);
}

/* ---- refusals ---- */

static void no_room_at_all(int mib)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list && list[0]);
	CHECK(limit(RLIMIT_AS, address_space() + (uint64_t)mib * MIB));
	errno = 0;
	CHECK(!ibv_open_device(list[0]));
	CHECK_EQ(errno, ENOMEM);
}

/* Only n more descriptors can be opened. With enough of them everything works. */
static void files_left(int n)
{
	struct ibv_comp_channel *channel;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;
	struct rlimit l = {64, 64};
	int fd, last = -1;

	CHECK(list && list[0]);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &l), 0);
	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		last = fd;
	CHECK_EQ(errno, EMFILE);
	for (int i = 0; i < n; i++)
		close(last - i);
	errno = 0;
	context = ibv_open_device(list[0]);
	if (!context) {
		CHECK_EQ(errno, EMFILE);
		CHECK(n < 20);
		return;
	}
	for (int i = 0; i < 64; i++) {
		errno = 0;
		channel = ibv_create_comp_channel(context);
		if (!channel) {
			CHECK_EQ(errno, EMFILE);
			CHECK(i >= n - 20);
			break;
		}
	}
	CHECK(!channel);
	CHECK_EQ(ibv_close_device(context), 0);
}

/* Has a device all the time, and checks at the end that it works. */
static void bystander(int arg)
{
	struct ibv_qp *qp;

	(void)arg;
	side_open(&s, 8192, 16, 0);
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	connect_pair(&s, qp, qp);
	post(READY, 1);
	await(DONE, 1);
	CHECK_EQ(post_recv1(qp, &s, 1, 4096, 64), 0);
	fill(s.buf, 64, 9);
	CHECK_EQ(post_send1(qp, &s, 2, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
	expect_wc(s.scq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s.buf + 4096, 64, 9), -1);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	side_close(&s);
}

/* A device that opens has its time-outs, too: a message to a QP that does not exist ends. */
static void times_out(int mib)
{
	struct ibv_qp *qp;
	struct link l;

	if (!limit(RLIMIT_DATA, (uint64_t)mib * MIB))
		return;
	side_open(&s, 4096, 16, 0);
	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	link_defaults(&l, s.lid, qp->qp_num + 77);
	l.timeout = 12;
	l.retry_cnt = 0;
	connect_qp(qp, &l);
	CHECK_EQ(post_send1(qp, &s, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 1, IBV_WC_RETRY_EXC_ERR);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	side_close(&s);
}

int main(void)
{
	pid_t other;

	test_begin();
	other = spawn(bystander, 0);
	await(READY, 1);
	for (int n = 0; n <= 24; n++)
		join(spawn(files_left, n));
	/* A sanitizer uses more address space than these limits before the program begins. */
	if (address_space() < 512 * 1024 * MIB) {
		for (int mib = 1; mib < 300; mib *= 4)
			join(spawn(no_room_at_all, mib));
		join(spawn(times_out, 8));
		join(spawn(times_out, 40));
		if (may_lock(LOCKED, "a peer with much memory")) {
			/* This one first: memory that is allocated later may be anywhere. */
			two(peer_without_room);
			two(peer_in_a_gibibyte);
		}
	}
	post(DONE, 1);
	join(other);
	return test_end();
}
