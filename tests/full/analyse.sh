#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: clang's static analyser finds nothing in the libraries, the tools and softhca.
. "$top_srcdir/tests/full/lib.sh"

ok "the static analyser finds nothing" "$top_srcdir/scripts/style" "$top_builddir" analyse
finish
