// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Creates one object of each kind for a test to look at, sends some messages and prints the numbers
 * of the objects as NAME=VALUE lines. Then it waits until standard input ends. layout FILE: FILE is
 * that of the XRC domain.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define LENGTH	 12345
#define MESSAGES 3

static char memory[LENGTH];

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "layout: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void must_be_0(int err, const char *what)
{
	if (err > 0)
		errno = err;
	must(!err, what);
}

static void connect_to_itself(struct ibv_qp *qp, uint16_t lid)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	must_be_0(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		"to INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.dlid = lid, .port_num = 1},
	};
	must_be_0(ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER),
		  "to RTR");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 1};
	must_be_0(ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
		  "to RTS");
}

static void exchange(struct ibv_qp *qp, struct ibv_srq *srq, struct ibv_cq *cq, struct ibv_mr *mr)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 1000, .lkey = mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	for (int i = 0; i < MESSAGES + 2; i++)
		must_be_0(ibv_post_srq_recv(srq, &recv, &bad_recv), "post receive");
	for (int i = 0; i < MESSAGES; i++)
		must_be_0(ibv_post_send(qp, &send, &bad), "post send");
	for (int i = 0; i < 2 * MESSAGES;) {
		int n = ibv_poll_cq(cq, 1, &wc);

		must(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS), "completion");
		i += n;
	}
}

int main(int argc, char **argv)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 20, .max_sge = 1}};
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 4, .max_send_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_xrc_domain *domain;
	struct ibv_srq *srq, *xsrq;
	struct ibv_port_attr port;
	struct ibv_context *ctx;
	struct ibv_cq *cq, *xcq;
	struct ibv_qp *qp;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint32_t rcv_qpn;
	int fd;

	must(argc == 2 && list && list[0], "a device and one argument");
	ctx = ibv_open_device(list[0]);
	must(!!ctx, "open device");
	must_be_0(ibv_query_port(ctx, 1, &port), "query port");
	must(!!(pd = ibv_alloc_pd(ctx)), "PD");
	must(!!(cq = ibv_create_cq(ctx, 60, NULL, ibv_create_comp_channel(ctx), 0)), "CQ");
	must(!!(xcq = ibv_create_cq(ctx, 10, NULL, NULL, 0)), "CQ of the XRC SRQ");
	must(!!(mr = ibv_reg_mr(pd, memory, LENGTH,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)),
	     "MR");
	must(!!(srq = ibv_create_srq(pd, &srq_attr)), "SRQ");
	init.send_cq = init.recv_cq = cq;
	init.srq = srq;
	must(!!(qp = ibv_create_qp(pd, &init)), "QP");
	connect_to_itself(qp, port.lid);
	exchange(qp, srq, cq, mr);

	fd = open(argv[1], O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	must(fd >= 0, argv[1]);
	must(!!(domain = ibv_open_xrc_domain(ctx, fd, O_CREAT)), "XRC domain");
	must(!!(xsrq = ibv_create_xrc_srq(pd, domain, xcq, &srq_attr)), "XRC SRQ");
	init = (struct ibv_qp_init_attr){.xrc_domain = domain};
	must_be_0(ibv_create_xrc_rcv_qp(&init, &rcv_qpn), "XRC receive QP");
	must_be_0(ibv_modify_xrc_rcv_qp(domain, rcv_qpn, &attr,
					IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						IBV_QP_ACCESS_FLAGS),
		  "XRC receive QP to INIT");
	printf("pid=%d qpn=%u xsrqn=%u rcv_qpn=%u lkey=%u address=%llu lid=%u\n", (int)getpid(),
	       qp->qp_num, xsrq->xrc_srq_num, rcv_qpn, mr->lkey,
	       (unsigned long long)(uintptr_t)memory, port.lid);
	fflush(stdout);
	while (getchar() != EOF)
		;
	/* The program destroys nothing: the end of the process releases all objects. */
	return 0;
}
