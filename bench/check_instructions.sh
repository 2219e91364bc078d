#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: an RC SEND of 8 bytes inside an instance executes not one instruction more because the instance has a wire, or because
# it has been captured. callgrind counts to the instruction, so numbers may be compared here, other than times.
# shellcheck source=tests/system/lib.sh
. "$srcdir/lib.sh" || exit 1
# shellcheck source=tests/system/wire_pair.sh
. "$srcdir/wire_pair.sh" || exit 1

needs "instructions of a message" "valgrind and jq" valgrind jq

# counted STATE INSTANCE: writes how many a post executes there, and in which functions of the device.
counted() {
	"$BENCH/device" --instance "$2" --calls '^post_send, RC SEND, 8 B$' --json "$tmp/json" >"$tmp/device.out" &&
		jq -e '.calls[0] | select(.instructions > 0)' "$tmp/json" >"$tmp/$1"
}
# As many as in the plain instance. A count is off now and then, by what an interrupted thread does again; one that is off three times in
# a row is what the message costs.
costs_nothing() {
	for try in 1 2 3; do
		echo "count $try"
		counted "$@" && diff "$tmp/plain" "$tmp/$1" && return
	done
	return 1
}
# While a capture runs it does cost something: so what is counted here is what a capture would slow down.
captured() {
	"$SOFTHCA" capture "$1" -w "$tmp/capture" 2>"$tmp/capture.err" &
	capture=$!
	until_true test -s "$tmp/capture" && counted captured "$1" || return 1
	kill -INT "$capture" && wait "$capture" && grep -q '^softhca: [1-9][0-9]* packets captured' "$tmp/capture.err" || return 1
	jq -e --slurpfile plain "$tmp/plain" '.instructions > $plain[0].instructions' "$tmp/captured"
}
ended() { "$SOFTHCA" stop plain && "$SOFTHCA" stop a && "$SOFTHCA" stop b && no_instance; }

ok "an instance" "$SOFTHCA" start plain
ok "two on a wire" two
ok "a SEND of 8 B is counted" counted plain plain
ok "the same number each time" costs_nothing again plain
ok "a wire costs it no instruction" costs_nothing wire a
for instance in plain a; do
	ok "instance $instance: with a capture it is more" captured "$instance"
	ok "instance $instance: a capture that has ended costs no instruction" costs_nothing after "$instance"
done
ok "nothing is left behind" ended
finish
