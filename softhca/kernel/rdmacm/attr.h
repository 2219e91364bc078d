/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a QP of an id has to be set to.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_ATTR_H
#define SOFTHCA_KERNEL_RDMACM_ATTR_H

#include <stdint.h>

struct cm_id;
struct cm_qp_attr;

/* For a move to that state. 0 or -EINVAL. */
int cm_attr(const struct cm_id *id, uint32_t state, struct cm_qp_attr *a);

#endif
