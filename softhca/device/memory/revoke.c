// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See revoke.h. The caller knows which parts of a table of keys have pages: elsewhere a look would
 * make the kernel allocate them. Each key is one store, so a client may be killed anywhere here.
 */
#include "revoke.h"
#include "tables.h"

uint64_t sh_keys(uint32_t hca, uint64_t *len)
{
	*len = sizeof(struct sh_mpt) << SH_LOG_MPTS;
	return SH_HCA_OFF + hca * SH_HCA_SPAN + SH_HCA_MPTS;
}

bool sh_keys_unshare(struct sh_dev *dev, uint32_t hca, uint64_t off, uint64_t len, uint64_t from,
		     uint64_t to)
{
	struct sh_mpt *table = sh_hca_table(dev, hca, SH_HCA_MPTS);
	uint64_t all, begin = sh_keys(hca, &all);
	bool found = false;

	if (!table || off < begin || off - begin > all || len > all - (off - begin))
		return false;
	off -= begin;
	/* An entry may lie across the end of a page. */
	for (uint64_t i = off / sizeof(*table); i * sizeof(*table) < off + len; i++) {
		uint64_t shared = __atomic_load_n(&table[i].shared, __ATOMIC_SEQ_CST);

		if (!shared || shared < from || shared >= to)
			continue;
		/* pairs with the load in sh_mpt_home() */
		__atomic_store_n(&table[i].shared, 0, __ATOMIC_SEQ_CST);
		found = true;
	}
	return found;
}

bool sh_any_ctx_live(const struct sh_dev *dev)
{
	for (uint32_t i = 1; i < SH_MAX_CTX; i++)
		if (sh_ctx_live(dev, i))
			return true;
	return false;
}
