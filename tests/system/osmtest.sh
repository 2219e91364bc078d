#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: osmtest, Debian's test of subnet administrators, passes unmodified against the built-in one: groups, services,
# subscriptions, and the records of an inventory.
. "$srcdir/lib.sh" || exit 1

PATH=$PATH:/usr/sbin
needs "Debian's osmtest" "opensm and jq" osmtest jq

passes() { grep -q 'TEST ".*" PASS' "$tmp/out"; }
osmtests() { "$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq '.processes[] | select(.command == "osmtest") | .pid'; }
# tested FLOW: osmtest reports that the flow passes. It is killed then, because it can hang in its own clean-up: it cancels a thread
# that may hold the lock of osmtest's log, and then waits for that lock. It runs in the background, because a shell that waits for a
# program in the foreground acts on no signal.
tested() {
	become 1 env OSM_TMP_DIR="$tmp" OSM_CACHE_DIR="$tmp" timeout -k 5 40 stdbuf -oL osmtest -f "$1" -i "$tmp/inventory" -l "$tmp/log" \
		-g 0x0002c90300100005 >"$tmp/out" 2>&1 &
	tester=$!
	until passes || gone "$tester"; do sleep 0.05; done
	for pid in $(osmtests); do kill -KILL "$pid"; done
	wait "$tester"
	passes || { tail -n 20 "$tmp/log"; tail -n 1 "$tmp/out"; return 1; }
}
no_files() { "$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq -e '.umad_files == []' >/dev/null; }

for face in $(faces mainline ofed); do
	SOFTHCA_INSTANCE=osmtest-$face
	export SOFTHCA_INSTANCE
	"$SOFTHCA" start --kernel "$face" --hosts 3 "$SOFTHCA_INSTANCE" >/dev/null || exit 1
	ok "an inventory, $face" tested c
	ok "services, $face" tested s
	ok "groups, $face" tested m
	ok "events, $face" tested e
	ok "no file is left open, $face" until_true no_files
	"$SOFTHCA" stop "$SOFTHCA_INSTANCE" >/dev/null
	ok "nothing is left, $face" no_instance
done
finish
