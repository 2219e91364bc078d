/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory keys. The daemon makes them and takes them back; a thread looks them up between sh_enter()
 * and sh_leave(). The look-up is inline, since each message needs one or more.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_MR_H
#define SOFTHCA_DEVICE_MEMORY_MR_H

#include <errno.h>

#include "tables.h"

int sh_mr_create(struct sh_dev *dev, uint32_t hca, uint32_t key, uint32_t ctx, uint32_t pdn,
		 uint64_t start, uint64_t len, uint32_t access);
/*
 * The same for a region whose addresses (from start) are not those of the owner's memory (from
 * home).
 */
int sh_mr_create_at(struct sh_dev *dev, uint32_t hca, uint32_t key, uint32_t ctx, uint32_t pdn,
		    uint64_t start, uint64_t home, uint64_t len, uint32_t access);
/*
 * The region's pages have become device memory; off is where the first byte of the region is there.
 * 0 takes that back, but threads may rely on the old state until a grace that begins afterwards is
 * over. 0 or -ENOENT.
 */
int sh_mr_share(struct sh_dev *dev, uint32_t hca, uint32_t key, uint64_t off);
/*
 * Invalidates the key. No thread finds it any more, but a thread that has found it may still use
 * it. So the caller must not give out the key again before a grace that begins afterwards is over.
 * 0 or -ENOENT.
 */
int sh_mr_destroy(struct sh_dev *dev, uint32_t hca, uint32_t key);

/* An entry of a gather or scatter list. */
struct sh_sge {
	uint64_t addr;
	uint32_t len, key;
};

/*
 * Checks [addr, addr+len) of a key for a PD and an access (enum sh_access bits, all required; 0:
 * local read). 0, and *ctx is the context of the memory; -ENOENT: there is no such key; -EPERM: the
 * PD is wrong or a right is missing; -ERANGE: out of bounds. The answer is valid until the thread
 * leaves the device (sh_leave).
 */
int sh_mr_check(struct sh_dev *dev, uint32_t hca, uint32_t key, uint32_t pdn, uint64_t addr,
		uint64_t len, uint32_t access, uint32_t *ctx);
/*
 * Where [addr, addr + len) of a region is, in the form of sh_seg.addr. Only after a check has
 * succeeded.
 */
uint64_t sh_mr_home(struct sh_dev *dev, uint32_t hca, uint32_t key, uint64_t addr, uint64_t len);
/*
 * Checks a gather or scatter list and cuts [skip, skip+len) of it into plain segments, all of one
 * context. Returns the number of segments, or -errno as above (-EMSGSIZE: the list is shorter than
 * skip+len).
 */
int sh_mr_slice(struct sh_dev *dev, struct sh_hca *hca, uint32_t pdn, uint32_t access,
		const struct sh_sge *sge, unsigned int nsge, uint64_t skip, uint64_t len,
		struct sh_seg *seg, unsigned int max, uint32_t *ctx);

/* Like sh_mr_check(). */
SH_INLINE int sh_mpt_check(const struct sh_dev *dev, const struct sh_mpt *mpt, uint32_t key,
			   uint32_t pdn, uint64_t addr, uint64_t len, uint32_t access,
			   uint32_t *ctx)
{
	/*
	 * Pairs with the release in sh_mr_create(), and with the store in sh_mr_destroy(): this
	 * load must not come before the thread's announcement of its epoch, which an acquire would
	 * allow.
	 */
	if (!mpt || !key || __atomic_load_n(&mpt->key, __ATOMIC_SEQ_CST) != key ||
	    !sh_ctx_live(dev, mpt->ctx))
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

/* Like sh_mpt_home(), where this process has not mapped that much of the shared area. */
uint64_t sh_mpt_far(const struct sh_dev *dev, const struct sh_mpt *mpt, uint64_t addr, uint64_t off,
		    uint64_t len);

/* Like sh_mr_home(). */
SH_INLINE uint64_t sh_mpt_home(const struct sh_dev *dev, const struct sh_mpt *mpt, uint64_t addr,
			       uint64_t len)
{
	/*
	 * The daemon may take it back in sh_mr_share(), and then waits for the threads that have
	 * read it (sh_grace_over). This load is ordered like the load of the key.
	 */
	uint64_t shared = __atomic_load_n(&mpt->shared, __ATOMIC_SEQ_CST);

	uint64_t off = shared + (addr - mpt->start);

	if (!shared)
		return addr + mpt->shift;
	if (__builtin_expect(!sh_in_shared(dev, off, len), 0))
		return sh_mpt_far(dev, mpt, addr, off, len);
	return SH_SEG_SHARED | off;
}

/* Checks a piece of a list and locates it, with one look-up of its key. */
SH_INLINE int sh_mr_locate(const struct sh_dev *dev, struct sh_hca *hca, uint32_t pdn,
			   uint32_t access, const struct sh_sge *piece, struct sh_seg *seg,
			   uint32_t *ctx)
{
	const struct sh_mpt *mpt = sh_mpt_of(hca, piece->key);
	int err = sh_mpt_check(dev, mpt, piece->key, pdn, piece->addr, piece->len, access, ctx);

	if (!err)
		*seg = (struct sh_seg){sh_mpt_home(dev, mpt, piece->addr, piece->len), piece->len};
	return err;
}

#endif
