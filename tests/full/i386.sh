#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the libraries and tools compile for i386 free of warnings, their unit and ABI tests pass there, and
# configure leaves softhca out and says why, or refuses to when it is asked for.
. "$top_srcdir/tests/full/lib.sh" || exit 1
. "$top_srcdir/tests/full/foreign.sh" || exit 1
export TIER=quick

dir=$top_builddir/full-i386
foreign i386

softhca_is_left_out() {
	grep 'softhca: left out, since it knows the processors x86-64 and arm64' "$dir/config.log" &&
		[ ! -e "$dir/softhca/cli/softhca" ]
}

softhca_is_refused() {
	! FOREIGN_ANSWERS=$dir foreign_build "$dir/refused" --enable-softhca &&
		grep 'softhca cannot be built: it knows the processors' "$dir/refused/build.out"
}

# The compiler may have built for the machine it runs on.
is_32_bits() {
	for file in libibverbs/.libs/libibverbs.so.1 libmlx4/.libs/libmlx4-rdmav2.so librdmacm/.libs/librdmacm.so.1 \
		examples/.libs/ibv_rc_pingpong librdmacm/.libs/rping; do
		readelf -h "$dir/$file" | grep 'Class: *ELF32' || return
	done
}

ok "the libraries and tools compile for i386, warnings being errors" foreign_build "$dir"
ok "they are 32-bit programs" is_32_bits
ok "configure says that softhca is left out, and why" softhca_is_left_out
ok "configure refuses --enable-softhca" softhca_is_refused
foreign_check "$dir"
finish
