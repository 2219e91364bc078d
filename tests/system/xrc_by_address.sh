#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the processes of two hosts make XRC connections by address, on both kernels, in kick and in trap. Those of a host
# take them into one domain, and each receives in its own SRQ, from every process of the other host. If one process is killed, those
# of both hosts end, and nothing is left.
. "$srcdir/lib.sh" || exit 1

cm=${OURS%%:*}/../../librdmacm/.libs
tool=$cm/rdma_xrc_pingpong

on() { # on HOST OPTION...
	host=$1
	shift
	LD_LIBRARY_PATH=$cm:$OURS RDMAV_DRIVERS=mlx4 exec timeout 60 "$SOFTHCA" run --instance xrc --host "$host" -- "$tool" "$@" 2>&1
}
front() { (on "$@"); }
json() { "$SOFTHCA" show --json xrc; }
nothing_left() {
	json | jq -e '.connection_channels == [] and ([.hosts[].hcas[] | .qps[], .srqs[], .xrc_domains[]] == [])' >/dev/null
}
# The process that listens last: then all do.
listens() {
	json | jq -e '[.connection_channels[].ids[] | select(.state == "listening")] | length == '"$1" >/dev/null
}

server_only=
# start PROCESSES OPTION...: server on host 0, client on host 1. $server, $client
start() {
	processes=$1
	shift
	# shellcheck disable=SC2086 # words
	on 0 -c "$processes" $server_only "$@" >"$tmp/server.out" &
	server=$!
	until_true listens "$processes" || { cat "$tmp/server.out"; return 1; }
	on 1 -c "$processes" "$@" host0 >"$tmp/client.out" &
	client=$!
}

# Each process told its own SRQ; both sides passed all messages.
exchange() {
	start "$@" || return 1
	wait "$client" || kill "$server"
	wait "$server" && grep -qx success "$tmp/server.out" && grep -qx success "$tmp/client.out" &&
		[ "$(grep -c '^process [0-9]*: SRQ' "$tmp/server.out")" -eq "$1" ] && until_true nothing_left && return 0
	tail -n 20 "$tmp/server.out" "$tmp/client.out"
	json | jq -c '.connection_channels'
	return 1
}

# Of each host: one domain that N processes have open, N receive QPs in it that all are registered with, an SRQ of each process
# in it, and N send QPs. Each receive QP has taken messages, and each CQ, that of an SRQ, too.
shape() {
	json | jq -e --argjson n "$1" '[.hosts[].hcas[] |
		(.xrc_domains | length == 1 and .[0].opens == $n and (.[0].receive_qps | length) == $n and
			all(.[0].receive_qps[]; [.registrations[].pid] | unique | length == $n)) and
		(.xrc_domains[0].xrcd as $d | .srqs | length == $n and all(.[]; .xrcd == $d) and (map(.pid) | unique | length) == $n) and
		(.qps | map(select(.registrations)) | length == $n and all(.[]; .messages_received > 0)) and
		(.qps | map(select(.registrations | not)) | length == $n and all(.[]; .messages_sent > 0)) and
		all(.cqs[]; .producer > 0)] == [true, true]' >/dev/null
}

# killed HOST: of a mesh that would run for long.
killed() {
	start 4 -n 10000000 -e || return 1
	until_true shape 4 || { json | jq -c '.hosts[].hcas[] | .xrc_domains, .srqs'; cat "$tmp/server.out" "$tmp/client.out"; return 1; }
	kill -9 "$(json | jq "[.processes[] | select(.host == $1)][1].pid")"
	wait "$server" && return 1
	wait "$client" && return 1
	until_true nothing_left || { json | jq -c '.connection_channels, (.hosts[].hcas[] | .qps, .srqs, .xrc_domains)'; return 1; }
}

differ() {
	on 0 -c 2 -n 10 >"$tmp/server.out" &
	server=$!
	until_true listens 2 || return 1
	status 1 front 1 -c 2 -n 11 host0 >"$tmp/client.out" || kill "$server"
	wait "$server"
	grep -q "other options: processes 2, iterations 11" "$tmp/server.out" && grep -q "Connection refused" "$tmp/client.out" &&
		until_true nothing_left && return 0
	cat "$tmp/server.out" "$tmp/client.out"
	return 1
}

refused() {
	status 1 front 1 host0 >"$tmp/client.out" || return 1
	grep -q "Connection refused" "$tmp/client.out" && until_true nothing_left
}

if ! command -v jq >/dev/null; then
	skip "XRC by address" "install jq"
	finish
fi
# instance KERNEL WAY: an instance; each test leaves nothing in it.
instance() {
	kernel=$1
	way=$2
	"$SOFTHCA" stop xrc >/dev/null 2>&1
	"$SOFTHCA" start --hosts 2 --kernel "$kernel" --mmio "$way" xrc >"$tmp/start.out" 2>&1 && return
	ok "$kernel, $way: an instance" cat "$tmp/start.out"
	finish
}
for kernel in ofed mainline; do
	instance $kernel kick
	ok "$kernel, kick: four processes of each host" exchange 4 -n 20
	ok "$kernel, kick: one of four is killed on host 0" killed 0
	instance "$kernel" trap
	ok "$kernel, trap: four processes of each host, with events" exchange 4 -n 20 -e
	ok "$kernel, trap: one of four is killed on host 1" killed 1
done
ok "seven processes, with messages of 64 KiB" exchange 7 -n 1 -s 65536 -e
server_only='-b host0'
ok "one process, which listens at its host's address" exchange 1 -n 10
server_only=
ok "sides with other options" differ
ok "nobody listens" refused
"$SOFTHCA" stop xrc >/dev/null
finish
