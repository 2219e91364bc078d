#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the ranks of a node share receive QPs and leave them one after the other:
# xrc_sharing.c.
. "$srcdir/xrc_ranks.sh" || exit 1

layout() {
	# Each node has one rank left, which is registered with a receive QP for each other rank
	# that there was.
	picture 1 'whole(1)' && picture 2 'alive and all(hcas; .xrc_domains[0].opens == 1 and
		(.srqs | length == 1) and (sends | length == $hosts) and
		(receives | length == total - 1 and all(.[].registrations; length == 1)))'
}
across xrc_sharing 3 3 2 2
finish
