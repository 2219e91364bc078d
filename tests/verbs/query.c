// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: queries of device, port, GID and P_Key tables, QPs and SRQs return the right values:
 * those of a ConnectX-2, attributes as set (with the precision of the HCA), granted sizes. An index
 * beyond a table is refused.
 * Options: --ports 2
 */
#include <arpa/inet.h>

#include "verbs_test.h"

static struct side s;

static void device(void)
{
	struct ibv_device_attr a;
	uint64_t guid = ibv_get_device_guid(s.context->device);

	memset(&a, 0xee, sizeof(a));
	CHECK_EQ(ibv_query_device(s.context, &a), 0);
	CHECK(!strcmp(ibv_get_device_name(s.context->device), "mlx4_0"));
	CHECK_EQ(s.context->device->node_type, IBV_NODE_CA);
	CHECK_EQ(s.context->device->transport_type, IBV_TRANSPORT_IB);
	CHECK(guid && a.node_guid == guid);
	CHECK(a.sys_image_guid && a.sys_image_guid != a.node_guid);
	CHECK_EQ(a.vendor_id, 0x2c9);
	CHECK_EQ(a.vendor_part_id, 26428);
	CHECK_EQ(a.hw_ver, 0xb0);
	CHECK(strspn(a.fw_ver, "0123456789.") == strlen(a.fw_ver) && strlen(a.fw_ver) >= 5);
	CHECK_EQ(a.max_mr_size, UINT64_MAX);
	CHECK_EQ(a.page_size_cap, 0xfffffe00);
	CHECK(a.device_cap_flags & IBV_DEVICE_XRC);
	CHECK(a.device_cap_flags & IBV_DEVICE_PORT_ACTIVE_EVENT);
	CHECK(a.device_cap_flags & IBV_DEVICE_RC_RNR_NAK_GEN);
	CHECK_EQ(a.max_qp_wr, 16351);
	CHECK_EQ(a.max_sge, 32);
	CHECK_EQ(a.max_cqe, 4194303);
	CHECK_EQ(a.max_qp_rd_atom, 16);
	CHECK_EQ(a.max_qp_init_rd_atom, 128);
	CHECK_EQ(a.max_res_rd_atom, 16 * a.max_qp);
	CHECK_EQ(a.atomic_cap, IBV_ATOMIC_HCA);
	CHECK_EQ(a.max_srq_wr, 16383);
	CHECK_EQ(a.max_srq_sge, 31);
	CHECK_EQ(a.max_pkeys, 128);
	CHECK_EQ(a.local_ca_ack_delay, 15);
	CHECK_EQ(a.phys_port_cnt, 2);
	CHECK_EQ(a.max_ee, 0);
	CHECK_EQ(a.max_rdd, 0);
	CHECK_EQ(a.max_mw, 0);
	CHECK_EQ(a.max_fmr, 0);
	CHECK(a.max_qp > 0 && a.max_cq > 0 && a.max_mr > 0 && a.max_pd > 0 && a.max_srq > 0);
	CHECK(a.max_mcast_grp > 0 && a.max_total_mcast_qp_attach >= a.max_mcast_qp_attach);
}

