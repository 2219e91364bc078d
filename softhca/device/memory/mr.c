// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory keys. Only the daemon makes and removes entries. Any thread reads them without a lock,
 * between sh_enter() and sh_leave(). The daemon uses an entry again only after each thread that may
 * have seen it has left (sh_grace_over).
 */
#include <errno.h>

#include "instance.h"
#include "mr.h"

int sh_mr_create(struct sh_dev *dev, uint32_t hca, uint32_t key, uint32_t ctx, uint32_t pdn,
		 uint64_t start, uint64_t len, uint32_t access)
{
	return sh_mr_create_at(dev, hca, key, ctx, pdn, start, start, len, access);
}

int sh_mr_create_at(struct sh_dev *dev, uint32_t hca, uint32_t key, uint32_t ctx, uint32_t pdn,
		    uint64_t start, uint64_t home, uint64_t len, uint32_t access)
{
	struct sh_mpt *mpt = sh_mpt_get(dev, hca, key);
	int err;

	if (!mpt || !key || len > UINT64_MAX - start || len > UINT64_MAX - home)
		return -EINVAL;
	err = sh_promise(dev, mpt, sizeof(*mpt));
	if (err)
		return err;
	if (mpt->key)
		return -EEXIST;
	mpt->pdn = pdn;
	mpt->ctx = ctx;
	mpt->access = access;
	mpt->start = start;
	mpt->len = len;
	mpt->shift = home - start;
	mpt->shared = 0;
	/* pairs with the acquire in sh_mr_check() */
	__atomic_store_n(&mpt->key, key, __ATOMIC_RELEASE);
	return 0;
}

int sh_mr_share(struct sh_dev *dev, uint32_t hca, uint32_t key, uint64_t off)
{
	struct sh_mpt *mpt = sh_mpt_get(dev, hca, key);

	if (!mpt || !key || mpt->key != key)
		return -ENOENT;
	__atomic_store_n(&mpt->shared, off, __ATOMIC_SEQ_CST);
	return 0;
}

int sh_mr_destroy(struct sh_dev *dev, uint32_t hca, uint32_t key)
{
	struct sh_mpt *mpt = sh_mpt_get(dev, hca, key);

	if (!mpt || !key || mpt->key != key)
		return -ENOENT;
	__atomic_store_n(&mpt->key, 0, __ATOMIC_SEQ_CST);
	return 0;
}

int sh_mr_check(struct sh_dev *dev, uint32_t hca, uint32_t key, uint32_t pdn, uint64_t addr,
		uint64_t len, uint32_t access, uint32_t *ctx)
{
	return sh_mpt_check(dev, sh_mpt_get(dev, hca, key), key, pdn, addr, len, access, ctx);
}

/*
 * If this process cannot map the pages, it uses the addresses of the owner's own mapping: the
 * kernel copies there as it does to memory that is not shared. A damaged offset leads nowhere,
 * which the copy reports.
 */
uint64_t sh_mpt_far(const struct sh_dev *dev, const struct sh_mpt *mpt, uint64_t addr, uint64_t off,
		    uint64_t len)
{
	int err = off < dev->shared_off ? -EINVAL : sh_extend(dev, off, len);

	return !err ? SH_SEG_SHARED | off : err == -ENOMEM ? addr + mpt->shift : SH_SEG_NOWHERE;
}

uint64_t sh_mr_home(struct sh_dev *dev, uint32_t hca, uint32_t key, uint64_t addr, uint64_t len)
{
	const struct sh_mpt *mpt = sh_mpt_get(dev, hca, key);

	return mpt ? sh_mpt_home(dev, mpt, addr, len) : addr;
}

int sh_mr_slice(struct sh_dev *dev, struct sh_hca *hca, uint32_t pdn, uint32_t access,
		const struct sh_sge *sge, unsigned int nsge, uint64_t skip, uint64_t len,
		struct sh_seg *seg, unsigned int max, uint32_t *ctx)
{
	unsigned int i, n = 0;
	uint32_t owner = 0;

	for (i = 0; i < nsge && len; i++) {
		struct sh_sge piece = {.addr = sge[i].addr + skip, .key = sge[i].key};
		uint64_t part;
		uint32_t c;
		int err;

		if (skip >= sge[i].len) {
			skip -= sge[i].len;
			continue;
		}
		part = sge[i].len - skip;
		if (part > len)
			part = len;
		piece.len = (uint32_t)part;
		if (n == max)
			return -EPERM;
		err = sh_mr_locate(dev, hca, pdn, access, &piece, &seg[n], &c);
		if (err)
			return err;
		if (n++ && c != owner)
			return -EPERM;
		owner = c;
		skip = 0;
		len -= part;
	}
	if (len)
		return -EMSGSIZE;
	*ctx = owner;
	return (int)n;
}
