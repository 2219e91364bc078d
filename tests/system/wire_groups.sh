#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: multicast groups over a wire. Two instances in a network namespace, first at two addresses of its loopback interface,
# then at the two ends of a cable, each of which is an interface of a namespace of its own; IPv4 and IPv6.

# Root needs no user namespace, in which its memory would be limited.
if [ -z "${APART:-}" ]; then
	for apart in "unshare -n" "unshare -Urn" none; do
		[ "$apart" = none ] || ! $apart ip link add w0 type veth peer name w1 2>/dev/null || break
	done
	if [ "$apart" = none ] || ! command -v jq >/dev/null; then
		echo "ok 1 - groups on a wire # SKIP needs network namespaces, ip (package iproute2) and jq"
		echo "1..1"
		exit 0
	fi
	APART=1 exec $apart bash "$0" "$@"
fi
. "$srcdir/lib.sh" || exit 1

# The namespace of b: this one, or that of a process.
at_b() {
	if [ -n "$there" ]; then nsenter -t "$there" -n "$@"; else "$@"; fi
}
counter() { "$SOFTHCA" show --json "$1" | jq "$2"; }

# member NAME INSTANCE: a QP that does what say tells it. Its answers come to ask.
member() {
	mkfifo "$tmp/$1.in" "$tmp/$1.out" || return 1
	ours timeout 300 "$SOFTHCA" run --instance "$2" -- "$PROGRAMS/wire_groups" <"$tmp/$1.in" >"$tmp/$1.out" 2>"$tmp/$1.err" &
	eval "pid_$1=$!"
	eval "exec {in_$1}>$tmp/$1.in {out_$1}<$tmp/$1.out"
	rm "$tmp/$1.in" "$tmp/$1.out"
	eval "read -r -t 20 lid qpn process_$1 <&\$out_$1" || return 1
	eval "address_$1=\"$lid $qpn\""
}
ends() { eval "echo end >&\$in_$1; exec {in_$1}>&- {out_$1}<&-; wait \$pid_$1"; }
answer=
ask() { # ask NAME WORDS...
	local name=$1
	shift
	eval "echo \"\$*\" >&\$in_$name; read -r -t 10 answer <&\$out_$name" || { echo "$name does not answer: $*"; return 1; }
}
asked() { # asked ANSWER NAME WORDS...
	local wanted=$1
	shift
	ask "$@" && [ "$answer" = "$wanted" ] || { echo "$*: $answer, not $wanted"; return 1; }
}
# nothing_more NAME: whatever was sent to it before is there, and next is what is sent now.
nothing_more() {
	local address
	eval "address=\$address_$1"
	# shellcheck disable=SC2086 # words
	asked sent sender tell $address over && asked over "$1" next
}
shows_groups() { [ "$(counter "$1" '"\(.wire.groups) \(.wire.groups_unheard)"')" = "\"$2\"" ]; }
# joined GROUP: by an interface of either namespace
joined() { { ip maddress; at_b ip maddress; } | grep -qE "inet6? +$1"; }
left() { ! joined "$1"; }

