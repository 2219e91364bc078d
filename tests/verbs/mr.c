// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the life of registered memory: what can be registered; keys are not reused at once.
 * Memory is deregistered or unmapped while another process writes or reads it: that process gets an
 * error completion, no byte changes after ibv_dereg_mr() has returned, and registered again under a
 * new key the memory works again.
 */
#include <sys/mman.h>
#include <sys/resource.h>

#include "verbs_test.h"

#define SIZE   (64 * 4096)
#define ROUNDS 24

enum { QPN = 0, LID = 2, ADDR = 4, RKEY = 5, WRITTEN = 6, STATUS = 7 };

static struct side s;
static struct ibv_qp *qp;

static void registering(void)
{
	static const int wrong[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC,
				    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	uint8_t *mem =
		mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_pd *pd = ibv_alloc_pd(s.context);
	struct ibv_mr *mr, *again;

	CHECK(mem != MAP_FAILED && pd);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK(!ibv_reg_mr(pd, mem, 4096, wrong[i]));
		CHECK_EQ(errno, EINVAL);
	}
	CHECK_EQ(munmap(mem + 3 * 4096, 4096), 0);
	CHECK(!ibv_reg_mr(pd, mem + 3 * 4096, 4096, 0));
	CHECK_EQ(errno, EFAULT);
	CHECK(!ibv_reg_mr(pd, mem, 4 * 4096, IBV_ACCESS_LOCAL_WRITE));
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(mprotect(mem + 4096, 4096, PROT_READ), 0);
	CHECK(!ibv_reg_mr(pd, mem, 2 * 4096, IBV_ACCESS_LOCAL_WRITE));
	CHECK_EQ(errno, EFAULT);
	mr = ibv_reg_mr(pd, mem + 4096 + 17, 1000, IBV_ACCESS_REMOTE_READ);
	CHECK(mr);
	CHECK(mr->addr == mem + 4096 + 17 && mr->length == 1000 && mr->pd == pd &&
	      mr->context == s.context);
	CHECK_EQ(mr->lkey, mr->rkey);
	again = ibv_reg_mr(pd, mem + 4096 + 17, 1000, IBV_ACCESS_REMOTE_READ);
	CHECK(again && again->rkey != mr->rkey);
	CHECK_EQ(ibv_dealloc_pd(pd), EBUSY);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), EBUSY);
	CHECK_EQ(ibv_dereg_mr(again), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	munmap(mem, 3 * 4096);
}

/* Registers more than the limit of locked memory. */
static void limited(void)
{
	struct rlimit old, few = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
	size_t size = 8 << 20;
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(mem != MAP_FAILED);
	CHECK_EQ(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	few.rlim_max = old.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &few), 0);
	if (geteuid() != 0) { /* a privileged process is not limited */
		CHECK(!ibv_reg_mr(s.pd, mem, size, IBV_ACCESS_LOCAL_WRITE));
		CHECK_EQ(errno, ENOMEM);
	}
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &old), 0);
	munmap(mem, size);
}

static void connect_to(int me)
{
	struct link l;

	qp = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	post(LID + me, s.lid);
	post(QPN + me, qp->qp_num);
	meet(2);
	link_defaults(&l, (uint16_t)board->word[LID + !me], (uint32_t)board->word[QPN + !me]);
	connect_qp(qp, &l);
	meet(2);
}

/* Writes (in every other round reads) until it is refused. */
static void peer(int arg)
{
	(void)arg;
	side_open(&s, SIZE, 64, 0);
	for (int round = 0; round < ROUNDS; round++) {
		enum ibv_wr_opcode opcode = round % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
		enum ibv_wc_status status;
		uint64_t n = 0;

		connect_to(1);
		memset(s.buf, round + 1, SIZE);
		do {
			CHECK_EQ(post_rdma1(qp, &s, opcode, n, 0, SIZE, board->word[ADDR],
					    (uint32_t)board->word[RKEY], IBV_SEND_SIGNALED),
				 0);
			status = next_wc(s.scq).status;
			post(WRITTEN, ++n);
		} while (status == IBV_WC_SUCCESS);
		post(STATUS, status);
		CHECK_EQ(real_state(qp), IBV_QPS_ERR);
		meet(2);
		CHECK_EQ(ibv_destroy_qp(qp), 0);
	}
	side_close(&s);
}

static void owner(void)
{
	const int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	uint32_t last_key = 0;

	for (int round = 0; round < ROUNDS; round++) {
		bool unmap = round % 4 >= 2, read = round % 2;
		uint8_t *mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0);
		struct ibv_mr *mr;

		CHECK(mem != MAP_FAILED);
		memset(mem, 0, SIZE);
		mr = ibv_reg_mr(s.pd, mem, SIZE, access);
		CHECK(mr);
		CHECK(mr->rkey != last_key);
		last_key = mr->rkey;
		board->word[ADDR] = (uintptr_t)mem;
		board->word[RKEY] = mr->rkey;
		board->word[WRITTEN] = 0;
		connect_to(0);
		await(WRITTEN, 20); /* in the middle of the writes */
		if (unmap) {
			CHECK_EQ(munmap(mem, SIZE), 0);
			meet(2);
			/* A READ of missing memory is an operational error of the responder. */
			CHECK_EQ(board->word[STATUS],
				 read ? IBV_WC_REM_OP_ERR : IBV_WC_REM_ACCESS_ERR);
			CHECK_EQ(ibv_dereg_mr(mr), 0);
		} else {
			CHECK_EQ(ibv_dereg_mr(mr), 0);
			/* From now on the memory belongs to this process again. */
			memset(mem, 0xff, SIZE);
			meet(2);
			for (int i = 0; i < SIZE; i++)
				CHECK_EQ(mem[i], 0xff);
			CHECK_EQ(board->word[STATUS], IBV_WC_REM_ACCESS_ERR);
			munmap(mem, SIZE);
		}
		if (!(unmap && read))
			expect_event(s.context, IBV_EVENT_QP_ACCESS_ERR);
		CHECK_EQ(ibv_destroy_qp(qp), 0);
	}
}

int main(void)
{
	pid_t child;

	test_begin();
	child = spawn(peer, 0);
	side_open(&s, 4096, 64, 0);
	owner();
	join(child);
	registering();
	limited();
	side_close(&s);
	return 0;
}
