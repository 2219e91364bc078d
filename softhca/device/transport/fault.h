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
/* The way of a packet. SH_FAULT_ANY: there is no such host or QP, or there are many. */
struct sh_way {
	uint32_t from, to;
	uint32_t src_qpn, dst_qpn;
};

/*
 * What becomes of a packet: a kind of fault, or SH_FAULT_KINDS: no fault. *delay_ns: for how long
 * SH_FAULT_DELAY holds the packet back. Called only while a rule is set.
 */
uint32_t sh_fate(struct sh_dev *dev, const struct sh_way *way, uint64_t *delay_ns);

/*
 * The next choice of a rule with that scope, below SH_FAULT_MILLION: it is hit if that is below its
 * rate.
 */
uint32_t sh_fault_draw(struct sh_fault_rule *rule, uint64_t scope);

/*
 * Sets the one word that senders look at, by whether any rule is set. Called after each change of a
 * rule.
 */
void sh_faults_settle(struct sh_faults *f);

#endif
