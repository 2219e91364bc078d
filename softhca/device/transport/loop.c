// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See loop.h. Holds no lock. */
#include <string.h>

#include "loop.h"
#include "wire.h"

/* What a link, or the sender's end, knows of a packet beside the bytes behind its IP header. */
static void put_back(struct sh_packet *to, const struct sh_packet *from)
{
	to->sl = from->sl;
	to->slid = from->slid;
	to->dlid = from->dlid;
	to->src_port = from->src_port;
	to->src_hca = from->src_hca;
	to->src_gen = from->src_gen;
	to->npackets = 1;
	to->mtu = from->mtu;
	/* In the packet itself with UD alone. */
	if (to->service != SH_SVC_UD)
		to->srcqp = from->srcqp;
	to->flags |= from->flags & (SH_PKT_GRH | SH_PKT_TOLD);
	to->retries = from->retries;
	if (from->flags & SH_PKT_GRH)
		to->grh = from->grh;
}

/* Threads may have small stacks: the payload is where the packet is to be. */
static long encode(struct sh_dev *dev, const struct sh_packet *p, bool spoilt,
		   unsigned char bytes[SH_LOOP_BYTES], enum sh_copy *err)
{
	const struct sh_seg to = {(uintptr_t)bytes + SH_LOOP_HEAD, p->payload.len};

	*err = SH_COPY_OK;
	if (p->payload.len > SH_LOOP_PAYLOAD)
		return -EINVAL;
	if (p->payload.len)
		*err = dev->ops->copy(dev->host, 0, &to, 1, p->payload.ctx, p->payload.seg,
				      p->payload.nseg, p->payload.len);
	return *err ? 0 : dev->loop->encode(p, spoilt, bytes);
}

enum sh_loop sh_loop(struct sh_dev *dev, const struct sh_packet *p, bool spoilt,
		     struct sh_looped *l)
{
	enum sh_copy err;
	long n = encode(dev, p, spoilt, l->bytes, &err);

	if (err)
		return err == SH_COPY_SRC ? SH_LOOP_NO_SOURCE : SH_LOOP_LOST;
	if (n < 0) {
		SH_COUNT_WIRE(dev, unsent, 1);
		return SH_LOOP_LOST;
	}
	SH_COUNT_WIRE(dev, sent, 1);
	switch (dev->loop->decode(l->bytes, n, p->slid, p->dlid, &l->p, &l->seg)) {
	case 0:
		SH_COUNT_WIRE(dev, received, 1);
		put_back(&l->p, p);
		return SH_LOOP_READ;
	case -EILSEQ:
		SH_COUNT_WIRE(dev, bad_icrc, 1);
		return SH_LOOP_BAD_ICRC;
	default:
		SH_COUNT_WIRE(dev, malformed, 1);
		return SH_LOOP_LOST;
	}
}
