// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Accepts one connection of rdma_xclient and receives one message in an SRQ, by RC or XRC. */

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "tool.h"

static uint8_t recv_msg[16];

static int receive(struct rdma_cm_id *id, struct ibv_mr *mr)
{
	uint32_t srq_num = htonl(id->srq->xrc_srq_num);
	struct rdma_conn_param param = {
		.private_data = &srq_num,
		.private_data_len = sizeof(srq_num),
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.rnr_retry_count = 7,
	};
	struct ibv_wc wc;
	int ret = -1;

	if (rdma_post_recv(id, NULL, recv_msg, sizeof(recv_msg), mr))
		return tool_fail("rdma_post_recv");
	if (rdma_accept(id, &param))
		return tool_fail("rdma_accept");
	if (rdma_get_recv_comp(id, &wc) < 0)
		tool_fail("rdma_get_recv_comp");
	else if (wc.status != IBV_WC_SUCCESS)
		fprintf(stderr, "receive: %s\n", ibv_wc_status_str(wc.status));
	else
		ret = 0;
	rdma_disconnect(id);
	return ret;
}

static int serve(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr srq;
	struct ibv_qp_init_attr attr;
	struct ibv_mr *mr;
	int ret;

	memset(&srq, 0, sizeof(srq));
	srq.attr.max_wr = srq.attr.max_sge = 1;
	if (rdma_create_srq(id, NULL, &srq))
		return tool_fail("rdma_create_srq");
	memset(&attr, 0, sizeof(attr));
	attr.cap.max_send_wr = attr.cap.max_send_sge = 1;
	attr.qp_type = IBV_QPT_RC;
	if (rdma_create_qp(id, NULL, &attr))
		return tool_fail("rdma_create_qp");
	mr = rdma_reg_msgs(id, recv_msg, sizeof(recv_msg));
	if (!mr)
		return tool_fail("rdma_reg_msgs");
	ret = receive(id, mr);
	rdma_dereg_mr(mr);
	return ret;
}

static int run(const char *server, const char *port, int qp_type)
{
	struct rdma_addrinfo *res = tool_address(server, port, RAI_PASSIVE, qp_type);
	int ret;

	if (!res)
		return -1;
	ret = tool_serve(res, NULL, serve);
	rdma_freeaddrinfo(res);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct tool_program program = {
		.letters = "hp:c:",
		.usage = "\t[-p port_number]\n" TOOL_TYPES,
		.xrc_type = RDMA_XRC_RECV,
		.run = run,
	};

	return tool_main(&program, argc, argv);
}
