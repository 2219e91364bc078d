/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Performance management: the counters of ports, for perfquery and its like.
 */
#ifndef SOFTHCA_KERNEL_UMAD_PERF_H
#define SOFTHCA_KERNEL_UMAD_PERF_H

#include "fabric.h"

/* A Get or Set: the status of the answer, which is in place. */
int perf_answer(struct umad *u, const struct mad_node *n, uint8_t *mad);

#endif
