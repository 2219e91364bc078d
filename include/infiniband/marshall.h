// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Converts attributes between the kernel's structures and the application's, for connection
 * managers. The functions cannot fail. They set all members of dst. */

#ifndef INFINIBAND_MARSHALL_H
#define INFINIBAND_MARSHALL_H

#include <infiniband/verbs.h>
#include <infiniband/sa.h>
#include <infiniband/kern-abi.h>
#include <infiniband/sa-kern-abi.h>

BEGIN_C_DECLS

/* Copies all attributes. The kernel's qp_attr_mask says which of them are valid; dst has no member
 * for it. */
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ibv_kern_qp_attr *src);

/* Copies an address with its global route. */
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ibv_kern_ah_attr *src);

/* Copies a path. LIDs, P_Key and flow label stay in network order. */
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ibv_kern_path_rec *src);

/* Copies a path in the other direction. */
void ibv_copy_path_rec_to_kern(struct ibv_kern_path_rec *dst, struct ibv_sa_path_rec *src);

END_C_DECLS

#endif /* INFINIBAND_MARSHALL_H */
