// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Stands in front of the verbs for devices, protection domains, memory, CQs, events, addresses and
 * multicast.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stddef.h>

#include <infiniband/verbs.h>

#include "front.h"
#include "ops.h"
#include "words.h"

#undef ibv_query_port

IN_FRONT struct ibv_device **ibv_get_device_list(int *n)
{
	REAL(ibv_get_device_list)
	struct ibv_device **list;
	struct call c;
	int count = 0;

	call_begin(&c, "ibv_get_device_list", false);
	call_enter(&c);
	list = real(&count);
	if (n)
		*n = count;
	call_returned_object(&c, list);
	for (int i = 0; c.on && list && i < count; i++)
		call_say(&c, "%s%.64s", i ? ", " : "[", list[i]->name);
	if (list)
		call_say(&c, count ? "]" : "[]");
	call_end(&c);
	return list;
}

IN_FRONT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	REAL(ibv_open_device)
	struct ibv_context *context;
	struct call c;

	call_begin(&c, "ibv_open_device", false);
	if (device)
		call_say(&c, "%.64s", device->name);
	call_enter(&c);
	context = real(device);
	call_returned_object(&c, context);
	if (context)
		call_say(&c, "%.64s, fd %d", context->device->name, context->cmd_fd);
	ops_wrap(context);
	call_end(&c);
	return context;
}

IN_FRONT int ibv_close_device(struct ibv_context *context)
{
	REAL(ibv_close_device)
	struct call c;
	int ret;

	call_begin(&c, "ibv_close_device", false);
	say_context(&c, context);
	call_enter(&c);
	if (context)
		ops_forget(context);
	ret = real(context);
	call_returned(&c, ret);
	call_end(&c);
	return ret;
}

IN_FRONT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	return PLAIN(ibv_query_device, say_context(&c, context), context, attr);
}

IN_FRONT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	REAL(ibv_query_gid)
	struct call c;
	int ret;

	call_begin(&c, "ibv_query_gid", false);
	say_context(&c, context);
	call_say(&c, ", %u, %d", port, index);
	call_enter(&c);
	ret = real(context, port, index, gid);
	call_returned_errno(&c, ret);
	if (!ret) {
		call_say(&c, " ");
		say_gid(&c, gid);
	}
	call_end(&c);
	return ret;
}

IN_FRONT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, uint16_t *pkey)
{
	REAL(ibv_query_pkey)
	struct call c;
	int ret;

	call_begin(&c, "ibv_query_pkey", false);
	say_context(&c, context);
	call_say(&c, ", %u, %d", port, index);
	call_enter(&c);
	ret = real(context, port, index, pkey);
	call_returned_errno(&c, ret);
	if (!ret)
		call_say(&c, " 0x%04x", ntohs(*pkey));
	call_end(&c);
	return ret;
}

/* ---- protection domains and memory ---- */

IN_FRONT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	REAL(ibv_alloc_pd)
	struct ibv_pd *pd;
	struct call c;

	call_begin(&c, "ibv_alloc_pd", false);
	say_context(&c, context);
	call_enter(&c);
	pd = real(context);
	call_returned_object(&c, pd);
	if (pd)
		say_pd(&c, pd);
	call_end(&c);
	return pd;
}

IN_FRONT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return PLAIN(ibv_dealloc_pd, say_pd(&c, pd), pd);
}

static void say_registration(struct call *c, const struct ibv_pd *pd, const void *addr,
			     size_t length, int access)
{
	say_pd(c, pd);
	call_say(c, ", %#" PRIxPTR ", %zu, ", (uintptr_t)addr, length);
	say_access(c, access);
}

static void registered(struct call *c, const struct ibv_mr *mr)
{
	call_returned_object(c, mr);
	if (mr) {
		say_mr(c, mr);
		call_say(c, ", rkey %#x", mr->rkey);
	}
	call_end(c);
}

#undef ibv_reg_mr
IN_FRONT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	REAL(ibv_reg_mr)
	struct ibv_mr *mr;
	struct call c;

	call_begin(&c, "ibv_reg_mr", false);
	say_registration(&c, pd, addr, length, access);
	call_enter(&c);
	mr = real(pd, addr, length, access);
	registered(&c, mr);
	return mr;
}

/* rdma-core's: what its header makes of ibv_reg_mr(), with an address of the program's choice. */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access);
IN_FRONT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
					 uint64_t iova, unsigned int access)
{
	REAL_OF("libibverbs.so.1", ibv_reg_mr_iova2, "IBVERBS_1.8")
	struct ibv_mr *mr;
	struct call c;

	call_begin(&c, "ibv_reg_mr", false);
	say_registration(&c, pd, addr, length, (int)access);
	if (iova != (uintptr_t)addr)
		call_say(&c, ", iova %#" PRIx64, iova);
	call_enter(&c);
	mr = real(pd, addr, length, iova, access);
	registered(&c, mr);
	return mr;
}

IN_FRONT int ibv_dereg_mr(struct ibv_mr *mr)
{
	return PLAIN(ibv_dereg_mr, say_mr(&c, mr), mr);
}

/* ---- CQs and their events ---- */

static void say_channel(struct call *c, const struct ibv_comp_channel *channel)
{
	if (channel)
		call_say(c, "channel fd %d", channel->fd);
}

