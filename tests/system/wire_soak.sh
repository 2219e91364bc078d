#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: two machines on a wire that loses one packet in a hundred in either direction, each of them a network namespace with
# an instance of its own. Two pairs of processes do every operation of RC again and again on the same QPs, with contents verified, each pair
# from the other end; meanwhile meshes of XRC ranks come and go. No request fails, and afterwards both instances are empty.
# SOAK_SECONDS says for how long, SOAK_SEED which packets are lost.
# shellcheck disable=SC2154 # machines() sets $there
seconds=5
[ "${TIER:-}" != full ] || seconds=20
seconds=${SOAK_SECONDS:-$seconds}
seed=${SOAK_SEED:-$RANDOM}
limit=$((${seconds%.*} + 240))
TEST_TIMEOUT=${TEST_TIMEOUT:-$((limit + 300))}
. "$srcdir/lib.sh" || exit 1
. "$srcdir/wire_apart.sh" || exit 1

machines_need "a soak of the wire"

# Ends processes with all below them: a pair whose meshes have failed would go on for all of the time.
end_trees() {
	local pid
	for pid; do
		# shellcheck disable=SC2046 # words
		end_trees $(pgrep -P "$pid")
		kill "$pid" 2>/dev/null
	done
}
# Two network namespaces on one cable, with an instance in each, as in wire_machines.sh.
machines() {
	unshare -mnu sleep $((limit + 600)) &
	export there=$!
	# What runs there, cleanup() of lib.sh cannot see.
	# shellcheck disable=SC2046
	trap '"$tmp/there" "$SOFTHCA" stop lab >/dev/null 2>&1; end_trees $(jobs -p)' EXIT
	until_true elsewhere || return 1
	"$tmp/there" mount -t tmpfs none "$SOFTHCA_DIR" && cable || return 1
	"$SOFTHCA" start --wire 10.77.0.1/24 lab && "$tmp/there" "$SOFTHCA" start --wire 10.77.0.2/24 lab || return 1
	good=true
	"$@" || good=false
	"$SOFTHCA" stop lab || good=false
	"$tmp/there" "$SOFTHCA" stop lab || good=false
	$good
}
here() { timeout "$limit" "$SOFTHCA" run --instance lab -- "$@"; }
over_there() { timeout "$limit" "$tmp/there" "$SOFTHCA" run --instance lab -- "$@"; }
listening_somewhere() { listening || "$tmp/there" cat /proc/net/tcp /proc/net/tcp6 | grep -qi ":$(printf %04X "$port") [0-9A-F]*:0000 0A "; }
mesh() {
	take_port
	here "$TOOLS/xrc_mesh" --procs 2 --port "$port" --node 0 --messages 20 --size 3000 --server 10.77.0.1 >"$tmp/mesh0" 2>&1 &
	first=$!
	over_there "$TOOLS/xrc_mesh" --procs 2 --port "$port" --node 1 --messages 20 --size 3000 --server 10.77.0.1 >"$tmp/mesh1" 2>&1 && wait "$first" ||
		{ cat "$tmp/mesh0" "$tmp/mesh1"; return 1; }
}

# numbers WHERE: what has become of the packets of one end. Some were lost, and those that came were whole.
numbers() {
	name=$1
	shift
	"$@" "$SOFTHCA" show --json lab >"$tmp/$name.json" && jq -c --arg name "$name" '{end: $name, sent: .wire.sent, received: .wire.received,
		dropped_by_fault: ([.faults[].done] | add), dropped_by_socket: .wire.dropped_by_socket, malformed: .wire.malformed, bad_icrc: .wire.bad_icrc,
		counters: ([.hosts[].hcas[].counters] | add | {retries, rnr_retries, duplicates, out_of_sequence})}' "$tmp/$name.json" &&
		jq -e '([.faults[].done] | add) > 0 and .wire.malformed + .wire.bad_icrc == 0' "$tmp/$name.json" >/dev/null
}
empty() { "$@" "$SOFTHCA" show --json lab | jq -e '([.hosts[].hcas[].qps[]] | length) == 0' >/dev/null; }

soak() {
	"$SOFTHCA" fault lab seed "$seed" && "$SOFTHCA" fault lab drop 1% &&
		"$tmp/there" "$SOFTHCA" fault lab seed "$((seed + 1))" && "$tmp/there" "$SOFTHCA" fault lab drop 1% || return 1
	sleep "$seconds" &
	export OLD=$!
	pids=
	for ends in "here over_there 10.77.0.1" "over_there here 10.77.0.2"; do
		read -r one other address <<<"$ends"
		take_port
		"$one" "$PROGRAMS/wire_peers" soak -p "$port" &
		pids="$pids $!"
		until_true listening_somewhere || return 1
		"$other" "$PROGRAMS/wire_peers" soak -p "$port" "$address" &
		pids="$pids $!"
	done
	meshes=0
	while kill -0 "$OLD" 2>/dev/null; do
		mesh || return 1
		meshes=$((meshes + 1))
		# The pairs are what this is about.
		[ "$seconds" -lt 60 ] || sleep 5
	done
	bad=0
	for pid in $pids; do
		wait "$pid" || bad=1
	done
	echo "$meshes meshes"
	until_true empty && until_true empty "$tmp/there" && numbers here && numbers there "$tmp/there" || bad=1
	[ "$bad" -eq 0 ]
}
export -f end_trees machines cable elsewhere here over_there listening_somewhere mesh numbers empty soak tcp take_port listening until_true
export tmp seconds seed limit
on_machines() { $apart bash -c 'machines "$@"' - "$@"; }

ok "every operation for $seconds s while packets are lost, seed $seed" ours on_machines soak
sed 's/^/# /' "$tmp/ok.out"
ok "nothing is left behind" until_true no_instance
finish
