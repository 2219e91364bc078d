/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A sender that is interrupted between two of its stores, a receiver, and another peer of the
 * receiver that goes on: for tests of what the receiver and that peer find. Include after cmocka.h.
 */
#ifndef SOFTHCA_SCENE_H
#define SOFTHCA_SCENE_H

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softhca_pair.h"
#include "softhca/host/witness.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/mr.h"
#include "softhca/device/transport/doorbell.h"

#define RECEIVES   6
#define OTHERS	   2 /* receives of the second SRQ */
#define MAX_STEPS  200000
#define MAX_POINTS 2000

/*
 * One QP of the victim to a receiver that has another peer. Both peers share the SRQ of the
 * receiver, or have their own RQs there.
 */
struct scene {
	struct tpair p;	 /* p.a is the victim's */
	struct tqp c, d; /* c: the survivor's, connected to d of the receiver */
	struct tcq ccq[2];
	uint32_t cctx;
	struct tsrq other; /* for the last request of a chain, if there is one */
	struct twr wr;
	bool arms; /* the victim arms the receiver's CQ, and sends nothing */
};

struct plot {
	const char *name;
	uint32_t type;
	bool srq;
	uint8_t opcode;
	uint32_t len;
	void (*twist)(struct scene *s);
	unsigned int chain; /* more such requests after the first */
};

static inline bool shares_receives(const struct plot *plot)
{
	return plot->srq || plot->type == SH_QPT_XRC;
}

/* A sender that was stopped may have lost what it was in the middle of. */
static inline bool may_lose(const struct plot *plot)
{
	return plot->type == SH_QPT_UC || plot->type == SH_QPT_UD;
}

/* How many bytes are in front of a message in its receive. */
static inline uint32_t head_of(const struct plot *plot)
{
	return plot->type == SH_QPT_UD ? 40 : 0;
}

/* A message of the other peer. */
static inline struct twr other_wr(const struct scene *s)
{
	struct twr wr = s->wr;

	wr.opcode = MLX4_OPCODE_SEND;
	wr.sge[0] = (struct tsge){s->p.amem + 32768, 100, 0x3000};
	wr.nsge = 1;
	wr.dqpn = s->d.qpn;
	wr.av_pd = s->c.pdn;
	return wr;
}

static inline void with_grh(struct scene *s)
{
	s->wr.grh = true;
	memset(s->wr.dgid, 0xd7, sizeof(s->wr.dgid));
}

static inline void bad_rkey(struct scene *s)
{
	s->wr.rkey++;
}

/*
 * The sender believes that the CQ has room for one CQE only: so the second CQE takes a transaction
 * of another kind than its neighbours.
 */
static inline void nearly_full(struct scene *s)
{
	sh_cq_get(&s->p.m->dev, 1, s->p.bcq[1].cqn)->consumer_seen =
		1 - (1u << s->p.bcq[1].log_size);
}

static inline void other_srq(struct scene *s)
{
	struct tpair *p = &s->p;

	tsrq_open(&s->other, p->m, 1, p->b.ctx, p->b.pdn, 0x61, 9, p->bcq[1].cqn);
	for (uint32_t i = 0; i < OTHERS; i++)
		tsrq_post(&s->other,
			  &(struct tsge){p->bmem + 65536 * (RECEIVES + 1 + i), 65536, p->bkey}, 1);
}

static inline void scene_open(struct scene *s, const struct plot *plot)
{
	bool xrc = plot->type == SH_QPT_XRC;
	struct tpair *p = &s->p;
	struct sh_qp_attr ca, da;

	memset(s, 0, sizeof(*s));
	tpair_open(p, &(struct tpair_opts){.type = plot->type, .srq = plot->srq});
	/* The receiver is this process, and not the victim's. */
	sh_ctx(&p->m->dev, p->b.ctx)->proc = 2;
	sh_proc(&p->m->dev, 2)->pid = (uint32_t)getpid();
	s->cctx = mock_ctx(p->m, 0);
	sh_ctx(&p->m->dev, s->cctx)->proc = 2;
	mock_map(p->m, s->cctx, p->amem, TMEM);
	assert_int_equal(
		sh_mr_create(&p->m->daemon, 0, 0x3000, s->cctx, 8, (uintptr_t)p->amem, TMEM, 0xf),
		0);
	for (uint32_t i = 0; i < 2; i++)
		tcq_open(&s->ccq[i], p->m, 0, s->cctx, 0xb0 + i, 7);
	tqp_open(&s->c, p->m, 0, s->cctx, 8, plot->type, xrc ? 0x800070 : 0x70, &s->ccq[0],
		 &s->ccq[1], &(struct topts){.no_rq = xrc});
	tqp_open(&s->d, p->m, 1, p->b.ctx, p->b.pdn, plot->type, xrc ? 0x800071 : 0x71, &p->bcq[0],
		 &p->bcq[1],
		 &(struct topts){.no_rq = xrc || plot->srq,
				 .srqn = plot->srq ? 0x60 : 0,
				 .xrcd = xrc ? 9 : 0});
	ca = tqp_attr(tlid(p->m, 1), s->d.qpn);
	da = tqp_attr(tlid(p->m, 0), s->c.qpn);
	tqp_up(&s->c, &ca);
	tqp_up(&s->d, &da);
	for (uint32_t i = 0; i < RECEIVES; i++)
		tpair_recv(p, 65536 * (i + 1), 65536);
	if (!shares_receives(plot))
		tqp_recv(&s->d, &(struct tsge){p->bmem, 65536, p->bkey}, 1);
	tfill(p->amem, 65536, 3);
	s->wr = tpair_wr(p, plot->opcode, plot->len);
	if (plot->twist)
		plot->twist(s);
	s->wr.signaled = !plot->chain;
	for (uint32_t i = 0; i <= plot->chain; i++) {
		struct twr wr = s->wr;

		if (i == plot->chain && s->other.srqn)
			wr.srqn = s->other.srqn;
		tqp_post(&p->a, &wr);
	}
}

