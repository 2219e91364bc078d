/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Changes of a QP's state and attributes. 0 or -errno.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_MODIFY_H
#define SOFTHCA_DEVICE_QUEUES_MODIFY_H

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/qp_attr.h"

/* The whole transition table with required and optional masks, mlx4-hardware.md 7.1: -EINVAL changes nothing.
 * Moving to RTS does not run the send queue: the caller rings it (the owner's process does). Moving to ERR flushes. */
int sh_qp_modify(struct sh_dev *dev, uint32_t hca, uint32_t qpn, const struct sh_qp_attr *attr, uint32_t mask);
/*
 * Before a move to RESET or ERR that has to wait for a lock: as seen by each thread that takes a lock of the QP from now on,
 * it is in ERR, where nothing is sent, placed or answered.
 */
void sh_qp_halt(struct sh_dev *dev, uint32_t hca, uint32_t qpn);

#endif
