/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What one process asks another to look at.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_ATTENTION_H
#define SOFTHCA_DEVICE_QUEUES_ATTENTION_H

#include "softhca/device/memory/dev.h"

/* Asks the helper thread of process proc to look at this QP. Any process may call this. */
void sh_attention_post(struct sh_dev *dev, uint32_t proc, uint32_t hca, uint32_t qpn);

#endif
