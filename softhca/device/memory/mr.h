/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * One look at a memory key, inline for those who look at one per message. Between sh_enter() and sh_leave(), as all of mr.c.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_MR_H
#define SOFTHCA_DEVICE_MEMORY_MR_H

#include <errno.h>

#include "tables.h"

/* As sh_mr_check(). */
SH_INLINE int sh_mpt_check(const struct sh_dev *dev, const struct sh_mpt *mpt, uint32_t key, uint32_t pdn,
			       uint64_t addr, uint64_t len, uint32_t access, uint32_t *ctx)
{
	/*
	 * Pairs with the release in sh_mr_create(), and with the store in sh_mr_destroy(): this load must not
	 * come before the thread's announcement of its epoch, which an acquire would allow.
	 */
	if (!mpt || !key || __atomic_load_n(&mpt->key, __ATOMIC_SEQ_CST) != key || !sh_ctx_live(dev, mpt->ctx))
		return -ENOENT;
	if (mpt->pdn != pdn)
		return -EPERM;
	if (len && (addr - mpt->start > mpt->len || len > mpt->len - (addr - mpt->start)))
		return -ERANGE;
	if ((mpt->access & access) != access)
		return -EPERM;
	*ctx = mpt->ctx;
	return 0;
}

/* The same where this process has not mapped as much of the shared area. */
uint64_t sh_mpt_far(const struct sh_dev *dev, const struct sh_mpt *mpt, uint64_t addr, uint64_t off,
		    uint64_t len);

/* As sh_mr_home(). */
SH_INLINE uint64_t sh_mpt_home(const struct sh_dev *dev, const struct sh_mpt *mpt, uint64_t addr,
				   uint64_t len)
{
	/*
	 * The daemon takes it back in sh_mr_share(), and waits for the threads that have it by then
	 * (sh_grace_over). Ordered as the load of the key is.
	 */
	uint64_t shared = __atomic_load_n(&mpt->shared, __ATOMIC_SEQ_CST);

	uint64_t off = shared + (addr - mpt->start);

	if (!shared)
		return addr + mpt->shift;
	if (__builtin_expect(!sh_in_shared(dev, off, len), 0))
		return sh_mpt_far(dev, mpt, addr, off, len);
	return SH_SEG_SHARED | off;
}

/* Both with one look at the key, for a piece of a list. */
SH_INLINE int sh_mr_locate(const struct sh_dev *dev, struct sh_hca *hca, uint32_t pdn, uint32_t access,
			       const struct sh_sge *piece, struct sh_seg *seg, uint32_t *ctx)
{
	const struct sh_mpt *mpt = sh_mpt_of(hca, piece->key);
	int err = sh_mpt_check(dev, mpt, piece->key, pdn, piece->addr, piece->len, access, ctx);

	if (!err)
		*seg = (struct sh_seg){ sh_mpt_home(dev, mpt, piece->addr, piece->len), piece->len };
	return err;
}

#endif
