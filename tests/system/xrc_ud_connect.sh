#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: ranks ask for connections by datagrams, some of which are lost and some of which
# arrive twice: xrc_ud_connect.c.
. "$srcdir/xrc_ranks.sh" || exit 1

layout() {
	picture 1 'whole(2) and all(hcas; [.qps[] | select(.type == "UD")] | length == $local)'
}
across xrc_ud_connect 4 2 2 2
finish
