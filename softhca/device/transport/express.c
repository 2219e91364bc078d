// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The express way (express_way.h) of the acknowledged services, RC and XRC.
 */
#include "express_way.h"

SH_OUTLINE bool express_write(struct sh_express *e, struct sh_dev *dev, const struct sh_packet *p)
{
	const struct sh_sge place = {p->va, p->dmalen, p->rkey};
	bool notify = p->flags & SH_PKT_IMM;
	struct sh_last last;
	struct sink s;
	uint32_t pdn;

	if (!sh_op_allowed(e->qp, p) || p->payload.len != place.len)
		return false;
	if (notify && (place.len > SH_SHORT || !open_sink(e, &s, dev, p->srqn, SH_SVC_RC)))
		return false;
	/* With the SRQ locked, if it gives a receive: that is the SRQ whose PD is asked for. */
	if (sh_rkey_pd(e->hca, e->qp, p, &pdn))
		return false;
	sh_rearm();
	if (sh_place_most(dev, e->hca, pdn, SH_REMOTE_WRITE, &place, &p->payload, &last))
		return false;
	if (notify)
		return finish_write(e, &s, dev, p, &last, SH_SVC_RC);
	return !sh_commit_last(dev, &last, (uint64_t *)&e->qp->msn,
			       sh_two(sh_psn_add(e->qp->msn, 1), sh_psn_after(p)));
}

void sh_express_end(struct sh_express *e, struct sh_dev *dev)
{
	if (!e->qp)
		return;
	close_sink(e, dev);
	sh_unlock(dev, &e->qp->rlock);
	e->qp = NULL;
}

/* Executes the request of an acknowledged service. */
SH_INLINE bool execute(struct sh_express *e, struct sh_dev *dev, const struct sh_packet *p,
		       struct sh_packet *resp, struct sh_seg *resp_seg)
{
	bool done = false;

	if (!fits(e, p, SH_SVC_RC))
		return false;
	if (p->op != SH_PKT_SEND && e->waiting)
		commit_alone(e, dev);
	if (p->op == SH_PKT_SEND)
		done = express_send(e, dev, p, SH_SVC_RC);
	else if (p->op == SH_PKT_WRITE)
		done = express_write(e, dev, p);
	else if (p->op == SH_PKT_READ)
		done = !sh_execute_read(dev, e->hca, e->qp, p, resp, resp_seg, false);
	if (!done)
		return false;
	e->qp->nak_sent = 0;
	e->qp->messages_received++;
	return true;
}

bool sh_respond_express(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
			const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg)
{
	struct sh_express e;
	bool done =
		begin(&e, dev, hca, qp, port, p, SH_SVC_RC) && execute(&e, dev, p, resp, resp_seg);

	if (done && p->op != SH_PKT_READ)
		sh_ack(resp, p, qp->msn);
	sh_express_end(&e, dev);
	return done;
}

bool sh_express(struct sh_express *e, struct sh_dev *dev, struct sh_hca *src,
		const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg)
{
	if (!__atomic_load_n(&dev->inst->faults.active, __ATOMIC_RELAXED) &&
	    (e->qp || find(e, dev, src, p, SH_SVC_RC)) && execute(e, dev, p, resp, resp_seg)) {
		count(e, p);
		return true;
	}
	sh_express_end(e, dev);
	return false;
}
