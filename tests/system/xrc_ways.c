// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See xrc_peers.h: ways to groups, registrations, and the notes by which ranks ask for them. */
#include "xrc_peers_internal.h"

struct peer peer[MAX_RANKS];
struct source source[MAX_RANKS];
struct way ways[MAX_RANKS];

static uint32_t serials;
static unsigned int breaks;

int group_of(int rank)
{
	return config.group ? config.group(rank) : rank / local;
}

uint32_t life_of(int rank)
{
	return __atomic_load_n(&board->rank[rank].life, __ATOMIC_ACQUIRE);
}

static void modify(struct ibv_qp *qp, uint32_t rcv_qpn, struct ibv_qp_attr *attr, int mask)
{
	CHECK_EQ(qp ? ibv_modify_qp(qp, attr, mask)
		    : ibv_modify_xrc_rcv_qp(hca.domain, rcv_qpn, attr, mask),
		 0);
}

void make_ready(struct ibv_qp *qp, uint32_t rcv_qpn, uint16_t dlid, uint32_t dest_qpn, uint32_t psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = config.access};

	modify(qp, rcv_qpn, &attr,
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_2048,
		.dest_qp_num = dest_qpn,
		.rq_psn = psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 5,
		.ah_attr = {.dlid = dlid, .port_num = 1},
	};
	modify(qp, rcv_qpn, &attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (!qp)
		return;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = psn,
		.max_rd_atomic = 4,
	};
	modify(qp, rcv_qpn, &attr,
	       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

/*
 * A new rank may have taken the place of a dead one. It has received nothing and knows of no
 * connection.
 */
static void refresh(int rank)
{
	struct peer *p = &peer[rank];
	uint32_t life = life_of(rank);

	if (p->life == life)
		return;
	p->life = life;
	p->joined = p->asked = false;
	p->sent = 0;
}

static void tell(int to, struct note *note)
{
	note->from = (uint32_t)me;
	note->life = my_life;
	note->to_life = peer[to].life;
	if (config.tell)
		config.tell(to, note);
	else
		mail_send(to, note);
}

static void ask_new(struct way *w)
{
	struct note note = {.kind = NOTE_NEW,
			    .serial = w->serial,
			    .lid = hca.lid,
			    .qpn = w->qp->qp_num,
			    .psn = w->psn};

	w->asked_at = now_ms();
	tell(w->asked, &note);
}

static void ask_join(struct way *w, int to)
{
	struct note note = {.kind = NOTE_JOIN, .serial = w->serial, .qpn = w->rcv_qpn};

	peer[to].asked = true;
	peer[to].asked_at = now_ms();
	tell(to, &note);
}

/* The receive QP that a note asks for: creates it, or registers with it. */
static bool receive_qp(const struct note *note, struct source *s)
{
	struct ibv_qp_init_attr init = {.xrc_domain = hca.domain};

	s->mine = note->kind == NOTE_NEW;
	if (!s->mine) {
		s->qpn = note->qpn;
		if (ibv_reg_xrc_rcv_qp(hca.domain, note->qpn) == 0)
			return true;
		CHECK(config.mortal);
		s->qpn = 0;
		return false;
	}
	CHECK_EQ(ibv_create_xrc_rcv_qp(&init, &s->qpn), 0);
	make_ready(NULL, s->qpn, (uint16_t)note->lid, note->qpn, note->psn);
	return true;
}

static void answer(const struct note *note)
{
	struct source *s = &source[note->from];
	int from = (int)note->from;

	refresh(from);
	if (s->serial && s->life == note->life && (int32_t)(note->serial - s->serial) < 0)
		return; /* came late: there is a newer one */
	/*
	 * A note that is repeated gets the same answer: there is one receive QP and one
	 * registration.
	 */
	if (s->qpn && s->life == note->life && note->serial == s->serial) {
		tell(from, &s->answer);
		return;
	}
	peers_leave(from);
	s->serial = note->serial;
	s->life = note->life;
	s->answer = (struct note){.serial = note->serial, .kind = NOTE_REFUSED};
	if (receive_qp(note, s)) {
		s->answer.kind = s->mine ? NOTE_MADE : NOTE_JOINED;
		s->answer.lid = hca.lid;
		s->answer.qpn = s->qpn;
		for (int q = 0; q < config.queues; q++)
			s->answer.srqn[q] = hca.srq[q]->xrc_srq_num;
	}
	tell(from, &s->answer);
}

void break_way(struct way *w)
{
	CHECK(config.mortal);
	breaks += w->state != WAY_BROKEN;
	w->state = WAY_BROKEN;
}

unsigned int peers_breaks(void)
{
	return breaks;
}

static void answered(const struct note *note)
{
	int from = (int)note->from;
	struct way *w = &ways[group_of(from)];
	struct peer *p = &peer[from];

	if (note->serial != w->serial || note->life != life_of(from))
		return;
	if (note->kind == NOTE_REFUSED) {
		if (w->state == WAY_READY)
			break_way(w);
		return;
	}
	if (note->kind == NOTE_MADE && w->state == WAY_ASKED) {
		w->rcv_qpn = note->qpn;
		make_ready(w->qp, 0, (uint16_t)note->lid, note->qpn, w->psn);
		w->state = WAY_READY;
	}
	if (w->state != WAY_READY || note->qpn != w->rcv_qpn)
		return;
	p->joined = true;
	p->asked = false;
	memcpy(p->srqn, note->srqn, sizeof(p->srqn));
}

bool hear_note(void)
{
	struct note note;

	if (!(config.hear ? config.hear(&note) : mail_next(&note)))
		return false;
	CHECK(note.from < (uint32_t)total);
	if (note.to_life != my_life || note.life != life_of((int)note.from))
		return true;
	if (note.kind == NOTE_NEW || note.kind == NOTE_JOIN)
		answer(&note);
	else
		answered(&note);
	return true;
}

static struct ibv_qp *make_send_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = hca.cq,
		.recv_cq = hca.cq,
		.qp_type = IBV_QPT_XRC,
		.xrc_domain = hca.domain,
		.cap = {.max_send_wr = config.window + 16, .max_send_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(hca.pd, &init);

	CHECK(qp);
	return qp;
}

static bool late(uint64_t since)
{
	return config.retry_ms && now_ms() - since >= (uint64_t)config.retry_ms;
}

void forget_way(struct way *w)
{
	int group = (int)(w - ways);

	CHECK_EQ(ibv_destroy_qp(w->qp), 0);
	w->qp = NULL;
	w->state = WAY_NONE;
	for (int i = 0; i < total; i++)
		if (group_of(i) == group)
			peer[i].joined = peer[i].asked = false;
}

bool reachable(int to)
{
	struct way *w = &ways[group_of(to)];
	struct peer *p = &peer[to];

	refresh(to);
	switch (w->state) {
	case WAY_NONE:
		w->qp = make_send_qp();
		w->serial = ++serials;
		w->psn = (w->serial * 7919 + (uint32_t)me * 104729 + my_life) & 0xffffff;
		w->asked = config.first ? config.first(to) : to;
		w->state = WAY_ASKED;
		refresh(w->asked);
		w->asked_life = peer[w->asked].life;
		ask_new(w);
		return false;
	case WAY_ASKED:
		if (w->asked_life != life_of(w->asked))
			forget_way(w);
		else if (late(w->asked_at))
			ask_new(w);
		return false;
	case WAY_READY:
		if (!p->joined && (!p->asked || late(p->asked_at)))
			ask_join(w, to);
		return p->joined;
	default:
		return false;
	}
}
