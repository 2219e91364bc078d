// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: those of a context, with queues in its memory, and the kernel's own XRC receive and
 * target QPs, which live as long as a context is registered. The device has their state and
 * attributes (sh_qp_modify).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmlx4/src/mlx4-abi.h"
#include "softhca/device/queues/modify.h"
#include "softhca/device/queues/qp.h"
#include "softhca/device/queues/transitions.h"
#include "softhca/device/transport/mcast.h"
#include "softhca/kernel/kern.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/process.h"
#include "softhca/kernel/wire_groups.h"
#include "commands.h"
#include "context.h"
#include "evq.h"
#include "limits.h"
#include "uverbs.h"
#include "xrc.h"

struct kqp *qp_find(struct kernel *k, uint32_t hca, uint32_t qpn)
{
	struct kqp *qp;

	HASH_FIND(hh, k->uverbs->objects[hca].qps, &qpn, sizeof(qpn), qp);
	return qp;
}

static bool has_xrc_number(const struct kernel *k, uint32_t type)
{
	return k->cfg.device.face == SH_FACE_OFED ? type == SH_QPT_XRC : type == SH_QPT_XRC_TGT;
}

static int qpn_get(struct kernel *k, struct kqp *qp)
{
	int err = num_get(&k->uverbs->objects[qp->hca].qpn, &qp->qpn);

	if (err == 0 && has_xrc_number(k, qp->type))
		qp->qpn |= K_XRC_QPN_BIT;
	return err;
}

static void qpn_put(struct kernel *k, const struct kqp *qp)
{
	num_put(&k->uverbs->objects[qp->hca].qpn, qp->qpn & (K_XRC_QPN_BIT - 1));
}

/* ---- the kernel's own ---- */

struct kqp *qp_create_kernel(struct kxrcd *d, struct kernel *k, uint32_t type, uint32_t sq_sig_all,
			     int *err)
{
	struct kqp *qp = calloc(1, sizeof(*qp));
	struct sh_qp_init init;

	if (!qp) {
		*err = -ENOMEM;
		return NULL;
	}
	qp->hca = d->hca;
	qp->type = type;
	qp->d = d;
	*err = qpn_get(k, qp);
	if (*err < 0)
		goto err_free;
	init = (struct sh_qp_init){
		.type = type, .pdn = d->pdn, .xrcd = d->xrcdn, .sq_sig_all = sq_sig_all};
	*err = sh_qp_create(&k->dev, qp->hca, qp->qpn, &init);
	if (*err < 0)
		goto err_num;
	HASH_ADD(hh, k->uverbs->objects[qp->hca].qps, qpn, sizeof(qp->qpn), qp);
	if (!qp->hh.tbl) {
		*err = -ENOMEM;
		goto err_qp;
	}
	d->users++;
	DL_APPEND2(d->qps, qp, dprev, dnext);
	return qp;

err_qp:
	(void)sh_qp_end(&k->dev, qp->hca, qp->qpn);
err_num:
	qpn_put(k, qp);
err_free:
	free(qp);
	return NULL;
}

static bool qp_finish(struct kernel *k, struct aside *a)
{
	struct kqp *qp = container_of(a, struct kqp, aside);

	if (!k->ending && qp->unlocked && sh_qp_reclaim(&k->dev, qp->hca, qp->qpn) < 0)
		return false;
	if (qp->stuck)
		k->uverbs->stuck_qps--;
	qpn_put(k, qp);
	buf_free(k, &qp->buf);
	if (a->proc)
		proc_put(k, a->proc);
	free(qp);
	return true;
}

/* Has the device forget the QP. -EINPROGRESS, unless late: a client holds a lock of it. */
static int qp_end(struct kernel *k, struct kqp *qp, bool late, uint32_t *async)
{
	int err;

	aside_take(k, &qp->aside);
	err = sh_qp_destroy(&k->dev, qp->hca, qp->qpn, async);
	if (err == -EINPROGRESS && !late)
		return err;
	if (err == -EINPROGRESS) {
		*async = sh_qp_end(&k->dev, qp->hca, qp->qpn);
		qp->unlocked = true;
	}
	return 0;
}

static void qp_put(struct kernel *k, struct kqp *qp)
{
	HASH_DEL(k->uverbs->objects[qp->hca].qps, qp);
	if (qp_finish(k, &qp->aside))
		return;
	qp->stuck = true;
	k->uverbs->stuck_qps++;
	if (qp->ctx)
		aside_pages(k, &qp->aside, qp->ctx->proc, qp_finish);
	else
		aside_until_unlocked(k, &qp->aside, qp_finish);
}

