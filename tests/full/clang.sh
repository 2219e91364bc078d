#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: everything compiles free of warnings with clang too, and the unit tests pass as it compiles them: it may order the
# device's stores in another way than gcc. builds.sh runs the tests of ABI, libmlx4 and librdmacm with a clang.
. "$top_srcdir/tests/full/lib.sh" || exit 1
# The long ones ran in the ordinary build.
export TIER=quick

dir=$top_builddir/full-clang
rm -rf "$dir"
ok "everything compiles with clang, warnings being errors" \
	"$top_srcdir/scripts/build" "$dir" --disable-static CC=clang CFLAGS="-g -O2 -Werror"
check "$dir/tests/unit"
finish