# group MGID ADDRESS: what becomes of what a QP in b sends to it. ADDRESS: how IP has the group; of the sender's: $from
group() {
	asked attached first attach "$1" && shows_groups a "1 0" && joined "$2" || return 1
	asked sent sender send "$1" one && asked "one $from $1" first next && nothing_more first || return 1
	# Another member at that end, and one in the sender's own instance: each gets it once.
	asked attached second attach "$1" && asked attached sender attach "$1" && shows_groups a "1 0" &&
		shows_groups b "1 0" || return 1
	asked sent sender send "$1" two && asked "two $from $1" first next && asked "two $from $1" second next &&
		ask sender next && [ "${answer%% *}" = two ] || return 1
	nothing_more first && nothing_more second && nothing_more sender || return 1
	asked sent first send "$1" back && ask sender next && [ "${answer%% *}" = back ] && ask second next &&
		[ "${answer%% *}" = back ] && ask first next && [ "${answer%% *}" = back ] && nothing_more first &&
		nothing_more second && nothing_more sender || return 1
	# With another Q_Key nobody gets it.
	asked sent sender send "$1" secret 22222222 && nothing_more first && nothing_more sender || return 1
	# One of two leaves, and then the other one.
	asked detached first detach "$1" && asked sent sender send "$1" three && asked "three $from $1" second next &&
		nothing_more first && shows_groups a "1 0" || return 1
	asked detached second detach "$1" && asked detached sender detach "$1" && shows_groups a "0 0" && left "$2" || return 1
	ask sender next && [ "${answer%% *}" = three ] || return 1
	asked sent sender send "$1" four && nothing_more second && nothing_more sender
}
clean() {
	for instance in a b; do
		[ "$(counter "$instance" '.wire | .malformed + .bad_icrc + .unsent')" -eq 0 ] || { counter "$instance" .wire; return 1; }
	done
}
# A group that the sender names in another way is another group.
others() {
	asked attached first attach "$1" && asked sent sender send "$2" no && nothing_more first && asked detached first detach "$1"
}
# A program for RoCE has no LID of the group.
by_gid() {
	asked attached first attach "$1" && asked sent sender by 0 "$1" named && asked "named $from $1" first next &&
		nothing_more first && asked detached first detach "$1"
}
# A member at the second port, which the same interface has: what comes once is there once for each. What a sends at the first port, too.
two_ports() {
	PORT=2 member other a && asked attached other attach "$1" && asked attached first attach "$1" && shows_groups a "1 0" &&
		asked sent sender send "$1" ports && asked "ports $from $1" other next && asked "ports $from $1" first next &&
		asked sent second send "$1" inside && ask other next && [ "${answer%% *}" = inside ] && ask first next &&
		[ "${answer%% *}" = inside ] && nothing_more other && nothing_more first && asked detached first detach "$1" &&
		asked sent sender send "$1" second && asked "second $from $1" other next && nothing_more first && ends other &&
		until_true shows_groups a "0 0"
}
# A program that sends, and ends its QP before the wire's process has seen any of it. A card would have sent it all.
early() {
	member leaver b && asked attached first attach "$1" &&
		asked gone leaver gone "$1" early "$(counter b .wire.pid)" && ends leaver || return 1
	for _ in 1 2 3 4 5; do
		asked "early $from $1" first next || return 1
	done
	nothing_more first && asked detached first detach "$1"
}
# Without members nothing is joined; the daemon of an instance that has none has no more sockets than addresses.
none() {
	shows_groups a "0 0" && shows_groups b "0 0" && [ "$(ip maddress)" = "$before" ]
}
# The daemon is killed: members go on, and the memberships end with the last program of the instance.
orphaned() {
	asked attached first attach "$1" && kill -KILL "$(cat "$SOFTHCA_DIR/softhca/a/pid")" && asked sent sender send "$1" alone &&
		asked "alone $from $1" first next && nothing_more first && joined "$2" && ends first && ends second && until_true left "$2"
}
# Two MGIDs may have one group of IP, as rdma_cm's and RoCE's for the same address do: then a member of one gets what is sent to both.
same() {
	asked attached first attach "$1" && asked sent sender send "$2" both && asked "both $from $1" first next &&
		asked detached first detach "$1"
}
# What comes to a group from outside of the prefix does not get as far as the instance, which would call it malformed.
send_from() { python3 -c 'import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(sys.argv[1]))
s.bind((sys.argv[1], 0))
s.sendto(b"no packet", ("239.1.2.3", 4791))' "$1"; }
outside() {
	asked attached first attach ::ffff:239.1.2.3 || return 1
	malformed=$(counter a .wire.malformed)
	send_from 127.0.88.1 && send_from 127.0.0.1 && until_true outside_dropped && [ "$(counter a .wire.malformed)" -eq "$malformed" ] &&
		send_from 127.0.77.9 && until_true inside_malformed && asked detached first detach ::ffff:239.1.2.3 && outside_dropped
}
# Also when the group's socket has gone.
outside_dropped() { [ "$(counter a .wire.dropped_by_socket)" -eq 2 ]; }
inside_malformed() { [ "$(counter a .wire.malformed)" -eq $((malformed + 1)) ]; }
# A capture has what goes to groups and what comes from them: here, one each.
captured() {
	"$SOFTHCA" capture a -w "$tmp/file" &
	capture=$!
	until_true test -s "$tmp/file" && asked attached first attach ff12:4001:ffff::e01:203 &&
		asked sent sender send ff12:4001:ffff::e01:203 in && ask first next && asked sent first send ff12:4001:ffff::e01:203 out &&
		ask first next && asked detached first detach ff12:4001:ffff::e01:203 || return 1
	kill -INT "$capture" && wait "$capture"
	[ "$(tshark -r "$tmp/file" -Y 'ip.dst == 238.1.2.3 && ip.ttl == 1 && infiniband.bth.destqp == 0xffffff && !_ws.malformed' \
		-T fields -e ip.src 2>"$tmp/tshark.err" | sort | tr '\n' ' ')" = "127.0.77.1 127.0.77.2 " ] ||
		{ tshark -r "$tmp/file"; return 1; }
}
# The last member is killed.
killed() { # killed MGID ADDRESS
	member victim a && asked attached victim attach "$1" && joined "$2" || return 1
	kill -KILL "$process_victim"
	until_true shows_groups a "0 0" && left "$2" || { counter a .wire; return 1; }
}
# 150 groups are more than the wire has sockets. Each works in its own instance, and show says what it cannot hear.
many() {
	for i in $(seq 150); do
		asked attached first attach "ff12:401b:ffff::$i" || return 1
	done
	shows_groups a "150 22" || { counter a .wire; return 1; }
	for i in $(seq 150); do
		asked detached first detach "ff12:401b:ffff::$i" || return 1
		# Then there is room for the others.
		[ "$i" -ne 22 ] || shows_groups a "128 0" || { counter a .wire; return 1; }
	done
	shows_groups a "0 0" && asked attached first attach ff12:401b:ffff::150 && shows_groups a "1 0" &&
		asked sent sender send ff12:401b:ffff::150 now && asked "now $from ff12:401b:ffff::150" first next &&
		asked detached first detach ff12:401b:ffff::150
}
# The kernel refuses membership: the attachment holds inside the instance.
refused() {
	echo 0 >/proc/sys/net/ipv4/igmp_max_memberships || return 1
	asked attached first attach "$1" && shows_groups a "1 1" && asked sent second send "$1" here && ask first next &&
		[ "${answer%% *}" = here ] || return 1
	echo 20 >/proc/sys/net/ipv4/igmp_max_memberships
	asked sent sender send "$1" no && nothing_more first || return 1
	# The next member tries again.
	asked attached second attach "$1" && shows_groups a "1 0" && asked sent sender send "$1" yes &&
		asked "yes $from $1" first next && asked "yes $from $1" second next && asked detached first detach "$1" &&
		asked detached second detach "$1"
}
# Both ends can send: the kernel makes the routes of a new interface a little later.
routed() {
	ip -6 route show table local dev w0 | grep -q '^multicast ff00::/8' &&
		at_b ip -6 route show table local dev w1 | grep -q '^multicast ff00::/8'
}
# The interfaces go away with their memberships, and others come with the same addresses. Nobody attaches meanwhile.
made_again() { # made_again MGID ADDRESS
	asked attached first attach "$1" && asked attached sender attach "$1" && ip link delete w0 && until_true shows_groups a "1 1" &&
		cable && until_true shows_groups a "1 0" && until_true shows_groups b "1 0" &&
		until_true routed && { ip maddress | grep -qE "inet6? +$2"; } && { at_b ip maddress | grep -qE "inet6? +$2"; } || { ip maddress; return 1; }
	asked sent sender send "$1" again && asked "again $from $1" first next && ask sender next && asked sent first send "$1" back &&
		ask sender next && [ "${answer%% *}" = back ] && ask first next && asked detached sender detach "$1" &&
		asked detached first detach "$1" && until_true shows_groups a "0 0" && until_true shows_groups b "0 0" && left "$2"
}
# An interface of two ports goes away, and its addresses come back one by one: the second when the first is heard again.
one_by_one() { # one_by_one MGID ADDRESS
	PORT=2 member other a && asked attached first attach "$1" && asked attached other attach "$1" && shows_groups a "1 0" &&
		ip link delete w0 && until_true shows_groups a "1 1" && cable && until_true joined_here "$2" || { ip maddress; return 1; }
	ip address add 10.77.0.3/24 dev w0 && until_true shows_groups a "1 0" && until_true routed &&
		asked sent sender send "$1" again && asked "again $from $1" first next && asked "again $from $1" other next &&
		nothing_more first && nothing_more other && asked detached first detach "$1" && ends other && until_true shows_groups a "0 0"
}
joined_here() { ip maddress show dev w0 | grep -qE "inet6? +$1"; }
# by_address OWN-ADDRESS SENDERS-ADDRESS GROUP PREFIX: each of rdma_cm's tools gets all ten messages of the other end.
by_address() {
	# shellcheck disable=SC2086 # words of a command
	timeout 60 "$SOFTHCA" run --instance a -- stdbuf -oL $4mckey -C 10 -S 100 -m "$3" -b "$1" >"$tmp/receiver" 2>&1 &
	receiver=$!
	# shellcheck disable=SC2086 # words of a command
	until_true grep -q 'joined dgid' "$tmp/receiver" && until_true shows_groups a "1 0" &&
		at_b timeout 60 "$SOFTHCA" run --instance b -- $4mckey -s -C 10 -S 100 -m "$3" -b "$2" >"$tmp/sender" 2>&1 &&
		wait "$receiver" && grep -q 'receiving data transfers' "$tmp/receiver" && grep -q 'data transfers complete' "$tmp/receiver" &&
		until_true shows_groups a "0 0" && return 0
	# What tells a lost datagram from one that had no receive, or came to no member.
	cat "$tmp/receiver" "$tmp/sender"
	counter a ".wire, ([.hosts[].hcas[].counters] | add)" | jq -c .
	counter b .wire | jq -c .
	kill "$receiver"
	wait "$receiver"
	return 1
}
mckeys() { # mckeys DESCRIPTION OWN-ADDRESS SENDERS-ADDRESS GROUP
	if command -v mckey >/dev/null; then
		ok "Debian's mckey, $1" by_address "$2" "$3" "$4" ""
	else
		skip "Debian's mckey, $1" "install rdmacm-utils"
	fi
	# shellcheck disable=SC2153 # OURS is of make
	cm=${OURS%%:*}/../../librdmacm/.libs
	ok "our mckey, $1" by_address "$2" "$3" "$4" "env LD_LIBRARY_PATH=$cm:$OURS RDMAV_DRIVERS=mlx4 $cm/"
}
starts() { # starts A B PREFIX [OPTION OTHER-ADDRESS]
	# shellcheck disable=SC2086 # words
	"$SOFTHCA" start ${4:-} --wire "$1/$3${5:-}" a && at_b "$SOFTHCA" start --wire "$2/$3" b && member first a && member second a && member sender b
}
stops() {
	ends first && ends second && ends sender && "$SOFTHCA" stop a && "$SOFTHCA" stop b && no_instance
}

there=
ip link set lo up
from=::ffff:127.0.77.2
before=$(ip maddress)
ok "two instances at addresses of the loopback interface" starts 127.0.77.1 127.0.77.2 24 --ports=2 ,127.0.77.3
ok "without members nothing is joined" none
ok "a group of IPv4" group ::ffff:239.1.2.3 239.1.2.3
ok "nothing is left of it" none
ok "what rdma_cm makes of one" group ff12:4001:ffff::e01:203 238.1.2.3
ok "a group of InfiniBand" group ff12:401b:ffff::1 "239[.]"
ok "groups that differ are two" others ff12:401b:ffff::1 ff12:401b:ffff::2
ok "a sender that knows no LID of the group" by_gid ::ffff:239.1.2.3
ok "members at two ports of an interface" two_ports ff12:401b:ffff::1
ok "a QP that ends before the wire's process has sent" early ::ffff:239.1.2.3
ok "one group of IPv4 by two names" same ff12:4001:ffff::f01:203 ::ffff:239.1.2.3
mckeys "loopback interface" 127.0.77.1 127.0.77.2 239.1.2.3
ok "the last member is killed" killed ::ffff:239.1.2.3 239.1.2.3
ok "more groups than the wire has room for" many
if [ -w /proc/sys/net/ipv4/igmp_max_memberships ]; then
	ok "the kernel refuses" refused ::ffff:239.1.2.3
else
	skip "the kernel refuses" "this machine does not let a namespace change its limits"
fi
if command -v tshark >/dev/null; then
	ok "a capture" captured
else
	skip "a capture" "install tshark"
fi
ok "nothing came damaged" clean
if command -v python3 >/dev/null; then
	ok "packets to a group from outside of the prefix" outside
else
	skip "packets to a group from outside of the prefix" "install python3"
fi
ok "they end" stops

unshare -n sleep 1000 &
there=$!
elsewhere() { [ "$(readlink "/proc/$there/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
cable() {
	until_true elsewhere && ip link add w0 type veth peer name w1 netns "$there" && ip address add 10.77.0.1/24 dev w0 &&
		ip address add fd77::1/64 dev w0 nodad && ip link set w0 up && at_b ip address add 10.77.0.2/24 dev w1 &&
		at_b ip address add fd77::2/64 dev w1 nodad && at_b ip link set w1 up && at_b ip link set lo up
}
from=::ffff:10.77.0.2
ok "a cable" cable
ok "two instances at its ends" starts 10.77.0.1 10.77.0.2 24
ok "a group of IPv4, over a cable" group ::ffff:239.1.2.3 239.1.2.3
ok "a group of InfiniBand, over a cable" group ff12:401b:ffff::1 "239[.]"
mckeys "cable" 10.77.0.1 10.77.0.2 239.1.2.3
ok "the cable is made again" made_again ::ffff:239.1.2.3 239.1.2.3
ok "nothing came damaged over a cable" clean
ok "they end, too" stops
two_addresses() { ip address add 10.77.0.3/24 dev w0 && starts 10.77.0.1 10.77.0.2 24 --ports=2 ,10.77.0.3; }
ok "two ports at one end of the cable" two_addresses
ok "its addresses come back one by one" one_by_one ::ffff:239.1.2.3 239.1.2.3
ok "these end" stops
from=fd77::2
ok "two instances of IPv6" starts fd77::1 fd77::2 64
ok "a group of IPv6" group ff15::77 ff15::77
ok "a group of InfiniBand over IPv6" group ff12:401b:ffff::1 ff12:401b:ffff::1
ok "a group whose scope IPv6 does not send to" group ff01:0:2:c985::1 ff02:0:2:c985::1
ok "a sender that knows no LID of the group, IPv6" by_gid ff15::77
ok "a QP that ends before the wire's process has sent, IPv6" early ff15::77
mckeys "IPv6" fd77::1 fd77::2 ff15::77
ok "the cable is made again, IPv6" made_again ff15::77 ff15::77
ok "the last member is killed, IPv6" killed ff15::77 ff15::77
ok "nothing came damaged, IPv6" clean
ok "the daemon is killed" orphaned ff15::77 ff15::77
ends sender
ok "the other one ends" "$SOFTHCA" stop b
finish
