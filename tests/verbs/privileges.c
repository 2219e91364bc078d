// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: processes that give up privileges after they have opened the device, so that the
 * kernel lets nobody reach their memory, or them that of others, go on as on a card: messages,
 * READs, WRITEs and atomic operations in both directions, completion events, commands. What was
 * deregistered is not reached.
 * Again: SOFTHCA_QUEUES=copy
 * Quick: half
 */
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "verbs_test.h"

#define AREA   (512 * 1024)
#define LONG   (300 * 1000 + 3)
#define SHORT  40
#define NOBODY 65534

/* Memory of a file is never exchanged for device memory. */
static uint8_t area[AREA] __attribute__((aligned(4096))) = {1};
static uint8_t *const from = area, *const into = area + 4096 + 11;

enum how { UNDUMPABLE, USER, CAPABILITIES, NAMESPACE, HOWS };
static const char *const how_name[] = {"undumpable", "user", "capabilities", "namespace"};
enum who { FIRST = 1, SECOND = 2 };

/* Gives something up. False: this process cannot. */
static bool give_up(enum how how)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	switch (how) {
	case UNDUMPABLE:
		return !prctl(PR_SET_DUMPABLE, 0);
	case USER:
		return !setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
		       !setresuid(NOBODY, NOBODY, NOBODY);
	case CAPABILITIES:
		return !syscall(SYS_capset, &head, none);
	default:
		return !unshare(CLONE_NEWUSER);
	}
}

/* Not each user can do each of them, nor can each container. */
static bool can(enum how how)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(!give_up(how));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/*
 * Does the kernel refuse a copy, so that the daemon makes it? Root reaches what is not dumpable,
 * other users have no capabilities to give up, and two that have given up the same reach one
 * another.
 */
static bool refused(enum how how, enum who who)
{
	switch (how) {
	case UNDUMPABLE:
		return geteuid();
	case CAPABILITIES:
		return !geteuid() && who != (FIRST | SECOND);
	default:
		return true;
	}
}

/* Words of the board that one of the two tells the other. */
enum { QPN, RKEY, LID, WORDS = 16 };

struct end {
	struct side s;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint32_t peer_rkey;
	int rank;
};

static struct ibv_qp *connected(struct end *e)
{
	const uint64_t *theirs = &board->word[WORDS * !e->rank];
	struct link l;

	e->qp = make_qp(&e->s, IBV_QPT_RC, NULL, NULL,
			&(struct ibv_qp_cap){.max_send_wr = 16,
					     .max_recv_wr = 16,
					     .max_send_sge = 4,
					     .max_recv_sge = 4,
					     .max_inline_data = 64});
	post(WORDS * e->rank + QPN, e->qp->qp_num);
	post(WORDS * e->rank + RKEY, e->mr->rkey);
	post(WORDS * e->rank + LID, e->s.lid);
	meet(2);
	e->peer_rkey = (uint32_t)theirs[RKEY];
	link_defaults(&l, (uint16_t)theirs[LID], (uint32_t)theirs[QPN]);
	l.access |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	connect_qp(e->qp, &l);
	meet(2);
	return e->qp;
}

static void send_wr(struct end *e, enum ibv_wr_opcode op, uint64_t id, uint8_t *at, uint32_t len,
		    uint8_t *theirs, int flags)
{
	/* In three pieces, if it is long. */
	uint32_t piece = len > 100 ? len / 3 : len;
	struct ibv_sge sge[] = {{(uintptr_t)at, piece, e->mr->lkey},
				{(uintptr_t)at + piece, piece, e->mr->lkey},
				{(uintptr_t)at + 2 * piece, len - 2 * piece, e->mr->lkey}};
	struct ibv_send_wr wr = {.wr_id = id,
				 .sg_list = sge,
				 .num_sge = len > 100 ? 3 : 1,
				 .opcode = op,
				 .send_flags = IBV_SEND_SIGNALED | flags},
			   *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)theirs;
		wr.wr.atomic.rkey = e->peer_rkey;
		wr.wr.atomic.compare_add = 7;
		wr.wr.atomic.swap = 9;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)theirs;
		wr.wr.rdma.rkey = e->peer_rkey;
	}
	CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), 0);
}

static void recv_into(struct end *e, uint64_t id, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)into, len, e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	memset(into, 0, AREA - 4096 - 11);
	CHECK_EQ(ibv_post_recv(e->qp, &wr, &bad), 0);
}

