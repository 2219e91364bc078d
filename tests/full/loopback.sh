#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the programs of tests/verbs, and scripts of tests/system, in instances in which each packet becomes bytes of RoCEv2, is
# checked and read again (softhca start --wire-loopback). With kick: how doorbells come makes no difference to packets. With ROWS=all,
# which scripts/test long sets, the scripts run all that they have.
. "$top_srcdir/tests/full/lib.sh" || exit 1

# What cannot hold. A thread that carries a packet there holds what others wait for, as while faults are set; so tests that stop or
# kill senders at each of their steps, and have others go on, do not pass;
# and the bytes of a packet are on the stack of the thread that sends, which may be small.
without='raising small_stack stopped_commands'
# Whole programs that send: services, hosts, faults, ports that go down, XRC as its libraries use it, connections by address, rsockets,
# management datagrams, Debian's tools.
scripts='cm_many.sh cm_steps.sh completion.sh counters.sh faults.sh hosts.sh perftest.sh pingpong_debian.sh pingpong_ours.sh port_events.sh
	rdmacm.sh rsockets.sh umad.sh xrc_by_address.sh xrc_eager.sh xrc_queues.sh xrc_sharing.sh xrc_stopped.sh xrc_supernodes.sh xrc_ud_connect.sh'

dir=$top_builddir/full-loopback
rm -rf "$dir"
mkdir -p "$dir"
programs=$(sed -n '/^PROGRAMS_C = /,/[^\\]$/p' "$top_srcdir/tests/verbs/Makefile.am" | sed 's,^PROGRAMS_C =,,; s,[\\],,')

# one NAME: runs it, with what it prints in a log of its own; its exit status is in NAME.status. A test that skips itself says why.
one() {
	case $1 in
	*.sh)	srcdir=$top_srcdir/tests/system bash "$top_srcdir/tests/system/$1" ;;
	*)	bash "$top_srcdir/tests/verbs/run-matrix" "$top_builddir/tests/verbs/$1" ;;
	esac >"$dir/$1.log" 2>&1
	echo $? >"$dir/$1.status"
}
passed() { [ "$(cat "$dir/$1.status")" -eq 0 ] || { cat "$dir/$1.log"; return 1; }; }

export -f one
export dir SOFTHCA_WIRE_LOOPBACK=1 WAYS=kick TIER=quick TEST_TIMEOUT="${TEST_TIMEOUT:-1200}"
export SOFTHCA="${SOFTHCA:-$top_builddir/softhca/cli/softhca}" TOOLS="$top_builddir/examples" PROGRAMS="$top_builddir/tests/system"
export OURS="$top_builddir/libibverbs/.libs:$top_builddir/libmlx4/.libs" CC="${CC:-cc}"
ok "the programs are there" make -C "$top_builddir/tests/verbs" check TESTS=
ok "those of the scripts, too" make -C "$top_builddir/tests/system" check TESTS=
# shellcheck disable=SC2086 # words
tests=$(printf '%s\n' $programs $scripts | grep -vxF "$(printf '%s\n' $without)")
printf '%s\n' "$tests" | xargs -P "$(nproc)" -I NAME bash -c 'one NAME'
for name in $tests; do
	ok "$name" passed "$name"
done
finish
