#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: everything compiles free of warnings with clang too, and the unit and ABI tests pass as it compiles them.
. "$top_srcdir/tests/full/lib.sh"
# The long ones ran in the ordinary build.
export TIER=quick

dir=$top_builddir/full-clang
rm -rf "$dir"
ok "everything compiles with clang, warnings being errors" \
	"$top_srcdir/scripts/build" "$dir" CC=clang CFLAGS="-g -O2 -Werror"
for tests in tests/unit tests/abi libmlx4 librdmacm; do
	check "$dir/$tests"
done
finish
