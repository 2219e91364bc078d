// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: a program of the current ABI runs, built with just <infiniband/verbs.h> and
 * -libverbs.
 */
#include <infiniband/verbs.h>

#include "prog.h"
