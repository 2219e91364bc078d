/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Takes pages off the keys that lead to them, in place of a daemon that has been killed: nobody
 * else makes or removes keys then (mr.h).
 */
#ifndef SOFTHCA_DEVICE_MEMORY_REVOKE_H
#define SOFTHCA_DEVICE_MEMORY_REVOKE_H

#include "dev.h"

/* Where in device memory the HCA has its keys, and how many bytes of them. */
uint64_t sh_keys(uint32_t hca, uint64_t *len);
/*
 * Each key in [off, off + len) of device memory whose region begins in [from, to) of it means its
 * owner's own addresses again, like after sh_mr_share() with 0: threads may rely on the old state
 * until a grace that begins afterwards is over. Returns whether there was one.
 */
bool sh_keys_unshare(struct sh_dev *dev, uint32_t hca, uint64_t off, uint64_t len, uint64_t from,
		     uint64_t to);
/* Is any context of the instance open? A daemon that ends in order has closed all. */
bool sh_any_ctx_live(const struct sh_dev *dev);

#endif
