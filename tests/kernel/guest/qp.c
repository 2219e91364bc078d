// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: QPs of every type go through their states, refused transitions change nothing,
 * posting is checked.
 */

#include "guest.h"

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

static void caps_are_granted_or_refused(void)
{
	struct ibv_qp_init_attr attr, queried;
	struct ibv_qp_attr qp_attr;
	struct ibv_device_attr dev;
	struct ibv_qp *qp;
	struct rig rig;
	size_t i;

	rig_up(&rig);
	CHECK_EQ(ibv_query_device(rig.context, &dev), 0);
	for (i = 0; i < 3; ++i) {
		attr = (struct ibv_qp_init_attr){
			.qp_context = &i,
			.send_cq = rig.cq,
			.recv_cq = rig.cq,
			.qp_type = types[i],
			.sq_sig_all = 1,
			.cap =
				{
					.max_send_wr = 100,
					.max_recv_wr = 50,
					.max_send_sge = 3,
					.max_recv_sge = 2,
					.max_inline_data = 99,
				},
		};
		CHECK(qp = ibv_create_qp(rig.pd, &attr));
		CHECK(attr.cap.max_send_wr >= 100 && attr.cap.max_recv_wr >= 50);
		CHECK(attr.cap.max_send_sge >= 3 && attr.cap.max_recv_sge >= 2);
		CHECK(attr.cap.max_inline_data >= 99);
		CHECK_EQ(qp->state, IBV_QPS_RESET);
		CHECK_EQ(qp->qp_type, types[i]);
		CHECK(qp->qp_num > 1 && qp->qp_num < 1 << 24);
		CHECK(qp->qp_context == &i && qp->send_cq == rig.cq && qp->recv_cq == rig.cq &&
		      !qp->srq);

		CHECK_EQ(ibv_query_qp(qp, &qp_attr, IBV_QP_STATE | IBV_QP_CAP, &queried), 0);
		CHECK_EQ(qp_attr.qp_state, IBV_QPS_RESET);
		CHECK(queried.cap.max_send_wr >= attr.cap.max_send_wr);
		CHECK(queried.cap.max_recv_sge >= attr.cap.max_recv_sge);
		CHECK_EQ(queried.qp_type, types[i]);
		CHECK_EQ(queried.sq_sig_all, 1);
		CHECK(queried.send_cq == rig.cq && queried.recv_cq == rig.cq);
		CHECK_EQ(ibv_destroy_qp(qp), 0);

		attr.cap.max_send_wr = dev.max_qp_wr + 1;
		CHECK_REFUSED(ibv_create_qp(rig.pd, &attr), EINVAL);
		attr.cap.max_send_wr = 8;
		attr.cap.max_recv_sge = dev.max_sge + 1;
		CHECK_REFUSED(ibv_create_qp(rig.pd, &attr), EINVAL);
	}
	rig_down(&rig);
}

/* Soft-RoCE refuses to take a QP from SQD to RTS before its send queue has drained. */
static void wait_drained(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int i;

	for (i = 0;; ++i) {
		CHECK_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
		if (!attr.sq_draining)
			return;
		CHECK(i < 3000);
		usleep(10000);
	}
}

