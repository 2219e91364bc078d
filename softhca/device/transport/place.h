/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Places payload in the receiver's memory: what a key must allow, how much room a receive's list
 * must have, and which side has failed if a copy fails. What nearly every message needs is inline.
 * Takes no lock. Runs between sh_enter() and sh_leave(), since it looks at keys.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_PLACE_H
#define SOFTHCA_DEVICE_TRANSPORT_PLACE_H

#include "mlx4-format.h"
#include "softhca/device/memory/copy.h"
#include "softhca/device/memory/mr.h"
#include "softhca/device/queues/sge.h"
#include "packet.h"

/* What came of a payload. A value > 0 is the syndrome of an error at the receiver. */
enum sh_placed {
	SH_PLACED = 0,
	SH_PLACED_NO_SOURCE = -1, /* the sender's memory is not there */
	SH_PLACED_LOST = -2,	  /* an address space ended meanwhile: the packet is lost */
};

/*
 * Copies to segments that a key has just been found to allow. Returns what sh_place_at() returns.
 */
SH_INLINE int sh_copy_to(struct sh_dev *dev, uint32_t ctx, const struct sh_seg *seg,
			 unsigned int nseg, const struct sh_payload *data)
{
	enum sh_copy err;

	if (nseg == 1 && data->nseg == 1 && sh_copy_one(dev, seg, data->ctx, data->seg, data->len))
		return SH_PLACED;
	err = dev->ops->copy(dev->host, ctx, seg, nseg, data->ctx, data->seg, data->nseg,
			     data->len);
	if (!err)
		return SH_PLACED;
	if (err == SH_COPY_SRC)
		return SH_PLACED_NO_SOURCE;
	return err == SH_COPY_DST && sh_ctx_live(dev, ctx) ? MLX4_SYNDROME_LOC_PROT
							   : SH_PLACED_LOST;
}

/*
 * Places data at the beginning of one piece of memory. The key must allow the whole piece, even if
 * there is less data. Returns enum sh_placed, or a syndrome.
 */
SH_INLINE int sh_place_at(struct sh_dev *dev, struct sh_hca *hca, uint32_t pdn, uint32_t access,
			  const struct sh_sge *at, const struct sh_payload *data)
{
	struct sh_seg seg;
	uint32_t ctx;

	if (!at->len)
		return SH_PLACED;
	if (sh_mr_locate(dev, hca, pdn, access, at, &seg, &ctx))
		return MLX4_SYNDROME_LOC_PROT;
	return sh_copy_to(dev, ctx, &seg, 1, data);
}

/* The same, in a receive's list, from byte skip on. receive.c */
int sh_place_list(struct sh_dev *dev, struct sh_hca *hca, uint32_t pdn, const struct sh_sge *sge,
		  unsigned int n, uint64_t skip, const struct sh_payload *data);

/*
 * Does the first entry of a list have room for len bytes, as nearly always? Then sh_place_at() with
 * these bytes of the entry does what sh_place_list() does.
 */
static inline bool sh_sge_has_room(const struct sh_sge *sge, uint64_t len)
{
	return sge->len >= len && !sh_sge_ends(sge);
}

#endif
