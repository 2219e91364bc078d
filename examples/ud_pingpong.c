// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_ud_pingpong: the ping-pong over one UD QP and an address handle. UD does not repeat a lost
 * message, so the run stops there. */

#include <config.h>

#include <errno.h>

#include "pingpong.h"

static int init_ud(struct pp_pair *pair, int i)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = pair->opt->ib_port, .qkey = PP_UD_QKEY};

	return ibv_modify_qp(pair->link[i].qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
}

static int connect_ud(struct pp_pair *pair, int i, const char **step)
{
	struct pp_link *link = &pair->link[i];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct ibv_ah_attr ah;
	int err;

	err = ibv_modify_qp(link->qp, &attr, IBV_QP_STATE);
	if (err)
		return err;
	*step = "RTS";
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = link->local.psn};
	err = ibv_modify_qp(link->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (err)
		return err;
	*step = "create AH";
	pp_fill_ah(pair->opt, &link->remote, &ah);
	errno = 0;
	link->ah = ibv_create_ah(pair->pd, &ah);
	return link->ah ? 0 : errno ? errno : EIO;
}

int main(int argc, char **argv)
{
	static const struct pp_kind kind = {.qp_type = IBV_QPT_UD,
					    .wire_count = 1,
					    .headroom = sizeof(struct ibv_grh),
					    .init = init_ud,
					    .connect = connect_ud};
	struct pp_options opt = PP_DEFAULTS;

	opt.size = 2048;
	pp_parse(argc, argv, PP_COMMON | PP_BIT(PP_RX_DEPTH) | PP_BIT(PP_ITERS), &opt);
	return pp_run_pair(&kind, &opt);
}
