// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: every way in which an RC work request can fail. For each: the status at both ends,
 * the event, the states of both QPs, the order of the flush, later posts flushed, and that no byte
 * changed that may not. Once with both ends in one process and once in two.
 */
#include <sys/mman.h>

#include "verbs_test.h"

#define PAGE 4096
#define SIZE (8 * PAGE)

/*
 * What is wrong. Flaws up to LOCAL_LAST are the requester's own: its peer does not learn of them.
 */
enum flaw {
	NO_SUCH_LKEY,
	LKEY_OF_OTHER_PD,
	LKEY_PAST_END,
	READ_TO_READ_ONLY,
	SOURCE_UNMAPPED,
	SINK_UNMAPPED,
	SOURCE_DEREGISTERED,
	LARGER_THAN_ANY,
	ATOMIC_OF_FOUR,
	LOCAL_LAST = ATOMIC_OF_FOUR,
	NO_SUCH_RKEY,
	RKEY_OF_OTHER_PD,
	PAST_END,
	BEFORE_START,
	NO_RIGHT_MR,
	NO_RIGHT_QP,
	MISALIGNED,
	TARGET_UNMAPPED,
	TARGET_DEREGISTERED,
	NO_DEPTH,
	RECEIVE_TOO_SHORT,
	RECEIVE_NO_LKEY,
	RECEIVE_READ_ONLY,
	RECEIVE_UNMAPPED,
	RECEIVE_OTHER_PD,
};

#define QUIET (-1)

