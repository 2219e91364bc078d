// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: asynchronous events reach the right object, and destroying it waits until they are
 * acknowledged. They come last: the port goes down.
 */

#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "guest.h"

static void set_link(bool up)
{
	struct ifreq request = {.ifr_name = NETDEV};
	int fd;

	CHECK((fd = socket(AF_INET, SOCK_DGRAM, 0)) >= 0);
	CHECK_EQ(ioctl(fd, SIOCGIFFLAGS, &request), 0);
	if (up)
		request.ifr_flags |= IFF_UP;
	else
		request.ifr_flags &= ~IFF_UP;
	CHECK_EQ(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	close(fd);
}

static void none_would_block(void)
{
	struct ibv_context *context = open_device();
	struct ibv_async_event event;

	CHECK_EQ(fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK),
		 0);
	CHECK_EQ(ibv_get_async_event(context, &event), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(ibv_close_device(context), 0);
}

static void send_queue_drained(void)
{
	struct ibv_qp *a, *b;
	struct rig rig;
	int i;

	rig_up(&rig);
	a = rig_qp(&rig, IBV_QPT_RC, NULL);
	b = rig_qp(&rig, IBV_QPT_RC, NULL);
	connect_pair(&rig, a, b);
	for (i = 0; i < 8; ++i) {
		post_recv(&rig, b, 0, 64);
		post_send(&rig, a, 4096, 64, 0);
	}
	qp_drain(&rig, a);
	for (i = 0; i < 16; ++i)
		wait_status(rig.cq, IBV_WC_SUCCESS);
	CHECK(!readable(rig.context->async_fd));

	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	rig_down(&rig);
}

static void cq_overrun(void)
{
	struct ibv_async_event event;
	struct ibv_cq *small;
	struct ibv_qp *qp;
	struct rig rig;
	int i, n;

	rig_up(&rig);
	CHECK(small = ibv_create_cq(rig.context, 1, &small, NULL, 0));
	n = small->cqe + 4;
	struct ibv_qp_init_attr attr = {
		.send_cq = small,
		.recv_cq = rig.cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = n, .max_recv_wr = n, .max_send_sge = 1, .max_recv_sge = 1},
	};
	CHECK(qp = ibv_create_qp(rig.pd, &attr));
	qp_connect(&rig, qp, qp->qp_num);

	for (i = 0; i < n; ++i) {
		post_recv(&rig, qp, 0, 64);
		post_send(&rig, qp, 4096, 64, 0);
	}
	event = wait_async_event(rig.context, IBV_EVENT_CQ_ERR);
	CHECK(event.element.cq == small);
	CHECK(event.element.cq->cq_context == &small);
	ibv_ack_async_event(&event);

	/* More of them may have come, until the QP is gone. */
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	while (readable(rig.context->async_fd)) {
		CHECK_EQ(ibv_get_async_event(rig.context, &event), 0);
		CHECK_EQ(event.event_type, IBV_EVENT_CQ_ERR);
		ibv_ack_async_event(&event);
	}
	CHECK_EQ(ibv_destroy_cq(small), 0);
	rig_down(&rig);
}

static bool acked;

static void *ack_later(void *event)
{
	usleep(50000);
	__atomic_store_n(&acked, true, __ATOMIC_RELEASE);
	ibv_ack_async_event(event);
	return NULL;
}

static void destroy_waits_for_the_ack(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_async_event event;
	pthread_t thread;
	struct ibv_qp *a, *b;
	struct rig rig;

	rig_up(&rig);
	a = rig_qp(&rig, IBV_QPT_RC, NULL);
	b = rig_qp(&rig, IBV_QPT_RC, NULL);
	connect_pair(&rig, a, b);
	post_recv(&rig, b, 0, 64);
	post_send(&rig, a, 4096, 64, 0);
	wait_recv_and_send(rig.cq);
	CHECK_EQ(ibv_modify_qp(a, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	event = wait_async_event(rig.context, IBV_EVENT_SQ_DRAINED);

	CHECK_EQ(pthread_create(&thread, NULL, ack_later, &event), 0);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK(__atomic_load_n(&acked, __ATOMIC_ACQUIRE));
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	rig_down(&rig);
}

static void port_goes_down_and_up(void)
{
	struct ibv_context *other = open_device();
	struct ibv_async_event event;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct rig rig;

	rig_up(&rig);
	set_link(false);
	event = wait_async_event(rig.context, IBV_EVENT_PORT_ERR);
	CHECK_EQ(event.element.port_num, 1);
	ibv_ack_async_event(&event);
	CHECK_EQ(ibv_query_port(rig.context, 1, &port), 0);
	CHECK_EQ(port.state, IBV_PORT_DOWN);

	set_link(true);
	event = wait_async_event(rig.context, IBV_EVENT_PORT_ACTIVE);
	CHECK_EQ(event.element.port_num, 1);
	ibv_ack_async_event(&event);
	CHECK_EQ(ibv_query_port(rig.context, 1, &port), 0);
	CHECK_EQ(port.state, IBV_PORT_ACTIVE);

	/* Every context is told. */
	event = wait_async_event(other, IBV_EVENT_PORT_ERR);
	ibv_ack_async_event(&event);
	event = wait_async_event(other, IBV_EVENT_PORT_ACTIVE);
	ibv_ack_async_event(&event);

	find_gid(rig.context, true, &gid);
	CHECK_EQ(ibv_close_device(other), 0);
	rig_down(&rig);
}

const struct guest_test event_tests[] = {
	{"without an event, getting one would block", none_would_block},
	{"a drained send queue is an event of its QP", send_queue_drained},
	{"a CQ that overruns is an event of its own", cq_overrun},
	{"destroying a QP waits for the event's acknowledgement", destroy_waits_for_the_ack},
	{"the port goes down and comes up again", port_goes_down_and_up},
	{0},
};
