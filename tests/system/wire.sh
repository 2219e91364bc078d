#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: two instances on one wire. Ping-pongs that exchange LIDs alone run between them
# unchanged, also over a wire that loses packets. wire_machines.sh has two machines.
. "$srcdir/lib.sh" || exit 1
. "$srcdir/wire_pair.sh" || exit 1

if ! command -v jq >/dev/null; then
	skip "the wire" "install jq"
	finish
fi

# XRC: the server serves several clients.
across_xrc() {
	take_port
	timeout 120 "$SOFTHCA" run --instance a -- "$TOOLS/ibv_xsrq_pingpong" -p "$port" -c 2 --verify >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || { cat "$tmp/server.out"; return 1; }
	pids=
	for i in 1 2; do
		timeout 120 "$SOFTHCA" run --instance b -- "$TOOLS/ibv_xsrq_pingpong" -p "$port" --verify 127.0.0.1 >"$tmp/client$i.out" 2>&1 &
		pids="$pids $!"
	done
	bad=0
	for pid in $pids "$server"; do
		wait "$pid" || bad=1
	done
	[ "$bad" -eq 0 ] || { tail -n 20 "$tmp"/server.out "$tmp"/client*.out; return 1; }
}

daemon() { cat "$SOFTHCA_DIR/softhca/$1/pid"; }
# counter INSTANCE PATH: a number that show tells.

ok "two instances start on one wire" two
# Programs choose from this list the address that they tell their peers.
ok "getifaddrs() lists the address on the wire" timeout 60 "$SOFTHCA" run --instance a -- "$PROGRAMS/addresses" wire "$net.1" 24
for transport in rc uc ud srq; do
	ok "$transport" ours across "$TOOLS/ibv_${transport}_pingpong" --verify -n 50
done
ok "rc, sleeping" ours across "$TOOLS/ibv_rc_pingpong" -e --verify -n 50
ok "rc, messages of many packets" ours across "$TOOLS/ibv_rc_pingpong" --verify -s 1048576 -n 10 -r 4
ok "xrc, two clients" ours across_xrc
ok "rc: every operation, contents, a late receive, a wrong key" ours across "$PROGRAMS/wire_peers" all
# Of the messages of 5 packets: the WRITE with immediate data, the one without it, the first READ.
for psn in -115 -120 -125; do
	ok "rc: PSNs that wrap after ${psn#-} packets" ours across env PSN=$((0x1000000 + psn)) "$PROGRAMS/wire_peers" all
done

for mtu in 256 512 2048 4096; do
	ok "rc: every operation with a path MTU of $mtu" ours across env PATH_MTU=$mtu "$PROGRAMS/wire_peers" all
done
# Packets that the other end does not expect of that length are refused, and no end hangs.
for mtus in 256,4096 4096,256 1024,2048; do
	ok "rc: path MTUs that differ, $mtus" ours across env PATH_MTU=$mtus "$PROGRAMS/wire_peers" mtus
done
ok "uc: WRITEs with and without immediate data" ours across "$PROGRAMS/wire_peers" uc
ok "ud: with and without immediate data" ours across "$PROGRAMS/wire_peers" ud
ok "rc: a QP that is destroyed right after its last messages" ours across "$PROGRAMS/wire_peers" last

