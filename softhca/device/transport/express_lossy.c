// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The express way (express_way.h) of the services without acknowledgements. A sender that is thrown
 * (life.h) does not come back to a message, so nothing of it can be done twice.
 */
#include "express_way.h"
#include "mcast.h"

SH_INLINE bool express_write(struct sh_express *e, struct sh_dev *dev, const struct sh_packet *p)
{
	const struct sh_sge place = {p->va, p->dmalen, p->rkey};
	bool notify = p->flags & SH_PKT_IMM;
	struct sink s;

	if (!sh_op_allowed(e->qp, p) || p->payload.len != place.len)
		return false;
	if (notify && (place.len > SH_SHORT || !open_sink(e, &s, dev, p->srqn, SH_SVC_UC)))
		return false;
	sh_rearm();
	if (sh_place_at(dev, e->hca, e->qp->pdn, SH_REMOTE_WRITE, &place, &p->payload))
		return false;
	return !notify || finish_write(e, &s, dev, p, NULL, SH_SVC_UC);
}

SH_INLINE bool execute_uc(struct sh_express *e, struct sh_dev *dev, const struct sh_packet *p)
{
	bool done = false;

	if (!fits(e, p, SH_SVC_UC))
		return false;
	if (p->op != SH_PKT_SEND && e->waiting)
		commit_alone(e, dev);
	if (p->op == SH_PKT_SEND)
		done = express_send(e, dev, p, SH_SVC_UC);
	else if (p->op == SH_PKT_WRITE)
		done = express_write(e, dev, p);
	if (!done)
		return false;
	sh_expect_after(e->qp, p);
	e->qp->messages_received++;
	return true;
}

SH_INLINE bool execute_ud(struct sh_express *e, struct sh_dev *dev, const struct sh_packet *p)
{
	if (p->op != SH_PKT_SEND || !fits(e, p, SH_SVC_UD) || !sh_qkey_match(e->qp, p) ||
	    !express_send(e, dev, p, SH_SVC_UD))
		return false;
	e->qp->messages_received++;
	return true;
}

static inline bool execute(struct sh_express *e, struct sh_dev *dev, const struct sh_packet *p)
{
	return p->service == SH_SVC_UD ? execute_ud(e, dev, p) : execute_uc(e, dev, p);
}

bool sh_respond_lossy(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		      const struct sh_packet *p)
{
	struct sh_express e;
	bool done = begin(&e, dev, hca, qp, port, p, p->service) && execute(&e, dev, p);

	sh_express_end(&e, dev);
	return done;
}

/*
 * The same, for a datagram to a group that has one member. Each datagram asks anew: a program that
 * has just joined or left a group must see that.
 */
static bool find_member(struct sh_express *e, struct sh_dev *dev, const struct sh_hca *src,
			const struct sh_packet *p)
{
	struct sh_hca *hca = NULL;
	struct sh_qp *qp = sh_mcast_only(dev, p, &hca);
	uint32_t port;

	if (!qp)
		return false;
	if (e->qp == qp)
		return true;
	sh_express_end(e, dev);
	port = qp->port;
	return sh_port_active(src, p->src_port) && sh_port_active(hca, port) &&
	       begin(e, dev, hca, qp, port, p, SH_SVC_UD);
}

/*
 * Goes on with the QP that the last message of the chain went to, if this one is for it too. Each
 * datagram has an address of its own.
 */
static inline bool locate(struct sh_express *e, struct sh_dev *dev, struct sh_hca *src,
			  const struct sh_packet *p)
{
	if (p->dqpn == MLX4_MULTICAST_QPN && p->service == SH_SVC_UD) {
		if (!find_member(e, dev, src, p))
			return false;
		e->dqpn = p->dqpn;
		return true;
	}
	if (e->qp && (p->service == SH_SVC_UC || (e->dlid == p->dlid && e->dqpn == p->dqpn)))
		return true;
	sh_express_end(e, dev);
	if (!find(e, dev, src, p, p->service))
		return false;
	e->dlid = p->dlid;
	e->dqpn = p->dqpn;
	return true;
}

bool sh_express_lossy(struct sh_express *e, struct sh_dev *dev, struct sh_hca *src,
		      struct sh_qp *from, const struct sh_packet *p)
{
	if (!__atomic_load_n(&dev->inst->faults.active, __ATOMIC_RELAXED) &&
	    locate(e, dev, src, p) && execute(e, dev, p)) {
		if (p->service == SH_SVC_UD && p->dqpn == MLX4_MULTICAST_QPN) {
			from->xmit_multicast++;
			e->qp->rcv_multicast++;
		}
		count(e, p);
		return true;
	}
	sh_express_end(e, dev);
	return false;
}
