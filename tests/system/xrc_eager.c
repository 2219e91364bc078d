// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: RDMA to a receive QP. A sender writes short messages to a ring in the receiver's
 * memory. The receiver polls their last byte, and gives the slots back by a control message. Other
 * messages are written with immediate data, or the receiver reads them. Atomics give out tickets,
 * each to one rank only, and protect a counter by a lock that all ranks take.
 */
#include "xrc_peers.h"

#define SLOT	512
#define SLOTS	4
#define ROUNDS	24
#define LARGE	20000
#define TICKETS 8

enum { BACK = 1 };
enum { ADDRESS = 0, RKEY = MAX_RANKS, TICKET = 2 * MAX_RANKS };

/* A rank's registered memory. */
static struct area {
	uint8_t ring[MAX_RANKS][SLOTS][SLOT];	/* written to by each other rank */
	uint8_t staged[MAX_RANKS][SLOTS][SLOT]; /* what it writes itself */
	uint8_t large[LARGE]; /* to be read by others, and written once it is known to be read */
	uint8_t fetched[LARGE];
	uint64_t ticket, lock, counter; /* of rank 0: everybody's */
	uint64_t result;
	uint8_t noted[MAX_RANKS][64]; /* written with immediate data */
} * area;

static unsigned int credits[MAX_RANKS], taken[MAX_RANKS], owed[MAX_RANKS], immediates[MAX_RANKS];
static bool done[MAX_RANKS]; /* the operation that has that in its wr_id */

static void received(const struct message *m)
{
	CHECK_EQ(m->kind, BACK);
	credits[m->from] += m->value;
	CHECK(credits[m->from] <= SLOTS);
}

static void immediate(const struct ibv_wc *wc)
{
	uint32_t from = wc->imm_data >> 16;

	CHECK_EQ(wc->status, IBV_WC_SUCCESS);
	CHECK(from < (uint32_t)total && (wc->wc_flags & IBV_WC_WITH_IMM));
	CHECK_EQ(wc->byte_len, sizeof(area->noted[0]));
	CHECK_EQ(wc->imm_data & 0xffff, 4711);
	for (size_t i = 0; i < sizeof(area->noted[0]); i++)
		CHECK_EQ(area->noted[from][i], content(from, (uint32_t)me, 4711, i));
	immediates[from]++;
}

static void completed(const struct ibv_wc *wc)
{
	CHECK_EQ(wc->status, IBV_WC_SUCCESS);
	if (wc->wr_id != PEERS_OWN)
		done[wc->wr_id & 0xff] = true;
}

static uint64_t remote(int rank, const void *at)
{
	return look(ADDRESS + (unsigned int)rank) +
	       (uint64_t)((const uint8_t *)at - (const uint8_t *)area);
}

static void submit(int to, struct ibv_send_wr *wr, const void *at, uint32_t len)
{
	struct way *w = peers_reach(to);
	struct ibv_sge sge = {.addr = (uintptr_t)at, .length = len, .lkey = hca.mr->lkey};
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_SIGNALED;
	wr->xrc_remote_srq_num = peer[to].srqn[0];
	CHECK_EQ(ibv_post_send(w->qp, wr, &bad), 0);
}

/* Writes a message to the end of its slot, where the receiver polls the last byte. */
static void write_eager(int to, uint32_t n)
{
	uint8_t *slot = area->staged[to][n % SLOTS];
	uint32_t len = 8 + (n * 37 + (uint32_t)to) % (SLOT - 8);
	struct ibv_send_wr wr = {.wr_id = PEERS_OWN, .opcode = IBV_WR_RDMA_WRITE};

	for (uint32_t i = 0; i < len - 1; i++)
		slot[SLOT - len + i] = content((uint32_t)me, (uint32_t)to, n, i);
	slot[SLOT - 1] = (uint8_t)(1 + n / SLOTS);
	wr.wr.rdma.remote_addr = remote(to, area->ring[me][n % SLOTS] + SLOT - len);
	wr.wr.rdma.rkey = (uint32_t)look(RKEY + (unsigned int)to);
	submit(to, &wr, slot + SLOT - len, len);
}

/* Takes one message from the ring of a sender. If the last byte is there, all of the message is. */
static bool read_eager(int from)
{
	uint32_t n = taken[from], len = 8 + (n * 37 + (uint32_t)me) % (SLOT - 8);
	const uint8_t *slot = area->ring[from][n % SLOTS];

	if (n == ROUNDS || __atomic_load_n(&slot[SLOT - 1], __ATOMIC_ACQUIRE) != 1 + n / SLOTS)
		return false;
	for (uint32_t i = 0; i < len - 1; i++)
		CHECK_EQ(slot[SLOT - len + i], content((uint32_t)from, (uint32_t)me, n, i));
	taken[from]++;
	owed[from]++;
	return true;
}

static bool serve(void)
{
	bool busy = peers_work();

	for (int i = 0; i < total; i++) {
		if (i == me)
			continue;
		busy |= read_eager(i);
		if (owed[i] < SLOTS / 2)
			continue;
		peers_send(i, BACK, owed[i], sizeof(struct message));
		owed[i] = 0;
	}
	return busy;
}