# A capture has every packet that the socket has sent, and every one that it has received, or says how many it has lost. It waits for no
# processor: on a busy machine it tries three times to lose none.
counted() {
	for _ in 1 2 3; do
		count_once || return 1
		! grep -q ", 0 lost" "$tmp/capture.err" || break
	done
	grep -q "^softhca: $((sent + received)) packets captured, 0 lost" "$tmp/capture.err" && on_wire >"$tmp/directions" &&
		[ "$(grep -c '2$' "$tmp/directions")" -eq "$sent" ] && [ "$(grep -c '1$' "$tmp/directions")" -eq "$received" ]
}
count_once() {
	# What was on its way has come.
	until_true quiet || return 1
	sent=$(counter a .wire.sent) received=$(counter a .wire.received)
	"$SOFTHCA" capture a -w "$tmp/file" 2>"$tmp/capture.err" &
	capture=$!
	until_true test -s "$tmp/file" && across "$PROGRAMS/wire_peers" all && across "$PROGRAMS/wire_peers" uc &&
		across "$PROGRAMS/wire_peers" ud && until_true quiet || return 1
	sent=$(($(counter a .wire.sent) - sent)) received=$(($(counter a .wire.received) - received))
	kill -INT "$capture" && wait "$capture" || return 1
	echo "sent $sent, received $received; $(cat "$tmp/capture.err")"
	all=$(($(sed -n 's/^softhca: \([0-9]*\) packets captured, \([0-9]*\) lost.*/\1 + \2/p' "$tmp/capture.err")))
	[ "$sent" -gt 1000 ] && [ "$all" -eq $((sent + received)) ]
}
quiet() {
	[ "$(counter a .wire.sent)" -eq "$(counter b .wire.received)" ] && [ "$(counter b .wire.sent)" -eq "$(counter a .wire.received)" ]
}
# A line for each packet: 1 for one that has come, 2 for one that has gone.
on_wire() { tshark -r "$tmp/file" -Y 'frame.interface_name == "wire"' -T fields -e frame.packet_flags_direction 2>/dev/null; }
if command -v tshark >/dev/null; then
	ok "a capture has as many packets as the instance counts" ours counted
else
	skip "a capture has as many packets as the instance counts" "install tshark"
fi

# scapy builds the packets of the capture anew, with the same ICRCs. What it builds is executed, or has no QP; what it damages is not.
judged() {
	timeout 300 "$python" "$srcdir/scapy_roce.py" check "$tmp/file" >"$tmp/scapy.out" || return 1
	cat "$tmp/scapy.out"
	for opcode in 0x04 0x06 0x0c 0x11 0x13 0x14 0x2a 0x64; do
		grep -q "$opcode:" "$tmp/scapy.out" || { echo "there is no $opcode"; return 1; }
	done
	before=$(wire_counters) && sent=$(timeout 300 "$python" "$srcdir/scapy_roce.py" send "$net.3" "$net.1" 0x7ffff0) || return 1
	until_true received && echo "$before $after"
	# shellcheck disable=SC2086 # words: numbers
	set -- $before $after
	# Two of them are notifications, which look for no QP.
	[ "$5" -eq "$(($1 + sent + 1))" ] && [ "$6" -eq "$2" ] && [ "$7" -eq "$(($3 + 1))" ] && [ "$8" -eq "$(($4 + sent - 2))" ]
}
wire_counters() {
	counter a '[.wire.received, .wire.malformed, .wire.bad_icrc, ([.hosts[].hcas[].counters.drops_no_qp] | add)] | map(tostring) | join(" ")' | tr -d '"'
}
received() { after=$(wire_counters) && [ "${after%% *}" -gt "$((${before%% *} + sent))" ]; }
if all_rows; then
	python=/usr/bin/python3
	[ -x $python ] || python=python3
	if "$python" -c 'import scapy.contrib.roce' 2>/dev/null; then
		ok "scapy agrees with what leaves, and what it builds is accepted" ours judged
	else
		skip "scapy agrees with what leaves, and what it builds is accepted" "install python3-scapy"
	fi
fi

# Debian's programs, on their own libraries, know neither of us nor of a wire.
if command -v ibv_rc_pingpong >/dev/null; then
	transports="rc uc ud srq"
	all_rows || transports="rc ud"
	for transport in $transports; do
		ok "rdma-core's $transport" across "ibv_${transport}_pingpong" -c -n 50
	done
else
	skip "rdma-core's ping-pongs" "install ibverbs-utils"
fi
# All send at once into one socket, whose buffer holds some dozens of packets.
if ! command -v ib_write_bw >/dev/null; then
	skip "100 QPs at once" "install perftest"
