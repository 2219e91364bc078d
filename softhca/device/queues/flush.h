/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Errors of a QP, and the completions that they leave behind. Both locks of the QP are held, unless it says otherwise.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_FLUSH_H
#define SOFTHCA_DEVICE_QUEUES_FLUSH_H

#include "softhca/device/memory/event.h"
#include "softhca/device/memory/qp_context.h"
#include "wqe.h"

/*
 * Into the error state: the async event (SH_QPE_NONE: none), then everything visible is flushed, then
 * LAST_WQE_REACHED where it applies. The receive WQE of a message in progress completes with the given syndrome.
 */
void sh_qp_error(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t event, uint8_t recv_syndrome,
		 uint8_t vendor);
/*
 * Flush what is visible of a QP in ERR (both queues) or SQE (send queue). -EINPROGRESS, for a QP without an owner
 * only: another thread holds a CQ's lock, and the caller has to flush again.
 */
int sh_qp_flush(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/* Complete the receive WQE of the message in progress in error, if one is taken. -EINPROGRESS: it is as it was (daemon). */
int sh_recv_abort(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint8_t syndrome, uint8_t vendor);
void sh_qp_event(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t event);

/* The oldest WQE failed: its error CQE, then ERR (SQE for UC and UD) and the flush. Takes the responder's lock. */
void sh_send_failed(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint8_t syndrome, uint8_t vendor);

#endif