int qp_destroy_kernel(struct kernel *k, struct kqp *qp, bool late)
{
	uint32_t async;

	if (qp_end(k, qp, late, &async) < 0)
		return -EINPROGRESS;
	DL_DELETE2(qp->d->qps, qp, dprev, dnext);
	xrcd_put_user(k, qp->d);
	qp_put(k, qp);
	return 0;
}

/* ---- those of a context ---- */

/* The receive queue: from what the program asks for to what it gets, as mlx4 does. */
static int size_rq(const struct uv_create_qp *cmd, bool has_rq, struct sh_qp_init *init)
{
	if (cmd->max_recv_wr > K_MAX_WQES - K_SPARE_WQES || cmd->max_recv_sge > K_MAX_SGE)
		return -EINVAL;
	if (!has_rq)
		return cmd->max_recv_wr ? -EINVAL : 0;
	if (!cmd->max_recv_wr || !cmd->max_recv_sge)
		return -EINVAL;
	init->rq_present = 1;
	init->log_rq_size = log2_ceil(cmd->max_recv_wr);
	init->rq_shift = 4 + log2_ceil(cmd->max_recv_sge);
	init->cap_recv_wr = 1u << init->log_rq_size;
	init->cap_recv_sge = 1u << log2_ceil(cmd->max_recv_sge);
	return 0;
}

static int size_sq(const struct mlx4_abi_create_qp *drv, struct sh_qp_init *init)
{
	if (drv->log_sq_bb_count > 14 || drv->log_sq_stride < 6 || drv->log_sq_stride > 10)
		return -EINVAL;
	init->sq_present = 1;
	init->log_sq_size = drv->log_sq_bb_count;
	init->sq_shift = drv->log_sq_stride;
	return 0;
}

static void hold(struct kqp *qp)
{
	qp->pd->refs++;
	qp->scq->refs++;
	if (qp->rcq)
		qp->rcq->refs++;
	if (qp->srq)
		qp->srq->refs++;
	if (qp->d)
		qp->d->users++;
}

static void let_go(struct kernel *k, struct kqp *qp)
{
	qp->pd->refs--;
	qp->scq->refs--;
	if (qp->rcq)
		qp->rcq->refs--;
	if (qp->srq)
		qp->srq->refs--;
	if (qp->d)
		xrcd_put_user(k, qp->d);
}

static int find_objects(struct call *c, const struct qp_request *rq, struct kqp *qp)
{
	const struct uv_create_qp *cmd = rq->cmd;

	qp->pd = uobj_get(c->ctx, UO_PD, cmd->pd_handle);
	qp->scq = uobj_get(c->ctx, UO_CQ, cmd->send_cq_handle);
	if (!qp->pd || !qp->scq)
		return -EINVAL;
	if (rq->no_recv_cq)
		return 0;
	qp->rcq = uobj_get(c->ctx, UO_CQ, cmd->recv_cq_handle);
	if (!qp->rcq)
		return -EINVAL;
	if (cmd->is_srq) {
		qp->srq = uobj_get(c->ctx, UO_SRQ, cmd->srq_handle);
		if (!qp->srq || qp->srq->d)
			return -EINVAL;
	}
	return 0;
}

int qp_respond(struct call *c, const struct uv_create_qp_resp *resp, bool extended)
{
	struct uv_ex_create_qp_resp ex = {.base = *resp};

	if (!extended)
		return call_respond(c, resp, sizeof(*resp), NULL, 0);
	ex.response_length = c->core_out < sizeof(ex) ? c->core_out : sizeof(ex);
	return call_respond(c, &ex, ex.response_length, NULL, 0);
}