static void through_all_states(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	struct rig rig;
	size_t i;

	rig_up(&rig);
	for (i = 0; i < 3; ++i) {
		qp = rig_qp(&rig, types[i], NULL);
		qp_to_init(qp);
		CHECK_EQ(qp_queried_state(qp), IBV_QPS_INIT);
		qp_to_rtr(&rig, qp, qp->qp_num);
		CHECK_EQ(qp_queried_state(qp), IBV_QPS_RTR);
		qp_to_rts(qp);
		CHECK_EQ(qp_queried_state(qp), IBV_QPS_RTS);
		CHECK_EQ(qp->state, IBV_QPS_RTS);

		CHECK_EQ(ibv_query_qp(qp, &attr, ~0, &init), 0);
		CHECK_EQ(attr.qp_state, IBV_QPS_RTS);
		CHECK_EQ(attr.pkey_index, 0);
		CHECK_EQ(attr.port_num, 1);
		CHECK_EQ(attr.sq_psn, RIG_PSN);
		if (types[i] == IBV_QPT_UD) {
			CHECK_EQ(attr.qkey, RIG_QKEY);
		} else {
			CHECK_EQ(attr.dest_qp_num, qp->qp_num);
			CHECK_EQ(attr.path_mtu, IBV_MTU_1024);
			CHECK_EQ(attr.ah_attr.is_global, 1);
			CHECK_EQ(attr.ah_attr.grh.sgid_index, rig.gid_index);
			CHECK_EQ(attr.ah_attr.grh.hop_limit, 64);
			CHECK(!memcmp(&attr.ah_attr.grh.dgid, &rig.gid, sizeof(rig.gid)));
		}
		if (types[i] == IBV_QPT_RC) {
			CHECK_EQ(attr.timeout, 18);
			CHECK_EQ(attr.retry_cnt, 7);
			CHECK_EQ(attr.rnr_retry, 7);
			CHECK_EQ(attr.min_rnr_timer, 1);
			CHECK_EQ(attr.max_rd_atomic, 4);
			CHECK_EQ(attr.max_dest_rd_atomic, 4);
		}

		qp_to_state(qp, IBV_QPS_SQD);
		CHECK_EQ(qp_queried_state(qp), IBV_QPS_SQD);
		wait_drained(qp);
		qp_to_state(qp, IBV_QPS_RTS);
		qp_to_state(qp, IBV_QPS_ERR);
		CHECK_EQ(qp_queried_state(qp), IBV_QPS_ERR);
		qp_to_state(qp, IBV_QPS_RESET);
		CHECK_EQ(qp_queried_state(qp), IBV_QPS_RESET);
		qp_connect(&rig, qp, qp->qp_num);
		CHECK_EQ(qp_queried_state(qp), IBV_QPS_RTS);
		CHECK_EQ(ibv_destroy_qp(qp), 0);
	}
	rig_down(&rig);
}

/* The transition is refused, and the state is what it was, both here and in the kernel. */
static void refused(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state state = qp->state;

	CHECK_EQ(ibv_modify_qp(qp, attr, mask), EINVAL);
	CHECK_EQ(qp->state, state);
	CHECK_EQ(qp_queried_state(qp), state);
}

#define refused(qp, attr, mask) (FROM_HERE, refused(qp, attr, mask))

static void refused_transitions(void)
{
	struct ibv_qp_attr attr;
	int mask, bit;
	struct ibv_qp *qp;
	struct rig rig;
	size_t i;

	rig_up(&rig);
	for (i = 0; i < 3; ++i) {
		qp = rig_qp(&rig, types[i], NULL);

		/* RESET: only INIT, with all that it needs and nothing more. */
		mask = rtr_attr(&rig, qp, qp->qp_num, &attr);
		refused(qp, &attr, mask);
		mask = rts_attr(qp, &attr);
		refused(qp, &attr, mask);
		mask = init_attr(qp, &attr);
		for (bit = 2; bit <= 1 << 20; bit <<= 1)
			if (mask & bit)
				refused(qp, &attr, mask & ~bit);
		refused(qp, &attr, mask | IBV_QP_SQ_PSN);
		attr.port_num = 9;
		refused(qp, &attr, mask);
		qp_to_init(qp);

		/* INIT: not RTS, and RTR with all that it needs. */
		mask = rts_attr(qp, &attr);
		refused(qp, &attr, mask);
		mask = rtr_attr(&rig, qp, qp->qp_num, &attr);
		for (bit = 2; bit <= 1 << 20; bit <<= 1)
			if (mask & bit)
				refused(qp, &attr, mask & ~bit);
		refused(qp, &attr, mask | IBV_QP_SQ_PSN);
		if (types[i] != IBV_QPT_UD) {
			attr.ah_attr.is_global = 0;
			refused(qp, &attr, mask);
		}
		qp_to_rtr(&rig, qp, qp->qp_num);

		/* RTR: not back to INIT, and RTS with all that it needs. */
		mask = init_attr(qp, &attr);
		refused(qp, &attr, mask);
		mask = rts_attr(qp, &attr);
		for (bit = 2; bit <= 1 << 20; bit <<= 1)
			if (mask & bit)
				refused(qp, &attr, mask & ~bit);
		qp_to_rts(qp);

		/* A state that the QP is not in, and none at all. */
		attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_RESET};
		refused(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE);
		attr.qp_state = 77;
		refused(qp, &attr, IBV_QP_STATE);
		CHECK_EQ(ibv_destroy_qp(qp), 0);
	}
	rig_down(&rig);
}

