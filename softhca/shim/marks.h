/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory that has an attribute which an exchange of its pages would lose. */
#ifndef SOFTHCA_SHIM_MARKS_H
#define SOFTHCA_SHIM_MARKS_H

#include <stdbool.h>
#include <stdint.h>

/* Does madvise() give memory such an attribute by this? */
bool marks_is(int advice);
/* The program asks for an attribute. */
void marks_note(void);
bool marks_any(uint64_t start, uint64_t end);
/* Does the mapping that this address is in have a NUMA policy of its own? */
bool marks_policy(uint64_t addr);

#endif
