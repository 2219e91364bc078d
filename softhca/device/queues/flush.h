/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Errors of a QP, and the completions in error that follow. The caller holds both locks of the QP,
 * unless the comment of a function says otherwise.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_FLUSH_H
#define SOFTHCA_DEVICE_QUEUES_FLUSH_H

#include "softhca/device/memory/event.h"
#include "softhca/device/memory/qp_context.h"
#include "wqe.h"

/*
 * Moves the QP to ERR: raises the async event (unless it is SH_QPE_NONE), flushes all posted WQEs,
 * then raises LAST_WQE_REACHED where it applies. The receive WQE of a message in progress completes
 * with the given syndrome.
 */
void sh_qp_error(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t event,
		 uint8_t recv_syndrome, uint8_t vendor);
/* The same, and stores word to *left with the new state. left NULL: nothing. */
void sh_qp_error_left(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t event,
		      uint8_t recv_syndrome, uint8_t vendor, uint64_t *left, uint64_t word);
/*
 * Flushes the posted WQEs of a QP in ERR (both queues) or SQE (send queue). -EINPROGRESS, in the
 * daemon only, and for a QP without an owner: another thread holds a CQ's lock, and the caller has
 * to flush again.
 */
int sh_qp_flush(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/*
 * Has the helper thread of this process flush the QP soon. The caller holds the requester's lock.
 */
void sh_qp_flush_later(struct sh_dev *dev, const struct sh_hca *hca, const struct sh_qp *qp);
/*
 * Completes the receive WQE of the message in progress in error, if the QP has taken one.
 * -EINPROGRESS: a lock is not to be had now (sh_lock_mine()), and nothing has changed.
 */
int sh_recv_abort(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint8_t syndrome,
		  uint8_t vendor);
void sh_qp_event(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t event);

/*
 * Fails the oldest send WQE: writes its error CQE, moves the QP to ERR (SQE for UC and UD), and
 * flushes. The caller holds the requester's lock; this function takes the responder's. 0;
 * -EINPROGRESS: a lock is not to be had now (sh_lock_within()), and nothing has changed.
 */
int sh_send_failed(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint8_t syndrome,
		   uint8_t vendor);

#endif
