// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See xrc_peers.h: messages. A receiver verifies each one, and a sender sends it again if its way
 * broke.
 */
#include "xrc_peers_internal.h"

/* Buffers to send from. A later message has a later stamp. */
static struct sending {
	enum { SEND_FREE, SEND_POSTED, SEND_FAILED } state;
	int to;
	uint32_t life;
	uint64_t stamp;
} sends[MOST_SENDS];
static uint64_t stamps;

static struct message *send_buffer(unsigned int slot)
{
	return (void *)(memory + sends_at + (size_t)slot * config.size[config.queues - 1]);
}

static void release(int q, unsigned int slot)
{
	queues[q].free[queues[q].frees++] = slot;
}

/*
 * The queue for messages of that length. The receiver compares it with the queue that the message
 * came to: so it sees if the sender named, or the responder used, a wrong one.
 */
static int queue_for(uint32_t len)
{
	int q = 0;

	while (len > config.size[q])
		q++;
	return q;
}

static void verify(const struct ibv_wc *wc, int q, const struct message *m)
{
	struct peer *p;

	CHECK_EQ(wc->status, IBV_WC_SUCCESS);
	CHECK_EQ(wc->opcode, IBV_WC_RECV);
	CHECK(wc->byte_len >= sizeof(*m));
	CHECK_EQ(m->len, wc->byte_len);
	CHECK_EQ(m->to, me);
	CHECK(m->from < (uint32_t)total);
	CHECK_EQ(config.choose ? config.choose(m) : queue_for(m->len), q);
	CHECK_EQ(wc->src_qp, hca.srq[q]->xrc_srq_num);
	for (size_t i = 0; i < m->len - sizeof(*m); i++)
		CHECK_EQ(m->body[i], content(m->from, m->to, m->number, i));
	/*
	 * A message to the rank that died in this place, posted by one that could not know of the
	 * death yet. If this rank's SRQ has got the number of that one's, a card cannot tell them
	 * apart, and the sender takes the message for delivered to the dead rank. No other message
	 * for it may come here.
	 */
	if (config.mortal && m->to_life != my_life) {
		CHECK_EQ(m->to_life + 1, my_life);
		CHECK_EQ(queues[q].before, hca.srq[q]->xrc_srq_num);
		return;
	}
	p = &peer[m->from];
	if (config.mortal && m->from_life != p->from_life) {
		CHECK((int32_t)(m->from_life - p->from_life) > 0);
		p->from_life = m->from_life;
		p->received = 0;
	}
	CHECK_EQ(m->to_life, my_life);
	if (config.mortal && m->number < p->received)
		return; /* sent again by a rank that could not know that it had arrived */
	CHECK_EQ(m->number, p->received);
	if (!config.mortal)
		CHECK_EQ(wc->qp_num, source[m->from].qpn);
	p->received++;
	if (config.received)
		config.received(m);
}

static void sent(const struct ibv_wc *wc)
{
	struct sending *s = &sends[wc->wr_id];
	struct way *w = &ways[group_of(s->to)];

	CHECK(wc->wr_id < send_slots && s->state == SEND_POSTED);
	w->outstanding--;
	s->state = SEND_FREE;
	if (wc->status == IBV_WC_SUCCESS)
		return;
	if (!config.mortal)
		CHECK_EQ(wc->status, IBV_WC_SUCCESS);
	break_way(w);
	s->state = SEND_FAILED;
	w->failed++;
}

static void post_message(unsigned int slot)
{
	struct message *m = send_buffer(slot);
	struct sending *s = &sends[slot];
	struct way *w = &ways[group_of(s->to)];
	int q = config.choose ? config.choose(m) : queue_for(m->len);
	struct ibv_sge sge = {.addr = (uintptr_t)m, .length = m->len, .lkey = hca.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = slot,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.xrc_remote_srq_num = peer[s->to].srqn[q],
	};
	struct ibv_send_wr *bad;

	s->state = SEND_POSTED;
	w->outstanding++;
	CHECK_EQ(ibv_post_send(w->qp, &wr, &bad), 0);
}

