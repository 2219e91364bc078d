#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: unit, ABI and fuzz tests of everything, and the system tests with our libraries and tools, under ASan and
# UBSan, leaks included. The device that the system tests run on is the ordinary build's: a preloaded library cannot be
# sanitized.
. "$top_srcdir/tests/full/lib.sh"
# The long ones ran in the ordinary build.
export TIER=quick

dir=$top_builddir/full-sanitize
rm -rf "$dir"
flags="-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0"
export UBSAN_OPTIONS="print_stacktrace=1"
ok "everything compiles with sanitizers" \
	"$top_srcdir/scripts/build" "$dir" CFLAGS="$flags" LDFLAGS="-fsanitize=address,undefined"
for tests in tests/unit tests/abi tests/fuzz libmlx4 librdmacm; do
	check "$dir/$tests"
done
export SOFTHCA=$top_builddir/softhca/cli/softhca
# Those where our libraries and tools run; in the others they would be loaded by somebody else's program.
check "$dir/tests/system" TESTS="faults.sh hosts.sh pingpong_ours.sh port_events.sh"
# These fault on purpose, are killed, and end without tidying up: what they leave is theirs.
export ASAN_OPTIONS="detect_leaks=0:abort_on_error=0:handle_segv=0:handle_sigbus=0"
# Sanitized code takes several times as long, and these limits only end what hangs.
export TEST_SECONDS="${TEST_SECONDS:-150}" TEST_TIMEOUT="${TEST_TIMEOUT:-180}"
check "$dir/tests/verbs"
finish
