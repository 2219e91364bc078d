// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The attributes that move a QP from RESET to RTS, for all tools. Calls no verb but
 * ibv_modify_qp(). */

#include <config.h>

#include "pingpong.h"

int pp_init_attr(const struct pp_options *opt, struct ibv_qp_attr *attr)
{
	*attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = opt->ib_port};
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

void pp_fill_ah(const struct pp_options *opt, const struct pp_dest *remote, struct ibv_ah_attr *ah)
{
	*ah = (struct ibv_ah_attr){.dlid = remote->lid, .sl = opt->sl, .port_num = opt->ib_port};
	if (remote->gid.global.interface_id) {
		ah->is_global = 1;
		ah->grh.hop_limit = 1;
		ah->grh.dgid = remote->gid;
		ah->grh.sgid_index = opt->gid_idx < 0 ? 0 : opt->gid_idx;
	}
}

int pp_rtr_attr(const struct pp_options *opt, const struct pp_dest *remote, uint32_t dest_qpn,
		struct ibv_qp_attr *attr)
{
	*attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				     .path_mtu = opt->mtu,
				     .dest_qp_num = dest_qpn,
				     .rq_psn = remote->psn,
				     .max_dest_rd_atomic = 1,
				     .min_rnr_timer = 12};
	pp_fill_ah(opt, remote, &attr->ah_attr);
	return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

int pp_rts_attr(uint32_t psn, struct ibv_qp_attr *attr)
{
	/* rnr_retry 7 retries without limit; retries after lost packets end after 8 × 67 ms. */
	*attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				     .timeout = 14,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .sq_psn = psn,
				     .max_rd_atomic = 1};
	return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
	       IBV_QP_MAX_QP_RD_ATOMIC;
}

int pp_init_connected(struct pp_pair *pair, int i)
{
	struct ibv_qp_attr attr;
	int mask = pp_init_attr(pair->opt, &attr);

	return ibv_modify_qp(pair->link[i].qp, &attr, mask);
}

int pp_connect_rc(struct pp_pair *pair, int i, const char **step)
{
	struct pp_link *link = &pair->link[i];
	struct ibv_qp_attr attr;
	int mask = pp_rtr_attr(pair->opt, &link->remote, link->remote.qpn, &attr);
	int err = ibv_modify_qp(link->qp, &attr, mask);

	if (err)
		return err;
	*step = "RTS";
	mask = pp_rts_attr(link->local.psn, &attr);
	return ibv_modify_qp(link->qp, &attr, mask);
}
