// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What follows the core uverbs command or response in commands of mlx4 devices, in host byte order.
 * Does not include verbs headers, so that both ends of the command channel can include it.
 */
#ifndef MLX4_ABI_H
#define MLX4_ABI_H

#include <stddef.h>
#include <linux/types.h>

/*
 *   VERSION  MEANING (of /sys/class/infiniband_verbs/uverbsN/abi_version)
 *   2        the library sizes the send queue
 *   3        the device prefetches WQEs: headroom in the send queue, sq_no_prefetch
 *   4        the context response begins with dev_caps and ends with the CQE size
 */
#define MLX4_UVERBS_MIN_ABI	    2
#define MLX4_UVERBS_NO_DEV_CAPS_ABI 3
#define MLX4_UVERBS_MAX_ABI	    4

#define MLX4_DEV_CAP_LARGE_CQE (1u << 0)

/* GET_CONTEXT response, versions 2 and 3 */
struct mlx4_abi_context_resp_v3 {
	__u32 qp_tab_size; /* a power of two */
	__u16 bf_reg_size; /* 0: no BlueFlame */
	__u16 bf_regs_per_page;
};
_Static_assert(sizeof(struct mlx4_abi_context_resp_v3) == 8, "context response, version 3");

/* GET_CONTEXT response, version 4 */
struct mlx4_abi_context_resp {
	__u32 dev_caps;
	__u32 qp_tab_size;
	__u16 bf_reg_size;
	__u16 bf_regs_per_page;
	__u32 cqe_size; /* 32 or 64 */
};
_Static_assert(sizeof(struct mlx4_abi_context_resp) == 16, "context response, version 4");

/* ALLOC_PD response. The kernel writes only the number, here and in the next three responses. */
struct mlx4_abi_alloc_pd_resp {
	__u32 pdn;
	__u32 reserved;
};
_Static_assert(sizeof(struct mlx4_abi_alloc_pd_resp) == 8, "PD response");

/* CREATE_CQ */
struct mlx4_abi_create_cq {
	__u64 buf_addr;
	__u64 db_addr;
};
_Static_assert(sizeof(struct mlx4_abi_create_cq) == 16, "CQ command");

struct mlx4_abi_create_cq_resp {
	__u32 cqn;
	__u32 reserved;
};
_Static_assert(sizeof(struct mlx4_abi_create_cq_resp) == 8, "CQ response");

/* RESIZE_CQ, no driver response */
struct mlx4_abi_resize_cq {
	__u64 buf_addr;
};
_Static_assert(sizeof(struct mlx4_abi_resize_cq) == 8, "CQ resize command");

/* CREATE_SRQ, CREATE_XRC_SRQ, CREATE_XSRQ */
struct mlx4_abi_create_srq {
	__u64 buf_addr;
	__u64 db_addr;
};
_Static_assert(sizeof(struct mlx4_abi_create_srq) == 16, "SRQ command");

struct mlx4_abi_create_srq_resp {
	__u32 srqn;
	__u32 reserved;
};
_Static_assert(sizeof(struct mlx4_abi_create_srq_resp) == 8, "SRQ response");

/* OPEN_XRC_DOMAIN response; absent on mainline kernels */
struct mlx4_abi_open_xrc_domain_resp {
	__u32 xrcdn;
	__u32 reserved;
};
_Static_assert(sizeof(struct mlx4_abi_open_xrc_domain_resp) == 8, "XRC domain response");

/* CREATE_QP, no driver response. db_addr is 0 for a QP without a receive queue. */
struct mlx4_abi_create_qp {
	__u64 buf_addr;
	__u64 db_addr;
	__u8 log_sq_bb_count;
	__u8 log_sq_stride;
	__u8 sq_no_prefetch;
	__u8 reserved[5]; /* must be 0: later kernels read the last four as a size */
};
_Static_assert(sizeof(struct mlx4_abi_create_qp) == 24, "QP command");
_Static_assert(offsetof(struct mlx4_abi_create_qp, sq_no_prefetch) == 18,
	       "QP command prefetch byte");

#endif
