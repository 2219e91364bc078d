#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: two ranks to a supernode, requests and replies with credits: xrc_supernodes.c.
. "$srcdir/xrc_ranks.sh" || exit 1

layout() {
	# Each two ranks have a domain. Since each credit has its receive, no request has met an
	# empty SRQ.
	picture 1 'alive and all(hcas;
		(.xrc_domains | length == $local / 2 and all(.[]; .opens == 2 and
			(.receive_qps | length == total - 2) and
			([.receive_qps[].registrations[]] | length == 2 * (total - 2)))) and
		(sends | length == $local * (total / 2 - 1)) and
		(.srqs | length == 2 * $local) and
		.counters.rnr_naks_sent == 0)'
}
across xrc_supernodes 4 4 2 2
finish