static const struct failure {
	const char *name;
	enum flaw flaw;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_status status;
	int receive; /* of the responder's first; SUCCESS: none yet */
	int event;   /* at the responder, or QUIET */
} failures[] = {
#define F(flaw, opcode, status, receive, event)                                                    \
	{                                                                                          \
#flaw " " #opcode, flaw, IBV_WR_##opcode, IBV_WC_##status, receive, event          \
	}
	F(NO_SUCH_LKEY, SEND, LOC_PROT_ERR, 0, QUIET),
	F(NO_SUCH_LKEY, RDMA_WRITE, LOC_PROT_ERR, 0, QUIET),
	F(NO_SUCH_LKEY, RDMA_READ, LOC_PROT_ERR, 0, QUIET),
	F(NO_SUCH_LKEY, ATOMIC_FETCH_AND_ADD, LOC_PROT_ERR, 0, QUIET),
	F(LKEY_OF_OTHER_PD, SEND, LOC_PROT_ERR, 0, QUIET),
	F(LKEY_OF_OTHER_PD, RDMA_READ, LOC_PROT_ERR, 0, QUIET),
	F(LKEY_PAST_END, SEND, LOC_PROT_ERR, 0, QUIET),
	F(LKEY_PAST_END, RDMA_WRITE, LOC_PROT_ERR, 0, QUIET),
	F(READ_TO_READ_ONLY, RDMA_READ, LOC_PROT_ERR, 0, QUIET),
	F(READ_TO_READ_ONLY, ATOMIC_CMP_AND_SWP, LOC_PROT_ERR, 0, QUIET),
	F(SOURCE_UNMAPPED, SEND, LOC_PROT_ERR, 0, QUIET),
	F(SOURCE_UNMAPPED, RDMA_WRITE, LOC_PROT_ERR, 0, QUIET),
	F(SINK_UNMAPPED, RDMA_READ, LOC_PROT_ERR, 0, QUIET),
	F(SINK_UNMAPPED, ATOMIC_CMP_AND_SWP, LOC_PROT_ERR, 0, QUIET),
	F(SOURCE_DEREGISTERED, SEND, LOC_PROT_ERR, 0, QUIET),
	F(LARGER_THAN_ANY, SEND, LOC_LEN_ERR, 0, QUIET),
	F(LARGER_THAN_ANY, RDMA_WRITE, LOC_LEN_ERR, 0, QUIET),
	F(ATOMIC_OF_FOUR, ATOMIC_FETCH_AND_ADD, LOC_LEN_ERR, 0, QUIET),
	F(NO_SUCH_RKEY, RDMA_WRITE, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(NO_SUCH_RKEY, RDMA_WRITE_WITH_IMM, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(NO_SUCH_RKEY, RDMA_READ, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(NO_SUCH_RKEY, ATOMIC_CMP_AND_SWP, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(RKEY_OF_OTHER_PD, RDMA_WRITE, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(RKEY_OF_OTHER_PD, RDMA_READ, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(PAST_END, RDMA_WRITE, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(PAST_END, RDMA_READ, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(PAST_END, ATOMIC_FETCH_AND_ADD, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(BEFORE_START, RDMA_WRITE, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(BEFORE_START, RDMA_READ, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(NO_RIGHT_MR, RDMA_WRITE, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(NO_RIGHT_MR, RDMA_READ, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(NO_RIGHT_MR, ATOMIC_FETCH_AND_ADD, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(NO_RIGHT_QP, RDMA_WRITE, REM_INV_REQ_ERR, 0, IBV_EVENT_QP_REQ_ERR),
	F(NO_RIGHT_QP, RDMA_READ, REM_INV_REQ_ERR, 0, IBV_EVENT_QP_REQ_ERR),
	F(NO_RIGHT_QP, ATOMIC_CMP_AND_SWP, REM_INV_REQ_ERR, 0, IBV_EVENT_QP_REQ_ERR),
	F(MISALIGNED, ATOMIC_FETCH_AND_ADD, REM_INV_REQ_ERR, 0, IBV_EVENT_QP_REQ_ERR),
	F(TARGET_UNMAPPED, RDMA_WRITE, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(TARGET_UNMAPPED, RDMA_READ, REM_OP_ERR, 0, QUIET),
	F(TARGET_UNMAPPED, ATOMIC_FETCH_AND_ADD, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(TARGET_DEREGISTERED, RDMA_WRITE, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(TARGET_DEREGISTERED, RDMA_READ, REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR),
	F(NO_DEPTH, RDMA_READ, REM_INV_REQ_ERR, 0, IBV_EVENT_QP_REQ_ERR),
	F(RECEIVE_TOO_SHORT, SEND, REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, QUIET),
	F(RECEIVE_TOO_SHORT, SEND_WITH_IMM, REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, QUIET),
	F(RECEIVE_NO_LKEY, SEND, REM_OP_ERR, IBV_WC_LOC_PROT_ERR, QUIET),
	F(RECEIVE_READ_ONLY, SEND, REM_OP_ERR, IBV_WC_LOC_PROT_ERR, QUIET),
	F(RECEIVE_UNMAPPED, SEND, REM_OP_ERR, IBV_WC_LOC_PROT_ERR, QUIET),
	F(RECEIVE_OTHER_PD, SEND, REM_OP_ERR, IBV_WC_LOC_PROT_ERR, QUIET),
#undef F
};
#define FAILURES (sizeof(failures) / sizeof(failures[0]))

/* One end. The other end, in this process or another, reads what it needs from the board. */
struct end {
	struct side s;
	struct ibv_qp *qp;
	struct ibv_pd *pd2; /* another PD */
	struct ibv_mr *other_pd, *read_only, *lost;
	uint8_t *hole; /* memory of lost; unmapped in each round that needs it */
};

enum { QPN = 0, LID = 2, ADDR = 4, RKEY = 5 };

static void end_open(struct end *e, int me)
{
	side_open(&e->s, SIZE, 64, 0);
	post(LID + me, e->s.lid);
	e->pd2 = ibv_alloc_pd(e->s.context);
	CHECK(e->pd2);
	e->other_pd = ibv_reg_mr(e->pd2, e->s.buf, SIZE,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					 IBV_ACCESS_REMOTE_READ);
	e->read_only = ibv_reg_mr(e->s.pd, e->s.buf, SIZE, 0);
	CHECK(e->other_pd && e->read_only);
}

static void end_close(struct end *e)
{
	CHECK_EQ(ibv_dereg_mr(e->other_pd), 0);
	CHECK_EQ(ibv_dereg_mr(e->read_only), 0);
	CHECK_EQ(ibv_dealloc_pd(e->pd2), 0);
	side_close(&e->s);
}

/* Returns a region that is then unmapped, or whose key is then given back. */
static struct ibv_mr *lose(struct end *e, bool unmap)
{
	e->hole = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(e->hole != MAP_FAILED);
	e->lost = ibv_reg_mr(e->s.pd, e->hole, PAGE,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(e->lost);
	if (unmap)
		CHECK_EQ(munmap(e->hole, PAGE), 0);
	return e->lost;
}

static void found(struct end *e)
{
	if (e->lost)
		CHECK_EQ(ibv_dereg_mr(e->lost), 0);
	e->lost = NULL;
}

/* The good request is a WRITE, or a READ if WRITEs are what is forbidden. */
static bool no_writing(const struct failure *f)
{
	return f->flaw == NO_RIGHT_QP && f->opcode == IBV_WR_RDMA_WRITE;
}

static void link_up(struct end *e, int me, const struct failure *f)
{
	struct link l;

	link_defaults(&l, (uint16_t)board->word[LID + !me], (uint32_t)board->word[QPN + !me]);
	if (me == 1 && f->flaw == NO_RIGHT_QP)
		l.access &= f->opcode == IBV_WR_RDMA_WRITE  ? ~IBV_ACCESS_REMOTE_WRITE
			    : f->opcode == IBV_WR_RDMA_READ ? ~IBV_ACCESS_REMOTE_READ
							    : ~IBV_ACCESS_REMOTE_ATOMIC;
	if (me == 1 && f->flaw == NO_DEPTH)
		l.dest_rd_atomic = 0;
	connect_qp(e->qp, &l);
}

static void make_end(struct end *e, int me)
{
	e->qp = make_qp(&e->s, IBV_QPT_RC, NULL, NULL, NULL);
	post(QPN + me, e->qp->qp_num);
}

/* Does the responder's QP go on? It also does if data that it no longer has cannot be read. */
static bool alive(const struct failure *f)
{
	return f->flaw <= LOCAL_LAST ||
	       (f->flaw == TARGET_UNMAPPED && f->opcode == IBV_WR_RDMA_READ);
}

/*
 * The responder's part before the requests. Page 0 of its buffer is for good requests; the others
 * must not change.
 */
static void respond_begin(struct end *e, const struct failure *f)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->s.buf + PAGE, .length = PAGE, .lkey = e->s.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 31, .sg_list = &sge, .num_sge = 1}, *bad;
	uint64_t addr = (uintptr_t)e->s.buf + 2 * PAGE;
	uint32_t rkey = e->s.mr->rkey, key;

	memset(e->s.buf, 0x55, SIZE);
	switch ((int)f->flaw) {
	case NO_SUCH_RKEY:
		rkey ^= 0x01000000;
		break;
	case RKEY_OF_OTHER_PD:
		rkey = e->other_pd->rkey;
		break;
	case PAST_END:
		addr = (uintptr_t)e->s.buf + SIZE -
		       (f->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 0 : 8);
		break;
	case BEFORE_START:
		addr = (uintptr_t)e->s.buf - 8;
		break;
	case NO_RIGHT_MR:
		rkey = e->read_only->rkey;
		break;
	case MISALIGNED:
		addr += 4;
		break;
	case TARGET_UNMAPPED:
	case TARGET_DEREGISTERED:
		rkey = lose(e, f->flaw == TARGET_UNMAPPED)->rkey;
		addr = (uintptr_t)e->hole;
		if (f->flaw == TARGET_DEREGISTERED)
			found(e);
		break;
	case RECEIVE_TOO_SHORT:
		sge.length = 15;
		break;
	case RECEIVE_NO_LKEY:
		sge.lkey ^= 0x02000000;
		break;
	case RECEIVE_READ_ONLY:
		sge.lkey = e->read_only->lkey;
		break;
	case RECEIVE_OTHER_PD:
		sge.lkey = e->other_pd->lkey;
		break;
	case RECEIVE_UNMAPPED:
		key = lose(e, true)->lkey;
		sge = (struct ibv_sge){.addr = (uintptr_t)e->hole, .length = PAGE, .lkey = key};
		break;
	}
	post(ADDR, addr);
	post(RKEY, rkey);
	post(ADDR + 2, (uintptr_t)e->s.buf);
	post(RKEY + 2, e->s.mr->rkey);
	CHECK_EQ(ibv_post_recv(e->qp, &wr, &bad), 0);
	CHECK_EQ(post_recv1(e->qp, &e->s, 32, PAGE, 64), 0);
	CHECK_EQ(post_recv1(e->qp, &e->s, 33, PAGE, 64), 0);
}

static void respond_end(struct end *e, const struct failure *f)
{
	struct ibv_async_event event;

	/* The good request before the bad one has been carried out; nothing else has changed. */
	if (!no_writing(f))
		CHECK_EQ(differs(e->s.buf, 8, 77), -1);
	for (size_t i = no_writing(f) ? 0 : 8; i < SIZE; i++)
		if (!(f->flaw == RECEIVE_TOO_SHORT && i >= PAGE && i < PAGE + 15))
			CHECK_EQ(e->s.buf[i], 0x55);
	if (alive(f)) {
		CHECK_EQ(real_state(e->qp), IBV_QPS_RTS);
		expect_silence(e->s.rcq, 0);
		expect_silence(e->s.scq, 0);
		CHECK_EQ(to_state(e->qp, IBV_QPS_ERR), 0);
		expect_wc(e->s.rcq, 31, IBV_WC_WR_FLUSH_ERR);
	} else {
		expect_wc(e->s.rcq, 31,
			  f->receive ? (enum ibv_wc_status)f->receive : IBV_WC_WR_FLUSH_ERR);
		CHECK_EQ(real_state(e->qp), IBV_QPS_ERR);
	}
	CHECK_EQ(expect_wc(e->s.rcq, 32, IBV_WC_WR_FLUSH_ERR).qp_num, e->qp->qp_num);
	expect_wc(e->s.rcq, 33, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(post_send1(e->qp, &e->s, 41, 0, 8, 0), 0);
	CHECK_EQ(post_recv1(e->qp, &e->s, 34, 0, 8), 0);
	expect_wc(e->s.scq, 41, IBV_WC_WR_FLUSH_ERR);
	expect_wc(e->s.rcq, 34, IBV_WC_WR_FLUSH_ERR);
	if (f->event != QUIET) {
		event = expect_event(e->s.context, f->event);
		CHECK(event.element.qp == e->qp);
	}
	CHECK(!event_pending(e->s.context));
	CHECK_EQ(ibv_destroy_qp(e->qp), 0);
	found(e);
}

static void request(struct end *e, const struct failure *f)
{
	bool atomic =
		f->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || f->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	struct ibv_sge good = {.addr = (uintptr_t)e->s.buf, .length = 8, .lkey = e->s.mr->lkey};
	struct ibv_sge sge = {.addr = (uintptr_t)e->s.buf + PAGE,
			      .length = atomic ? 8 : 16,
			      .lkey = e->s.mr->lkey};
	struct ibv_send_wr wr[4] = {0}, *bad;

	memset(e->s.buf, 0xaa, SIZE);
	fill(e->s.buf, 8, 77);
	switch ((int)f->flaw) {
	case NO_SUCH_LKEY:
		sge.lkey ^= 0x01000000;
		break;
	case LKEY_OF_OTHER_PD:
		sge.lkey = e->other_pd->lkey;
		break;
	case LKEY_PAST_END:
		sge.addr = (uintptr_t)e->s.buf + SIZE - 15;
		break;
	case READ_TO_READ_ONLY:
		sge.lkey = e->read_only->lkey;
		break;
	case SOURCE_UNMAPPED:
	case SINK_UNMAPPED:
	case SOURCE_DEREGISTERED:
		sge.lkey = lose(e, f->flaw != SOURCE_DEREGISTERED)->lkey;
		sge.addr = (uintptr_t)e->hole;
		if (f->flaw == SOURCE_DEREGISTERED)
			found(e);
		break;
	case LARGER_THAN_ANY:
		sge.length = 0x40000001;
		break;
	case ATOMIC_OF_FOUR:
		sge.length = 4;
		break;
	}
	for (int i = 0; i < 4; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = i + 1,
			.next = i < 3 ? &wr[i + 1] : NULL,
			.sg_list = &good,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			/*
			 * The bad request and the last one are not signaled: errors complete
			 * anyway.
			 */
			.send_flags = i % 2 ? 0 : IBV_SEND_SIGNALED,
			.wr.rdma = {.remote_addr = board->word[ADDR + 2],
				    .rkey = (uint32_t)board->word[RKEY + 2]},
		};
	if (no_writing(f))
		wr[0].opcode = IBV_WR_RDMA_READ;
	wr[1].opcode = f->opcode;
	wr[1].sg_list = &sge;
	if (atomic) {
		wr[1].wr.atomic.remote_addr = board->word[ADDR];
		wr[1].wr.atomic.rkey = (uint32_t)board->word[RKEY];
		/* If only the response cannot be stored, the target changes anyway. */
		wr[1].wr.atomic.compare_add = f->flaw == SINK_UNMAPPED ? 0 : 0x5555555555555555;
		wr[1].wr.atomic.swap = 1;
	} else {
		wr[1].wr.rdma.remote_addr = board->word[ADDR];
		wr[1].wr.rdma.rkey = (uint32_t)board->word[RKEY];
	}
	CHECK_EQ(post_recv1(e->qp, &e->s, 21, 4 * PAGE, 64), 0);
	CHECK_EQ(post_recv1(e->qp, &e->s, 22, 4 * PAGE, 64), 0);
	CHECK_EQ(ibv_post_send(e->qp, wr, &bad), 0);

	expect_wc(e->s.scq, 1, IBV_WC_SUCCESS);
	CHECK_EQ(expect_wc(e->s.scq, 2, f->status).qp_num, e->qp->qp_num);
	expect_wc(e->s.scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_wc(e->s.scq, 4, IBV_WC_WR_FLUSH_ERR);
	expect_wc(e->s.rcq, 21, IBV_WC_WR_FLUSH_ERR);
	expect_wc(e->s.rcq, 22, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(real_state(e->qp), IBV_QPS_ERR);
	CHECK_EQ(post_send1(e->qp, &e->s, 5, 0, 8, 0), 0);
	CHECK_EQ(post_recv1(e->qp, &e->s, 23, 0, 8), 0);
	expect_wc(e->s.scq, 5, IBV_WC_WR_FLUSH_ERR);
	expect_wc(e->s.rcq, 23, IBV_WC_WR_FLUSH_ERR);
	for (size_t i = 8; i < SIZE; i++)
		CHECK_EQ(e->s.buf[i], 0xaa);
	/* An error that a completion reports raises no event. */
	CHECK(!event_pending(e->s.context));
	CHECK_EQ(ibv_destroy_qp(e->qp), 0);
	found(e);
}

static struct end near_end, far_end;

static void one_process(const struct failure *f)
{
	make_end(&far_end, 1);
	make_end(&near_end, 0);
	link_up(&far_end, 1, f);
	link_up(&near_end, 0, f);
	respond_begin(&far_end, f);
	request(&near_end, f);
	respond_end(&far_end, f);
}

static void responder(int arg)
{
	(void)arg;
	end_open(&far_end, 1);
	for (size_t i = 0; i < FAILURES; i++) {
		make_end(&far_end, 1);
		meet(2);
		link_up(&far_end, 1, &failures[i]);
		respond_begin(&far_end, &failures[i]);
		meet(2);
		meet(2);
		respond_end(&far_end, &failures[i]);
	}
	end_close(&far_end);
}

static void two_processes(void)
{
	pid_t child = spawn(responder, 0);

	end_open(&near_end, 0);
	for (size_t i = 0; i < FAILURES; i++) {
		fprintf(stderr, "%s, two processes\n", failures[i].name);
		make_end(&near_end, 0);
		meet(2);
		link_up(&near_end, 0, &failures[i]);
		meet(2);
		request(&near_end, &failures[i]);
		meet(2);
	}
	end_close(&near_end);
	join(child);
}

int main(void)
{
	test_begin();
	two_processes();
	end_open(&near_end, 0);
	end_open(&far_end, 1);
	for (size_t i = 0; i < FAILURES; i++) {
		fprintf(stderr, "%s\n", failures[i].name);
		one_process(&failures[i]);
	}
	end_close(&near_end);
	end_close(&far_end);
	return 0;
}
