/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a packet meets under the rules of memory/fault_rule.h, which the daemon alone sets. Senders
 * follow them, and count. No lock: see sh_fate().
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_FAULT_H
#define SOFTHCA_DEVICE_TRANSPORT_FAULT_H

#include <stdbool.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/fault_rule.h"
/* A packet's way. A host or QP that is not there, or of which there are many, is SH_FAULT_ANY. */
struct sh_way {
	uint32_t from, to;
	uint32_t src_qpn, dst_qpn;
};

/*
 * What becomes of a packet: a kind of fault, or SH_FAULT_KINDS for none. *delay_ns says for how
 * long SH_FAULT_DELAY holds it. For when faults are active.
 */
uint32_t sh_fate(struct sh_dev *dev, const struct sh_way *way, uint64_t *delay_ns);

/* Whether any rule is set, for the one word that senders look at. After each change of a rule. */
void sh_faults_settle(struct sh_faults *f);

#endif
