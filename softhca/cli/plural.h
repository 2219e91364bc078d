/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What follows the name of things that are counted, in messages to people: "" of one, else "s". */
#ifndef SOFTHCA_CLI_PLURAL_H
#define SOFTHCA_CLI_PLURAL_H

#include <stdint.h>

static inline const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

#endif
