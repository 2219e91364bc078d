/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Rules of packet faults, as the softhca command sets them.
 */
#ifndef SOFTHCA_KERNEL_FAULTS_H
#define SOFTHCA_KERNEL_FAULTS_H

#include "softhca/protocol.h"

struct kernel;

void fault_set(struct kernel *k, const struct sh_fault_msg *m, struct sh_status *st);

#endif