static void ports(void)
{
	struct ibv_port_attr a[2];
	union ibv_gid gid[2];
	uint16_t pkey;

	for (int i = 0; i < 2; i++) {
		memset(&a[i], 0xee, sizeof(a[i]));
		CHECK_EQ(ibv_query_port(s.context, i + 1, &a[i]), 0);
		CHECK_EQ(a[i].state, IBV_PORT_ACTIVE);
		CHECK_EQ(a[i].phys_state, 5);
		CHECK(a[i].active_mtu <= a[i].max_mtu && a[i].active_mtu >= IBV_MTU_2048);
		CHECK_EQ(a[i].max_msg_sz, 0x40000000);
		CHECK_EQ(a[i].gid_tbl_len, 128);
		CHECK_EQ(a[i].pkey_tbl_len, 128);
		CHECK(a[i].lid && a[i].sm_lid);
		CHECK_EQ(a[i].lmc, 0);
		CHECK_EQ(a[i].max_vl_num, 4);
		CHECK_EQ(a[i].active_width, 2);
		CHECK_EQ(a[i].active_speed, 4);
		CHECK(a[i].link_layer == IBV_LINK_LAYER_INFINIBAND ||
		      a[i].link_layer == IBV_LINK_LAYER_UNSPECIFIED);
		CHECK_EQ(ibv_query_gid(s.context, i + 1, 0, &gid[i]), 0);
		CHECK_EQ(gid[i].raw[0] << 8 | gid[i].raw[1], 0xfe80);
		CHECK(gid[i].global.interface_id);
		CHECK_EQ(ibv_query_pkey(s.context, i + 1, 0, &pkey), 0);
		CHECK_EQ(ntohs(pkey), 0xffff);
		CHECK_EQ(ibv_query_pkey(s.context, i + 1, 127, &pkey), 0);
		CHECK_EQ(ntohs(pkey), 0);
		CHECK_EQ(ibv_query_gid(s.context, i + 1, 127, &gid[i]), 0);
		CHECK_EQ(gid[i].global.interface_id, 0);
		CHECK_EQ(ibv_query_pkey(s.context, i + 1, 128, &pkey), -1);
		CHECK_EQ(ibv_query_gid(s.context, i + 1, 128, &gid[i]), -1);
		CHECK_EQ(ibv_query_gid(s.context, i + 1, 0, &gid[i]), 0);
	}
	CHECK(a[0].lid != a[1].lid);
	CHECK(gid[0].global.interface_id != gid[1].global.interface_id);
	CHECK_EQ(ibv_query_port(s.context, 0, &a[0]), EINVAL);
	CHECK_EQ(ibv_query_port(s.context, 3, &a[0]), EINVAL);
	CHECK_EQ(ibv_query_gid(s.context, 3, 0, &gid[0]), -1);
	CHECK_EQ(ibv_query_pkey(s.context, 3, 0, &pkey), -1);
}

static void path_is(const struct ibv_ah_attr *a, const struct ibv_ah_attr *b)
{
	CHECK_EQ(a->dlid, b->dlid);
	CHECK_EQ(a->sl, b->sl);
	CHECK_EQ(a->src_path_bits, b->src_path_bits);
	CHECK_EQ(a->is_global, b->is_global);
	CHECK_EQ(a->port_num, b->port_num);
	CHECK_EQ(memcmp(&a->grh.dgid, &b->grh.dgid, 16), 0);
	CHECK_EQ(a->grh.flow_label, b->grh.flow_label);
	CHECK_EQ(a->grh.sgid_index, b->grh.sgid_index);
	CHECK_EQ(a->grh.hop_limit, b->grh.hop_limit);
	CHECK_EQ(a->grh.traffic_class, b->grh.traffic_class);
}