int qp_create_user(struct call *c, const struct qp_request *rq)
{
	const struct uv_create_qp *cmd = rq->cmd;
	struct kernel *k = c->k;
	struct uv_create_qp_resp resp;
	struct mlx4_abi_create_qp drv;
	struct sh_qp_init init = {
		.ctx = c->ctx->index,
		.type = rq->type,
		.sq_sig_all = cmd->sq_sig_all,
		.block_self_mcast = rq->block_self_mcast,
		.user_handle = cmd->user_handle,
	};
	struct kqp_handle *h;
	struct kqp *qp;
	bool has_rq;
	int err;

	h = calloc(1, sizeof(*h));
	qp = calloc(1, sizeof(*qp));
	err = -ENOMEM;
	if (!h || !qp)
		goto err_free;
	h->qp = qp;
	h->u.user_handle = cmd->user_handle;
	qp->ctx = c->ctx;
	qp->hca = c->ctx->hca;
	qp->type = rq->type;
	qp->d = rq->d;
	err = find_objects(c, rq, qp);
	if (err < 0)
		goto err_free;
	has_rq = !qp->srq && rq->type != SH_QPT_XRC && rq->type != SH_QPT_XRC_INI;
	err = size_rq(cmd, has_rq, &init);
	if (err < 0)
		goto err_free;
	err = call_driver(c, &drv, sizeof(drv));
	if (err < 0)
		goto err_free;
	err = size_sq(&drv, &init);
	if (err < 0)
		goto err_free;
	err = call_owner(c);
	if (err < 0)
		goto err_free;
	err = buf_map(c, &qp->buf, drv.buf_addr,
		      (UINT64_C(1) << (init.log_sq_size + init.sq_shift)) +
			      (has_rq ? UINT64_C(1) << (init.log_rq_size + init.rq_shift) : 0),
		      false);
	if (err < 0)
		goto err_free;
	init.buf = buf_umem(c->ctx, &qp->buf);
	if (has_rq) {
		err = db_get(c, drv.db_addr, 4, &init.rq_db);
		if (err < 0)
			goto err_buf;
		qp->db = drv.db_addr;
	}
	err = qpn_get(k, qp);
	if (err < 0)
		goto err_db;
	init.pdn = qp->pd->pdn;
	init.send_cqn = qp->scq->cqn;
	init.recv_cqn = qp->rcq ? qp->rcq->cqn : 0;
	init.srqn = qp->srq ? qp->srq->srqn : 0;
	init.xrcd = qp->d ? qp->d->xrcdn : 0;
	qp->cap_recv_wr = init.cap_recv_wr;
	qp->cap_recv_sge = init.cap_recv_sge;
	err = sh_qp_create(&k->dev, qp->hca, qp->qpn, &init);
	if (err < 0)
		goto err_num;
	err = uobj_add(c->ctx, &h->u, UO_QP);
	if (err < 0)
		goto err_qp;
	resp = (struct uv_create_qp_resp){
		.qp_handle = h->u.handle,
		.qpn = qp->qpn,
		.max_send_wr = cmd->max_send_wr,
		.max_recv_wr = qp->cap_recv_wr,
		.max_send_sge = cmd->max_send_sge,
		.max_recv_sge = qp->cap_recv_sge,
		.max_inline_data = cmd->max_inline_data,
	};
	HASH_ADD(hh, k->uverbs->objects[qp->hca].qps, qpn, sizeof(qp->qpn), qp);
	if (!qp->hh.tbl) {
		err = -ENOMEM;
		goto err_del;
	}
	err = qp_respond(c, &resp, rq->extended);
	if (err < 0)
		goto err_hash;
	hold(qp);
	c->r->made_kind = SH_MADE_QP;
	c->r->made_number = qp->qpn;
	c->r->made_handle = h->u.handle;
	c->r->made_user_handle = cmd->user_handle;
	return 0;

err_hash:
	HASH_DEL(k->uverbs->objects[qp->hca].qps, qp);
err_del:
	uobj_del(&h->u);
err_qp:
	(void)sh_qp_end(&k->dev, qp->hca, qp->qpn);
err_num:
	qpn_put(k, qp);
err_db:
	if (has_rq)
		db_put(c->ctx, drv.db_addr);
err_buf:
	buf_unmap(c->ctx, &qp->buf);
err_free:
	free(qp);
	free(h);
	return err;
}

/*
 * -EINPROGRESS: a client holds the lock of the groups; the next try leaves the rest. A group that
 * does not have the QP, because a client has overwritten it, counts as left.
 */
static int leave_groups(struct kernel *k, struct kqp_handle *h)
{
	struct kmcast *m;

	while ((m = h->mcast)) {
		if (sh_mcast_detach(&k->dev, h->qp->hca, m->gid, h->qp->qpn) == -EINPROGRESS)
			return -EINPROGRESS;
		wire_part(k, m->gid);
		h->mcast = m->next;
		free(m);
	}
	return 0;
}

static int handle_end(struct kernel *k, struct kqp_handle *h, bool late)
{
	int err;

	/* First: a group would deliver to the QP that gets this number next. */
	err = leave_groups(k, h);
	if (err)
		return err;
	h->target = h->reg;
	err = h->reg ? xrc_rcv_reg_del(k, h->reg, late, &h->u.async)
		     : qp_end(k, h->qp, late, &h->u.async);
	h->u.ended = !err;
	/*
	 * The QP may have ended with this registration. The handle stays until its events are
	 * dropped.
	 */
	if (!err && h->target)
		h->qp = NULL;
	return err;
}