IN_FRONT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	REAL_OF("libibverbs.so.1", ibv_create_comp_channel, "IBVERBS_1.0")
	struct ibv_comp_channel *channel;
	struct call c;

	call_begin(&c, "ibv_create_comp_channel", false);
	say_context(&c, context);
	call_enter(&c);
	channel = real(context);
	call_returned_object(&c, channel);
	say_channel(&c, channel);
	call_end(&c);
	return channel;
}

IN_FRONT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return PLAIN_OF("IBVERBS_1.0", ibv_destroy_comp_channel, say_channel(&c, channel), channel);
}

IN_FRONT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				      struct ibv_comp_channel *channel, int comp_vector)
{
	REAL(ibv_create_cq)
	struct ibv_cq *cq;
	struct call c;

	call_begin(&c, "ibv_create_cq", false);
	say_context(&c, context);
	call_say(&c, ", %d, ", cqe);
	say_channel(&c, channel);
	if (!channel)
		call_say(&c, "NULL");
	call_say(&c, ", %d", comp_vector);
	call_enter(&c);
	cq = real(context, cqe, cq_context, channel, comp_vector);
	call_returned_object(&c, cq);
	if (cq) {
		say_cq(&c, cq);
		call_say(&c, cq->cqe == 1 ? ", %d entry" : ", %d entries", cq->cqe);
	}
	call_end(&c);
	ops_wrap(context);
	return cq;
}

IN_FRONT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	return PLAIN(ibv_resize_cq, (say_cq(&c, cq), call_say(&c, ", %d", cqe)), cq, cqe);
}

IN_FRONT int ibv_destroy_cq(struct ibv_cq *cq)
{
	return PLAIN(ibv_destroy_cq, say_cq(&c, cq), cq);
}

IN_FRONT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			      void **cq_context)
{
	REAL(ibv_get_cq_event)
	struct call c;
	int ret;

	call_begin(&c, "ibv_get_cq_event", false);
	say_channel(&c, channel);
	call_enter(&c);
	ret = real(channel, cq, cq_context);
	call_returned_errno(&c, ret);
	if (!ret) {
		call_say(&c, " ");
		say_cq(&c, *cq);
	}
	call_end(&c);
	return ret;
}

IN_FRONT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	REAL(ibv_ack_cq_events)
	struct call c;

	call_begin(&c, "ibv_ack_cq_events", false);
	say_cq(&c, cq);
	call_say(&c, ", %u", n);
	call_enter(&c);
	real(cq, n);
	call_left(&c, false, 0);
	call_end(&c);
}

IN_FRONT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	REAL(ibv_get_async_event)
	struct call c;
	int ret;

	call_begin(&c, "ibv_get_async_event", false);
	say_context(&c, context);
	call_enter(&c);
	ret = real(context, event);
	call_returned_errno(&c, ret);
	if (!ret) {
		call_say(&c, " ");
		say_event(&c, event);
	}
	call_end(&c);
	return ret;
}

IN_FRONT void ibv_ack_async_event(struct ibv_async_event *event)
{
	REAL(ibv_ack_async_event)
	struct call c;

	call_begin(&c, "ibv_ack_async_event", false);
	say_event(&c, event);
	call_enter(&c);
	real(event);
	call_left(&c, false, 0);
	call_end(&c);
}

/* ---- addresses and multicast ---- */

IN_FRONT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	REAL(ibv_create_ah)
	struct ibv_ah *ah;
	struct call c;

	call_begin(&c, "ibv_create_ah", false);
	say_pd(&c, pd);
	call_say(&c, ", ");
	say_ah_attr(&c, attr);
	call_enter(&c);
	ah = real(pd, attr);
	call_returned_object(&c, ah);
	if (ah)
		call_say(&c, "ah %#" PRIxPTR, (uintptr_t)ah);
	call_end(&c);
	return ah;
}

IN_FRONT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
					      struct ibv_grh *grh, uint8_t port)
{
	REAL(ibv_create_ah_from_wc)
	struct ibv_ah *ah;
	struct call c;

	call_begin(&c, "ibv_create_ah_from_wc", false);
	say_pd(&c, pd);
	call_say(&c, ", {slid %u, src_qp 0x%06x}, %u", wc->slid, wc->src_qp, port);
	call_enter(&c);
	ah = real(pd, wc, grh, port);
	call_returned_object(&c, ah);
	if (ah)
		call_say(&c, "ah %#" PRIxPTR, (uintptr_t)ah);
	call_end(&c);
	return ah;
}

IN_FRONT int ibv_destroy_ah(struct ibv_ah *ah)
{
	return PLAIN(ibv_destroy_ah, call_say(&c, "ah %#" PRIxPTR, (uintptr_t)ah), ah);
}

static void say_group(struct call *c, const struct ibv_qp *qp, const union ibv_gid *gid,
		      uint16_t lid)
{
	say_qp(c, qp);
	call_say(c, ", ");
	say_gid(c, gid);
	call_say(c, ", lid %#x", lid);
}

IN_FRONT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return PLAIN(ibv_attach_mcast, say_group(&c, qp, gid, lid), qp, gid, lid);
}

IN_FRONT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return PLAIN(ibv_detach_mcast, say_group(&c, qp, gid, lid), qp, gid, lid);
}