static void rc_qp(void)
{
	struct ibv_qp_init_attr init = {.qp_context = &s,
					.send_cq = s.scq,
					.recv_cq = s.rcq,
					.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1,
					.cap = {.max_send_wr = 128,
						.max_recv_wr = 100,
						.max_send_sge = 4,
						.max_recv_sge = 3}},
				got;
	struct ibv_qp_attr a =
				   {
					   .path_mtu = IBV_MTU_2048,
					   .path_mig_state = IBV_MIG_REARM,
					   .rq_psn = 0xabcdef,
					   .sq_psn = 0xfedcba,
					   .dest_qp_num = 0x654321,
					   .qp_access_flags = IBV_ACCESS_REMOTE_READ |
							      IBV_ACCESS_REMOTE_ATOMIC |
							      IBV_ACCESS_LOCAL_WRITE |
							      IBV_ACCESS_MW_BIND,
					   .pkey_index = 9,
					   .max_rd_atomic = 5,
					   .max_dest_rd_atomic = 3,
					   .min_rnr_timer = 29,
					   .port_num = 2,
					   .timeout = 19,
					   .retry_cnt = 6,
					   .rnr_retry = 5,
					   .alt_port_num = 1,
					   .alt_timeout = 13,
					   .alt_pkey_index = 4,
				   },
			   q;
	struct ibv_qp *qp = ibv_create_qp(s.pd, &init);

	CHECK(qp);
	CHECK_EQ(init.cap.max_send_wr, 239); /* 256 slots of 128 bytes, of which 17 are spare */
	CHECK_EQ(init.cap.max_recv_wr, 128);
	CHECK_EQ(init.cap.max_send_sge, 6);
	CHECK_EQ(init.cap.max_recv_sge, 4);
	CHECK_EQ(init.cap.max_inline_data, 88);
	a.ah_attr = (struct ibv_ah_attr){
		.dlid = 77, .sl = 11, .src_path_bits = 0, .is_global = 1, .port_num = 2};
	a.ah_attr.grh = (struct ibv_global_route){
		.flow_label = 0xabcde, .sgid_index = 1, .hop_limit = 44, .traffic_class = 55};
	memcpy(a.ah_attr.grh.dgid.raw, "abcdefghijklmnop", 16);
	a.alt_ah_attr = (struct ibv_ah_attr){.dlid = 78, .sl = 4, .port_num = 1};
	memset(&q, 0xee, sizeof(q));
	CHECK_EQ(ibv_query_qp(qp, &q, IBV_QP_STATE | IBV_QP_CAP, &got), 0);
	CHECK_EQ(q.qp_state, IBV_QPS_RESET);
	CHECK_EQ(got.cap.max_recv_wr, 128);

	a.qp_state = IBV_QPS_INIT;
	CHECK_EQ(
		ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	CHECK_EQ(ibv_query_qp(qp, &q, ~0, &got), 0);
	CHECK_EQ(q.qp_state, IBV_QPS_INIT);
	CHECK_EQ(q.port_num, 2);
	CHECK_EQ(q.pkey_index, 9);
	a.qp_state = IBV_QPS_RTR;
	CHECK_EQ(ibv_modify_qp(qp, &a,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH),
		 0);
	a.qp_state = IBV_QPS_RTS;
	CHECK_EQ(ibv_modify_qp(qp, &a,
			       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |
				       IBV_QP_PATH_MIG_STATE),
		 0);
	memset(&q, 0xee, sizeof(q));
	memset(&got, 0xee, sizeof(got));
	CHECK_EQ(ibv_query_qp(qp, &q, ~0, &got), 0);
	CHECK_EQ(q.qp_state, IBV_QPS_RTS);
	CHECK_EQ(q.cur_qp_state, IBV_QPS_RTS);
	CHECK_EQ(q.path_mtu, IBV_MTU_2048);
	CHECK(q.path_mig_state == IBV_MIG_ARMED || q.path_mig_state == IBV_MIG_REARM);
	CHECK_EQ(q.rq_psn, 0xabcdef);
	CHECK_EQ(q.sq_psn, 0xfedcba);
	CHECK_EQ(q.dest_qp_num, 0x654321);
	CHECK_EQ(q.qp_access_flags, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK_EQ(q.pkey_index, 9);
	CHECK_EQ(q.alt_pkey_index, 4);
	CHECK_EQ(q.sq_draining, 0);
	CHECK_EQ(q.max_rd_atomic, 8);
	CHECK_EQ(q.max_dest_rd_atomic, 4);
	CHECK_EQ(q.min_rnr_timer, 29);
	CHECK_EQ(q.port_num, 2);
	CHECK_EQ(q.timeout, 19);
	CHECK_EQ(q.retry_cnt, 6);
	CHECK_EQ(q.rnr_retry, 5);
	CHECK_EQ(q.alt_port_num, 1);
	CHECK_EQ(q.alt_timeout, 13);
	path_is(&q.ah_attr, &a.ah_attr);
	path_is(&q.alt_ah_attr, &a.alt_ah_attr);
	CHECK_EQ(memcmp(&q.cap, &init.cap, sizeof(q.cap)), 0);
	CHECK_EQ(memcmp(&got.cap, &init.cap, sizeof(q.cap)), 0);
	CHECK(got.qp_context == &s && got.send_cq == s.scq && got.recv_cq == s.rcq && !got.srq);
	CHECK_EQ(got.qp_type, IBV_QPT_RC);
	CHECK_EQ(got.sq_sig_all, 1);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
}

static void ud_qp(void)
{
	struct ibv_qp *qp = make_qp(&s, IBV_QPT_UD, NULL, NULL, NULL);
	struct ibv_qp_init_attr got;
	struct ibv_qp_attr q;
	struct link l;

	link_defaults(&l, 0, 0);
	connect_qp(qp, &l);
	CHECK_EQ(ibv_query_qp(qp, &q, ~0, &got), 0);
	CHECK_EQ(q.qkey, 0x11111111);
	CHECK_EQ(q.path_mtu, IBV_MTU_4096);
	CHECK_EQ(q.sq_psn, l.psn_mine);
	CHECK_EQ(got.sq_sig_all, 0);
	CHECK_EQ(ibv_destroy_qp(qp), 0);
}

static void sizes(void)
{
	static const struct ibv_qp_cap wrong[] = {
		{.max_send_wr = 16352, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		{.max_send_wr = 1, .max_recv_wr = 16352, .max_send_sge = 1, .max_recv_sge = 1},
		{.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 33, .max_recv_sge = 1},
		{.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 33},
		{.max_send_wr = 1,
		 .max_recv_wr = 1,
		 .max_send_sge = 1,
		 .max_recv_sge = 1,
		 .max_inline_data = 913},
	};
	struct ibv_qp_init_attr init = {.send_cq = s.scq, .recv_cq = s.rcq, .qp_type = IBV_QPT_RC};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 16384, .max_sge = 1}};
	struct ibv_qp *qp;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		init.cap = wrong[i];
		CHECK(!ibv_create_qp(s.pd, &init));
		CHECK_EQ(errno, EINVAL);
	}
	init.cap = (struct ibv_qp_cap){
		.max_send_wr = 16351, .max_recv_wr = 16351, .max_send_sge = 32, .max_recv_sge = 32};
	/* Queues count towards the limit of locked memory. */
	if (may_lock(32 << 20, "the largest QP")) {
		qp = ibv_create_qp(s.pd, &init);
		CHECK(qp);
		CHECK_EQ(init.cap.max_send_wr, 16351);
		CHECK_EQ(ibv_destroy_qp(qp), 0);
	}
	/* A type of QP that programs cannot have. */
	init.cap = (struct ibv_qp_cap){
		.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
	init.qp_type = IBV_QPT_RAW_ETH;
	CHECK(!ibv_create_qp(s.pd, &init));
	init.qp_type = 0;
	CHECK(!ibv_create_qp(s.pd, &init));
	CHECK(!ibv_create_srq(s.pd, &srq));
	srq.attr = (struct ibv_srq_attr){.max_wr = 1, .max_sge = 32};
	CHECK(!ibv_create_srq(s.pd, &srq));
	srq.attr = (struct ibv_srq_attr){.max_wr = 16383, .max_sge = 31};
	if (may_lock(16 << 20, "the largest SRQ")) {
		struct ibv_srq *q = ibv_create_srq(s.pd, &srq);

		CHECK(q);
		CHECK(srq.attr.max_wr >= 16383 && srq.attr.max_sge >= 31);
		CHECK_EQ(ibv_destroy_srq(q), 0);
	}
}

int main(void)
{
	test_begin();
	side_open(&s, 4096, 16, 0);
	device();
	ports();
	rc_qp();
	ud_qp();
	sizes();
	side_close(&s);
	return test_end();
}
