# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# Two instances, a and b, on one wire: what the tests of wires do with them. Sourced after lib.sh.

# Both start on addresses that no other test has, $net.1 and $net.2: two [OPTION...]
two() {
	for _ in $(seq 50); do
		net=127.$((1 + RANDOM % 120)).$((RANDOM % 256))
		"$SOFTHCA" start --wire "$net.1/24" "$@" a >"$tmp/a.out" 2>&1 || continue
		"$SOFTHCA" start --wire "$net.2/24" "$@" b >"$tmp/b.out" 2>&1 && return 0
		"$SOFTHCA" stop a
	done
	cat "$tmp/a.out" "$tmp/b.out"
	return 1
}

on() { # on INSTANCE COMMAND...
	instance=$1
	shift
	timeout 120 "$SOFTHCA" run --instance "$instance" -- "$@"
}
counter() { "$SOFTHCA" show --json "$1" | jq "$2"; }             # counter INSTANCE JQ-FILTER
shows() { "$SOFTHCA" show --json "$1" | jq -e "$2" >/dev/null; } # shows INSTANCE CONDITION

# Waits for the server; both must have succeeded: over CLIENT-STATUS
over() {
	both_good "$1" >"$tmp/ends.out" && return 0
	"$SOFTHCA" show a
	"$SOFTHCA" show b
	# Last: of a failed test only the end is shown.
	cat "$tmp/ends.out"
	return 1
}

# across TOOL [ARGUMENT...]: the server in a, the client in b. A server whose client has failed may wait for ever, and is ended.
across() {
	take_port
	timeout 120 "$SOFTHCA" run --instance a -- "$@" -p "$port" >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || { cat "$tmp/server.out"; return 1; }
	on b "$@" -p "$port" 127.0.0.1 >"$tmp/client.out" 2>&1
	set -- $?
	[ "$1" -eq 0 ] || kill "$server" 2>/dev/null
	over "$1"
}

# holds INSTANCE WORDS: its JSON has them. These are asked for again and again, and jq takes longer than all the rest.
holds() {
	local json
	json=$("$SOFTHCA" show --json "$1") && [[ ${json//$'\n'/} == *"$2"* ]]
}
listens='"state": "listening"'
no_channel='"connection_channels": []'
# by_address 'SERVER' 'CLIENT': words; the server in a, the client in b. Neither leaves a channel.
by_address() {
	# shellcheck disable=SC2086
	on a $1 >"$tmp/server.out" 2>&1 &
	server=$!
	until_true holds a "$listens" || { cat "$tmp/server.out"; wait "$server"; return 1; }
	# shellcheck disable=SC2086
	on b $2 >"$tmp/client.out" 2>&1
	client=$?
	# At its end one thread of rping closes the channel, perhaps before the other one waits for an event again.
	case "$2 $client $(cat "$tmp/client.out")" in
	*"rping "*" 255 rdma_get_cm_event: Bad file descriptor") client=0 ;;
	esac
	over "$client" && until_true holds a "$no_channel" && until_true holds b "$no_channel"
}
