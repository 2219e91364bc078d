/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Waits of a requester for a time: acknowledgements, receivers that are not ready. Its lock is held.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_TIMER_H
#define SOFTHCA_DEVICE_TRANSPORT_TIMER_H

#include "softhca/device/memory/qp_context.h"

/* Wait until now + ns. */
void sh_timer_arm(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint64_t deadline);
uint64_t sh_rnr_ns(uint32_t code);
uint64_t sh_ack_ns(uint32_t code);	/* 0 = never */
/* An acknowledgement is late: send again or give up. */
void sh_retry(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);

#endif