static void error_state_flushes(void)
{
	struct ibv_qp *qp;
	struct ibv_wc wc;
	struct rig rig;
	int i;

	rig_up(&rig);
	qp = rig_qp(&rig, IBV_QPT_RC, NULL);
	qp_connect(&rig, qp, qp->qp_num);
	for (i = 0; i < 3; ++i)
		post_recv(&rig, qp, i, 64);
	qp_to_state(qp, IBV_QPS_ERR);
	for (i = 0; i < 3; ++i) {
		wc = wait_status(rig.cq, IBV_WC_WR_FLUSH_ERR);
		CHECK_EQ(wc.wr_id, i);
		CHECK_EQ(wc.qp_num, qp->qp_num);
	}

	/* What is posted now is flushed as well. */
	post_recv(&rig, qp, 33, 64);
	wc = wait_status(rig.cq, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(wc.wr_id, 33);
	post_send(&rig, qp, 44, 64, 0);
	wc = wait_status(rig.cq, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(wc.wr_id, 44);

	CHECK_EQ(ibv_destroy_qp(qp), 0);
	rig_down(&rig);
}

static void bad_requests_are_refused(void)
{
	struct ibv_sge sge[RIG_SGE + 100];
	struct ibv_send_wr good, wr, *bad;
	struct ibv_recv_wr recv = {.num_sge = 0}, *bad_recv;
	struct ibv_qp *qp;
	struct rig rig;
	int n, ret;

	rig_up(&rig);
	qp = rig_qp(&rig, IBV_QPT_RC, NULL);
	sge[0] = rig_sge(&rig, 0, 16);
	good = (struct ibv_send_wr){.sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	/* In RESET nothing can be posted, before RTS nothing can be sent. */
	CHECK(ibv_post_recv(qp, &recv, &bad_recv));
	CHECK(bad_recv == &recv);
	CHECK(ibv_post_send(qp, &good, &bad));
	CHECK(bad == &good);
	qp_to_init(qp);
	CHECK(ibv_post_send(qp, &good, &bad));
	qp_to_rtr(&rig, qp, qp->qp_num);
	qp_to_rts(qp);

	/* The first that cannot be posted is named, what comes before it is done. */
	wr = good;
	wr.num_sge = RIG_SGE + 100;
	good.next = &wr;
	good.wr_id = 5;
	good.send_flags = IBV_SEND_SIGNALED;
	post_recv(&rig, qp, 64, 64);
	CHECK(ibv_post_send(qp, &good, &bad));
	CHECK(bad == &wr);
	wait_recv_and_send(rig.cq);

	wr = (struct ibv_send_wr){
		.sg_list = sge, .num_sge = 1, .send_flags = IBV_SEND_INLINE, .opcode = IBV_WR_SEND};
	sge[0].length = 100000;
	CHECK(ibv_post_send(qp, &wr, &bad));
	CHECK(bad == &wr);

	/* Until the queue is full. */
	for (n = 0; !(ret = ibv_post_recv(qp, &recv, &bad_recv)); ++n)
		CHECK(n < 4096);
	CHECK_EQ(ret, ENOMEM);
	CHECK(n >= RIG_WR);

	CHECK_EQ(ibv_destroy_qp(qp), 0);
	rig_down(&rig);
}

const struct guest_test qp_tests[] = {
	{"QPs of every type: sizes granted and refused", caps_are_granted_or_refused},
	{"QPs of every type go through all states, queried in each", through_all_states},
	{"transitions that the kernel refuses change nothing", refused_transitions},
	{"the error state flushes what is posted and what comes after", error_state_flushes},
	{"requests that cannot be posted are named", bad_requests_are_refused},
	{0},
};
