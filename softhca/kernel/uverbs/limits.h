/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the device can do at most, and numbers of its driver.
 */
#ifndef SOFTHCA_KERNEL_UVERBS_LIMITS_H
#define SOFTHCA_KERNEL_UVERBS_LIMITS_H

#define K_COMP_VECTORS 4
#define K_MAX_WQES     16384
#define K_SPARE_WQES   33 /* headroom of the send queue at its worst */
#define K_MAX_SGE      32
#define K_MAX_SRQ_SGE  31
#define K_MAX_CQES     4194303
#define K_XRC_QPN_BIT  (1u << 23)
#define K_BF_REG_SIZE  512
#define K_PIPE_SIZE    65536 /* of a new FIFO */

#endif
