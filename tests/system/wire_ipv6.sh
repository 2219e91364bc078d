#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: two instances on one wire of IPv6. The loopback interface has one address of it, so the test runs in a network
# namespace of its own. wire.sh and wire_cm.sh have what does not depend on the version of IP.
if [ -z "${OWN_NETWORK:-}" ]; then
	# Root needs no user namespace, in which its memory would be limited.
	for apart in "unshare -n" "unshare -Urn"; do
		! $apart sh -c 'ip link set lo up && ip -6 address add fd77::1/64 dev lo nodad' 2>/dev/null ||
			OWN_NETWORK=1 exec $apart bash "$0" "$@"
	done
fi
. "$srcdir/lib.sh" || exit 1
. "$srcdir/wire_pair.sh" || exit 1

if [ -z "${OWN_NETWORK:-}" ] || ! command -v jq >/dev/null; then
	skip "a wire of IPv6" "this machine permits no network namespaces or has no IPv6, or there is no ip command (iproute2) or no jq"
	finish
fi

one=fd77:1:2::1 two=fd77:1:2::2
network() {
	ip link set lo up && for address in "$one/64" "$two/64" fd77:1:2::3/64 fd77:1:3::9/64 fd77:1:3::8/64 2001:db8::1/64; do
		ip -6 address add "$address" dev lo nodad || return 1
	done
}
start() { "$SOFTHCA" start --wire "$one/64" "$@" a && "$SOFTHCA" start --wire "$two/64" "$@" b; }


# LID and GID say where a port is; the GUIDs differ.
ports() {
	shows a '.wire.network == "fd77:1:2::" and .wire.prefix == 64 and .wire.addresses == [{"address": "fd77:1:2::1", "lid": 1}]' || return 1
	for instance in a b; do
		on "$instance" ibv_devinfo -v >"$tmp/$instance.devinfo" || return 1
	done
	grep -q 'port_lid:[[:space:]]*1$' "$tmp/a.devinfo" && grep -q 'port_lid:[[:space:]]*2$' "$tmp/b.devinfo" &&
		grep -qE 'GID\[ *1\]:[[:space:]]*fd77:(0*1):(0*2):' "$tmp/b.devinfo" &&
		[ "$(grep node_guid "$tmp/a.devinfo")" != "$(grep node_guid "$tmp/b.devinfo")" ] && return 0
	cat "$tmp/a.devinfo" "$tmp/b.devinfo"
	return 1
}

ok "two addresses" network
ok "two instances start on one wire" start --cm-timeout 100ms
ok "getifaddrs() lists the address on the wire" on b "$PROGRAMS/addresses" wire $two 64
if command -v ibv_devinfo >/dev/null; then
	ok "LIDs and GIDs are those of the addresses" ports
	for transport in rc uc ud srq; do
		ok "rdma-core's $transport" across "ibv_${transport}_pingpong" -c -n 100
	done
	ok "rdma-core's rc, by GID" across ibv_rc_pingpong -g 1 -c -n 100
else
	skip "rdma-core's ping-pongs" "install ibverbs-utils"
fi
for transport in rc ud; do
	ok "our $transport" ours across "$TOOLS/ibv_${transport}_pingpong" --verify -n 100
	ok "our $transport, by GID" ours across "$TOOLS/ibv_${transport}_pingpong" --verify -g 1 -n 100
done
ok "our xsrq" ours across "$TOOLS/ibv_xsrq_pingpong" --verify -n 100
ok "rc, messages of many packets" ours across "$TOOLS/ibv_rc_pingpong" --verify -s 300000 -n 5 -r 4
ok "rc: every operation, contents, a late receive, a wrong key" ours across "$PROGRAMS/wire_peers" all

connections() { # connections NAME PREFIX
	ok "$1 rping" by_address "$2rping -s -a :: -C 10 -V" "$2rping -c -a $one -C 10 -V"
	ok "$1 rping, bound to its address" by_address "$2rping -s -a $one -C 5" "$2rping -c -I $two -a $one -C 5"
	ok "$1 ucmatose, three connections" by_address "$2ucmatose -b $one -c 3 -C 10 -S 100" "$2ucmatose -s $one -c 3 -C 10 -S 100"
	ok "$1 ucmatose, by GID" by_address "$2ucmatose -f gid -P ib" "$2ucmatose -f gid -P ib -s $one"
	ok "$1 ucmatose, by GID, bound to it" by_address "$2ucmatose -f gid -P ib -b $one" "$2ucmatose -f gid -P ib -b $two -s $one"
	ok "$1 udaddy" by_address "$2udaddy -b $one -c 2" "$2udaddy -s $one -c 2"
}
says() { # says TEXT COMMAND...: what the command prints in b has this.
	text=$1
	shift
	on b "$@" >"$tmp/client.out" 2>&1
	grep -q -- "$text" "$tmp/client.out" && return 0
	cat "$tmp/client.out"
	return 1
}
if command -v rping >/dev/null; then
	connections "Debian's" ""
	ok "nobody listens" says 'REJECTED, error: 8' ucmatose -s "$one"
	ok "nobody is there" says 'UNREACHABLE, error: -110' ucmatose -s fd77:1:2::9 -c 1
	ok "nor is one of the machine that is not on the wire" says 'No such device' rping -s -a 2001:db8::1
	ok "another instance's address is not to bind to" says 'assign requested address' rping -s -a "$one"
