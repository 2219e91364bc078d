#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: RDMA to receive QPs whose receiver polls memory; immediate data, READs and atomics:
# xrc_eager.c.
. "$srcdir/xrc_ranks.sh" || exit 1

layout() { picture 1 'whole(1)'; }
across xrc_eager 3 2 2 2
finish
