// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * IBVERBS_1.0: completion and asynchronous events. The cq_context, qp_context or srq_context of a
 * current object points to its shadow, so an event of the current object leads to the shadow. Only
 * current objects count events. Holds no state.
 */
#include "compat.h"
#include "compat-1_0.h"
#include "ibverbs.h"

int ibv_get_async_event_1_0(struct ibv_context_1_0 *context, struct ibv_async_event *event)
{
	int ret;

	ret = ibv_get_async_event(context->real_context, event);
	if (ret)
		return ret;

	switch (event_element_of(event->event_type)) {
	case ELEMENT_CQ:
		event->element.cq = event->element.cq->cq_context;
		break;
	case ELEMENT_QP:
		event->element.qp = event->element.qp->qp_context;
		break;
	case ELEMENT_SRQ:
		event->element.srq = event->element.srq->srq_context;
		break;
	case ELEMENT_XRC_RCV_QP:
	case ELEMENT_PORT:
		break; /* a number, the same in both ABIs */
	}

	return 0;
}
symver(ibv_get_async_event_1_0, ibv_get_async_event, "IBVERBS_1.0");

void ibv_ack_async_event_1_0(struct ibv_async_event *event)
{
	struct ibv_async_event real_event = *event;

	switch (event_element_of(event->event_type)) {
	case ELEMENT_CQ:
		real_event.element.cq = ((struct ibv_cq_1_0 *)event->element.cq)->real_cq;
		break;
	case ELEMENT_QP:
		real_event.element.qp = ((struct ibv_qp_1_0 *)event->element.qp)->real_qp;
		break;
	case ELEMENT_SRQ:
		real_event.element.srq = ((struct ibv_srq_1_0 *)event->element.srq)->real_srq;
		break;
	case ELEMENT_XRC_RCV_QP:
	case ELEMENT_PORT:
		break; /* a number, the same in both ABIs */
	}

	ibv_ack_async_event(&real_event);
}
symver(ibv_ack_async_event_1_0, ibv_ack_async_event, "IBVERBS_1.0");

int ibv_get_cq_event_1_0(struct ibv_comp_channel *channel, struct ibv_cq_1_0 **cq,
			 void **cq_context)
{
	struct ibv_comp_channel *real = compat_real_channel(channel);
	struct ibv_cq *real_cq;
	void *shadow;
	int ret;

	ret = ibv_get_cq_event(real ? real : channel, &real_cq, &shadow);
	if (ret)
		return ret;

	*cq = shadow;
	*cq_context = (*cq)->cq_context;
	return 0;
}
symver(ibv_get_cq_event_1_0, ibv_get_cq_event, "IBVERBS_1.0");

void ibv_ack_cq_events_1_0(struct ibv_cq_1_0 *cq, unsigned int nevents)
{
	ibv_ack_cq_events(cq->real_cq, nevents);
}
symver(ibv_ack_cq_events_1_0, ibv_ack_cq_events, "IBVERBS_1.0");
