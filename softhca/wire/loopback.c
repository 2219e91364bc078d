// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See loopback.h. Pure functions. The preloaded library has them, too, and computes the CRC itself,
 * so that no further library is loaded into programs.
 */
#include <errno.h>

#include "softhca/device/transport/loop.h"
#include "loopback.h"
#include "roce.h"

_Static_assert(SH_LOOP_HEAD >= SH_FRAME_HEAD, "room for its headers");
_Static_assert(SH_LOOP_BYTES >= SH_ROCE_BYTES, "room for a packet");

/* A LID stands for an address of a network that leaves no machine. */
#define NETWORK (UINT32_C(127) << 24)

static struct sh_roce_way way_of(uint16_t slid, uint16_t dlid)
{
	return (struct sh_roce_way){.from = sh_ip4(NETWORK | slid),
				    .to = sh_ip4(NETWORK | dlid),
				    .sport = SH_ROCE_PORT};
}

static long encode(const struct sh_packet *p, bool spoilt, unsigned char bytes[SH_LOOP_BYTES])
{
	const struct sh_roce_way way = way_of(p->slid, p->dlid);
	long n = sh_roce_encode(p, bytes + SH_LOOP_HEAD, &way, bytes);

	if (n > 0 && spoilt)
		sh_roce_spoil(bytes, n, (uint32_t)p->payload.len);
	return n;
}

/* The receiver has the bytes that a socket would have: those behind the headers of IP and UDP. */
static int decode(unsigned char bytes[SH_LOOP_BYTES], long n, uint16_t slid, uint16_t dlid,
		  struct sh_packet *p, struct sh_seg *seg)
{
	const struct sh_roce_way way = way_of(slid, dlid);

	if (n < (long)SH_ROCE_HEAD)
		return -EBADMSG;
	switch (sh_roce_decode(bytes, (size_t)n - SH_ROCE_HEAD, &way, p, seg)) {
	case SH_ROCE_OK:
		return 0;
	case SH_ROCE_GUESSED: /* another identification than ours */
	case SH_ROCE_BAD_ICRC:
		return -EILSEQ;
	default:
		return -EBADMSG;
	}
}

static const struct sh_loop_ops ops = {.encode = encode, .decode = decode};

void sh_loopback_begin(struct sh_dev *dev)
{
	if (__atomic_load_n(&dev->inst->faults.active, __ATOMIC_RELAXED) & SH_ACTIVE_LOOPBACK)
		dev->loop = &ops;
}