else
	skip "Debian's tools of rdma_cm" "install rdmacm-utils"
fi
# shellcheck disable=SC2153 # OURS is of make
cm=${OURS%%:*}/../../librdmacm/.libs
connections "our" "env LD_LIBRARY_PATH=$cm:$OURS${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} RDMAV_DRIVERS=mlx4 $cm/"

# The file has the checksums that a network would have.
quiet=$(printf -- '--disable-heuristic %s ' eth_over_ib rpcrdma_infiniband mellanox_eoib fc_infiniband nvme_rdma \
	smcr_infiniband lnet_ib iser_infiniband smb_direct_infiniband sdp_infiniband)
captured() { # captured [OPTION...]
	rm -f "$tmp/file"
	"$SOFTHCA" capture a -w "$tmp/file" "$@" &
	capture=$!
	until_true test -s "$tmp/file" && across "$TOOLS/ibv_rc_pingpong" -n 20 && across "$TOOLS/ibv_ud_pingpong" -n 20 || return 1
	kill -INT "$capture" && wait "$capture"
	# shellcheck disable=SC2086 # words
	bad=$(tshark -o udp.check_checksum:TRUE -r "$tmp/file" $quiet \
		-Y "!infiniband || !ipv6 || _ws.malformed || _ws.expert.severity >= 6291456" 2>/dev/null) || return 1
	[ -z "$bad" ] || { echo "$bad"; return 1; }
	[ "$(tshark -r "$tmp/file" -Y 'ipv6.src == fd77:1:2::2 && udp.dstport == 4791' 2>/dev/null | wc -l)" -ge 40 ]
}
if command -v tshark >/dev/null; then
	ok "a capture is well-formed" ours captured
	ok "a capture of cut packets is well-formed" ours captured --snap 100
else
	skip "a capture is well-formed" "install tshark"
fi

lossy() {
	for instance in a b; do
		"$SOFTHCA" fault "$instance" seed 1 && "$SOFTHCA" fault "$instance" drop 2% &&
			"$SOFTHCA" fault "$instance" corrupt 2% && "$SOFTHCA" fault "$instance" duplicate 5% &&
			"$SOFTHCA" fault "$instance" reorder 5% || return 1
	done
	across "$@" && [ "$(counter a .wire.bad_icrc)" -gt 0 ] && [ "$(counter b .wire.bad_icrc)" -gt 0 ] &&
		"$SOFTHCA" fault a off && "$SOFTHCA" fault b off
}
ok "nothing came damaged" shows a '.wire | .malformed + .bad_icrc == 0'
ok "rc over a wire that loses packets" ours lossy "$TOOLS/ibv_rc_pingpong" --verify -n 30 -s 20000 -r 100
ok "rc: every operation over a wire that loses packets" ours lossy "$PROGRAMS/wire_peers" lossy
ok "uc over a wire that loses packets: messages come whole" ours lossy "$PROGRAMS/wire_peers" uc_lossy

