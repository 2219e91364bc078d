/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A requester's timer, for an acknowledgement that does not come and for a receiver that is not
 * ready. The caller holds the requester's lock.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_TIMER_H
#define SOFTHCA_DEVICE_TRANSPORT_TIMER_H

#include "softhca/device/memory/qp_context.h"

/* Sets the QP's timer to a time of the host's clock. */
void sh_timer_arm(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint64_t deadline);
/*
 * Does what the QP's timer was to do, where none could be set. The caller holds the requester's
 * lock, and runs the requester afterwards.
 */
void sh_timer_missed(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/* The times that these codes of a QP stand for, in ns. An ACK timeout of 0 means: no timer. */
uint64_t sh_rnr_ns(uint32_t code);
uint64_t sh_ack_ns(uint32_t code);
/* How long the requester waits after an RNR NAK with this code, in ns. Counts the NAK. */
uint64_t sh_rnr_wait(struct sh_qp *qp, uint32_t code);
/*
 * An acknowledgement has not come in time. Makes the requester send again. If no retry is left, it
 * sends on the alternate path, or fails the oldest WQE if none is loaded.
 */
void sh_retry(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);

/*
 * A thread that stands has a lock which the requester needs now. Goes back to the oldest packet
 * that is not acknowledged, and on from there soon, as after an RNR NAK that takes no retry. What
 * an unreliable service has sent it does not send again: it retires the WQE when it goes on.
 */
void sh_put_off(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/* sh_send_failed(), or puts it off: then the oldest WQE is tried again, and fails later. */
void sh_fail_oldest(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint8_t syndrome,
		    uint8_t vendor);
/* The same, where the memory of what was sent has gone. */
void sh_fail_source(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);

#endif
