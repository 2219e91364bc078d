/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A packet of the tap, as bytes of its link and as a line for people. Pure functions.
 */
#ifndef SOFTHCA_CLI_TAPPED_H
#define SOFTHCA_CLI_TAPPED_H

#include "softhca/device/memory/tap.h"
#include "softhca/packet/frame.h"
#include "softhca/wire/address.h"

#define TAPPED_BYTES   (SH_FRAME_HEAD + SH_TAP_PAYLOAD + SH_FRAME_TAIL)
#define TAPPED_COLUMNS 100
#define TAPPED_NOTE    80

/* On the wire that is UDP over IP, else a link of InfiniBand. */
static inline bool tapped_is_roce(const struct sh_tapped *t)
{
	return t->wire == SH_TAPPED_IN || t->wire == SH_TAPPED_OUT;
}
/*
 * False: the record is damaged. The frame has no payload yet. wire: its addresses; NULL: the caller
 * needs no headers in front of the BTH.
 */
bool tapped_frame(const struct sh_tapped *t, const struct sh_wire_config *wire, struct sh_frame *f);
/*
 * The packet as it is on the link. Returns how many bytes of it are known: all (*n), or those up to
 * where its payload was cut off. 0: the record is damaged.
 */
size_t tapped_bytes(const struct sh_tapped *t, const struct sh_wire_config *wire,
		    const unsigned char *payload, unsigned char p[TAPPED_BYTES], size_t *n);
/* What a fault has done to it. NULL: nothing. */
const char *tapped_note(const struct sh_tapped *t, char note[TAPPED_NOTE]);
/*
 * One line without its end, which begins with the time; when: ns since 1970. False: the record is
 * damaged, and the line says so.
 */
bool tapped_line(const struct sh_tapped *t, uint64_t when, char line[TAPPED_COLUMNS + 1]);

#endif
