#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the three libraries compile with link-time optimization, as distributions build their packages; libibverbs and
# librdmacm export what they do without, and a device opens.
. "$top_srcdir/tests/full/lib.sh" || exit 1

dir=$top_builddir/full-lto
rm -rf "$dir"

compile() {
	"$top_srcdir/scripts/build" "$dir" --disable-static --disable-softhca CFLAGS="-O2 -flto=1 -Werror" || return
	# Or the compiler has not understood the flag.
	grep -q -- -flto "$dir/config.log"
}

device_opens() {
	"$top_builddir/softhca/cli/softhca" run -- env LD_LIBRARY_PATH="$dir/libibverbs/.libs:$dir/libmlx4/.libs" \
		RDMAV_DRIVERS=mlx4 "$top_builddir/examples/.libs/ibv_devinfo" | grep -q 'hca_id'
}

ok "libibverbs, libmlx4 and librdmacm compile" compile
ok "libibverbs exports its names and versions" \
	env top_builddir="$dir" srcdir="$top_srcdir/tests/abi" sh "$top_srcdir/tests/abi/symbols.sh"
ok "librdmacm exports its names and versions" \
	env top_builddir="$dir/librdmacm" srcdir="$top_srcdir/librdmacm/tests" sh "$top_srcdir/librdmacm/tests/symbols.sh"
[ ! -x "$top_builddir/softhca/cli/softhca" ] || ok "a device opens" device_opens
finish
