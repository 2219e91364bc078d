/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * CQs: how they come to be, change and end, and the arm doorbell. 0 or -errno. The daemon alone calls these, but
 * for sh_arm().
 */
#ifndef SOFTHCA_DEVICE_QUEUES_CQ_H
#define SOFTHCA_DEVICE_QUEUES_CQ_H

#include "softhca/device/memory/dev.h"

struct sh_cq_init {
	uint32_t ctx;
	uint32_t log_size;		/* log2 of the number of entries */
	uint64_t user_handle;
	uint32_t comp_evq;		/* 0 = no channel */
	uint32_t comp_vector;
	struct sh_umem buf;
	struct sh_umem db;		/* 8 bytes */
};
/* Fills the buffer with hardware-owned entries. cqn is chosen by the caller (number spaces are the kernel's). */
int sh_cq_create(struct sh_dev *dev, uint32_t hca, uint32_t cqn, const struct sh_cq_init *init);
/* Two halves, the device's part of RESIZE_CQ (mlx4-hardware.md 5.9). -EINVAL: too small for what is in it. */
int sh_cq_resize(struct sh_dev *dev, uint32_t hca, uint32_t cqn, const struct sh_umem *buf, uint32_t log_size);
/* No write after return. Reports events written so far (the caller subtracts those it drops from the pipes). */
int sh_cq_destroy(struct sh_dev *dev, uint32_t hca, uint32_t cqn, uint32_t *comp_events, uint32_t *async_events);
void sh_cq_end(struct sh_dev *dev, uint32_t hca, uint32_t cqn, uint32_t *comp_events, uint32_t *async_events);
int sh_cq_reclaim(struct sh_dev *dev, uint32_t hca, uint32_t cqn);
struct sh_cq_info {
	uint32_t cqn, ctx, entries, producer, consumer, armed, overrun, comp_evq;
	uint64_t comp_events;
};
int sh_cq_query(struct sh_dev *dev, uint32_t hca, uint32_t cqn, struct sh_cq_info *info);

/* The arm doorbell named this CQ: look at its arm record. dw0/dw1 are the doorbell's words in host order, or
 * both 0 when only the record is to be looked at. */
void sh_arm(struct sh_dev *dev, uint32_t ctx, uint32_t cqn, uint32_t dw0, uint32_t dw1);

#endif
