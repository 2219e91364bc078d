// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Stands in front of the verbs for QPs, SRQs and, with OFED's names, XRC. */
#include <inttypes.h>
#include <stddef.h>

#include <infiniband/verbs.h>

#include "front.h"
#include "ops.h"
#include "words.h"

IN_FRONT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	REAL(ibv_create_qp)
	struct ibv_qp *qp;
	struct call c;

	call_begin(&c, "ibv_create_qp", false);
	say_pd(&c, pd);
	call_say(&c, ", ");
	say_qp_init(&c, attr);
	call_enter(&c);
	qp = real(pd, attr);
	call_returned_object(&c, qp);
	if (qp) {
		say_qp(&c, qp);
		call_say(&c, ", cap ");
		say_qp_cap(&c, &attr->cap);
	}
	call_end(&c);
	if (pd)
		ops_wrap(pd->context);
	return qp;
}

IN_FRONT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	REAL(ibv_modify_qp)
	struct call c;
	int ret;

	call_begin(&c, "ibv_modify_qp", false);
	say_qp(&c, qp);
	call_say(&c, ", ");
	say_qp_attr(&c, attr, mask);
	call_say(&c, ", ");
	say_qp_mask(&c, mask);
	call_enter(&c);
	ret = real(qp, attr, mask);
	call_returned(&c, ret);
	call_end(&c);
	if (qp)
		ops_wrap(qp->context);
	return ret;
}

IN_FRONT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			  struct ibv_qp_init_attr *init)
{
	REAL(ibv_query_qp)
	struct call c;
	int ret;

	call_begin(&c, "ibv_query_qp", false);
	say_qp(&c, qp);
	call_say(&c, ", ");
	say_qp_mask(&c, mask);
	call_enter(&c);
	ret = real(qp, attr, mask, init);
	call_returned(&c, ret);
	if (!ret) {
		call_say(&c, " ");
		say_qp_attr(&c, attr, mask | IBV_QP_STATE);
	}
	call_end(&c);
	return ret;
}

IN_FRONT int ibv_destroy_qp(struct ibv_qp *qp)
{
	return PLAIN(ibv_destroy_qp, say_qp(&c, qp), qp);
}

/* ---- SRQs ---- */

IN_FRONT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	REAL(ibv_create_srq)
	struct ibv_srq *srq;
	struct call c;

	call_begin(&c, "ibv_create_srq", false);
	say_pd(&c, pd);
	call_say(&c, ", ");
	say_srq_attr(&c, attr ? &attr->attr : NULL);
	call_enter(&c);
	srq = real(pd, attr);
	call_returned_object(&c, srq);
	if (srq)
		say_srq(&c, srq);
	call_end(&c);
	if (pd)
		ops_wrap(pd->context);
	return srq;
}

static void say_srq_change(struct call *c, const struct ibv_srq *srq,
			   const struct ibv_srq_attr *attr, int mask)
{
	say_srq(c, srq);
	call_say(c, ", ");
	say_srq_attr(c, attr);
	call_say(c, ", %s%s%s", mask & IBV_SRQ_MAX_WR ? "IBV_SRQ_MAX_WR" : "",
		 (mask & 3) == 3 ? "|" : "", mask & IBV_SRQ_LIMIT ? "IBV_SRQ_LIMIT" : "");
}

IN_FRONT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	return PLAIN(ibv_modify_srq, say_srq_change(&c, srq, attr, mask), srq, attr, mask);
}

IN_FRONT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	REAL(ibv_query_srq)
	struct call c;
	int ret;

	call_begin(&c, "ibv_query_srq", false);
	say_srq(&c, srq);
	call_enter(&c);
	ret = real(srq, attr);
	call_returned(&c, ret);
	if (!ret) {
		call_say(&c, " ");
		say_srq_attr(&c, attr);
	}
	call_end(&c);
	return ret;
}

IN_FRONT int ibv_destroy_srq(struct ibv_srq *srq)
{
	return PLAIN(ibv_destroy_srq, say_srq(&c, srq), srq);
}

/* ---- XRC with OFED's names: libraries of that generation alone have them ---- */

IN_FRONT struct ibv_srq *ibv_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *d,
					    struct ibv_cq *cq, struct ibv_srq_init_attr *attr)
{
	REAL(ibv_create_xrc_srq)
	struct ibv_srq *srq;
	struct call c;

