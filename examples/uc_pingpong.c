// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_uc_pingpong: the ping-pong over one UC QP. UC does not repeat a lost message, so the run
 * stops there. */

#include <config.h>

#include "pingpong.h"

static int connect_uc(struct pp_pair *pair, int i, const char **step)
{
	struct pp_link *link = &pair->link[i];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = pair->opt->mtu,
				   .dest_qp_num = link->remote.qpn,
				   .rq_psn = link->remote.psn};
	int err;

	pp_fill_ah(pair->opt, &link->remote, &attr.ah_attr);
	err = ibv_modify_qp(link->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN);
	if (err)
		return err;
	*step = "RTS";
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = link->local.psn};
	return ibv_modify_qp(link->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

int main(int argc, char **argv)
{
	static const struct pp_kind kind = {.qp_type = IBV_QPT_UC,
					    .wire_count = 1,
					    .init = pp_init_connected,
					    .connect = connect_uc};
	struct pp_options opt = PP_DEFAULTS;

	pp_parse(argc, argv, PP_COMMON | PP_BIT(PP_MTU) | PP_BIT(PP_RX_DEPTH) | PP_BIT(PP_ITERS),
		 &opt);
	return pp_run_pair(&kind, &opt);
}
