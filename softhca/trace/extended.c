// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See extended.h. rdma-core marks such a context by all ones in abi_compat. In front of it stand
 * its size and, growing downwards, pointers to operations; an operation is there if the size says
 * so. The library's own functions do not use these pointers.
 *
 *	BYTES in front	WHAT
 *	8		size, up to the end of the context
 *	24, 32		close_xrcd, open_xrcd
 *	40, 48		create_srq_ex, get_srq_num
 *	56, 64		create_qp_ex, open_qp
 *	320		query_port
 */
#include <inttypes.h>
#include <string.h>

#include "call.h"
#include "extended.h"
#include "ops.h"
#include "words.h"

static struct extended_ops *in_front(struct ibv_context *context)
{
	return (struct extended_ops *)context - 1;
}

/* An XRC domain begins with its context there, too, and has nothing else that could be a name. */
static void say_domain(struct call *c, const void *xrcd)
{
	call_say(c, "xrcd %#" PRIxPTR, (uintptr_t)xrcd);
}

static int trace_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
			    size_t len)
{
	struct call c;
	int ret;

	call_begin(&c, "ibv_query_port", false);
	say_context(&c, context);
	call_say(&c, ", %u", port);
	call_enter(&c);
	ret = ops_extended(context)->query_port(context, port, attr, len);
	call_returned(&c, ret);
	if (!ret)
		call_say(&c, " {state %u, lid %u}", attr->state, attr->lid);
	call_end(&c);
	return ret;
}

static struct ibv_qp *trace_open_qp(struct ibv_context *context, struct extended_open_attr *attr)
{
	struct ibv_qp *qp;
	struct call c;

	call_begin(&c, "ibv_open_qp", false);
	say_context(&c, context);
	call_say(&c, ", {qp 0x%06x, ", attr->qp_num);
	say_domain(&c, attr->xrcd);
	call_say(&c, "}");
	call_enter(&c);
	qp = ops_extended(context)->open_qp(context, attr);
	call_returned_object(&c, qp);
	if (qp)
		say_qp(&c, qp);
	call_end(&c);
	ops_wrap(context);
	return qp;
}

static struct ibv_qp *trace_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp;
	struct call c;

	call_begin(&c, "ibv_create_qp_ex", false);
	say_context(&c, context);
	call_say(&c, ", ");
	say_qp_init(&c, attr);
	call_enter(&c);
	qp = ops_extended(context)->create_qp_ex(context, attr);
	call_returned_object(&c, qp);
	if (qp)
		say_qp(&c, qp);
	call_end(&c);
	ops_wrap(context);
	return qp;
}

static int trace_get_srq_num(void *srq, uint32_t *number)
{
	struct ibv_context *context = ((struct ibv_srq *)srq)->context;
	struct call c;
	int ret;

	call_begin(&c, "ibv_get_srq_num", false);
	say_srq(&c, srq);
	call_enter(&c);
	ret = ops_extended(context)->get_srq_num(srq, number);
	call_returned(&c, ret);
	if (!ret)
		call_say(&c, " 0x%06x", *number);
	call_end(&c);
	return ret;
}

static struct ibv_srq *trace_create_srq_ex(struct ibv_context *context,
					   struct extended_srq_attr *attr)
{
	struct ibv_srq *srq;
	struct call c;

	call_begin(&c, "ibv_create_srq_ex", false);
	say_context(&c, context);
	call_say(&c, ", ");
	say_srq_attr(&c, &attr->attr);
	/* Members that the mask says are there: the type, and for XRC its domain and CQ. */
	if (attr->comp_mask & 1)
		call_say(&c, ", %s",
			 attr->type == 1 ? "IBV_SRQT_XRC"
			 : attr->type	 ? "another type"
					 : "IBV_SRQT_BASIC");
	if (attr->comp_mask & 4) {
		call_say(&c, ", ");
		say_domain(&c, attr->xrcd);
	}
	if (attr->comp_mask & 8) {
		call_say(&c, ", ");
		say_cq(&c, attr->cq);
	}
	call_enter(&c);
	srq = ops_extended(context)->create_srq_ex(context, attr);
	call_returned_object(&c, srq);
	if (srq)
		say_srq(&c, srq);
	call_end(&c);
	ops_wrap(context);
	return srq;
}

static void *trace_open_xrcd(struct ibv_context *context, struct extended_xrcd_attr *attr)
{
	struct call c;
	void *xrcd;

	call_begin(&c, "ibv_open_xrcd", false);
	say_context(&c, context);
	call_say(&c, ", {fd %d, ", attr->fd);
	say_oflags(&c, attr->oflags);
	call_say(&c, "}");
	call_enter(&c);
	xrcd = ops_extended(context)->open_xrcd(context, attr);
	call_returned_object(&c, xrcd);
	if (xrcd)
		say_domain(&c, xrcd);
	call_end(&c);
	return xrcd;
}

static int trace_close_xrcd(void *xrcd)
{
	struct ibv_context *context = *(struct ibv_context **)xrcd;
	struct call c;
	int ret;

	call_begin(&c, "ibv_close_xrcd", false);
	say_domain(&c, xrcd);
	call_enter(&c);
	ret = ops_extended(context)->close_xrcd(xrcd);
	call_returned(&c, ret);
	call_end(&c);
	return ret;
}

bool extended_wrap(struct ibv_context *context, struct extended_ops *real)
{
	struct extended_ops *front;
	size_t room;

	if (context->abi_compat != (void *)UINTPTR_MAX)
		return false;
	front = in_front(context);
	/*
	 * The size counts from the first operation to the end of the context, whose own size is
	 * rdma-core's.
	 */
	room = front->size - 328;
	if (room > sizeof(*front))
		room = sizeof(*front);
	memset(real, 0, sizeof(*real));
	memcpy((char *)(real + 1) - room, (char *)context - room, room);
#define WRAP(op)                                                                                   \
	if (real->op)                                                                              \
		__atomic_store_n(&front->op, trace_##op, __ATOMIC_RELEASE);
	WRAP(query_port)
	WRAP(open_qp)
	WRAP(create_qp_ex)
	WRAP(get_srq_num)
	WRAP(create_srq_ex)
	WRAP(open_xrcd)
	WRAP(close_xrcd)
	return true;
}
