// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A program that has libibverbs and libmlx4 in itself: opens the first device and sends itself a
 * message over RC.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

static struct ibv_qp *connected(struct ibv_pd *pd, struct ibv_cq *cq, int lid)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp ||
	    ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return NULL;
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = qp->qp_num,
				    .max_dest_rd_atomic = 1,
				    .ah_attr = {.dlid = lid, .port_num = 1}};
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return NULL;
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 1};
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		return NULL;
	return qp;
}

int main(void)
{
	static char from[64] = "a message", to[64];
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(context, 8, NULL, NULL, 0) : NULL;
	struct ibv_mr *a = pd ? ibv_reg_mr(pd, from, sizeof(from), 0) : NULL;
	struct ibv_mr *b = pd ? ibv_reg_mr(pd, to, sizeof(to), IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct ibv_port_attr port;
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_recv;
	struct ibv_qp *qp;
	int done = 0;

	if (!cq || !a || !b || ibv_query_port(context, 1, &port)) {
		fprintf(stderr, "no device that could be used\n");
		return 1;
	}
	qp = connected(pd, cq, port.lid);
	if (!qp) {
		fprintf(stderr, "no connection\n");
		return 1;
	}
	struct ibv_sge in = {(uintptr_t)to, sizeof(to), b->lkey},
		       out = {(uintptr_t)from, sizeof(from), a->lkey};
	struct ibv_recv_wr recv = {.sg_list = &in, .num_sge = 1};
	struct ibv_send_wr send = {.sg_list = &out,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED};

	if (ibv_post_recv(qp, &recv, &bad_recv) || ibv_post_send(qp, &send, &bad_send))
		return 1;
	while (done < 2) {
		struct ibv_wc wc;
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n < 0 || (n && wc.status != IBV_WC_SUCCESS)) {
			fprintf(stderr, "completion: %s\n",
				n < 0 ? "none" : ibv_wc_status_str(wc.status));
			return 1;
		}
		done += n;
	}
	if (strcmp(from, to))
		return 1;
	printf("%s: %s\n", ibv_get_device_name(list[0]), to);
	return ibv_destroy_qp(qp) || ibv_dereg_mr(a) || ibv_dereg_mr(b) || ibv_destroy_cq(cq) ||
	       ibv_dealloc_pd(pd) || ibv_close_device(context);
}