elif may_lock 32768 "100 QPs at once"; then
	ok "100 QPs at once" across ib_write_bw -q 100 -s 65536 -n "$(all_rows && echo 20 || echo 5)"
fi

# While nothing is sent, no thread runs, except that each daemon looks around once a second. On a slow machine that takes a few
# ticks of processor time, and on a busy one some twenty switches. The limits leave room for that: a thread that is busy takes a hundred ticks a
# second, or its share of a crowded machine. They are counted per second because reading the numbers takes time, too.
switches() {
	for pid in $members; do
		grep -h ^voluntary_ctxt_switches "/proc/$pid/task"/*/status || return 1
	done
}
idle() {
	before=$(switches | total) && used=$(ticks) && began=$EPOCHREALTIME || return 1
	sleep 1
	awk "BEGIN { s = $EPOCHREALTIME - $began; t = $(ticks) - $used; n = $(switches | total) - $before
		print t, \"ticks,\", n, \"switches in\", s, \"s\"; exit !(t <= 10 * s && n <= 50 * s) }" >"$tmp/idle"
}
total() { awk '{ n += $2 } END { print n }'; }
ticks() {
	for pid in $members; do
		awk '{ print "ticks", $14 + $15 }' "/proc/$pid/stat" || return 1
	done | total
}
members="$(daemon a) $(daemon b) $(counter a .wire.pid) $(counter b .wire.pid)"
is_idle() { until_true idle || { cat "$tmp/idle"; return 1; }; }
ok "an idle instance uses no processor" is_idle

# Messages wait for the port, and nothing is lost.
port_down() {
	across "$TOOLS/ibv_rc_pingpong" --verify -n 20000 >"$tmp/across.out" 2>&1 &
	pair=$!
	until_true sent || return 1
	"$SOFTHCA" port b mlx4_0:1 down
	until_true silent
	was_silent=$?
	"$SOFTHCA" port b mlx4_0:1 up
	wait "$pair" || { cat "$tmp/across.out"; return 1; }
	return "$was_silent"
}
sent() { [ "$(counter b '[.hosts[].hcas[].qps[].messages_sent] | add')" -gt 10 ]; }
silent() {
	before=$(counter b .wire.sent)
	sleep 0.05
	[ "$(counter b .wire.sent)" -eq "$before" ]
}
ok "a port that is down for a while" ours port_down

# One end is killed. The other one gets what a dead node gives, and the wire goes on.
killed() {
	take_port
	timeout 120 "$SOFTHCA" run --instance a -- "$PROGRAMS/wire_peers" killed -p "$port" >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || { cat "$tmp/server.out"; return 1; }
	timeout 120 "$SOFTHCA" run --instance b -- "$PROGRAMS/wire_peers" killed -p "$port" 127.0.0.1 || return 1
	wait "$server"
	[ $? -eq 137 ] && across "$TOOLS/ibv_rc_pingpong" --verify -n 10
}
ok "a peer that is killed" ours killed

# An instance is started anew, and its QPs get the numbers that they had before. A peer of the dead one goes on sending to
# its QP, which is another program's now. The PSNs are far behind what that one expects, or far ahead.
restarted() { # restarted PSN COUNTER
	# Both times it is the first QP of an instance.
	"$SOFTHCA" stop a && "$SOFTHCA" start --wire "$net.1/24" a || return 1
	take_port
	PSN=$1 timeout 120 "$SOFTHCA" run --instance a -- "$PROGRAMS/wire_peers" old -p "$port" >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || { cat "$tmp/server.out"; return 1; }
	PSN=$1 timeout 120 "$SOFTHCA" run --instance b -- "$PROGRAMS/wire_peers" old -p "$port" 127.0.0.1 >"$tmp/old.out" 2>&1 &
	old=$!
	wait "$server"
	status=$?
	dead=$(grep '^QP ' "$tmp/server.out")
	[ "$status" -eq 137 ] && "$SOFTHCA" stop a && "$SOFTHCA" start --wire "$net.1/24" a || return 1
	kill -0 "$old" || { echo "the old peer has ended too early"; return 1; }
	export OLD=$old
	across "$PROGRAMS/wire_peers" new || return 1
	[ "$(grep '^QP ' "$tmp/server.out")" = "$dead" ] || { echo "the numbers differ"; return 1; }
	# It was heard, and nothing else is out of order.
	[ "$(counter a "[.hosts[].hcas[].counters.$2] | add")" -gt 0 ] || { "$SOFTHCA" show a; return 1; }
	wait "$old" || { cat "$tmp/old.out"; return 1; }
	across "$PROGRAMS/wire_peers" all
}
ok "an instance that is started anew, while an old peer sends: behind" ours restarted 0x900000 duplicates
ok "an instance that is started anew, while an old peer sends: ahead" ours restarted 0x300000 out_of_sequence

# Each end loses, repeats and spoils packets on their way out. The other end's ICRC finds the spoilt ones.
lossy() {
	for instance in a b; do
		"$SOFTHCA" fault "$instance" seed 1 && "$SOFTHCA" fault "$instance" drop 2% &&
			"$SOFTHCA" fault "$instance" corrupt 2% && "$SOFTHCA" fault "$instance" duplicate 5% || return 1
	done
	across "$@" && [ "$(counter a .wire.bad_icrc)" -gt 0 ] && [ "$(counter b .wire.bad_icrc)" -gt 0 ] &&
		[ "$(counter b '[.hosts[].hcas[].ports[].rcv_errors] | add')" -eq "$(counter b .wire.bad_icrc)" ] &&
		[ "$(counter a '[.hosts[].hcas[].counters | .retries] | add')" -gt 0 ] &&
		"$SOFTHCA" fault a off && "$SOFTHCA" fault b off
}
ok "rc over a wire that loses packets" ours lossy "$TOOLS/ibv_rc_pingpong" --verify -n 30 -s 20000 -r 100
ok "rc: every operation over a wire that loses packets" ours lossy "$PROGRAMS/wire_peers" lossy

# Each message comes as a whole or not at all. It is the second process that sends, in b.
uc_lossy() {
	"$SOFTHCA" fault b seed 1 && for fault in "drop 1%" "corrupt 1%" "duplicate 2%" "reorder 2%"; do
		# shellcheck disable=SC2086 # words
		"$SOFTHCA" fault b $fault || return 1
	done
	across "$PROGRAMS/wire_peers" uc_lossy && shows b '[.faults[] | select(.rate_per_million > 0)] | length == 4 and all(.[]; .done > 0)' &&
		"$SOFTHCA" fault b off
}
ok "uc over a wire that loses packets: messages come whole" ours uc_lossy

# What comes from outside of the prefix does not get as far as the instance, which would call it malformed.
outside() {
	malformed=$(counter a .wire.malformed)
	dropped=$(counter a .wire.dropped_by_socket)
	for _ in 1 2 3; do
		echo "no packet" >"/dev/udp/$net.1/4791" || return 1
	done
	until_true dropped && [ "$(counter a .wire.malformed)" -eq "$malformed" ]
}
dropped() { [ "$(counter a .wire.dropped_by_socket)" -ge $((dropped + 3)) ]; }
ok "packets from outside of the prefix" outside

same_address() {
	status 125 "$SOFTHCA" start --wire "$net.1/24" c 2>"$tmp/c.out" && grep -q "UDP port 4791 of $net.1 is taken" "$tmp/c.out"
}
ok "an address that is taken" same_address

# A machine that stands still for a while: who is patient loses nothing.
stopped() {
	KILLED="$(daemon a) $(counter a .wire.pid)"
	export KILLED
	across "$PROGRAMS/wire_peers" stopped || { status=$?; for pid in $KILLED; do kill -CONT "$pid"; done; return "$status"; }
}
ok "a daemon that is stopped with the wire's process, and goes on" ours stopped
# The program itself has no part in what others write to its memory.
standing() {
	take_port
	timeout 120 "$SOFTHCA" run --instance a -- sh -c 'echo $$ >"$1"; shift; exec "$@"' sh "$tmp/standing" "$PROGRAMS/wire_peers" standing -p "$port" \
		>"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || { cat "$tmp/server.out"; return 1; }
	KILLED=$(cat "$tmp/standing") on b "$PROGRAMS/wire_peers" standing -p "$port" 127.0.0.1 >"$tmp/client.out" 2>&1
	set -- $?
	kill -CONT "$(cat "$tmp/standing")" 2>/dev/null
	over "$1"
}
ok "a program that is stopped" ours standing

# Nobody notices that the daemons are killed, which have no part in what goes over the wire.
outlives() {
	KILLED="$(daemon a) $(daemon b)"
	export KILLED
	engines="$(counter a .wire.pid) $(counter b .wire.pid)"
	across "$PROGRAMS/wire_peers" outlives || return 1
	for engine in $engines; do
		until_true gone "$engine" || return 1
	done
	"$SOFTHCA" start --wire "$net.1/24" a && "$SOFTHCA" start --wire "$net.2/24" b
}
ok "daemons that are killed" ours outlives

# Without daemon and engine there is nobody to tell a program what becomes of its requests: it finds out by itself.
left() {
	KILLED="$(daemon b) $(counter b .wire.pid)"
	export KILLED
	across "$PROGRAMS/wire_peers" left && "$SOFTHCA" start --wire "$net.2/24" b
}
ok "a daemon that is killed with the wire's process" ours left

# The wire's process is the card: without it, nothing works, and programs hear of it.
engine_killed() {
	kill -KILL "$(counter a .wire.pid)" && until_true failed
}
failed() { "$SOFTHCA" show --json a | jq -e '.wire.state == "ended" and .hosts[0].hcas[0].fatal' >/dev/null; }
ok "the wire's process is killed" engine_killed

ended() {
	engine=$(counter b .wire.pid)
	"$SOFTHCA" stop a && "$SOFTHCA" stop b && gone "$engine" && no_instance
}
ok "nothing is left behind" ended

no_wire() {
	"$SOFTHCA" start c && [ "$(counter c .wire)" = null ] && [ "$(counter c '.processes | length')" -eq 0 ] && no_port && "$SOFTHCA" stop c
}
# No descriptor of the daemon is one of the sockets that the kernel lists for UDP.
no_port() {
	# One that it closes meanwhile, of the command before, is an error for find.
	find "/proc/$(cat "$SOFTHCA_DIR/softhca/c/pid")/fd" -lname 'socket:*' -printf '%l\n' >"$tmp/sockets" 2>/dev/null
	[ -s "$tmp/sockets" ] && ! awk '{ print "socket:[" $10 "]" }' /proc/net/udp /proc/net/udp6 2>/dev/null | grep -qxFf "$tmp/sockets"
}
ok "no wire unless it is asked for" no_wire

# An ordinary user needs nothing for it, not even where a user namespace is all there is.
nobody() {
	# Below $tmp nobody gets nowhere.
	place=$(mktemp -d) && chown 65534 "$place" && setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs \
		env SOFTHCA_DIR="$place" unshare -Urn sh -c 'ip link set lo up &&
		"$0" start --wire 127.0.77.1/24 one && "$0" start --wire 127.0.77.2/24 two && "$0" stop one && "$0" stop two' "$SOFTHCA"
	status=$?
	rm -rf "$place"
	return "$status"
}
if [ "$(id -u)" -eq 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urn ip link set lo up 2>/dev/null &&
	setpriv --reuid=65534 --clear-groups test -x "$SOFTHCA"; then
	ok "nobody, in a user namespace, starts two instances" nobody
else
	skip "nobody, in a user namespace, starts two instances" "run as root, where users can make namespaces and reach the tree"
fi

finish
