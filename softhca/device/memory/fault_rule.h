/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Rules of packet faults as they lie in device memory. The daemon alone sets them
 * (kernel/faults.c); transport/fault.h says what a packet meets.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_FAULT_RULE_H
#define SOFTHCA_DEVICE_MEMORY_FAULT_RULE_H

#include <stdbool.h>

#include "layout.h"

#define SH_FAULT_MILLION   1000000u
#define SH_FAULT_DELAY_MAX UINT64_C(60000000000)
#define SH_FAULT_ANY	   UINT32_MAX /* a host or QP that a rule does not name */

/*
 * The packets that a rule is about, as one word, so that a reader never sees half of a change.
 *
 *	BITS	OF scope
 *	0-1	kind, its lower bits
 *	2-10	the sending host + 1, 0 = any; or the lower bits of a LID
 *	11-19	the receiving host + 1, 0 = any; or the lower bits of a LID
 *	20-44	QPN of the QP at either end + 1, 0 = any
 *	45	kind, its highest bit
 *	46, 47	the sender is in another instance; the highest bit of its LID
 *	48, 49	the receiver is in another instance; the highest bit of its LID
 *	63	the rule is in use
 */
#define SH_FAULT_USED (UINT64_C(1) << 63)
/* An end of a link that is another instance's port on the wire: | its LID, which has ten bits. */
#define SH_FAULT_FAR 0x10000u

struct sh_fault_scope {
	uint32_t kind, from, to, qpn; /* SH_FAULT_ANY: not named */
};

static inline bool sh_fault_is_far(uint32_t end)
{
	return end != SH_FAULT_ANY && end & SH_FAULT_FAR;
}

static inline uint64_t sh_fault_pack_end(uint32_t end, unsigned int at, unsigned int far)
{
	if (!sh_fault_is_far(end))
		return (uint64_t)((end + 1) & 0x1ff) << at;
	return (uint64_t)(end & 0x1ff) << at | (uint64_t)(1 | (end >> 9 & 1) << 1) << far;
}

static inline uint32_t sh_fault_unpack_end(uint64_t word, unsigned int at, unsigned int far)
{
	uint32_t low = (uint32_t)(word >> at & 0x1ff);

	return word >> far & 1 ? SH_FAULT_FAR | (uint32_t)(word >> (far + 1) & 1) << 9 | low
			       : low - 1;
}

static inline uint64_t sh_fault_pack(const struct sh_fault_scope *s)
{
	return SH_FAULT_USED | (s->kind & 3) | (uint64_t)(s->kind >> 2 & 1) << 45 |
	       sh_fault_pack_end(s->from, 2, 46) | sh_fault_pack_end(s->to, 11, 48) |
	       (uint64_t)((s->qpn + 1) & 0x1ffffff) << 20;
}

static inline struct sh_fault_scope sh_fault_unpack(uint64_t word)
{
	return (struct sh_fault_scope){
		.kind = (uint32_t)(word & 3) | (uint32_t)(word >> 45 & 1) << 2,
		.from = sh_fault_unpack_end(word, 2, 46),
		.to = sh_fault_unpack_end(word, 11, 48),
		.qpn = (uint32_t)(word >> 20 & 0x1ffffff) - 1,
	};
}
_Static_assert(SH_FAULT_KINDS <= 8, "three bits for the kind");
_Static_assert(SH_MAX_LIDS <= 1024, "ten bits for a LID");
_Static_assert(SH_MAX_HCAS < 0x1ff, "nine bits for a host");

#endif
