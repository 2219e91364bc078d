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
	SH_PLACED_BUSY = -3,	  /* a lock is not to be had now (SH_BUSY) */
};

/*
 * Around what the daemon places in memory of a context, and around how it looks up where: the
 * process may be exchanging pages, and the daemon does not wait for it (host.h, reach()). False: it
 * is, and nothing is to be placed there. Calls nest. A client's copies wait by themselves.
 */
static inline bool sh_place_begin(struct sh_dev *dev, uint32_t ctx)
{
	return dev->proc || !dev->ops->reach || dev->ops->reach(dev->host, ctx);
}

static inline void sh_place_end(struct sh_dev *dev)
{
	if (!dev->proc && dev->ops->reach_end)
		dev->ops->reach_end(dev->host);
}

/* What came of a copy to that context's memory. Returns what sh_place_at() returns. */
SH_INLINE int sh_placed(const struct sh_dev *dev, uint32_t ctx, enum sh_copy err)
{
	if (!err)
		return SH_PLACED;
	if (err == SH_COPY_SRC)
		return SH_PLACED_NO_SOURCE;
	return err == SH_COPY_DST && sh_ctx_live(dev, ctx) ? MLX4_SYNDROME_LOC_PROT
							   : SH_PLACED_LOST;
}

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
	sh_rearm();
	return sh_placed(dev, ctx, err);
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

/*
 * The same, for a change that must not be done twice: leaves the last of it for the commit
 * (life.h), or all of it. If this fails, there is nothing to commit. data stays valid until then.
 */
SH_INLINE int sh_place_most(struct sh_dev *dev, struct sh_hca *hca, uint32_t pdn, uint32_t access,
			    const struct sh_sge *at, const struct sh_payload *data,
			    struct sh_last *last)
{
	struct sh_seg seg;
	uint32_t ctx;

	last->size = 0;
	last->ctx = 0;
	if (!at->len)
		return SH_PLACED;
	if (sh_mr_locate(dev, hca, pdn, access, at, &seg, &ctx))
		return MLX4_SYNDROME_LOC_PROT;
	if (data->nseg == 1 && sh_copy_most(dev, &seg, data->ctx, data->seg, data->len, last))
		return SH_PLACED;
	if (!data->len)
		return SH_PLACED;
	last->ctx = ctx;
	last->to = seg;
	last->from_ctx = data->ctx;
	last->from = data->seg;
	last->nfrom = data->nseg;
	last->len = data->len;
	return SH_PLACED;
}

/* The same as sh_place_at(), in a receive's list, from byte skip on. receive.c */
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
