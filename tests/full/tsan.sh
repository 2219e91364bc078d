#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: programs with threads on our libraries, under ThreadSanitizer. What goes through the device is ordered by
# the provider's barriers, which tell ThreadSanitizer so. The device is the ordinary build's: its memory is mapped by
# several processes, each in several places, of which ThreadSanitizer knows nothing.
. "$top_srcdir/tests/full/lib.sh"
export TIER=quick

dir=$top_builddir/full-tsan
rm -rf "$dir"
flags="-g -O1 -fno-omit-frame-pointer -fsanitize=thread"
# Children of the programs start threads, too.
export TSAN_OPTIONS="die_after_fork=0:exitcode=66"
ok "everything compiles with ThreadSanitizer" "$top_srcdir/scripts/build" "$dir" CFLAGS="$flags" LDFLAGS="-fsanitize=thread"

# some DIRECTORY TEST...
some() {
	make -C "$dir/$1" -k check TESTS="${*:2}" >"$dir/$1/check.out" 2>&1
	results "$dir/$1"
}
# There the test is the device, and reads records while they are written.
echo race:field_get >"$dir/device.supp"
TSAN_OPTIONS="$TSAN_OPTIONS:suppressions=$dir/device.supp" some libmlx4/tests threads
some tests/unit libibverbs_xrc libibverbs_events
export SOFTHCA=$top_builddir/softhca/cli/softhca
some tests/verbs threads comp_events xrc_events xrc_lifetime xrc_race xrc_rcv_qp xrc_share
finish