/* The memory that the victim changes: contexts and queues of all parties in the scene. */
#define NAREAS 9
struct area {
	const uint8_t *at;
	size_t len;
};

static inline void areas(struct scene *s, struct area *a)
{
	struct sh_dev *dev = &s->p.m->dev;

	a[0] = (struct area){(void *)tqp_ctx(&s->p.a), sizeof(struct sh_qp)};
	a[1] = (struct area){(void *)tqp_ctx(&s->p.b), sizeof(struct sh_qp)};
	a[2] = (struct area){(void *)sh_cq_get(dev, 0, s->p.acq[0].cqn), sizeof(struct sh_cq)};
	a[3] = (struct area){(void *)sh_cq_get(dev, 1, s->p.bcq[1].cqn), sizeof(struct sh_cq)};
	a[4] = (struct area){mock_ptr(&s->p.acq[0].buf), 256};
	a[5] = (struct area){mock_ptr(&s->p.bcq[1].buf), 512};
	a[6] = (struct area){NULL, 0};
	if (s->p.srq.srqn)
		a[6] = (struct area){(void *)sh_srq_get(dev, 1, 0x60), sizeof(struct sh_srq)};
	a[7] = (struct area){(void *)sh_proc(dev, 2), sizeof(struct sh_proc)};
	a[8] = (struct area){NULL, 0};
	if (s->other.srqn)
		a[8] = (struct area){(void *)sh_srq_get(dev, 1, s->other.srqn),
				     sizeof(struct sh_srq)};
}

static inline uint64_t digest(const struct area *a)
{
	uint64_t h = 1;

	for (int i = 0; i < NAREAS; i++)
		for (size_t off = 0; off + 8 <= a[i].len; off += 8) {
			uint64_t w;

			memcpy(&w, a[i].at + off, 8);
			h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
			h ^= h >> 29;
		}
	return h;
}

static inline pid_t victim(struct scene *s)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		int err;

		s->p.m->dev.witness = sh_witness(&err);
		if (!s->arms && !sh_enter(&s->p.m->dev))
			_exit(3);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		if (s->arms)
			tcq_arm(&s->p.bcq[1], false);
		else
			sh_ring(&s->p.m->dev, s->p.a.ctx, s->p.a.qpn);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL);
	sh_proc(&s->p.m->dev, 1)->pid = (uint32_t)pid;
	return pid;
}

/* The quick tier tests every sixteenth point, the full tier all of them. */
static inline unsigned int stride(void)
{
	const char *tier = getenv("TIER");

	return tier && !strcmp(tier, "full") ? 1 : 16;
}

static inline void ended(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* For a rehearsal that only binds symbols: the victim does all at once. */
static inline void let_run(pid_t pid)
{
	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	ended(pid);
}

/* How many messages of the victim, and of the other peer. */
struct arrivals {
	unsigned int from_a, from_c;
};

/* Polls what has arrived. Asserts that each message is whole, and in a receive of its own. */
static inline struct arrivals take_arrivals(struct scene *s, const struct plot *plot)
{
	struct tpair *p = &s->p;
	bool seen[RECEIVES] = {false};
	struct arrivals n = {0};
	struct mlx4_cqe cqe;

	while (tcq_poll(&p->bcq[1], &cqe)) {
		uint16_t index = be16toh((uint16_t)cqe.wqe_index);
		uint32_t qpn = be32toh((uint32_t)cqe.vlan_my_qpn);
		const uint8_t *at = p->bmem + 65536 * (index + 1) + head_of(plot);

		assert_int_equal(cqe.owner_sr_opcode & 0x1f, MLX4_CQE_RECV_SEND);
		if (qpn == p->b.qpn) {
			n.from_a++;
			assert_memory_equal(at, p->amem, plot->len);
		} else {
			n.from_c++;
			assert_int_equal(qpn, s->d.qpn);
			if (!shares_receives(plot)) {
				/* Its receive is of another queue. */
				assert_memory_equal(p->bmem + head_of(plot), p->amem + 32768, 100);
				continue;
			}
			assert_memory_equal(at, p->amem + 32768, 100);
		}
		assert_in_range(index, 0, RECEIVES - 1);
		assert_false(seen[index]);
		seen[index] = true;
	}
	return n;
}

#endif