# What comes from outside of the prefix does not get as far as the instance, which would call it malformed.
send_from() { python3 -c 'import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 0))
s.sendto(b"no packet", (sys.argv[2], 4791))' "$1" "$one"; }
outside() {
	malformed=$(counter a .wire.malformed) dropped=$(counter a .wire.dropped_by_socket)
	for address in fd77:1:3::9 2001:db8::1 ::1; do
		send_from "$address" || return 1
	done
	until_true dropped && [ "$(counter a .wire.malformed)" -eq "$malformed" ] && send_from fd77:1:2::3 && until_true malformed
}
dropped() { [ "$(counter a .wire.dropped_by_socket)" -ge $((dropped + 3)) ]; }
malformed() { [ "$(counter a .wire.malformed)" -eq $((malformed + 1)) ]; }
if command -v python3 >/dev/null; then
	ok "packets from outside of the prefix" outside
else
	skip "packets from outside of the prefix" "install python3"
fi

refused() { # refused ADDRESS TEXT
	status 125 "$SOFTHCA" start --wire "$1" c 2>"$tmp/c.out" && grep -q -- "$2" "$tmp/c.out" || { cat "$tmp/c.out"; return 1; }
}
ok "an address that is taken" refused "$one/64" "UDP port 4791 of $one is taken"
ok "an address that is not of this machine" refused fd77:1:2::7/64 "fd77:1:2::7 is no address of this machine.*tentative"
ok "an address of one link" refused fe80::1%lo/64 "fe80::1 is good on one link alone"

# The header is 20 bytes longer than IPv4's, and the port says what fits.
mtu() { # mtu MTU ADDRESS/PREFIX PAYLOAD
	ip link add w0 mtu "$1" type veth peer name w1 && ip address add "$2" dev w0 "${@:4}" && ip link set w0 up || return 1
	"$SOFTHCA" start --wire "$2" c && [ "$(counter c .wire.mtu)" -eq "$3" ] && "$SOFTHCA" stop c
	result=$?
	ip link delete w0
	return "$result"
}
ok "what fits into packets of 4180 bytes, IPv4" mtu 4180 10.66.0.1/24 4096
ok "what fits into packets of 4180 bytes, IPv6" mtu 4180 fd66::1/64 2048 nodad
ok "what fits into packets of 4200 bytes, IPv6" mtu 4200 fd66::1/64 4096 nodad

two_ports() {
	"$SOFTHCA" stop a && "$SOFTHCA" start --ports 2 --wire "$one/64,fd77:1:2::3" a &&
		shows a '[.wire.addresses[].lid] == [1, 3]' && across ibv_rc_pingpong -n 10
}
ok "a port for each address" two_ports
ended() { "$SOFTHCA" stop a && "$SOFTHCA" stop b && no_instance; }
ok "nothing is left behind" ended

# Two ports whose interfaces carry packets of different sizes. A request says with which MTU its connection is to be made: that of
# the port that it leaves, which the other one may not have.
mtus() {
	ip link add w0 mtu 4200 type veth peer name w1 mtu 1500 && ip address add 10.66.0.1/24 dev w0 && ip address add 10.66.0.2/24 dev w1 &&
		ip link set w0 up && ip link set w1 up && "$SOFTHCA" start --wire 10.66.0.1/24 a && "$SOFTHCA" start --wire 10.66.0.2/24 b &&
		[ "$(counter a .wire.mtu)" -eq 4096 ] && [ "$(counter b .wire.mtu)" -eq 1024 ]
}
# shellcheck disable=SC2086 # words: $matose
too_large() {
	on b $matose >"$tmp/server.out" 2>&1 &
	server=$!
	until_true holds b "$listens" || return 1
	on a $matose -s 10.66.0.2 >"$tmp/client.out" 2>&1
	kill "$(counter b '.connection_channels[0].pid')"
	wait "$server"
	grep -q 'REJECTED, error: 26' "$tmp/client.out" || { cat "$tmp/client.out"; return 1; }
}
matose="env LD_LIBRARY_PATH=$cm:$OURS${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} RDMAV_DRIVERS=mlx4 $cm/ucmatose"
ok "ports of two MTUs" mtus
ok "the port with the smaller one asks" by_address "$matose -C 5 -S 3000" "$matose -C 5 -S 3000 -s 10.66.0.1"
ok "the port with the larger one asks" too_large
ok "nothing is left behind of these" ended
ip link delete w0 2>/dev/null

# Instances of two networks, which name each other; the LIDs are those of their own networks.
peers() {
	"$SOFTHCA" start --wire "$one/64" --peer 9=fd77:1:3::9 --cm-timeout 100ms a && "$SOFTHCA" start --wire fd77:1:3::9/64 --peer "1=$one" --cm-timeout 100ms b &&
		shows a '.wire.peers == [{address: "fd77:1:3::9", lid: 9}]'
}
# Addresses that are the peer's but for their last word, or their first one, are strangers'.
strangers() {
	malformed=$(counter a .wire.malformed) dropped=$(counter a .wire.dropped_by_socket)
	for address in fd77:1:3::8 2001:db8::1 ::1; do
		send_from "$address" || return 1
	done
	until_true dropped && [ "$(counter a .wire.malformed)" -eq "$malformed" ] && send_from fd77:1:3::9 && until_true malformed
}
names() {
	[ "$(on b cat /sys/class/infiniband/mlx4_0/node_desc)" = "softhca-fd77-1-3--9 HCA-1" ] || return 1
	on a hostname >"$tmp/a.name" && on b hostname >"$tmp/b.name" && [ "$(cat "$tmp/a.name" "$tmp/b.name" | paste -s)" = "softhca-fd77-1-2--1	softhca-fd77-1-3--9" ] &&
		on b getent ahostsv6 softhca-fd77-1-2--1 | grep -q "^$one " && [ "$(on a hostid)" != "$(on b hostid)" ]
}
ok "two instances on two networks" peers
for transport in rc ud; do
	ok "a peer: our $transport" ours across "$TOOLS/ibv_${transport}_pingpong" --verify -n 100
	ok "a peer: our $transport, by GID" ours across "$TOOLS/ibv_${transport}_pingpong" --verify -g 1 -n 100
done
if command -v rping >/dev/null; then
	ok "a peer: rping" by_address "rping -s -a :: -C 10 -V" "rping -c -a $one -C 10 -V"
	ok "a peer: ucmatose, by GID" by_address "ucmatose -f gid -P ib" "ucmatose -f gid -P ib -s $one"
else
	skip "a peer: rping" "install rdmacm-utils"
fi
if command -v python3 >/dev/null; then
	ok "packets of strangers" strangers
else
	skip "packets of strangers" "install python3"
fi
ok "their hosts have names of their own" names
ok "nothing is left behind" ended
finish