int qp_free(struct kqp_handle *h, bool late, uint32_t *async)
{
	struct kctx *ctx = h->u.ctx;
	struct kernel *k = ctx->k;
	struct kqp *qp = h->qp;
	int err = 0;

	if (!h->u.ended)
		err = handle_end(k, h, late);
	if (!err)
		err = evq_drop_async(k, ctx->async, h->u.user_handle, UO_QP, late, &h->u.async);
	if (err)
		return err;
	*async = h->u.async;
	if (!h->target) {
		buf_uncount(ctx, &qp->buf);
		if (qp->db)
			db_put(ctx, qp->db);
		let_go(k, qp);
		qp_put(k, qp);
	}
	uobj_del(&h->u);
	free(h);
	return 0;
}

int cmd_destroy_qp(struct call *c)
{
	const struct uv_object *cmd = (const void *)c->in;
	struct kqp_handle *h = uobj_ending(c->ctx, UO_QP, cmd->handle);
	struct uv_destroy_resp resp;
	int err;

	if (!h)
		return c->k->uverbs->face->no_object;
	if (h->mcast)
		return -EBUSY;
	err = qp_free(h, gives_up_data(c), &resp.events_reported);
	if (err < 0)
		return err;
	return call_respond(c, &resp, sizeof(resp), NULL, 0);
}

/* ---- attributes ---- */

static void path_in(struct sh_path *p, const struct uv_qp_dest *d)
{
	memcpy(p->dgid, d->dgid, sizeof(p->dgid));
	p->flow_label = d->flow_label;
	p->dlid = d->dlid;
	p->sgid_index = d->sgid_index;
	p->hop_limit = d->hop_limit;
	p->traffic_class = d->traffic_class;
	p->sl = d->sl;
	p->src_path_bits = d->src_path_bits;
	p->static_rate = d->static_rate;
	p->is_global = d->is_global;
	p->port_num = d->port_num;
}

static void path_out(struct uv_qp_dest *d, const struct sh_path *p)
{
	memcpy(d->dgid, p->dgid, sizeof(d->dgid));
	d->flow_label = p->flow_label;
	d->dlid = p->dlid;
	d->sgid_index = p->sgid_index;
	d->hop_limit = p->hop_limit;
	d->traffic_class = p->traffic_class;
	d->sl = p->sl;
	d->src_path_bits = p->src_path_bits;
	d->static_rate = p->static_rate;
	d->is_global = p->is_global;
	d->port_num = p->port_num;
}

/* Makes the move to RESET or ERR that a command has promised. */
static bool qp_settle(struct kernel *k, struct aside *a)
{
	struct kqp *qp = container_of(a, struct kqp, aside);
	struct sh_qp_attr attr = {.qp_state = qp->next_state};

	return k->ending ||
	       sh_qp_modify(&k->dev, qp->hca, qp->qpn, &attr, UV_QP_STATE) != -EINPROGRESS;
}

/*
 * A client does not let go of the QP's locks. The QP moves when they are free; for its owner it is
 * there already. In RESET the memory may be used for something else, so nothing is placed there
 * meanwhile. Receives are flushed when the QP moves.
 */
static void settle_later(struct kernel *k, struct kqp *qp, uint32_t state)
{
	aside_take(k, &qp->aside);
	qp->next_state = state;
	if (state == SH_QPS_RESET)
		sh_qp_halt(&k->dev, qp->hca, qp->qpn);
	aside_until_unlocked(k, &qp->aside, qp_settle);
}

static int device_modify(struct call *c, struct kqp *qp, const struct sh_qp_attr *attr,
			 uint32_t mask)
{
	struct kernel *k = c->k;
	bool ends = mask & UV_QP_STATE &&
		    (attr->qp_state == SH_QPS_RESET || attr->qp_state == SH_QPS_ERR);
	int err = 0;

	if (qp->aside.set && !qp_settle(k, &qp->aside))
		err = -EINPROGRESS;
	if (!err) {
		aside_take(k, &qp->aside);
		err = sh_qp_modify(&k->dev, qp->hca, qp->qpn, attr, mask);
	}
	if (err != -EINPROGRESS || !gives_up_data(c) || !ends)
		return err;
	settle_later(k, qp, attr->qp_state);
	return 0;
}

