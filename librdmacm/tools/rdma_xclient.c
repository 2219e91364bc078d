// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connects to rdma_xserver and sends it one message, by RC or XRC. With XRC the number of the
 * server's SRQ comes with the server's acceptance.
 */

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "tool.h"

static uint8_t send_msg[16];

static int post(struct rdma_cm_id *id, struct ibv_mr *mr, uint32_t srq_num)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)send_msg,
		.length = sizeof(send_msg),
		.lkey = mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
					 .xrc_remote_srq_num = srq_num,
				 };

	return rdma_seterrno(ibv_post_send(id->qp, &wr, &bad));
}

static int talk(struct rdma_cm_id *id)
{
	const struct rdma_conn_param *answer;
	uint32_t srq_num = 0;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	int ret = -1;

	mr = rdma_reg_msgs(id, send_msg, sizeof(send_msg));
	if (!mr)
		return tool_fail("rdma_reg_msgs");
	if (rdma_connect(id, NULL)) {
		tool_fail_at("rdma_connect", rdma_get_peer_addr(id));
		goto dereg;
	}
	answer = &id->event->param.conn;
	if (answer->private_data_len >= sizeof(srq_num))
		memcpy(&srq_num, answer->private_data, sizeof(srq_num));
	if (post(id, mr, ntohl(srq_num)))
		tool_fail("ibv_post_send");
	else if (rdma_get_send_comp(id, &wc) < 0)
		tool_fail("rdma_get_send_comp");
	else if (wc.status != IBV_WC_SUCCESS)
		fprintf(stderr, "send: %s\n", ibv_wc_status_str(wc.status));
	else
		ret = 0;
	rdma_disconnect(id);
dereg:
	rdma_dereg_mr(mr);
	return ret;
}

static int run(const char *server, const char *port, int qp_type)
{
	struct rdma_addrinfo *res = tool_address(server, port, 0, qp_type);
	struct ibv_qp_init_attr attr = tool_one_message(0);
	struct rdma_cm_id *id;
	int ret = -1;

	if (!res)
		return -1;
	if (rdma_create_ep(&id, res, NULL, &attr)) {
		tool_fail_at("rdma_create_ep", res->ai_dst_addr);
	} else {
		ret = talk(id);
		rdma_destroy_ep(id);
	}
	rdma_freeaddrinfo(res);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct tool_program program = {
		.letters = "hs:p:c:",
		.usage = "\t[-s server]\n\t[-p port_number]\n" TOOL_TYPES,
		.server = "127.0.0.1",
		.xrc_type = RDMA_XRC_SEND,
		.run = run,
	};

	return tool_main(&program, argc, argv);
}
