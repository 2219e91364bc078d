/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Where the tables of an HCA are: fixed offsets, so that an overwritten header leads nobody astray.
 * Only softhca/device includes this.
 */
#ifndef SOFTHCA_DEVICE_TABLES_H
#define SOFTHCA_DEVICE_TABLES_H

#include "qp.h"

#define SH_HCA_QPS	SH_PAGES(sizeof(struct sh_hca))
#define SH_HCA_CQS	(SH_HCA_QPS + SH_PAGES(sizeof(struct sh_qp) << SH_LOG_QPS))
#define SH_HCA_SRQS	(SH_HCA_CQS + SH_PAGES(sizeof(struct sh_cq) << SH_LOG_CQS))
#define SH_HCA_MPTS	(SH_HCA_SRQS + SH_PAGES(sizeof(struct sh_srq) << SH_LOG_SRQS))
#define SH_HCA_MCGS	(SH_HCA_MPTS + SH_PAGES(sizeof(struct sh_mpt) << SH_LOG_MPTS))
#define SH_HCA_SPAN	(SH_HCA_MCGS + SH_PAGES(sizeof(struct sh_mcg) * SH_MAX_MCG))

/* NULL: no such HCA. */
static inline void *sh_hca_table(const struct sh_dev *dev, uint32_t hca, uint64_t table)
{
	if (hca >= dev->inst->hcas || hca >= SH_MAX_HCAS)
		return NULL;
	return sh_at(dev, SH_HCA_OFF + hca * SH_HCA_SPAN + table);
}

#endif