/*
 * Sends again the first message that a broken way has not delivered. Drops it if its receiver has
 * died.
 */
static bool mend(int group)
{
	struct way *w = &ways[group];
	struct sending *first = NULL;

	if (w->state == WAY_BROKEN && !w->outstanding)
		forget_way(w);
	if (!w->failed || w->state == WAY_BROKEN)
		return false;
	for (unsigned int i = 0; i < send_slots; i++)
		if (sends[i].state == SEND_FAILED && group_of(sends[i].to) == group &&
		    (!first || sends[i].stamp < first->stamp))
			first = &sends[i];
	CHECK(first);
	if (first->life != life_of(first->to)) {
		first->state = SEND_FREE;
		w->failed--;
		return true;
	}
	if (!reachable(first->to))
		return false;
	w->failed--;
	post_message((unsigned int)(first - sends));
	return true;
}

bool peers_work(void)
{
	struct ibv_wc wc[8];
	bool busy = hear_note();
	int n = ibv_poll_cq(hca.cq, 8, wc);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		if (wc[i].wr_id & PEERS_OWN) {
			config.completed(&wc[i]);
			continue;
		}
		if (wc[i].wr_id & PEERS_RECEIVE) {
			int q = wc[i].wr_id >> 16 & 0xff;
			unsigned int slot = wc[i].wr_id & 0xffff;

			if (wc[i].opcode == IBV_WC_RECV_RDMA_WITH_IMM && config.immediate)
				config.immediate(&wc[i]);
			else
				verify(&wc[i], q,
				       (void *)(memory + queues[q].at +
						(size_t)slot * config.size[q]));
			release(q, slot);
		} else {
			sent(&wc[i]);
		}
	}
	for (int q = 0; q < config.queues; q++)
		queue_refill(q);
	for (int g = 0; config.mortal && g < MAX_RANKS; g++)
		busy |= ways[g].state != WAY_NONE || ways[g].failed ? mend(g) : false;
	return busy || n > 0;
}

static void work_or_idle(unsigned int *times)
{
	if (peers_work())
		*times = 0;
	else
		idle((*times)++);
}

struct way *peers_reach(int to)
{
	struct way *w = &ways[group_of(to)];
	unsigned int times = 0;

	/* Messages that a broken way has not delivered go first. */
	while (w->failed || !reachable(to))
		work_or_idle(&times);
	return w;
}

void peers_send(int to, uint32_t kind, uint32_t value, uint32_t len)
{
	unsigned int times = 0, slot;
	struct message *m;
	struct way *w;

	for (;;) {
		w = peers_reach(to);
		for (slot = 0; slot < send_slots && sends[slot].state != SEND_FREE; slot++)
			;
		if (slot < send_slots && w->outstanding < config.window)
			break;
		work_or_idle(&times);
	}
	m = send_buffer(slot);
	*m = (struct message){
		.from = (uint32_t)me,
		.from_life = my_life,
		.to = (uint32_t)to,
		.to_life = peer[to].life,
		.number = peer[to].sent++,
		.len = len,
		.kind = kind,
		.value = value,
	};
	for (size_t i = 0; i < len - sizeof(*m); i++)
		m->body[i] = content(m->from, m->to, m->number, i);
	sends[slot] = (struct sending){.to = to, .life = peer[to].life, .stamp = ++stamps};
	post_message(slot);
}

void peers_flush(void)
{
	unsigned int times = 0;

	for (int g = 0; g < MAX_RANKS; g++)
		while (ways[g].outstanding || ways[g].failed)
			work_or_idle(&times);
}

void peers_await(int from, uint32_t received)
{
	unsigned int times = 0;

	while (peer[from].received < received)
		work_or_idle(&times);
}
