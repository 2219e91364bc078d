#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: programs with threads on our libraries, under ThreadSanitizer. What goes through the device is ordered by
# the provider's barriers, which tell ThreadSanitizer so. The device is the ordinary build's: its memory is mapped by
# several processes, each in several places, of which ThreadSanitizer knows nothing.
. "$top_srcdir/tests/full/lib.sh" || exit 1
export TIER=quick

dir=$top_builddir/full-tsan
rm -rf "$dir"
flags="-g1 -O1 -fno-omit-frame-pointer -fsanitize=thread"
# Children of the programs start threads, too.
export TSAN_OPTIONS="die_after_fork=0:exitcode=66"
ok "the libraries compile with ThreadSanitizer" env BUILD_FOLDERS="libibverbs libmlx4" "$top_srcdir/scripts/build" "$dir" --disable-static --disable-softhca CFLAGS="$flags" \
	LDFLAGS="-fsanitize=thread"

# some DIRECTORY TEST...: no other program is compiled.
some() {
	check "$dir/$1" TESTS="${*:2}" check_PROGRAMS="${*:2}"
}
# There the test is the device, and reads records while they are written.
echo race:field_get >"$dir/device.supp"
TSAN_OPTIONS="$TSAN_OPTIONS:suppressions=$dir/device.supp" some libmlx4/tests threads
some tests/unit libibverbs_xrc libibverbs_events
export SOFTHCA=$top_builddir/softhca/cli/softhca
# It does not see, either, by what the device hands the stack for its commands and decoder from one thread to the next.
printf 'race:%s\n' Zydis libsofthca-shim >"$dir/shim.supp"
export TSAN_OPTIONS="$TSAN_OPTIONS:suppressions=$dir/shim.supp"
some tests/verbs threads
# A trap is a fault to ThreadSanitizer, which one program shows; the libraries do the same in both ways.
WAYS=kick some tests/verbs comp_events xrc_events xrc_lifetime xrc_race xrc_rcv_qp xrc_share
finish
