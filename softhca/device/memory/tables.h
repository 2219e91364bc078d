/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Where the tables of an HCA and their entries are. The offsets are fixed, so that an overwritten
 * header cannot mislead any code. Only softhca/device includes this.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_TABLES_H
#define SOFTHCA_DEVICE_MEMORY_TABLES_H

#include "objects.h"
#include "qp_context.h"

#define SH_HCA_QPS  SH_PAGES(sizeof(struct sh_hca))
#define SH_HCA_CQS  (SH_HCA_QPS + SH_PAGES(sizeof(struct sh_qp) << SH_LOG_QPS))
#define SH_HCA_SRQS (SH_HCA_CQS + SH_PAGES(sizeof(struct sh_cq) << SH_LOG_CQS))
#define SH_HCA_MPTS (SH_HCA_SRQS + SH_PAGES(sizeof(struct sh_srq) << SH_LOG_SRQS))
#define SH_HCA_MCGS (SH_HCA_MPTS + SH_PAGES(sizeof(struct sh_mpt) << SH_LOG_MPTS))
#define SH_HCA_SPAN (SH_HCA_MCGS + SH_PAGES(sizeof(struct sh_mcg) * SH_MAX_MCG))

/* NULL: no such HCA. */
static inline void *sh_hca_table(const struct sh_dev *dev, uint32_t hca, uint64_t table)
{
	if (hca >= dev->hcas)
		return NULL;
	return sh_at(dev, SH_HCA_OFF + hca * SH_HCA_SPAN + table);
}

static inline void *sh_table_of(struct sh_hca *hca, uint64_t table)
{
	return (char *)hca + table;
}

/*
 * The slot that a number falls into, whatever it holds. NULL: there is no such HCA. Number spaces
 * wrap by the mask.
 */
static inline struct sh_qp *sh_qp_slot(const struct sh_dev *dev, uint32_t hca, uint32_t qpn)
{
	struct sh_qp *table = sh_hca_table(dev, hca, SH_HCA_QPS);

	return table ? &table[qpn & ((1u << SH_LOG_QPS) - 1)] : NULL;
}

/*
 * The QP of exactly this number, or NULL. The answer can change until the caller holds the lock of
 * the QP: check again then.
 */
static inline struct sh_qp *sh_qp_of(struct sh_hca *hca, uint32_t qpn)
{
	struct sh_qp *table = sh_table_of(hca, SH_HCA_QPS),
		     *qp = &table[qpn & ((1u << SH_LOG_QPS) - 1)];

	/* pairs with the release in sh_qp_create() */
	return qpn && __atomic_load_n(&qp->qpn, __ATOMIC_ACQUIRE) == qpn ? qp : NULL;
}

/*
 * NULL: there is no such entry, or it was never used. Whether it is live can be told only under its
 * lock.
 */
static inline struct sh_cq *sh_cq_of(struct sh_hca *hca, uint32_t cqn)
{
	struct sh_cq *table = sh_table_of(hca, SH_HCA_CQS);

	return cqn < 1u << SH_LOG_CQS && sh_lock_made(&table[cqn].lock) ? &table[cqn] : NULL;
}

/* Like sh_cq_of(). */
static inline struct sh_srq *sh_srq_of(struct sh_hca *hca, uint32_t srqn)
{
	struct sh_srq *table = sh_table_of(hca, SH_HCA_SRQS);

	return srqn < 1u << SH_LOG_SRQS && sh_lock_made(&table[srqn].lock) ? &table[srqn] : NULL;
}

static inline struct sh_mpt *sh_mpt_of(struct sh_hca *hca, uint32_t key)
{
	struct sh_mpt *table = sh_table_of(hca, SH_HCA_MPTS);

	return &table[(key >> 8 | key << 24) & ((1u << SH_LOG_MPTS) - 1)];
}

/* The same for an HCA that is given by its index and may not exist. */
static inline struct sh_qp *sh_qp_get(const struct sh_dev *dev, uint32_t hca, uint32_t qpn)
{
	struct sh_hca *h = sh_hca_table(dev, hca, 0);

	return h ? sh_qp_of(h, qpn) : NULL;
}

static inline struct sh_cq *sh_cq_get(const struct sh_dev *dev, uint32_t hca, uint32_t cqn)
{
	struct sh_hca *h = sh_hca_table(dev, hca, 0);

	return h ? sh_cq_of(h, cqn) : NULL;
}

static inline struct sh_srq *sh_srq_get(const struct sh_dev *dev, uint32_t hca, uint32_t srqn)
{
	struct sh_hca *h = sh_hca_table(dev, hca, 0);

	return h ? sh_srq_of(h, srqn) : NULL;
}

static inline struct sh_mpt *sh_mpt_get(const struct sh_dev *dev, uint32_t hca, uint32_t key)
{
	struct sh_hca *h = sh_hca_table(dev, hca, 0);

	return h ? sh_mpt_of(h, key) : NULL;
}

#endif
