/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Faults of CM messages: which of them are lost. Those inside the instance never leave the daemon,
 * so the rules of packets (softhca/device/transport/fault.h) do not concern them.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_FAULT_H
#define SOFTHCA_KERNEL_RDMACM_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/device/memory/layout.h"

struct out;
struct rdmacm;
struct sh_fault_msg;
struct sh_status;

#define CM_FAULTS 16

struct cm_faults {
	struct sh_fault_rule rule[CM_FAULTS]; /* delay_ns is not used */
};

/*
 * Operations of the room (softhca/kernel/room.h). own_seed: of a rule that the message gives no
 * seed.
 */
bool cm_fault_set(struct rdmacm *cm, const struct sh_fault_msg *m, uint32_t own_seed,
		  unsigned int *ended, struct sh_status *st);
void cm_fault_show(struct rdmacm *cm, struct out *o);

/* Is a message from one host to another lost? Each rule makes its choice. */
bool cm_fault_hits(struct rdmacm *cm, uint32_t from, uint32_t to);

#endif
