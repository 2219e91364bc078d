// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: shared receive queues: sizes, posting, sharing by QPs, resizing, and the limit
 * event.
 */

#include "guest.h"

static void sizes_and_refusals(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 100, .max_sge = 3}};
	struct ibv_srq_attr queried;
	struct ibv_device_attr dev;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct rig rig;

	rig_up(&rig);
	CHECK_EQ(ibv_query_device(rig.context, &dev), 0);

	CHECK(srq = ibv_create_srq(rig.pd, &attr));
	CHECK(attr.attr.max_wr >= 100 && attr.attr.max_sge >= 3);
	CHECK_EQ(ibv_query_srq(srq, &queried), 0);
	CHECK_EQ(queried.max_sge, attr.attr.max_sge);
	CHECK(queried.max_wr >= 100);
	CHECK_EQ(queried.srq_limit, 0);
	CHECK_EQ(srq->xrc_srq_num, 0);

	queried.srq_limit = 10;
	CHECK_EQ(ibv_modify_srq(srq, &queried, IBV_SRQ_LIMIT), 0);
	CHECK_EQ(ibv_query_srq(srq, &queried), 0);
	CHECK_EQ(queried.srq_limit, 10);
	queried.srq_limit = dev.max_srq_wr + 1;
	CHECK_EQ(ibv_modify_srq(srq, &queried, IBV_SRQ_LIMIT), EINVAL);

	attr.attr = (struct ibv_srq_attr){.max_wr = dev.max_srq_wr + 1, .max_sge = 1};
	CHECK_REFUSED(ibv_create_srq(rig.pd, &attr), EINVAL);
	attr.attr = (struct ibv_srq_attr){.max_wr = 16, .max_sge = dev.max_srq_sge + 1};
	CHECK_REFUSED(ibv_create_srq(rig.pd, &attr), EINVAL);

	qp = rig_qp(&rig, IBV_QPT_RC, srq);
	CHECK_EQ(ibv_destroy_srq(srq), EBUSY);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	rig_down(&rig);
}

static void full_queue_names_the_request(void)
{
	struct ibv_recv_wr wr[2], *bad = NULL;
	struct ibv_srq *srq;
	struct ibv_sge sge;
	struct rig rig;
	int n, ret;

	rig_up(&rig);
	srq = rig_srq(&rig, 8);
	sge = rig_sge(&rig, 0, 64);
	wr[0] = (struct ibv_recv_wr){.next = &wr[1], .sg_list = &sge, .num_sge = 1};
	wr[1] = (struct ibv_recv_wr){.sg_list = &sge, .num_sge = RIG_SGE + 100};
	CHECK(ibv_post_srq_recv(srq, wr, &bad));
	CHECK(bad == &wr[1]);

	wr[0].next = NULL;
	for (n = 1; !(ret = ibv_post_srq_recv(srq, wr, &bad)); ++n)
		CHECK(n < 4096);
	CHECK_EQ(ret, ENOMEM);
	CHECK(bad == wr);
	CHECK(n >= 8);

	CHECK_EQ(ibv_destroy_srq(srq), 0);
	rig_down(&rig);
}

static void two_qps_receive_from_it(void)
{
	struct ibv_qp *a[2], *b[2];
	struct ibv_srq *srq;
	struct ibv_wc wc;
	struct rig rig;
	int i;

	rig_up(&rig);
	srq = rig_srq(&rig, 16);
	for (i = 0; i < 2; ++i) {
		a[i] = rig_qp(&rig, IBV_QPT_RC, NULL);
		b[i] = rig_qp(&rig, IBV_QPT_RC, srq);
		connect_pair(&rig, a[i], b[i]);
	}

	for (i = 0; i < 16; ++i)
		post_srq_recv(&rig, srq, i * 1024, 1024);
	for (i = 0; i < 16; ++i) {
		fill(rig.buf + 65536, 1000, i);
		post_send(&rig, a[i % 2], 65536, 1000, 0);
		wc = wait_recv_and_send(rig.cq);
		CHECK_EQ(wc.opcode, IBV_WC_RECV);
		CHECK_EQ(wc.qp_num, b[i % 2]->qp_num);
		CHECK_EQ(wc.wr_id, i * 1024);
		CHECK_EQ(wc.byte_len, 1000);
		check_content(rig.buf + wc.wr_id, wc.byte_len, i);
	}

	for (i = 0; i < 2; ++i) {
		CHECK_EQ(ibv_destroy_qp(a[i]), 0);
		CHECK_EQ(ibv_destroy_qp(b[i]), 0);
	}
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	rig_down(&rig);
}

static void resizing_keeps_what_is_posted(void)
{
	struct ibv_srq_attr attr = {.max_wr = 100};
	struct ibv_srq *srq;
	struct ibv_qp *a, *b;
	struct ibv_wc wc;
	struct rig rig;
	int i;

	rig_up(&rig);
	srq = rig_srq(&rig, 8);
	a = rig_qp(&rig, IBV_QPT_RC, NULL);
	b = rig_qp(&rig, IBV_QPT_RC, srq);
	connect_pair(&rig, a, b);

	for (i = 0; i < 6; ++i)
		post_srq_recv(&rig, srq, i * 512, 512);
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	CHECK_EQ(ibv_query_srq(srq, &attr), 0);
	CHECK(attr.max_wr >= 100);
	for (; i < 100; ++i)
		post_srq_recv(&rig, srq, i * 512, 512);

	for (i = 0; i < 100; ++i) {
		fill(rig.buf + 65536, 512, i);
		post_send(&rig, a, 65536, 512, 0);
		wc = wait_recv_and_send(rig.cq);
		CHECK_EQ(wc.wr_id, i * 512);
		check_content(rig.buf + wc.wr_id, 512, i);
	}

	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	rig_down(&rig);
}

static void limit_raises_one_event(void)
{
	struct ibv_srq_attr attr = {.srq_limit = 4};
	struct ibv_async_event event;
	struct ibv_srq *srq;
	struct ibv_qp *a, *b;
	struct rig rig;
	int i;

	rig_up(&rig);
	srq = rig_srq(&rig, 16);
	a = rig_qp(&rig, IBV_QPT_RC, NULL);
	b = rig_qp(&rig, IBV_QPT_RC, srq);
	connect_pair(&rig, a, b);
	for (i = 0; i < 8; ++i)
		post_srq_recv(&rig, srq, i * 64, 64);
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);

	for (i = 0; i < 8; ++i) {
		post_send(&rig, a, 4096, 64, 0);
		wait_recv_and_send(rig.cq);
	}

	event = wait_async_event(rig.context, IBV_EVENT_SRQ_LIMIT_REACHED);
	CHECK(event.element.srq == srq);
	CHECK(event.element.srq->srq_context == &rig);
	ibv_ack_async_event(&event);

	/* Once: the limit is 0 again. */
	CHECK_EQ(ibv_query_srq(srq, &attr), 0);
	CHECK_EQ(attr.srq_limit, 0);
	CHECK(!readable(rig.context->async_fd));

	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	rig_down(&rig);
}

const struct guest_test srq_tests[] = {
	{"SRQs: sizes, what is refused, and being busy", sizes_and_refusals},
	{"posting to an SRQ that is full, or too many entries", full_queue_names_the_request},
	{"two QPs receive from one SRQ, contents verified", two_qps_receive_from_it},
	{"resizing an SRQ keeps the receives that are posted", resizing_keeps_what_is_posted},
	{"the SRQ limit raises one event", limit_raises_one_event},
	{0},
};
