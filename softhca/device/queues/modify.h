/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Changes of a QP's state and attributes. 0 or -errno.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_MODIFY_H
#define SOFTHCA_DEVICE_QUEUES_MODIFY_H

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/qp_attr.h"

/*
 * Follows the whole transition table, with required and optional attributes. -EINVAL: nothing has
 * changed. Moving to RTS does not run the send queue: the owner's process rings the doorbell.
 * Moving to ERR flushes. -EINPROGRESS: a client holds a lock, or the wire's engine is about to send what was posted
 * before a move to RESET.
 */
int sh_qp_modify(struct sh_dev *dev, uint32_t hca, uint32_t qpn, const struct sh_qp_attr *attr,
		 uint32_t mask);
/*
 * For a move to RESET or ERR that has to wait for a lock. From now on each thread that takes a lock
 * of the QP sees it in ERR, where it sends, places and answers nothing.
 */
void sh_qp_halt(struct sh_dev *dev, uint32_t hca, uint32_t qpn);

#endif
