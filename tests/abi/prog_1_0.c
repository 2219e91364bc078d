// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a program of libibverbs 1.0 runs, with its structures, its inline verbs and symbol
 * version IBVERBS_1.0.
 */
#include "verbs_1_0.h"

#include "prog.h"
