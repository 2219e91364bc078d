// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: CQs and completion channels: sizes, events armed, delivered and acknowledged,
 * resizing, busy objects.
 */

#include <fcntl.h>

#include "guest.h"

static void sizes_and_refusals(void)
{
	struct ibv_context *context = open_device();
	struct ibv_device_attr attr;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	int cqe;

	CHECK_EQ(ibv_query_device(context, &attr), 0);
	for (cqe = 1; cqe <= 4096; cqe *= 4) {
		CHECK(cq = ibv_create_cq(context, cqe, NULL, NULL, 0));
		CHECK(cq->cqe >= cqe);
		CHECK_EQ(ibv_poll_cq(cq, 1, &wc), 0);
		CHECK_EQ(ibv_destroy_cq(cq), 0);
	}

	CHECK_REFUSED(ibv_create_cq(context, 0, NULL, NULL, 0), EINVAL);
	CHECK_REFUSED(ibv_create_cq(context, attr.max_cqe + 1, NULL, NULL, 0), EINVAL);
	CHECK_REFUSED(ibv_create_cq(context, 16, NULL, NULL, context->num_comp_vectors), EINVAL);
	CHECK_EQ(ibv_close_device(context), 0);
}

/* One message through a connected pair. */
static void message(struct rig *rig, struct ibv_qp *from, struct ibv_qp *to, int flags)
{
	post_recv(rig, to, 0, 256);
	post_send(rig, from, 4096, 64, flags);
}

static void armed_cq_raises_one_event(void)
{
	struct ibv_qp *a, *b;
	struct rig rig;

	rig_up(&rig);
	a = rig_qp(&rig, IBV_QPT_RC, NULL);
	b = rig_qp(&rig, IBV_QPT_RC, NULL);
	connect_pair(&rig, a, b);

	/* Not armed: completions, and no event. */
	message(&rig, a, b, 0);
	wait_recv_and_send(rig.cq);
	CHECK(!readable(rig.channel->fd));

	/* Armed: one event for two completions. */
	CHECK_EQ(ibv_req_notify_cq(rig.cq, 0), 0);
	CHECK(!readable(rig.channel->fd));
	message(&rig, a, b, 0);
	wait_cq_event(rig.channel, rig.cq);
	wait_recv_and_send(rig.cq);
	CHECK(!readable(rig.channel->fd));

	/* And again, with events acknowledged together. */
	CHECK_EQ(ibv_req_notify_cq(rig.cq, 0), 0);
	message(&rig, a, b, 0);
	wait_cq_event(rig.channel, rig.cq);
	wait_recv_and_send(rig.cq);

	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	rig_down(&rig);
}

