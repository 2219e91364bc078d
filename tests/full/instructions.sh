#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: bench/check_instructions.sh: what a message costs when nothing of a wire or a capture has to do with it.
export SOFTHCA="$top_builddir/softhca/cli/softhca" BENCH="$top_builddir/bench" srcdir="$top_srcdir/tests/system"
exec bash "$top_srcdir/bench/check_instructions.sh"
