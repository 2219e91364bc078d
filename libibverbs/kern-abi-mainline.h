// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The XRC commands of mainline kernels from 3.3 on. Their numbers are those of other commands in
 * OFED kernels (kern-abi.h). The layout of a command is as in kern-abi.h. Not installed. */

#ifndef KERN_ABI_MAINLINE_H
#define KERN_ABI_MAINLINE_H

#include <stddef.h>
#include <infiniband/kern-abi.h>

enum {
	IB_USER_VERBS_CMD_OPEN_XRCD = 37, /* ibv_open_xrc_domain and its response */
	IB_USER_VERBS_CMD_CLOSE_XRCD,
	IB_USER_VERBS_CMD_CREATE_XSRQ,
	IB_USER_VERBS_CMD_OPEN_QP, /* the response is ibv_create_qp_resp */
	/* Kernel ABI 1 and 2 do not have these commands. */
	IB_USER_VERBS_CMD_OPEN_XRCD_V2 = -1,
	IB_USER_VERBS_CMD_CLOSE_XRCD_V2 = -1,
	IB_USER_VERBS_CMD_CREATE_XSRQ_V2 = -1,
	IB_USER_VERBS_CMD_OPEN_QP_V2 = -1
};

/* QP types of CREATE_QP and OPEN_QP for the two ends of an XRC connection. */
enum {
	MAINLINE_QPT_XRC_INI = 9,
	MAINLINE_QPT_XRC_TGT = 10 /* pd_handle of CREATE_QP is that of the domain */
};

enum { MAINLINE_SRQT_XRC = 1 };

struct mainline_close_xrcd {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u32 xrcd_handle;
};

struct mainline_create_xsrq {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 user_handle;
	__u32 srq_type;
	__u32 pd_handle;
	__u32 max_wr;
	__u32 max_sge;
	__u32 srq_limit;
	__u32 reserved;
	__u32 xrcd_handle;
	__u32 cq_handle;
	__u64 driver_data[0];
};

/* ibv_create_srq_resp, with the SRQ number in its reserved member. */
struct mainline_create_xsrq_resp {
	__u32 srq_handle;
	__u32 max_wr;
	__u32 max_sge;
	__u32 srqn;
};

struct mainline_open_qp {
	__u32 command;
	__u16 in_words;
	__u16 out_words;
	__u64 response;
	__u64 user_handle;
	__u32 xrcd_handle;
	__u32 qpn;
	__u8 qp_type;
	__u8 reserved[7];
};

_Static_assert(sizeof(struct mainline_close_xrcd) == 12, "CLOSE_XRCD");
_Static_assert(sizeof(struct mainline_create_xsrq) == 56, "CREATE_XSRQ");
_Static_assert(offsetof(struct mainline_create_xsrq, srq_type) == 24, "CREATE_XSRQ");
_Static_assert(offsetof(struct mainline_create_xsrq, cq_handle) == 52, "CREATE_XSRQ");
_Static_assert(sizeof(struct mainline_create_xsrq_resp) == sizeof(struct ibv_create_srq_resp),
	       "CREATE_XSRQ");
_Static_assert(offsetof(struct mainline_create_xsrq_resp, srqn) == 12, "CREATE_XSRQ");
_Static_assert(sizeof(struct mainline_open_qp) == 40, "OPEN_QP");
_Static_assert(offsetof(struct mainline_open_qp, xrcd_handle) == 24, "OPEN_QP");
_Static_assert(offsetof(struct mainline_open_qp, qp_type) == 32, "OPEN_QP");

#endif /* KERN_ABI_MAINLINE_H */
