#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: X queues, which are three XRC SRQs for each rank: xrc_queues.c.
. "$srcdir/xrc_ranks.sh" || exit 1

layout() { picture 1 'whole(3)'; }
across xrc_queues 4 2 2 2
finish
