/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Changes of a QP's state and attributes. 0 or -errno.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_MODIFY_H
#define SOFTHCA_DEVICE_QUEUES_MODIFY_H

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/qp_attr.h"
#include "softhca/device/memory/qp_context.h"
#include "transitions.h"

/*
 * What mlx4 refuses in addition to the transition table, for daemon and device. mtu: the greatest
 * that a path may have, as IBV_MTU_*. A wire has less than the device by itself.
 */
static inline bool sh_qp_values_ok(const struct sh_qp_attr *a, uint32_t mask, uint32_t ports,
				   uint32_t mtu)
{
	if (mask & SH_QPA_PORT && (a->port_num < 1 || a->port_num > ports))
		return false;
	if (mask & SH_QPA_PKEY_INDEX && a->pkey_index >= SH_PKEYS)
		return false;
	if (mask & SH_QPA_MAX_QP_RD_ATOMIC && a->max_rd_atomic > SH_QP_READS)
		return false;
	if (mask & SH_QPA_MAX_DEST_RD_ATOMIC && a->max_dest_rd_atomic > SH_QP_ATOMICS)
		return false;
	if (mask & SH_QPA_PATH_MTU && (a->path_mtu < 1 || a->path_mtu > mtu))
		return false;
	if (mask & SH_QPA_AV && a->path.is_global && a->path.sgid_index >= SH_GIDS)
		return false;
	return !(mask & SH_QPA_ALT_PATH) ||
	       (a->alt_port_num >= 1 && a->alt_port_num <= ports && a->alt_pkey_index < SH_PKEYS &&
		!(a->alt_path.is_global && a->alt_path.sgid_index >= SH_GIDS));
}

/*
 * Follows the whole transition table, with required and optional attributes. -EINVAL: nothing has
 * changed. Moving to RTS does not run the send queue: the owner's process rings the doorbell.
 * Moving to ERR flushes. -EINPROGRESS: a client holds a lock, or the wire's engine is about to send
 * what was posted before a move to RESET.
 */
int sh_qp_modify(struct sh_dev *dev, uint32_t hca, uint32_t qpn, const struct sh_qp_attr *attr,
		 uint32_t mask);
/*
 * For a move to RESET or ERR that has to wait for a lock. From now on each thread that takes a lock
 * of the QP sees it in ERR, where it sends, places and answers nothing.
 */
void sh_qp_halt(struct sh_dev *dev, uint32_t hca, uint32_t qpn);

#endif
