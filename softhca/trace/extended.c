// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See extended.h. rdma-core marks such a context by all ones in abi_compat. In front of it stand its
 * size and, growing downwards, pointers to operations; an operation is there if the size says so. The
 * library's own functions do not use these pointers.
 *
 *	BYTES in front	WHAT
 *	8		size, up to the end of the context
 *	24, 32		close_xrcd, open_xrcd
 *	40, 48		create_srq_ex, get_srq_num
 *	56, 64		create_qp_ex, open_qp
 *	320		query_port
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "call.h"
#include "extended.h"
#include "ops.h"
#include "words.h"

#define CONTEXTS 1024

struct xrcd_attr {
	uint32_t comp_mask;
	int fd, oflags;
};
struct srq_attr {
	void *srq_context;
	struct ibv_srq_attr attr;
	uint32_t comp_mask, type;
	struct ibv_pd *pd;
	struct ibv_xrc_domain *xrcd;
	struct ibv_cq *cq;
};
_Static_assert(offsetof(struct srq_attr, comp_mask) == 20, "as in rdma-core");
_Static_assert(offsetof(struct srq_attr, cq) == 48, "as in rdma-core");
struct open_attr {
	uint32_t comp_mask, qp_num;
	void *xrcd, *qp_context;
	uint32_t type;
};
_Static_assert(offsetof(struct open_attr, type) == 24, "as in rdma-core");

/* The operations from the one that is farthest in front. */
struct operations {
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
			  size_t len);
	void *others[31];
	struct ibv_qp *(*open_qp)(struct ibv_context *context, struct open_attr *attr);
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *context, struct ibv_qp_init_attr *attr);
	int (*get_srq_num)(void *srq, uint32_t *number);
	struct ibv_srq *(*create_srq_ex)(struct ibv_context *context, struct srq_attr *attr);
	void *(*open_xrcd)(struct ibv_context *context, struct xrcd_attr *attr);
	int (*close_xrcd)(void *xrcd);
	uint64_t reserved;
	size_t size;
};
_Static_assert(sizeof(struct operations) == 320, "in front of the context");

/* Entries are made and freed under the lock of ops.c, and read without. */
static struct {
	struct ibv_context *context;
	struct operations ops;
} table[CONTEXTS];

static struct operations *in_front(struct ibv_context *context)
{
	return (struct operations *)context - 1;
}

static const struct operations *real(const struct ibv_context *context)
{
	for (unsigned int i = 0; i < CONTEXTS; i++)
		if (__atomic_load_n(&table[i].context, __ATOMIC_ACQUIRE) == context)
			return &table[i].ops;
	return NULL;
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
	ret = real(context)->query_port(context, port, attr, len);
	call_returned(&c, ret);
	if (!ret)
		call_say(&c, " {state %u, lid %u}", attr->state, attr->lid);
	call_end(&c);
	return ret;
}

static struct ibv_qp *trace_open_qp(struct ibv_context *context, struct open_attr *attr)
{
	struct ibv_qp *qp;
	struct call c;

	call_begin(&c, "ibv_open_qp", false);
	say_context(&c, context);
	call_say(&c, ", {qp %#x, ", attr->qp_num);
	say_domain(&c, attr->xrcd);
	call_say(&c, "}");
	call_enter(&c);
	qp = real(context)->open_qp(context, attr);
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
	qp = real(context)->create_qp_ex(context, attr);
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
	ret = real(context)->get_srq_num(srq, number);
	call_returned(&c, ret);
	if (!ret)
		call_say(&c, " %#x", *number);
	call_end(&c);
	return ret;
}

static struct ibv_srq *trace_create_srq_ex(struct ibv_context *context, struct srq_attr *attr)
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
	srq = real(context)->create_srq_ex(context, attr);
	call_returned_object(&c, srq);
	if (srq)
		say_srq(&c, srq);
	call_end(&c);
	ops_wrap(context);
	return srq;
}

static void *trace_open_xrcd(struct ibv_context *context, struct xrcd_attr *attr)
{
	struct call c;
	void *xrcd;

	call_begin(&c, "ibv_open_xrcd", false);
	say_context(&c, context);
	call_say(&c, ", {fd %d, ", attr->fd);
	say_oflags(&c, attr->oflags);
	call_say(&c, "}");
	call_enter(&c);
	xrcd = real(context)->open_xrcd(context, attr);
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
	ret = real(context)->close_xrcd(xrcd);
	call_returned(&c, ret);
	call_end(&c);
	return ret;
}

bool extended_wrap(struct ibv_context *context)
{
	struct operations *front;
	size_t room;

	if (context->abi_compat != (void *)UINTPTR_MAX)
		return false;
	front = in_front(context);
	/* The size counts from the first operation to the end of the context, whose own size is rdma-core's. */
	room = front->size - 328;
#define WRAP(op)                                                                                   \
	if (room >= sizeof(*front) - offsetof(struct operations, op) && front->op)                 \
		front->op = trace_##op;
	for (unsigned int i = 0; i < CONTEXTS; i++) {
		if (table[i].context)
			continue;
		memset(&table[i].ops, 0, sizeof(table[i].ops));
		if (room > sizeof(*front))
			room = sizeof(*front);
		memcpy((char *)(&table[i].ops + 1) - room, (char *)context - room, room);
		__atomic_store_n(&table[i].context, context, __ATOMIC_RELEASE);
		WRAP(query_port)
		WRAP(open_qp)
		WRAP(create_qp_ex)
		WRAP(get_srq_num)
		WRAP(create_srq_ex)
		WRAP(open_xrcd)
		WRAP(close_xrcd)
		break;
	}
	return true;
}

void extended_forget(struct ibv_context *context)
{
	for (unsigned int i = 0; i < CONTEXTS; i++)
		if (table[i].context == context)
			__atomic_store_n(&table[i].context, NULL, __ATOMIC_RELEASE);
}
