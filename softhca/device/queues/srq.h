/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * SRQs: how they come to be, change and end. 0 or -errno. The daemon alone calls these.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_SRQ_H
#define SOFTHCA_DEVICE_QUEUES_SRQ_H

#include "softhca/device/memory/dev.h"

struct sh_srq_init {
	uint32_t ctx, pdn;
	uint32_t log_size, wqe_shift; /* entries and their stride */
	uint32_t xrcd, cqn;	      /* XRC: domain and CQ; else 0 */
	uint32_t max_sge;
	uint64_t user_handle;
	struct sh_umem buf;
	struct sh_umem db; /* 4 bytes */
};
int sh_srq_create(struct sh_dev *dev, uint32_t hca, uint32_t srqn, const struct sh_srq_init *init);
int sh_srq_limit(struct sh_dev *dev, uint32_t hca, uint32_t srqn,
		 uint32_t limit); /* arm the watermark */
int sh_srq_destroy(struct sh_dev *dev, uint32_t hca, uint32_t srqn, uint32_t *async_events);
uint32_t sh_srq_end(struct sh_dev *dev, uint32_t hca, uint32_t srqn);
int sh_srq_reclaim(struct sh_dev *dev, uint32_t hca, uint32_t srqn);
struct sh_srq_info {
	uint32_t srqn, ctx, pdn, entries, available, limit, xrcd, cqn;
};
int sh_srq_query(struct sh_dev *dev, uint32_t hca, uint32_t srqn, struct sh_srq_info *info);

#endif
