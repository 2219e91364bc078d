#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: ranks are killed in the midst of traffic, and others take their places:
# xrc_recovery.c.
. "$srcdir/xrc_ranks.sh" || exit 1

layout() { picture 1 'whole(2)'; }
across xrc_recovery 3 3 2 2
finish
