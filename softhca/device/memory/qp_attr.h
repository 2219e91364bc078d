/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Types, states and attributes of QPs as the verbs number them.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_QP_ATTR_H
#define SOFTHCA_DEVICE_MEMORY_QP_ATTR_H

#include <stdint.h>

enum sh_qp_type { /* service types */
		  SH_QPT_RC = 0,
		  SH_QPT_UC = 1,
		  SH_QPT_UD = 3,
		  SH_QPT_XRC = 6, /* OFED's XRC: both directions */
		  SH_QPT_XRC_INI = 16,
		  SH_QPT_XRC_TGT = 17, /* mainline's halves */
};
enum sh_qp_state { /* as the verbs number them */
		   SH_QPS_RESET,
		   SH_QPS_INIT,
		   SH_QPS_RTR,
		   SH_QPS_RTS,
		   SH_QPS_SQD,
		   SH_QPS_SQE,
		   SH_QPS_ERR,
};

/* The transport service, as packets name it. */
enum sh_service { SH_SVC_RC, SH_SVC_UC, SH_SVC_UD, SH_SVC_XRC };

/* Attributes in uverbs terms (struct ibv_modify_qp's fields); mask bits as IBV_QP_*. */
struct sh_path {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint16_t dlid;
	uint8_t sgid_index, hop_limit, traffic_class, sl, src_path_bits, static_rate, is_global,
		port_num;
};
struct sh_qp_attr {
	uint32_t qp_state, cur_qp_state, path_mtu, path_mig_state;
	uint32_t qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout,
		sq_sig_all;
	uint32_t max_recv_wr, max_recv_sge; /* query only */
	struct sh_path path, alt_path;
};

/* Path migration states as the verbs number them. */
enum { SH_MIG_MIGRATED, SH_MIG_REARM, SH_MIG_ARMED };

#endif
