// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Connects to rdma_server, sends 16 bytes, receives 16 and disconnects. The smallest program with a
 * synchronous id. */

#include <stdio.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "tool.h"

static uint8_t send_msg[16], recv_msg[16];

static int exchange(struct rdma_cm_id *id, int inline_flag)
{
	struct ibv_mr *mr, *send_mr = NULL;
	struct ibv_wc wc;
	int ret = -1;

	mr = rdma_reg_msgs(id, recv_msg, sizeof(recv_msg));
	if (!mr)
		return tool_fail("rdma_reg_msgs for recv_msg");
	if (!inline_flag) {
		send_mr = rdma_reg_msgs(id, send_msg, sizeof(send_msg));
		if (!send_mr) {
			tool_fail("rdma_reg_msgs for send_msg");
			goto dereg_recv;
		}
	}
	if (rdma_post_recv(id, NULL, recv_msg, sizeof(recv_msg), mr)) {
		tool_fail("rdma_post_recv");
		goto dereg_send;
	}
	if (rdma_connect(id, NULL)) {
		tool_fail_at("rdma_connect", rdma_get_peer_addr(id));
		goto dereg_send;
	}
	if (rdma_post_send(id, NULL, send_msg, sizeof(send_msg), send_mr, inline_flag))
		tool_fail("rdma_post_send");
	else if (rdma_get_send_comp(id, &wc) < 0)
		tool_fail("rdma_get_send_comp");
	else if (rdma_get_recv_comp(id, &wc) < 0)
		tool_fail("rdma_get_recv_comp");
	else if (wc.status != IBV_WC_SUCCESS)
		fprintf(stderr, "receive: %s\n", ibv_wc_status_str(wc.status));
	else
		ret = 0;
	rdma_disconnect(id);
dereg_send:
	if (send_mr)
		rdma_dereg_mr(send_mr);
dereg_recv:
	rdma_dereg_mr(mr);
	return ret;
}

static int run(const char *server, const char *port, int qp_type)
{
	struct ibv_qp_init_attr attr = tool_one_message(sizeof(send_msg));
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;
	int ret = -1, flag = 0;

	res = tool_address(server, port, 0, qp_type);
	if (!res)
		return -1;
	if (rdma_create_ep(&id, res, NULL, &attr)) {
		tool_fail_at("rdma_create_ep", res->ai_dst_addr);
		goto free;
	}
	if (attr.cap.max_inline_data >= sizeof(send_msg))
		flag = IBV_SEND_INLINE;
	else
		printf("rdma_client: device doesn't support IBV_SEND_INLINE, using sge sends\n");
	ret = exchange(id, flag);
	rdma_destroy_ep(id);
free:
	rdma_freeaddrinfo(res);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct tool_program program = {
		.name = "rdma_client",
		.letters = "hs:p:",
		.usage = "\t[-s server_address]\n\t[-p port_number]\n",
		.server = "127.0.0.1",
		.run = run,
	};

	return tool_main(&program, argc, argv);
}
