/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Rules of faults, as the softhca command sets them.
 */
#ifndef SOFTHCA_KERNEL_FAULTS_H
#define SOFTHCA_KERNEL_FAULTS_H

#include "softhca/protocol.h"

struct kernel;
struct out;
struct sh_fault_rule;

void fault_set(struct kernel *k, const struct sh_fault_msg *m, struct sh_status *st);
/* As commands and `show` call a kind of enum sh_fault_kind. */
const char *fault_name(uint32_t kind);
/* An element of the array of faults, unless the rule was never used. */
void fault_show(struct kernel *k, const struct sh_fault_rule *rule, const char *name,
		struct out *o);

#endif
