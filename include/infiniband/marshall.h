// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Conversion between the kernel's form of attributes and the application's, for the connection
 * managers. None of these can fail; dst is filled completely. */

#ifndef INFINIBAND_MARSHALL_H
#define INFINIBAND_MARSHALL_H

#include <infiniband/verbs.h>
#include <infiniband/sa.h>
#include <infiniband/kern-abi.h>
#include <infiniband/sa-kern-abi.h>

BEGIN_C_DECLS

/* Every attribute; which of them mean something the kernel's qp_attr_mask says, which has no
 * place in dst. */
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ibv_kern_qp_attr *src);

/* An address, with its global route. */
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ibv_kern_ah_attr *src);

/* A path. LIDs, P_Key and flow label stay in network order. */
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ibv_kern_path_rec *src);

/* The inverse. */
void ibv_copy_path_rec_to_kern(struct ibv_kern_path_rec *dst, struct ibv_sa_path_rec *src);

END_C_DECLS

#endif /* INFINIBAND_MARSHALL_H */
