/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Rules of packet faults as they lie in device memory. The daemon alone sets them (kernel/faults.c);
 * transport/fault.h says what a packet meets.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_FAULT_RULE_H
#define SOFTHCA_DEVICE_MEMORY_FAULT_RULE_H

#include "layout.h"

#define SH_FAULT_MILLION   1000000u
#define SH_FAULT_DELAY_MAX UINT64_C(60000000000)
#define SH_FAULT_ANY	   UINT32_MAX /* a host or QP that a rule does not name */

/*
 * The packets that a rule is about, as one word, so that a reader never sees half of a change.
 *
 *	BITS	OF scope
 *	0-1	kind
 *	2-10	the sending host + 1, 0 = any
 *	11-19	the receiving host + 1, 0 = any
 *	20-44	QPN of the QP at either end + 1, 0 = any
 *	63	the rule is in use
 */
#define SH_FAULT_USED (UINT64_C(1) << 63)

struct sh_fault_scope {
	uint32_t kind, from, to, qpn; /* SH_FAULT_ANY: not named */
};

static inline uint64_t sh_fault_pack(const struct sh_fault_scope *s)
{
	return SH_FAULT_USED | (s->kind & 3) | (uint64_t)((s->from + 1) & 0x1ff) << 2 |
	       (uint64_t)((s->to + 1) & 0x1ff) << 11 | (uint64_t)((s->qpn + 1) & 0x1ffffff) << 20;
}

static inline struct sh_fault_scope sh_fault_unpack(uint64_t word)
{
	return (struct sh_fault_scope){
		.kind = word & 3,
		.from = (uint32_t)(word >> 2 & 0x1ff) - 1,
		.to = (uint32_t)(word >> 11 & 0x1ff) - 1,
		.qpn = (uint32_t)(word >> 20 & 0x1ffffff) - 1,
	};
}
_Static_assert(SH_FAULT_KINDS <= 4, "two bits for the kind");
_Static_assert(SH_MAX_HCAS < 0x1ff, "nine bits for a host");

#endif
