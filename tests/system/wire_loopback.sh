#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: an instance in which every packet becomes bytes of RoCEv2 and is read again. Each
# service works, between hosts and with faults, and every packet went that way. No socket is opened.
# tests/full/loopback.sh runs other tests so.
. "$srcdir/lib.sh" || exit 1

if ! command -v jq >/dev/null; then
	skip "packets as bytes" "install jq"
	finish
fi

query() {
	"$SOFTHCA" show --json "$SOFTHCA_INSTANCE" >"$tmp/state"
	jq -e "$@" "$tmp/state" >/dev/null || { echo "not so: $*"; jq '.wire_loopback, .hosts[].hcas[].counters' "$tmp/state"; return 1; }
}
# All packets that left a port went as bytes, and so did the answers that RC and XRC get. None was refused or read wrongly.
bytes() {
	query '.wire_loopback | .packets > 0 and .unsent == 0 and .malformed == 0 and .bad_icrc == 0' &&
		query '.wire_loopback.packets >= ([.hosts[].hcas[].counters.xmit_packets] | add)'
}
# No descriptor of the daemon is one of the sockets that the kernel lists for UDP.
no_socket() {
	find "/proc/$(cat "$SOFTHCA_DIR/softhca/lab/pid")/fd" -lname 'socket:*' -printf '%l\n' >"$tmp/sockets" || return 1
	[ -s "$tmp/sockets" ] && ! awk '{ print "socket:[" $10 "]" }' /proc/net/udp /proc/net/udp6 2>/dev/null | grep -qxFf "$tmp/sockets"
}

service() { pingpong "$TOOLS/ibv_$1_pingpong" --verify -n 100 -s 3001 -m 1024 && bytes; }
datagrams() { pingpong "$TOOLS/ibv_ud_pingpong" -n 100 -s 1001 && bytes; }
long() { pingpong "$TOOLS/ibv_rc_pingpong" --verify -n 5 -s 1048576 -r 4 && bytes; }
xrc() { xsrq 3 --verify -n 100 -s 3001 && bytes; }
mesh() {
	take_port
	timeout 50 "$TOOLS/xrc_mesh" --procs 2 --port "$port" --node 1 --size 3000 --messages 50 >"$tmp/node1.out" 2>&1 &
	other=$!
	timeout 50 "$TOOLS/xrc_mesh" --procs 2 --port "$port" --node 0 --size 3000 --messages 50 >"$tmp/node0.out" 2>&1
	self=$?
	wait "$other" && [ "$self" -eq 0 ] || { cat "$tmp"/node?.out; return 1; }
	bytes
}
across() {
	take_port
	SOFTHCA_HOST=0 timeout 50 "$TOOLS/ibv_rc_pingpong" -p "$port" --verify -n 100 >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || { cat "$tmp/server.out"; return 1; }
	SOFTHCA_HOST=1 timeout 50 "$TOOLS/ibv_rc_pingpong" -p "$port" --verify -n 100 127.0.0.1 >"$tmp/client.out" 2>&1 &&
		wait "$server" || { cat "$tmp"/server.out "$tmp"/client.out; return 1; }
	bytes
}
# The check of the ICRC finds each damaged packet, and nothing else is lost for it.
damaged() {
	"$SOFTHCA" fault "$SOFTHCA_INSTANCE" seed 1 && "$SOFTHCA" fault "$SOFTHCA_INSTANCE" corrupt 5% &&
		pingpong "$TOOLS/ibv_rc_pingpong" --verify -n 100 -s 3001 -m 1024 &&
		query '(.faults | map(.done) | add) as $n | $n > 0 and .wire_loopback.bad_icrc == $n and .wire_loopback.malformed == 0 and
			([.hosts[].hcas[].counters.drops_icrc] | add) == $n'
}
export -f query bytes service datagrams long xrc mesh across damaged

for transport in rc uc srq; do
	ok "$transport" ours within --wire-loopback -- service $transport
done
ok "ud" ours within --wire-loopback -- datagrams
ok "rc, messages of many packets" ours within --wire-loopback -- long
ok "xrc, three clients" ours within --wire-loopback -- xrc
ok "xrc, every process with every other one" ours within --wire-loopback -- mesh
ok "between hosts" ours within --wire-loopback --hosts 2 -- across
ok "trapped doorbells" ours within --wire-loopback --mmio trap -- service rc
ok "damaged packets are found" ours within --wire-loopback -- damaged
quiet() {
	"$SOFTHCA" start --wire-loopback lab && "$SOFTHCA" show --json lab | jq -e '.wire == null' >/dev/null && no_socket
	quiet=$?
	"$SOFTHCA" stop lab && return "$quiet"
}
ok "no socket" quiet
# chosen VALUE: what show says of an instance that is started with that in the environment.
chosen() {
	SOFTHCA_WIRE_LOOPBACK=$1 "$SOFTHCA" start lab && said=$("$SOFTHCA" show --json lab | jq -c .wire_loopback.packets) && "$SOFTHCA" stop lab
	[ "$said" = "$2" ] || { echo "with $1 it is $said"; return 1; }
}
ok "by the environment" chosen 1 0
ok "an instance that was not asked to" chosen "" null
ok "not together with a wire" status 2 "$SOFTHCA" start --wire 127.0.99.1/24 --wire-loopback lab
ok "nothing is left behind" until_true no_instance
finish
