/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * QPs and CQs that a thread asks a helper thread to look at: that of another process, or of its
 * own.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_ATTENTION_H
#define SOFTHCA_DEVICE_QUEUES_ATTENTION_H

#include "softhca/device/memory/dev.h"

/* Asks the helper thread of process proc to look at this QP. Any process may call this. */
void sh_attention_post(struct sh_dev *dev, uint32_t proc, uint32_t hca, uint32_t qpn);
/*
 * Mark a QP, or a CQ, of this process for its helper thread, for a doorbell that sh_later() did not
 * keep. They do not wake the helper thread: sh_leave() does. Async-signal-safe.
 */
void sh_attention_mark_qp(struct sh_dev *dev, uint32_t ctx, uint32_t qpn);
void sh_attention_mark_cq(struct sh_dev *dev, uint32_t ctx, uint32_t cqn);
/* Wakes the helper thread of this process, to look at what has been marked. Async-signal-safe. */
void sh_attention_marked(struct sh_dev *dev);

#endif
