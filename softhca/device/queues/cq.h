/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * CQs: how they come to be, change and end, and the arm doorbell. 0 or -errno. The daemon alone
 * calls these, but for sh_arm().
 */
#ifndef SOFTHCA_DEVICE_QUEUES_CQ_H
#define SOFTHCA_DEVICE_QUEUES_CQ_H

#include "softhca/device/memory/dev.h"

struct sh_cq_init {
	uint32_t ctx;
	uint32_t log_size; /* log2 of the number of entries */
	uint64_t user_handle;
	uint32_t comp_evq; /* 0 = no channel */
	uint32_t comp_vector;
	struct sh_umem buf;
	struct sh_umem db; /* 8 bytes */
};
/*
 * Fills the buffer with entries that the hardware owns. The caller chooses cqn, because the daemon
 * keeps the number spaces.
 */
int sh_cq_create(struct sh_dev *dev, uint32_t hca, uint32_t cqn, const struct sh_cq_init *init);
/* The device's part of RESIZE_CQ. -EINVAL: the buffer is too small for the entries in the CQ. */
int sh_cq_resize(struct sh_dev *dev, uint32_t hca, uint32_t cqn, const struct sh_umem *buf,
		 uint32_t log_size);
/*
 * Once it has returned, the device writes to the CQ no more. Reports the events written so far; the
 * caller subtracts those that it drops from the pipes.
 */
int sh_cq_destroy(struct sh_dev *dev, uint32_t hca, uint32_t cqn, uint32_t *comp_events,
		  uint32_t *async_events);
void sh_cq_end(struct sh_dev *dev, uint32_t hca, uint32_t cqn, uint32_t *comp_events,
	       uint32_t *async_events);
int sh_cq_reclaim(struct sh_dev *dev, uint32_t hca, uint32_t cqn);
struct sh_cq_info {
	uint32_t cqn, ctx, entries, producer, consumer, armed, overrun, comp_evq;
	uint64_t comp_events;
};
int sh_cq_query(struct sh_dev *dev, uint32_t hca, uint32_t cqn, struct sh_cq_info *info);

/*
 * The arm doorbell of a context named this CQ. dw0 and dw1 are the words of the doorbell in host
 * order. If both are 0, the device looks at the arm record of the CQ instead.
 */
void sh_arm(struct sh_dev *dev, uint32_t ctx, uint32_t cqn, uint32_t dw0, uint32_t dw1);
/*
 * The helper thread of a process has lost an arm doorbell for a CQ: looks at the arm record of this
 * CQ, if it is the process's. A doorbell that is under way may then arm the CQ a second time. One
 * event too many is allowed. The caller is in sh_catch(), pinned.
 */
void sh_arm_lost(struct sh_dev *dev, uint32_t hca, uint32_t cqn);
/* sh_arm() when this thread leaves the device (exec.h). */
void sh_arm_later(struct sh_dev *dev, uint32_t ctx, uint32_t cqn, uint32_t dw0, uint32_t dw1);

#endif
