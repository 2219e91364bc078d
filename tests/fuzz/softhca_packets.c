// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fuzz target: packets, as an InfiniBand link, a raw socket and a UDP socket bring them. The first
 * byte of an input says which; the rest is the packet. What counts as decoded must lie within the
 * input, and must encode to a packet that decodes to the same values.
 */
#include <stdlib.h>
#include <string.h>

#include "softhca/packet/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void again(struct sh_frame *f)
{
	static uint8_t out[1 << 17];
	const struct sh_frame was = *f;
	long n = sh_frame_encode(f, out, sizeof(out));
	struct sh_frame back;

	/* A link's length field is shorter than that of an input can be. */
	if (n < 0)
		return;
	check(!sh_frame_decode((enum sh_link)f->link, out, (size_t)n, &back));
	check(back.bth.opcode == was.bth.opcode && back.bth.psn == was.bth.psn &&
	      back.bth.qpn == was.bth.qpn && back.bth.pad == (-was.len & 3) && back.len == was.len);
	check(!memcmp(&back.ext, &was.ext, sizeof(was.ext)));
	check(!was.len || !memcmp(back.payload, was.payload, was.len));
	check(back.icrc == f->icrc && back.vcrc == (f->link == SH_LINK_IB ? f->vcrc : 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sh_frame f;
	int err;

	if (!size)
		return 0;
	switch (data[0] % 3) {
	case 0:
		err = sh_frame_decode(SH_LINK_IB, data + 1, size - 1, &f);
		break;
	case 1:
		err = sh_frame_decode(SH_LINK_IP, data + 1, size - 1, &f);
		break;
	default:
		memset(&f, 0, sizeof(f));
		f.link = SH_LINK_IP;
		f.version = 6;
		err = sh_transport_decode(data + 1, size - 1, &f);
	}
	if (err)
		return 0;
	check(!f.len || (f.payload > data && f.payload + f.len <= data + size));
	again(&f);
	return 0;
}
