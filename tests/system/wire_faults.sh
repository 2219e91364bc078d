#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: faults that are named for a link of the wire, by the address of its far end, hit
# that link's packets in either direction, and no others. Jitter, reordering, a limit and a partition, between two
# instances and inside one.
. "$srcdir/lib.sh" || exit 1
. "$srcdir/wire_pair.sh" || exit 1

if ! command -v jq >/dev/null; then
	skip "faults of links" "install jq"
	finish
fi

messages() { across "$TOOLS/ibv_rc_pingpong" "$@"; }
# fails: nothing gets through, and the requests that are made end with their retries.
fails() {
	messages -n 3 --timeout 8 >"$tmp/failed" 2>&1 && { echo "it went through"; return 1; }
	grep -qi 'transport retry counter exceeded' "$tmp/failed" || { cat "$tmp/failed"; return 1; }
}
# done_by INSTANCE: how many packets its faults have hit.
done_by() { "$SOFTHCA" show --json "$1" | jq '[.faults[].done] | add // 0'; }
hit() { n=$(done_by "$1") && [ "$n" -gt 0 ] || { "$SOFTHCA" show "$1"; return 1; }; }
unhit() { n=$(done_by "$1") && [ "$n" -eq 0 ] || { "$SOFTHCA" show "$1"; return 1; }; }

# A fault of instance a, and what becomes of messages between both.
elsewhere() {
	"$SOFTHCA" fault a drop 100% --to "$net.9" && "$SOFTHCA" fault a partition on --from "$net.8" && messages --verify -n 20 && unhit a &&
		"$SOFTHCA" fault a off
}
lost() { "$SOFTHCA" fault a "$@" && fails && hit a && "$SOFTHCA" fault a off && messages --verify -n 20; }
worse() { "$SOFTHCA" fault a seed 1 && "$SOFTHCA" fault a "$@" && messages --verify -n 50 -s 20000 -r 100 && hit a && "$SOFTHCA" fault a off; }
told() {
	"$SOFTHCA" fault a rate 1.5mbit 5ms --to "$net.2" && "$SOFTHCA" show --json a | jq -e --arg to "$net.2" '
		[.faults[] | select(.rate_per_million > 0) | del(.done)] == [{fault: "rate", from: null, to: $to, qp: null, rate_per_million: 1000000, count: 0,
			delay_us: 5000, bits_per_second: 1500000, seed: 1}]' && "$SOFTHCA" fault a off --to "$net.2" &&
		"$SOFTHCA" show --json a | jq -e 'all(.faults[]; .rate_per_million == 0)'
}

ok "two instances start on one wire" two
ok "faults of other links hit nothing" ours elsewhere
ok "a link that drops everything" ours lost drop 100% --to "$net.2"
ok "what comes is dropped" ours lost drop 100% --from "$net.2"
ok "what comes is corrupted" ours lost corrupt 100% --from "$net.2"
ok "a partition, by its far end" ours lost partition on --to "$net.2"
ok "a partition of a host" ours lost partition on --from host0
ok "a partition, by both addresses" ours lost partition on --from "$net.1" --to "$net.2"
for kind in "drop 5%" "jitter 100% 200us" "reorder 20%" "rate 400mbit" "duplicate 10%"; do
	# shellcheck disable=SC2086
	ok "$kind to the far end" ours worse $kind --to "$net.2"
done
ok "show tells the link and its limit" told
ended() { "$SOFTHCA" stop a && "$SOFTHCA" stop b && no_instance; }
ok "nothing is left behind" ended

# Inside an instance of two hosts.
query() { "$SOFTHCA" show --json "$SOFTHCA_INSTANCE" >"$tmp/state"; jq -e "$@" "$tmp/state" >/dev/null || { echo "not so: $*"; jq .faults "$tmp/state"; return 1; }; }
hosts() {
	take_port
	SOFTHCA_HOST=0 timeout 50 "$TOOLS/ibv_rc_pingpong" -p "$port" --verify "$@" >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || { cat "$tmp/server.out"; return 1; }
	SOFTHCA_HOST=1 timeout 50 "$TOOLS/ibv_rc_pingpong" -p "$port" --verify "$@" 127.0.0.1 >"$tmp/client.out" 2>&1
	client=$?
	[ "$client" -eq 0 ] || kill "$server" 2>/dev/null
	wait "$server" && [ "$client" -eq 0 ] || { cat "$tmp"/server.out "$tmp"/client.out; return 1; }
}
inside() {
	"$SOFTHCA" fault "$SOFTHCA_INSTANCE" seed 1 && "$SOFTHCA" fault "$SOFTHCA_INSTANCE" "$@" && hosts -n 50 -s 20000 -r 100 &&
		query '([.faults[].done] | add) > 0'
}
parted() {
	"$SOFTHCA" fault "$SOFTHCA_INSTANCE" partition on --from host0 --to host1 || return 1
	hosts -n 3 --timeout 4 >"$tmp/failed" 2>&1 && { echo "it went through"; return 1; }
	grep -qi 'transport retry counter exceeded' "$tmp/failed" || { cat "$tmp/failed"; return 1; }
	# Each host by itself goes on.
	SOFTHCA_HOST=1 pingpong "$TOOLS/ibv_rc_pingpong" --verify -n 10 && "$SOFTHCA" fault "$SOFTHCA_INSTANCE" off && hosts -n 10
}
far() {
	"$SOFTHCA" fault "$SOFTHCA_INSTANCE" drop 1% --to 10.1.2.7 2>"$tmp/err" && return 1
	grep -q '10.1.2.7 is no end of a link here: the instance has no wire' "$tmp/err" || { cat "$tmp/err"; return 1; }
}
export -f query hosts inside parted far
for kind in "jitter 100% 200us" "reorder 20%" "rate 400mbit"; do
	# shellcheck disable=SC2086
	ok "$kind inside an instance" ours within --hosts 2 -- inside $kind --from host1
done
ok "a partition inside an instance" ours within --hosts 2 -- parted
ok "an address without a wire" within --hosts 2 -- far
finish