static void expect_event_of(struct end *e)
{
	struct pollfd p = {.fd = e->s.channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	CHECK_EQ(poll(&p, 1, -1), 1);
	CHECK_EQ(ibv_get_cq_event(e->s.channel, &cq, &context), 0);
	CHECK(cq == e->s.rcq);
	ibv_ack_cq_events(cq, 1);
}

#define WORD ((uint64_t *)(area + 1024)) /* of atomic operations */

/* `from` has the first 4000 bytes of a pattern, or all of it at `into`. */
static void ask(struct end *e)
{
	static const uint32_t len[] = {0, 1, SHORT, 4000, LONG};

	for (unsigned int i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		for (int in = 0; in <= (len[i] == SHORT); in++) {
			meet(2);
			fill(into, AREA - 4096 - 11, 50 + i);
			send_wr(e, IBV_WR_SEND, 1, into, len[i], NULL, in ? IBV_SEND_INLINE : 0);
			expect_wc(e->s.scq, 1, IBV_WC_SUCCESS);
			meet(2);
		}
		if (!len[i])
			continue;
		meet(2);
		send_wr(e, IBV_WR_RDMA_WRITE, 2, into, len[i], into, 0);
		expect_wc(e->s.scq, 2, IBV_WC_SUCCESS);
		meet(2);
		meet(2);
		memset(into, 0, AREA - 4096 - 11);
		send_wr(e, IBV_WR_RDMA_READ, 3, into, len[i], into, 0);
		expect_wc(e->s.scq, 3, IBV_WC_SUCCESS);
		CHECK_EQ(differs(into, len[i], 80 + i), -1);
		CHECK_EQ(into[len[i]], 0);
		meet(2);
	}
	meet(2);
	send_wr(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, from, 8, (uint8_t *)WORD, 0);
	expect_wc(e->s.scq, 4, IBV_WC_SUCCESS);
	CHECK_EQ(*(uint64_t *)from, 0);
	send_wr(e, IBV_WR_ATOMIC_CMP_AND_SWP, 5, from, 8, (uint8_t *)WORD, 0);
	expect_wc(e->s.scq, 5, IBV_WC_SUCCESS);
	CHECK_EQ(*(uint64_t *)from, 7);
	meet(2);
}

static void answer(struct end *e)
{
	static const uint32_t len[] = {0, 1, SHORT, 4000, LONG};

	for (unsigned int i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		for (int in = 0; in <= (len[i] == SHORT); in++) {
			struct ibv_wc wc;

			CHECK_EQ(ibv_req_notify_cq(e->s.rcq, 0), 0);
			recv_into(e, 6, LONG + 8);
			meet(2);
			expect_event_of(e);
			wc = expect_wc(e->s.rcq, 6, IBV_WC_SUCCESS);
			CHECK_EQ(wc.byte_len, len[i]);
			CHECK_EQ(differs(into, len[i], 50 + i), -1);
			CHECK_EQ(into[len[i]], 0);
			meet(2);
		}
		if (!len[i])
			continue;
		memset(into, 0, AREA - 4096 - 11);
		meet(2);
		meet(2);
		CHECK_EQ(differs(into, len[i], 50 + i), -1);
		CHECK_EQ(into[len[i]], 0);
		fill(into, AREA - 4096 - 11, 80 + i);
		meet(2);
		meet(2);
	}
	*WORD = 0;
	meet(2);
	meet(2);
	CHECK_EQ(*WORD, 9);
}

/* What the process has made before goes on, and it can make more. */
static void commands(struct end *e)
{
	static uint8_t more[8192] = {1};
	struct ibv_comp_channel *channel = ibv_create_comp_channel(e->s.context);
	struct ibv_mr *mr = ibv_reg_mr(e->s.pd, more, sizeof(more), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_cq *cq;

	CHECK(mr && channel);
	cq = ibv_create_cq(e->s.context, 10, NULL, channel, 0);
	CHECK(cq);
	CHECK_EQ(ibv_resize_cq(cq, 100), 0);
	CHECK_EQ(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), 0);
	CHECK_EQ(attr.qp_state, IBV_QPS_RTS);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_destroy_cq(cq), 0);
	CHECK_EQ(ibv_destroy_comp_channel(channel), 0);
}

/* The second has deregistered its memory: nothing gets there. */
static void deregistered(struct end *e)
{
	if (e->rank) {
		memset(area, 0x33, AREA);
		CHECK_EQ(ibv_dereg_mr(e->mr), 0);
		meet(2);
		meet(2);
		for (unsigned int i = 0; i < AREA; i++)
			CHECK_EQ(area[i], 0x33);
		return;
	}
	meet(2);
	send_wr(e, IBV_WR_RDMA_WRITE, 2, into, 4000, into, 0);
	expect_wc(e->s.scq, 2, IBV_WC_REM_ACCESS_ERR);
	meet(2);
}

static void one(int arg)
{
	struct end e = {.rank = arg & 1};
	enum who who = arg >> 1 & 3;
	enum how how = arg >> 3;

	side_open(&e.s, 4096, 64, SIDE_CHANNEL);
	e.mr = ibv_reg_mr(e.s.pd, area, AREA,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(e.mr);
	connected(&e);
	/* Timers and events work from the start, and later. */
	if (who & (e.rank ? SECOND : FIRST))
		CHECK(give_up(how));
	meet(2);
	for (int asks = 0; asks < 2; asks++)
		(e.rank == asks ? ask : answer)(&e);
	commands(&e);
	meet(2);
	deregistered(&e);
	meet(2);
	CHECK_EQ(ibv_destroy_qp(e.qp), 0);
	if (!e.rank)
		CHECK_EQ(ibv_dereg_mr(e.mr), 0);
	side_close(&e.s);
}

int main(void)
{
	test_begin();
	for (enum how how = 0; how < HOWS; how++) {
		if (!can(how)) {
			printf("# %s: not here\n", how_name[how]);
			continue;
		}
		for (enum who who = FIRST; who <= (FIRST | SECOND); who++) {
			uint64_t copies = hca_counter("copies_made");
			pid_t pid[2];

			printf("# %s, %s\n", how_name[how],
			       who == FIRST    ? "the first"
			       : who == SECOND ? "the second"
					       : "both");
			for (int rank = 0; rank < 2; rank++)
				pid[rank] = spawn(one, (int)(how << 3 | who << 1) | rank);
			for (int rank = 0; rank < 2; rank++)
				join(pid[rank]);
			if (refused(how, who))
				CHECK(hca_counter("copies_made") > copies);
		}
	}
	return 0;
}
