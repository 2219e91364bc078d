#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: a rank is stopped, continued and killed. Each rank has one SRQ and one CQ for all
# others: xrc_stopped.c.
. "$srcdir/xrc_ranks.sh" || exit 1

layout() {
	# In the end the last rank is gone. The registrations with its QPs are still there.
	picture 1 'whole(1)' && picture 2 'alive and ([hcas.contexts[]] | length == total - 1) and
		([hcas.srqs[]] | length == total - 1) and
		([hcas | registrations[]] | length == (total - 1) * (total - 1))'
}
across xrc_stopped 3 2 2 2
finish