static void solicited_only(void)
{
	struct ibv_cq *send_cq;
	struct ibv_qp *a, *b;
	struct rig rig;

	rig_up(&rig);
	CHECK(send_cq = ibv_create_cq(rig.context, 16, NULL, NULL, 0));
	b = rig_qp(&rig, IBV_QPT_RC, NULL);

	/* Only the receiver is on the CQ with the channel. */
	struct ibv_qp_init_attr attr = {
		.send_cq = send_cq,
		.recv_cq = send_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
	};
	CHECK(a = ibv_create_qp(rig.pd, &attr));
	connect_pair(&rig, a, b);

	CHECK_EQ(ibv_req_notify_cq(rig.cq, 1), 0);
	message(&rig, a, b, 0);
	wait_status(rig.cq, IBV_WC_SUCCESS);
	CHECK(!readable(rig.channel->fd));

	message(&rig, a, b, IBV_SEND_SOLICITED);
	wait_cq_event(rig.channel, rig.cq);
	wait_status(rig.cq, IBV_WC_SUCCESS);

	wait_status(send_cq, IBV_WC_SUCCESS);
	wait_status(send_cq, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	CHECK_EQ(ibv_destroy_cq(send_cq), 0);
	rig_down(&rig);
}

static void channel_without_event_would_block(void)
{
	struct ibv_cq *cq;
	void *cq_context;
	struct rig rig;

	rig_up(&rig);
	CHECK_EQ(fcntl(rig.channel->fd, F_SETFL, fcntl(rig.channel->fd, F_GETFL) | O_NONBLOCK), 0);
	CHECK_EQ(ibv_get_cq_event(rig.channel, &cq, &cq_context), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(ibv_destroy_comp_channel(rig.channel), EBUSY);
	rig_down(&rig);
}

static void two_cqs_share_a_channel(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *a, *b;
	struct ibv_cq *cq;
	struct rig rig;
	int own;

	rig_up(&rig);
	CHECK(cq = ibv_create_cq(rig.context, 16, &own, rig.channel, 0));
	attr.send_cq = attr.recv_cq = cq;
	CHECK(a = ibv_create_qp(rig.pd, &attr));
	b = rig_qp(&rig, IBV_QPT_RC, NULL);
	connect_pair(&rig, a, b);

	CHECK_EQ(ibv_req_notify_cq(rig.cq, 0), 0);
	message(&rig, a, b, 0);
	wait_cq_event(rig.channel, rig.cq);
	wait_status(rig.cq, IBV_WC_SUCCESS);
	wait_status(cq, IBV_WC_SUCCESS);

	CHECK_EQ(ibv_req_notify_cq(cq, 0), 0);
	message(&rig, a, b, 0);
	wait_cq_event(rig.channel, cq);
	wait_status(rig.cq, IBV_WC_SUCCESS);
	wait_status(cq, IBV_WC_SUCCESS);

	CHECK_EQ(ibv_destroy_cq(cq), EBUSY);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	CHECK_EQ(ibv_destroy_cq(cq), 0);
	rig_down(&rig);
}

static volatile bool acked;

static void *ack_later(void *cq)
{
	usleep(50000);
	__atomic_store_n(&acked, true, __ATOMIC_RELEASE);
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

static void destroy_waits_for_the_ack(void)
{
	struct ibv_cq *cq;
	struct ibv_qp *a, *b;
	pthread_t thread;
	void *cq_context;
	struct rig rig;

	rig_up(&rig);
	a = rig_qp(&rig, IBV_QPT_RC, NULL);
	b = rig_qp(&rig, IBV_QPT_RC, NULL);
	connect_pair(&rig, a, b);
	CHECK_EQ(ibv_req_notify_cq(rig.cq, 0), 0);
	message(&rig, a, b, 0);
	CHECK_EQ(ibv_get_cq_event(rig.channel, &cq, &cq_context), 0);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);

	CHECK_EQ(pthread_create(&thread, NULL, ack_later, rig.cq), 0);
	CHECK_EQ(ibv_destroy_cq(rig.cq), 0);
	CHECK(__atomic_load_n(&acked, __ATOMIC_ACQUIRE));
	CHECK_EQ(pthread_join(thread, NULL), 0);

	CHECK(rig.cq = ibv_create_cq(rig.context, 16, NULL, rig.channel, 0));
	rig_down(&rig);
}

static void resizing_keeps_what_waits(void)
{
	struct ibv_device_attr attr;
	struct ibv_qp *a, *b;
	struct rig rig;
	int i;

	rig_up(&rig);
	CHECK_EQ(ibv_query_device(rig.context, &attr), 0);
	a = rig_qp(&rig, IBV_QPT_RC, NULL);
	b = rig_qp(&rig, IBV_QPT_RC, NULL);
	connect_pair(&rig, a, b);

	for (i = 0; i < 10; ++i)
		post_recv(&rig, b, i * 64, 64);
	for (i = 0; i < 10; ++i) {
		fill(rig.buf + 4096 + i * 64, 64, i);
		post_send(&rig, a, 4096 + i * 64, 64, 0);
	}
	/* Drained: the completions of all sends are in the CQ, and of the receives before them. */
	qp_drain(&rig, a);

	CHECK_EQ(ibv_resize_cq(rig.cq, 10), EINVAL);
	CHECK_EQ(ibv_resize_cq(rig.cq, attr.max_cqe + 1), EINVAL);
	CHECK_EQ(ibv_resize_cq(rig.cq, 1000), 0);
	CHECK(rig.cq->cqe >= 1000);
	for (i = 0; i < 20; ++i)
		wait_status(rig.cq, IBV_WC_SUCCESS);
	for (i = 0; i < 10; ++i)
		check_content(rig.buf + i * 64, 64, i);

	CHECK_EQ(ibv_resize_cq(rig.cq, 32), 0);
	qp_to_state(a, IBV_QPS_RTS);
	message(&rig, a, b, 0);
	wait_recv_and_send(rig.cq);

	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	rig_down(&rig);
}

const struct guest_test completion_tests[] = {
	{"CQs of many sizes, and what is refused", sizes_and_refusals},
	{"an armed CQ raises one event, one that is not armed none", armed_cq_raises_one_event},
	{"arming for solicited completions only", solicited_only},
	{"a channel without an event would block, and is busy while a CQ is on it",
	 channel_without_event_would_block},
	{"two CQs share a channel; a CQ is busy while a QP is on it", two_cqs_share_a_channel},
	{"destroying a CQ waits for the event's acknowledgement", destroy_waits_for_the_ack},
	{"resizing a CQ keeps the completions that wait in it", resizing_keeps_what_waits},
	{0},
};
