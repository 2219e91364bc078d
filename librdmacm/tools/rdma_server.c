// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Accepts one connection of rdma_client, receives 16 bytes, sends 16 and ends. */

#include <stdio.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "tool.h"

static uint8_t send_msg[16], recv_msg[16];

static int serve(struct rdma_cm_id *id)
{
	struct ibv_mr *mr, *send_mr;
	struct ibv_qp_init_attr attr;
	struct ibv_qp_attr qp_attr;
	struct ibv_wc wc;
	int ret = -1, flag = 0;

	memset(&qp_attr, 0, sizeof(qp_attr));
	memset(&attr, 0, sizeof(attr));
	if (!ibv_query_qp(id->qp, &qp_attr, IBV_QP_CAP, &attr) &&
	    attr.cap.max_inline_data >= sizeof(send_msg))
		flag = IBV_SEND_INLINE;
	else
		printf("rdma_server: device doesn't support IBV_SEND_INLINE, using sge sends\n");

	mr = rdma_reg_msgs(id, recv_msg, sizeof(recv_msg));
	if (!mr)
		return tool_fail("rdma_reg_msgs for recv_msg");
	send_mr = rdma_reg_msgs(id, send_msg, sizeof(send_msg));
	if (!send_mr) {
		tool_fail("rdma_reg_msgs for send_msg");
		goto dereg_recv;
	}
	if (rdma_post_recv(id, NULL, recv_msg, sizeof(recv_msg), mr)) {
		tool_fail("rdma_post_recv");
		goto dereg_send;
	}
	if (rdma_accept(id, NULL)) {
		tool_fail("rdma_accept");
		goto dereg_send;
	}
	if (rdma_get_recv_comp(id, &wc) < 0)
		tool_fail("rdma_get_recv_comp");
	else if (rdma_post_send(id, NULL, send_msg, sizeof(send_msg), send_mr, flag))
		tool_fail("rdma_post_send");
	else if (rdma_get_send_comp(id, &wc) < 0)
		tool_fail("rdma_get_send_comp");
	else if (wc.status != IBV_WC_SUCCESS)
		fprintf(stderr, "send: %s\n", ibv_wc_status_str(wc.status));
	else
		ret = 0;
	rdma_disconnect(id);
dereg_send:
	rdma_dereg_mr(send_mr);
dereg_recv:
	rdma_dereg_mr(mr);
	return ret;
}

static int run(const char *server, const char *port, int qp_type)
{
	struct ibv_qp_init_attr attr = tool_one_message(sizeof(send_msg));
	struct rdma_addrinfo *res = tool_address(server, port, RAI_PASSIVE, qp_type);
	int ret;

	if (!res)
		return -1;
	ret = tool_serve(res, &attr, serve);
	rdma_freeaddrinfo(res);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct tool_program program = {
		.name = "rdma_server",
		.letters = "hs:p:",
		.usage = "\t[-s server_address]\n\t[-p port_number]\n",
		.server = "0.0.0.0",
		.run = run,
	};

	return tool_main(&program, argc, argv);
}
