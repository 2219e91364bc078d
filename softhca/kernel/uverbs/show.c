// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The objects of programs, as `softhca show` prints them. Changes nothing. */
#include <inttypes.h>

#include "softhca/device/queues/cq.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/queues/srq.h"
#include "softhca/kernel/out.h"
#include "softhca/kernel/process.h"
#include "context.h"
#include "evq.h"
#include "objects.h"
#include "room.h"
#include "uverbs.h"

static const char *type_name(uint32_t type)
{
	switch (type) {
	case SH_QPT_RC:
		return "RC";
	case SH_QPT_UC:
		return "UC";
	case SH_QPT_UD:
		return "UD";
	case SH_QPT_XRC:
		return "XRC";
	case SH_QPT_XRC_INI:
		return "XRC_INI";
	case SH_QPT_XRC_TGT:
		return "XRC_TGT";
	}
	return "unknown";
}

static const char *state_name(uint32_t state)
{
	static const char *const name[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return state < sizeof(name) / sizeof(name[0]) ? name[state] : "unknown";
}

static void registrations(const struct kqp *qp, struct out *o)
{
	const struct kxrc_reg *reg;

	out_begin_array(o, "registrations");
	DL_FOREACH(qp->regs, reg)
	{
		out_begin_object(o, NULL);
		out_int(o, "context", reg->ctx->index);
		out_int(o, "pid", reg->ctx->proc->pid);
		out_end_object(o);
	}
	out_end_array(o);
}

static void show_qp_state(const struct sh_qp_info *info, struct out *o)
{
	out_text(o, "state", state_name(info->state));
	out_int(o, "send_cq", info->send_cqn);
	out_int(o, "recv_cq", info->recv_cqn);
	out_int(o, "srq", info->srqn);
	out_int(o, "dest_qpn", info->dest_qpn);
	out_int(o, "dlid", info->dlid);
	out_int(o, "port", info->port);
	out_int(o, "send_outstanding", info->sq_posted_unfinished);
	out_int(o, "recv_posted", info->rq_available);
	out_int(o, "retries_left", info->retry_left);
	out_int(o, "rnr_retries_left", info->rnr_left);
	out_int(o, "messages_sent", info->messages_sent);
	out_int(o, "messages_received", info->messages_received);
	out_int(o, "xmit_data", info->xmit_data);
	out_int(o, "rcv_data", info->rcv_data);
	out_int(o, "retries", info->retries);
	out_int(o, "drops", info->drops);
}

static void show_qps(struct kernel *k, uint32_t hca, struct out *o)
{
	struct sh_qp_info info;
	struct kqp *qp, *tmp;

	out_begin_array(o, "qps");
	HASH_ITER(hh, k->uverbs->objects[hca].qps, qp, tmp)
	{
		out_begin_object(o, NULL);
		out_int(o, "qpn", qp->qpn);
		out_text(o, "type", type_name(qp->type));
		if (qp->ctx) {
			out_int(o, "context", qp->ctx->index);
			out_int(o, "pid", qp->ctx->proc->pid);
		} else {
			registrations(qp, o);
		}
		if (qp->pd)
			out_int(o, "pd", qp->pd->pdn);
		if (qp->d)
			out_int(o, "xrcd", qp->d->xrcdn);
		out_text(o, "queue_memory", qp->buf.shm ? "shared" : qp->ctx ? "copied" : "none");
		out_int(o, "queue_bytes", qp->buf.len);
		if (sh_qp_info(&k->dev, hca, qp->qpn, &info) == 0)
			show_qp_state(&info, o);
		out_end_object(o);
	}
	out_end_array(o);
}

static void show_cq(struct kernel *k, uint32_t hca, const struct kcq *cq, struct out *o)
{
	struct sh_cq_info info;

	out_int(o, "cqn", cq->cqn);
	out_int(o, "context", cq->u.ctx->index);
	out_int(o, "pid", cq->u.ctx->proc->pid);
	out_int(o, "entries", cq->entries);
	out_int(o, "users", cq->refs);
	out_text(o, "queue_memory", cq->buf.shm ? "shared" : "copied");
	out_int(o, "queue_bytes", cq->buf.len);
	if (cq->evq)
		out_int(o, "channel", cq->evq->index);
	if (sh_cq_query(&k->dev, hca, cq->cqn, &info) < 0)
		return;
	out_int(o, "producer", info.producer);
	out_int(o, "consumer", info.consumer);
	out_int(o, "armed", info.armed);
	out_int(o, "overrun", info.overrun);
	out_int(o, "events", info.comp_events);
}

static void show_srq(struct kernel *k, uint32_t hca, const struct ksrq *srq, struct out *o)
{
	struct sh_srq_info info;

	out_int(o, "srqn", srq->srqn);
	out_int(o, "context", srq->u.ctx->index);
	out_int(o, "pid", srq->u.ctx->proc->pid);
	out_int(o, "pd", srq->pd->pdn);
	out_int(o, "max_wr", srq->max - 1);
	out_int(o, "users", srq->refs);
	out_text(o, "queue_memory", srq->buf.shm ? "shared" : "copied");
	out_int(o, "queue_bytes", srq->buf.len);
	if (srq->d) {
		out_int(o, "xrcd", srq->d->xrcdn);
		out_int(o, "cq", srq->cq->cqn);
	}
	if (sh_srq_query(&k->dev, hca, srq->srqn, &info) < 0)
		return;
	out_int(o, "available", info.available);
	out_int(o, "limit", info.limit);
}

/* By the names of the verbs, less their IBV_ACCESS_. */
static void show_access(uint32_t access, struct out *o)
{
	static const char *const name[] = {"LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ",
					   "REMOTE_ATOMIC", "MW_BIND"};

	out_begin_array(o, "access");
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		if (access & 1u << i)
			out_text(o, NULL, name[i]);
	out_end_array(o);
}

static void show_mr(const struct kmr *mr, struct out *o)
{
	out_hex(o, "key", "0x%08" PRIx64, mr->key);
	out_int(o, "context", mr->u.ctx->index);
	out_int(o, "pid", mr->u.ctx->proc->pid);
	out_int(o, "pd", mr->pd->pdn);
	out_hex(o, "address", "0x%" PRIx64, mr->start);
	out_int(o, "length", mr->len);
	show_access(mr->access, o);
}

static void show_pd(const struct kpd *pd, struct out *o)
{
	out_int(o, "pdn", pd->pdn);
	out_int(o, "context", pd->u.ctx->index);
	out_int(o, "pid", pd->u.ctx->proc->pid);
	out_int(o, "users", pd->refs);
}

static void show_type(struct kernel *k, uint32_t hca, enum uobj_type type, const char *name,
		      struct out *o)
{
	const struct uobj *u;
	uint32_t i;

	out_begin_array(o, name);
	for (i = 1; i < SH_MAX_CTX; i++) {
		if (!k->uverbs->ctx[i] || k->uverbs->ctx[i]->hca != hca)
			continue;
		DL_FOREACH(k->uverbs->ctx[i]->objs[type], u)
		{
			out_begin_object(o, NULL);
			if (type == UO_PD)
				show_pd((const struct kpd *)u, o);
			else if (type == UO_CQ)
				show_cq(k, hca, (const struct kcq *)u, o);
			else if (type == UO_SRQ)
				show_srq(k, hca, (const struct ksrq *)u, o);
			else
				show_mr((const struct kmr *)u, o);
			out_end_object(o);
		}
	}
	out_end_array(o);
}

static void show_xrcds(struct kernel *k, uint32_t hca, struct out *o)
{
	const struct kxrcd *d;
	const struct kqp *qp;

	out_begin_array(o, "xrc_domains");
	DL_FOREACH(k->uverbs->objects[hca].xrcds, d)
	{
		out_begin_object(o, NULL);
		out_int(o, "xrcd", d->xrcdn);
		if (d->fd >= 0) {
			out_int(o, "device", d->key.dev);
			out_int(o, "inode", d->key.ino);
		} else {
			out_word(o, "device", "null");
			out_word(o, "inode", "null");
		}
		out_int(o, "opens", d->opens);
		out_int(o, "users", d->users);
		out_begin_array(o, "receive_qps");
		DL_FOREACH2(d->qps, qp, dnext)
		{
			out_begin_object(o, NULL);
			out_int(o, "qpn", qp->qpn);
			registrations(qp, o);
			out_end_object(o);
		}
		out_end_array(o);
		out_end_object(o);
	}
	out_end_array(o);
}

static void show_contexts(struct kernel *k, uint32_t hca, struct out *o)
{
	const struct kevq *q;
	uint32_t i;

	out_begin_array(o, "contexts");
	for (i = 1; i < SH_MAX_CTX; i++) {
		const struct kctx *ctx = k->uverbs->ctx[i];

		if (!ctx || ctx->hca != hca)
			continue;
		out_begin_object(o, NULL);
		out_int(o, "context", i);
		out_int(o, "pid", ctx->proc->pid);
		out_text(o, "state",
			 ctx->state == KC_RELEASING ? "releasing"
			 : ctx->gone		    ? "memory gone"
			 : ctx->state == KC_OPENING ? "opening"
						    : "open");
		out_text(o, "doorbells", sh_ctx(&k->dev, i)->kick ? "kick" : "trap");
		out_int(o, "commands", ctx->commands);
		out_int(o, "locked_pages", ctx->proc->locked);
		out_begin_array(o, "event_queues");
		DL_FOREACH(ctx->evqs, q)
		{
			const struct sh_evq *shared = sh_evq(&k->dev, q->index);

			out_begin_object(o, NULL);
			out_int(o, "queue", q->index);
			out_text(o, "kind", q->async ? "async" : "completion");
			out_int(o, "users", q->refs);
			out_int(o, "spilled", shared->spilled);
			out_int(o, "lost", shared->lost);
			out_end_object(o);
		}
		out_end_array(o);
		out_end_object(o);
	}
	out_end_array(o);
}

void uverbs_show_daemon(struct kernel *k, struct out *o)
{
	out_int(o, "contexts_releasing", k->uverbs->releasing);
}

void uverbs_show_hca(struct kernel *k, uint32_t hca, struct out *o)
{
	show_contexts(k, hca, o);
	show_type(k, hca, UO_PD, "pds", o);
	show_type(k, hca, UO_CQ, "cqs", o);
	show_type(k, hca, UO_SRQ, "srqs", o);
	show_type(k, hca, UO_MR, "mrs", o);
	show_qps(k, hca, o);
	show_xrcds(k, hca, o);
}

void uverbs_show_counters(struct kernel *k, uint32_t hca, struct out *o)
{
	const uint64_t *left = k->uverbs->objects[hca].left;

	out_int(o, "left_pds", left[UO_PD]);
	out_int(o, "left_mrs", left[UO_MR]);
	out_int(o, "left_cqs", left[UO_CQ]);
	out_int(o, "left_srqs", left[UO_SRQ]);
	out_int(o, "left_qps", left[UO_QP]);
	out_int(o, "left_xrc_domains", left[UO_XRCD]);
}