static void serve_or_idle(unsigned int *times)
{
	if (serve())
		*times = 0;
	else
		idle((*times)++);
}

static void eager(void)
{
	uint32_t written[MAX_RANKS] = {0};
	unsigned int times = 0;
	int left;

	do {
		left = 0;
		for (int i = 0; i < total; i++) {
			if (i == me)
				continue;
			left += written[i] < ROUNDS || taken[i] < ROUNDS;
			if (written[i] == ROUNDS || !credits[i])
				continue;
			credits[i]--;
			write_eager(i, written[i]++);
			times = 0;
		}
		serve_or_idle(&times);
	} while (left);
}

/* Posts one operation and waits for its completion. */
static void operate(int to, struct ibv_send_wr *wr, const void *at, uint32_t len)
{
	unsigned int times = 0;

	wr->wr_id = PEERS_OWN | 1;
	done[1] = false;
	submit(to, wr, at, len);
	while (!done[1])
		serve_or_idle(&times);
}

static void get(int from)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};

	wr.wr.rdma.remote_addr = remote(from, area->large);
	wr.wr.rdma.rkey = (uint32_t)look(RKEY + (unsigned int)from);
	memset(area->fetched, 0, LARGE);
	operate(from, &wr, area->fetched, LARGE);
	for (size_t i = 0; i < LARGE; i++)
		CHECK_EQ(area->fetched[i], content((uint32_t)from, 99, 0, i));
}

static void put_and_tell(int to)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				 .imm_data = (uint32_t)me << 16 | 4711};
	uint8_t *out = area->staged[to][0];

	for (size_t i = 0; i < sizeof(area->noted[0]); i++)
		out[i] = content((uint32_t)me, (uint32_t)to, 4711, i);
	wr.wr.rdma.remote_addr = remote(to, area->noted[me]);
	wr.wr.rdma.rkey = (uint32_t)look(RKEY + (unsigned int)to);
	operate(to, &wr, out, sizeof(area->noted[0]));
}

static uint64_t atomic(enum ibv_wr_opcode opcode, const uint64_t *at, uint64_t compare_add,
		       uint64_t swap)
{
	struct ibv_send_wr wr = {.opcode = opcode};

	wr.wr.atomic.remote_addr = remote(0, at);
	wr.wr.atomic.rkey = (uint32_t)look(RKEY);
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	operate(0, &wr, &area->result, sizeof(area->result));
	return area->result;
}

static void counter(enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = {.opcode = opcode};

	wr.wr.rdma.remote_addr = remote(0, &area->counter);
	wr.wr.rdma.rkey = (uint32_t)look(RKEY);
	operate(0, &wr, &area->result, sizeof(area->result));
}

static void atomics(void)
{
	unsigned int times = 0;

	for (int n = 0; n < TICKETS; n++) {
		uint64_t ticket = atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, &area->ticket, 1, 0);

		CHECK(ticket < (uint64_t)(total - 1) * TICKETS);
		CHECK_EQ(add(TICKET + (unsigned int)ticket, 1), 0);
	}
	while (atomic(IBV_WR_ATOMIC_CMP_AND_SWP, &area->lock, 0, (uint64_t)me) != 0)
		serve_or_idle(&times);
	counter(IBV_WR_RDMA_READ);
	area->result += 1000;
	counter(IBV_WR_RDMA_WRITE);
	CHECK_EQ(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, &area->lock, (uint64_t)me, 0), me);
}

static void run(void)
{
	const struct peers_config config = {
		.queues = 1,
		.size = {128},
		.slots = {128},
		.window = 8,
		.received = received,
		.immediate = immediate,
		.completed = completed,
		.extra = sizeof(*area),
		.access =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	peers_open(&config);
	area = (void *)hca.extra;
	for (size_t i = 0; i < LARGE; i++)
		area->large[i] = content((uint32_t)me, 99, 0, i);
	for (int i = 0; i < total; i++)
		credits[i] = SLOTS;
	post(ADDRESS + (unsigned int)me, (uintptr_t)area);
	post(RKEY + (unsigned int)me, hca.mr->rkey);
	meet((uint32_t)total, serve);
	eager();
	meet((uint32_t)total, serve);
	for (int k = 1; k < total; k++) {
		get((me + k) % total);
		put_and_tell((me + k) % total);
	}
	if (me)
		atomics();
	peers_flush();
	meet((uint32_t)total, serve);
	for (unsigned int i = 0, times = 0; i < (unsigned int)total; i++)
		while ((int)i != me && !immediates[i])
			serve_or_idle(&times);
	if (!me) {
		CHECK_EQ(area->ticket, (total - 1) * TICKETS);
		CHECK_EQ(area->lock, 0);
		CHECK_EQ(area->counter, (total - 1) * 1000);
	}
	show((uint32_t)total, serve);
	peers_close();
}

int main(int argc, char **argv)
{
	return ranks_main(argc, argv, run);
}