int qp_modify(struct call *c, struct kqp *qp, const struct uv_qp_dest *dest,
	      const struct uv_qp_dest *alt, const struct uv_modify_attr *a)
{
	/*
	 * Mainline's halves of an XRC connection: attributes of the other half are dropped
	 * silently.
	 */
	uint32_t mask = a->attr_mask & ~sh_qp_foreign_attrs(qp->type);
	struct sh_qp_attr attr = {
		.qp_state = a->qp_state,
		.cur_qp_state = a->cur_qp_state,
		.path_mtu = a->path_mtu,
		.path_mig_state = a->path_mig_state,
		.qkey = a->qkey,
		.rq_psn = a->rq_psn,
		.sq_psn = a->sq_psn,
		.dest_qp_num = a->dest_qp_num,
		.qp_access_flags = a->qp_access_flags,
		.pkey_index = a->pkey_index,
		.alt_pkey_index = a->alt_pkey_index,
		.en_sqd_async_notify = a->en_sqd_async_notify,
		.max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
		.min_rnr_timer = a->min_rnr_timer,
		.port_num = a->port_num,
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry,
		.alt_port_num = a->alt_port_num,
		.alt_timeout = a->alt_timeout,
	};
	int err;

	path_in(&attr.path, dest);
	path_in(&attr.alt_path, alt);
	/*
	 * A command that is wrong says so at once, even if a client does not let go of the QP's
	 * locks.
	 */
	if (!sh_qp_values_ok(&attr, mask, c->k->cfg.device.ports, port_mtu(c->k)))
		return -EINVAL;
	err = device_modify(c, qp, &attr, mask);
	if (err < 0)
		return err;
	/*
	 * What is set aside is flushed when it moves. A caller that looked at it now would wait for
	 * the lock that the daemon did not get.
	 */
	if (qp->ctx == c->ctx && mask & UV_QP_STATE && a->qp_state >= SH_QPS_RTS && !qp->aside.set)
		c->r->ring[c->r->nrings++] = qp->qpn;
	return 0;
}

int cmd_modify_qp(struct call *c)
{
	const struct uv_modify_qp *cmd = (const void *)c->in;
	struct kqp_handle *h = uobj_get(c->ctx, UO_QP, cmd->qp_handle);

	return h ? qp_modify(c, h->qp, &cmd->dest, &cmd->alt_dest, &cmd->attr) : -EINVAL;
}

int qp_query(struct call *c, struct kqp *qp)
{
	struct uv_query_qp_resp resp = {0};
	struct sh_qp_attr a = {0};
	int err;

	err = sh_qp_query(&c->k->dev, qp->hca, qp->qpn, &a);
	if (err == -EINPROGRESS && c->late)
		err = sh_qp_peek(&c->k->dev, qp->hca, qp->qpn, &a);
	if (err < 0)
		return err;
	if (qp->aside.set)
		a.qp_state = qp->next_state;
	path_out(&resp.dest, &a.path);
	path_out(&resp.alt_dest, &a.alt_path);
	resp.max_recv_wr = qp->cap_recv_wr;
	resp.max_recv_sge = qp->cap_recv_sge;
	resp.qkey = a.qkey;
	resp.rq_psn = a.rq_psn;
	resp.sq_psn = a.sq_psn;
	resp.dest_qp_num = a.dest_qp_num;
	resp.qp_access_flags = a.qp_access_flags;
	resp.pkey_index = a.pkey_index;
	resp.alt_pkey_index = a.alt_pkey_index;
	resp.qp_state = a.qp_state;
	resp.cur_qp_state = a.qp_state;
	resp.path_mtu = a.path_mtu;
	resp.path_mig_state = a.path_mig_state;
	resp.sq_draining = a.sq_draining;
	resp.max_rd_atomic = a.max_rd_atomic;
	resp.max_dest_rd_atomic = a.max_dest_rd_atomic;
	resp.min_rnr_timer = a.min_rnr_timer;
	resp.port_num = a.port_num;
	resp.timeout = a.timeout;
	resp.retry_cnt = a.retry_cnt;
	resp.rnr_retry = a.rnr_retry;
	resp.alt_port_num = a.alt_port_num;
	resp.alt_timeout = a.alt_timeout;
	resp.sq_sig_all = a.sq_sig_all;
	return call_respond(c, &resp, sizeof(resp), NULL, 0);
}

int cmd_query_qp(struct call *c)
{
	const struct uv_query_qp *cmd = (const void *)c->in;
	struct kqp_handle *h = uobj_get(c->ctx, UO_QP, cmd->qp_handle);

	return h ? qp_query(c, h->qp) : -EINVAL;
}