	call_begin(&c, "ibv_create_xrc_srq", false);
	say_pd(&c, pd);
	call_say(&c, ", ");
	say_xrcd(&c, d);
	call_say(&c, ", ");
	say_cq(&c, cq);
	call_say(&c, ", ");
	say_srq_attr(&c, attr ? &attr->attr : NULL);
	call_enter(&c);
	srq = real(pd, d, cq, attr);
	call_returned_object(&c, srq);
	if (srq) {
		say_srq(&c, srq);
		call_say(&c, ", number 0x%06x", srq->xrc_srq_num);
	}
	call_end(&c);
	if (pd)
		ops_wrap(pd->context);
	return srq;
}

IN_FRONT struct ibv_xrc_domain *ibv_open_xrc_domain(struct ibv_context *context, int fd, int oflag)
{
	REAL(ibv_open_xrc_domain)
	struct ibv_xrc_domain *d;
	struct call c;

	call_begin(&c, "ibv_open_xrc_domain", false);
	say_context(&c, context);
	call_say(&c, ", %d, ", fd);
	say_oflags(&c, oflag);
	call_enter(&c);
	d = real(context, fd, oflag);
	call_returned_object(&c, d);
	if (d)
		say_xrcd(&c, d);
	call_end(&c);
	return d;
}

IN_FRONT int ibv_close_xrc_domain(struct ibv_xrc_domain *d)
{
	return PLAIN(ibv_close_xrc_domain, say_xrcd(&c, d), d);
}

IN_FRONT int ibv_create_xrc_rcv_qp(struct ibv_qp_init_attr *attr, uint32_t *number)
{
	REAL(ibv_create_xrc_rcv_qp)
	struct call c;
	int ret;

	call_begin(&c, "ibv_create_xrc_rcv_qp", false);
	call_say(&c, "{");
	say_xrcd(&c, attr ? attr->xrc_domain : NULL);
	call_say(&c, "}");
	call_enter(&c);
	ret = real(attr, number);
	call_returned(&c, ret);
	if (!ret)
		call_say(&c, " qp 0x%06x", *number);
	call_end(&c);
	return ret;
}

static void say_rcv_qp(struct call *c, const struct ibv_xrc_domain *d, uint32_t number)
{
	say_xrcd(c, d);
	call_say(c, ", qp 0x%06x", number);
}

static void say_rcv_qp_change(struct call *c, const struct ibv_xrc_domain *d, uint32_t number,
			      const struct ibv_qp_attr *attr, int mask)
{
	say_rcv_qp(c, d, number);
	call_say(c, ", ");
	say_qp_attr(c, attr, mask);
	call_say(c, ", ");
	say_qp_mask(c, mask);
}

IN_FRONT int ibv_modify_xrc_rcv_qp(struct ibv_xrc_domain *d, uint32_t number,
				   struct ibv_qp_attr *attr, int mask)
{
	return PLAIN(ibv_modify_xrc_rcv_qp, say_rcv_qp_change(&c, d, number, attr, mask), d, number,
		     attr, mask);
}

IN_FRONT int ibv_query_xrc_rcv_qp(struct ibv_xrc_domain *d, uint32_t number,
				  struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	REAL(ibv_query_xrc_rcv_qp)
	struct call c;
	int ret;

	call_begin(&c, "ibv_query_xrc_rcv_qp", false);
	say_rcv_qp(&c, d, number);
	call_say(&c, ", ");
	say_qp_mask(&c, mask);
	call_enter(&c);
	ret = real(d, number, attr, mask, init);
	call_returned(&c, ret);
	if (!ret) {
		call_say(&c, " ");
		say_qp_attr(&c, attr, mask | IBV_QP_STATE);
	}
	call_end(&c);
	return ret;
}

IN_FRONT int ibv_reg_xrc_rcv_qp(struct ibv_xrc_domain *d, uint32_t number)
{
	return PLAIN(ibv_reg_xrc_rcv_qp, say_rcv_qp(&c, d, number), d, number);
}

IN_FRONT int ibv_unreg_xrc_rcv_qp(struct ibv_xrc_domain *d, uint32_t number)
{
	return PLAIN(ibv_unreg_xrc_rcv_qp, say_rcv_qp(&c, d, number), d, number);
}
