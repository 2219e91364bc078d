#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: everything compiles free of warnings with clang too, and the unit tests of the device and of libmlx4 pass as it compiles what
# they test: it may order stores in another way than gcc.
. "$top_srcdir/tests/full/lib.sh" || exit 1
# The long ones ran in the ordinary build.
export TIER=quick

dir=$top_builddir/full-clang
rm -rf "$dir"
ok "everything compiles with clang, warnings being errors" \
	"$top_srcdir/scripts/build" "$dir" --disable-static CC=clang CFLAGS="-g1 -O2 -Werror"
for tests in libmlx4 tests/unit; do
	TEST_CFLAGS="-g1 -O0 -Werror" check "$dir/$tests"
done
finish
