// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * absent SECONDS LID...: RC QPs of a wire, each to a LID that no machine has. Each posts a WRITE of
 * 64 KiB, and begins anew when that has failed. Prints how many have.
 */
#include <time.h>

#include <infiniband/verbs.h>

#include "check.h"

enum { MOST = 16, LENGTH = 65536 };

static struct ibv_qp *qp[MOST];
static uint8_t buf[LENGTH];
static struct ibv_mr *mr;

static void post(struct ibv_qp *qp, uint16_t lid)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_sge sge = {(uintptr_t)buf, LENGTH, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = 0x48,
				    .ah_attr = {.dlid = lid, .port_num = 1}};
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7};
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
	CHECK(!ibv_post_send(qp, &wr, &bad));
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 1, .max_send_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_wc wc;
	int n = argc - 2, failed = 0;
	time_t until;

	CHECK(n > 0 && n <= MOST && list && *list);
	context = ibv_open_device(*list);
	CHECK(context);
	pd = ibv_alloc_pd(context);
	CHECK(pd);
	init.send_cq = init.recv_cq = ibv_create_cq(context, MOST, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, buf, LENGTH, IBV_ACCESS_LOCAL_WRITE);
	CHECK(init.send_cq && mr);
	until = time(NULL) + atoi(argv[1]);
	for (int i = 0; i < n; i++) {
		qp[i] = ibv_create_qp(pd, &init);
		CHECK(qp[i]);
		post(qp[i], (uint16_t)atoi(argv[2 + i]));
	}
	while (time(NULL) < until) {
		struct timespec nap = {.tv_nsec = 1000000};
		int got = ibv_poll_cq(init.send_cq, 1, &wc);

		CHECK(got >= 0);
		for (int i = 0; got && i < n; i++)
			if (qp[i]->qp_num == wc.qp_num)
				post(qp[i], (uint16_t)atoi(argv[2 + i]));
		failed += got && wc.status == IBV_WC_RETRY_EXC_ERR;
		if (!got)
			nanosleep(&nap, NULL);
	}
	printf("%d\n", failed);
	return 0;
}
