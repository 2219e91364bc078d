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

void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ibv_kern_qp_attr *src);

void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ibv_kern_ah_attr *src);

void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ibv_kern_path_rec *src);

void ibv_copy_path_rec_to_kern(struct ibv_kern_path_rec *dst, struct ibv_sa_path_rec *src);

END_C_DECLS

#endif /* INFINIBAND_MARSHALL_H */
