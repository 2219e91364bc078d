#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: connections by address between two instances on one wire: Debian's rdmacm-utils and ours, RC and UD, also while messages
# are lost or repeated. If one end is killed, the other one hears of it.
. "$srcdir/lib.sh" || exit 1
. "$srcdir/wire_pair.sh" || exit 1

needs "connections over the wire" "rdmacm-utils and jq" rping ucmatose udaddy rdma_server jq

established='[.connection_channels[].ids[].state] | index("established")'

everything() { # everything NAME PREFIX
	ok "$1 rping" by_address "$2rping -s -C 20 -V" "$2rping -c -a $net.1 -C 20 -V"
	ok "$1 rping, bound to its address" by_address "$2rping -s -a $net.1 -C 5" "$2rping -c -I $net.2 -a $net.1 -C 5"
	ok "$1 rdma_client" by_address "$2rdma_server" "$2rdma_client -s $net.1"
	ok "$1 ucmatose, five connections" by_address "$2ucmatose -m -c 5 -C 10 -S 100" "$2ucmatose -m -s $net.1 -c 5 -C 10 -S 100"
	ok "$1 udaddy" by_address "$2udaddy -c 2" "$2udaddy -s $net.1 -c 2"
}

# says INSTANCE TEXT COMMAND...: what the command prints has this.
says() {
	instance=$1 text=$2
	shift 2
	on "$instance" "$@" >"$tmp/client.out" 2>&1
	grep -q -- "$text" "$tmp/client.out" && return 0
	cat "$tmp/client.out"
	return 1
}

# A library that finds its address by itself, from getifaddrs(), and tells the peer: RC, and datagrams over RC. With the 8 MiB of an
# ordinary user it gets small pools and queues; with more it is as its users have it.
fabric_settings=()
locks 81920 || fabric_settings=(FI_UNIVERSE_SIZE=8 FI_OFI_RXM_BUFFER_SIZE=2048)
libfabric() { # libfabric PROVIDER ENDPOINT
	take_port
	on a env "${fabric_settings[@]}" fi_pingpong -p "$1" -e "$2" -B "$port" -I 50 -S 1024 -c >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || { cat "$tmp/server.out"; return 1; }
	on b env "${fabric_settings[@]}" fi_pingpong -p "$1" -e "$2" -P "$port" -I 50 -S 1024 -c "$net.1" >"$tmp/client.out" 2>&1 && wait "$server" && return 0
	cat "$tmp/server.out" "$tmp/client.out"
	return 1
}

# In the instance itself its address leads to itself.
inside() {
	on a rping -s -C 5 >"$tmp/server.out" 2>&1 &
	server=$!
	until_true holds a "$listens" && on a rping -c -a "$net.1" -C 5
	wait "$server" && until_true holds a "$no_channel"
}

connected() {
	on a rping -s -v -C 1000000 >"$tmp/a.out" 2>&1 &
	server=$!
	until_true holds a "$listens" || return 1
	on b rping -c -a "$net.1" -C 1000000 >"$tmp/b.out" 2>&1 &
	client=$!
	until_true shows a "$established" && until_true shows b "$established"
}

# Kills one end of an established connection. LOST messages after that are lost.
killed() { # killed VICTIM SURVIVOR [LOST]
	connected || return 1
	[ -z "${3:-}" ] || "$SOFTHCA" fault "$1" cm-drop "$3" || return 1
	kill -KILL "$("$SOFTHCA" show --json "$1" | jq '.connection_channels[0].pid')"
	wait "$server" "$client"
	grep -q DISCONNECT "$tmp/$2.out" || { tail "$tmp/$2.out"; return 1; }
	until_true holds a "$no_channel" && until_true holds b "$no_channel"
}

# Stops the instance of one end, of whose messages half are lost. That instance has to tell the other end: a program
# that only waits has no request that fails.
stopped() { # stopped VICTIM SURVIVOR
	connected || return 1
	"$SOFTHCA" fault "$1" seed 1 && "$SOFTHCA" fault "$1" cm-drop 50% && "$SOFTHCA" stop "$1" || return 1
	wait "$server" "$client"
	grep -q DISCONNECT "$tmp/$2.out" || { tail "$tmp/$2.out"; return 1; }
	until_true holds "$2" "$no_channel"
}

# The data of UD must arrive: only what arranges for it is lost.
lossy() {
	for instance in a b; do
		"$SOFTHCA" fault "$instance" seed 1 && "$SOFTHCA" fault "$instance" cm-drop 25% || return 1
	done
	by_address "udaddy -c 10" "udaddy -s $net.1 -c 10" || return 1
	for instance in a b; do
		"$SOFTHCA" fault "$instance" drop 2% && "$SOFTHCA" fault "$instance" duplicate 20% || return 1
	done
	by_address "ucmatose -m -c 40 -C 2 -S 100" "ucmatose -m -s $net.1 -c 40 -C 2 -S 100" || return 1
	shows a '.connections.messages_repeated > 0 and .connections.messages_fault > 0' &&
		shows b '.connections.messages_repeated > 0' || return 1
	"$SOFTHCA" fault a off && "$SOFTHCA" fault b off
}

# The client ends when it has its last answer, and what acknowledges that may be lost: the server has done its work all the same.
last_words() {
	"$SOFTHCA" fault b seed 1 && "$SOFTHCA" fault b drop 40% || return 1
	status=0
	for _ in $(seq 6); do
		by_address "${1}rping -s -C 1" "${1}rping -c -a $net.1 -C 1" || { status=1; break; }
	done
	shows b '[.faults[] | select(.fault == "drop").done] | add > 0' && "$SOFTHCA" fault b clear && return "$status"
}

# Nobody is at that address; the instance there has been stopped.
nobody() {
	says b 'UNREACHABLE, error: -110' ucmatose -s "$net.9" -c 1
}

ok "two instances start on one wire" two --cm-timeout 100ms
everything "Debian's" ""
# shellcheck disable=SC2153 # OURS is of make
cm=${OURS%%:*}/../../librdmacm/.libs
everything "our" "env LD_LIBRARY_PATH=$cm:$OURS${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} RDMAV_DRIVERS=mlx4 $cm/"
ok "rping whose last acknowledgement is lost" last_words "env LD_LIBRARY_PATH=$cm:$OURS RDMAV_DRIVERS=mlx4 $cm/"
ok "XRC by address, four processes at each end" by_address "env LD_LIBRARY_PATH=$cm:$OURS RDMAV_DRIVERS=mlx4 $cm/rdma_xrc_pingpong -n 50" \
	"env LD_LIBRARY_PATH=$cm:$OURS RDMAV_DRIVERS=mlx4 $cm/rdma_xrc_pingpong -n 50 $net.1"
ok "the own address" inside
if command -v fi_pingpong >/dev/null; then
	ok "libfabric, connections" libfabric verbs msg
	ok "libfabric, datagrams" libfabric "verbs;ofi_rxm" rdm
else
	skip "libfabric" "install libfabric-bin"
fi
ok "nobody listens" says b 'REJECTED, error: 8' ucmatose -s "$net.1"
ok "nobody is there" nobody
ok "another instance's address is not to bind to" says b 'assign requested address' rping -s -a "$net.1"
ok "the server is killed" killed a b
ok "the client is killed" killed b a
ok "the client is killed, and what it has left to say is lost" killed b a 2
ok "messages are lost and repeated" lossy
ok "nothing came damaged" shows a '.wire | .malformed + .bad_icrc == 0'

ended() {
	"$SOFTHCA" stop b && no_instance
}
ok "the server's instance is stopped" stopped a b
ok "nothing is left behind" ended

finish
