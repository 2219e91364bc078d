#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: everything compiles for arm64 free of warnings, softhca with kick alone, and the unit and ABI tests of the
# libraries pass there, in qemu-user. Its processor orders stores as this machine's does, so nothing here tests memory order.
. "$top_srcdir/tests/full/lib.sh" || exit 1
. "$top_srcdir/tests/full/foreign.sh" || exit 1
export TIER=quick

dir=$top_builddir/full-arm64
foreign arm64
rm -rf "$dir"

softhca_has_kick() {
	grep 'softhca: built, with kick; trap is for x86-64' "$dir/build.out" &&
		readelf -h "$dir/softhca/cli/softhca" | grep 'Machine: *AArch64'
}

ok "everything compiles for arm64, warnings being errors" foreign_build "$dir" --enable-softhca
ok "softhca is built, with kick" softhca_has_kick
foreign_check "$dir"
finish
