#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: two instances on two networks, which name each other with --peer, and two whose addresses give no LID (--lid). Also the
# names that hosts of one machine have. wire.sh and wire_cm.sh have what goes over a wire; wire_ipv6.sh has peers of IPv6.
. "$srcdir/lib.sh" || exit 1
. "$srcdir/wire_pair.sh" || exit 1

needs "peers of a wire" "jq, python3 and rdmacm-utils" jq python3 rping ucmatose udaddy

# pair 'OPTIONS OF a' 'OPTIONS OF b': A and B in them are networks that no other test has.
pair() {
	for _ in $(seq 50); do
		one=127.$((1 + RANDOM % 60)).$((RANDOM % 256)) two=127.$((61 + RANDOM % 60)).$((RANDOM % 256))
		start a "$1" >"$tmp/a.out" 2>&1 || continue
		start b "$2" >"$tmp/b.out" 2>&1 && return 0
		"$SOFTHCA" stop a
	done
	cat "$tmp/a.out" "$tmp/b.out"
	return 1
}
start() { # start INSTANCE OPTIONS
	local options=${2//A/$one}
	# shellcheck disable=SC2086 # words
	"$SOFTHCA" start --cm-timeout 100ms ${options//B/$two} "$1"
}
unpair() { "$SOFTHCA" stop a && "$SOFTHCA" stop b && no_instance; }

tells() {
	shows a ".wire.network == \"$one.0\" and .wire.addresses == [{address: \"$one.1\", lid: 1}] and .wire.peers == [{address: \"$two.5\", lid: 5}]" &&
		shows b ".wire.peers == [{address: \"$one.1\", lid: 1}, {address: \"192.0.2.9\", lid: 1022}]" &&
		"$SOFTHCA" show a >"$tmp/shown" && grep -A 2 'peers (1)' "$tmp/shown" | grep -q "$two.5  *5$" || { cat "$tmp/shown"; return 1; }
}

# Packets that are none: the kernel drops a stranger's, and the instance counts a peer's as malformed.
send_from() { python3 -c 'import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 0))
s.sendto(b"no packet", (sys.argv[2], 4791))' "$1" "$one.1"; }
strangers() {
	malformed=$(counter a .wire.malformed) dropped=$(counter a .wire.dropped_by_socket)
	# The neighbour of the peer, and half of the addresses alike.
	for address in "$two.4" "$two.7" 127.0.0.1 "${two%.*}.$((255 - ${two##*.})).5"; do
		send_from "$address" || return 1
	done
	until_true dropped && [ "$(counter a .wire.malformed)" -eq "$malformed" ] && send_from "$two.5" && send_from "$one.77" && until_true malformed
}
dropped() { [ "$(counter a .wire.dropped_by_socket)" -ge $((dropped + 4)) ]; }
malformed() { [ "$(counter a .wire.malformed)" -eq $((malformed + 2)) ]; }

# A fault of a hits the link to the peer, by its address.
done_by() { counter a '[.faults[].done] | add // 0'; }
fault() { # fault WORDS...
	"$SOFTHCA" fault a "$@" && shows a "[.faults[] | .from, .to] | index(\"$two.5\")" || return 1
	if across "$TOOLS/ibv_rc_pingpong" -n 3 --timeout 8 >"$tmp/failed" 2>&1; then
		echo "it went through"
		return 1
	fi
	grep -qi 'transport retry counter exceeded' "$tmp/failed" || { cat "$tmp/failed"; return 1; }
	[ "$(done_by)" -gt 0 ] && "$SOFTHCA" fault a off && across "$TOOLS/ibv_rc_pingpong" --verify -n 10
}
fault_of_none() { status 125 "$SOFTHCA" fault a drop 1% --to "$two.6" 2>"$tmp/err" && grep -q "$two.6 is neither in the network .* nor a peer" "$tmp/err"; }

captured() {
	rm -f "$tmp/file"
	"$SOFTHCA" capture a -w "$tmp/file" 2>"$tmp/capture.err" &
	capture=$!
	until_true test -s "$tmp/file" && across "$TOOLS/ibv_rc_pingpong" -n 20 && across "$TOOLS/ibv_ud_pingpong" -n 20 || return 1
	kill -INT "$capture" && wait "$capture"
	for way in "ip.src == $one.1 && ip.dst == $two.5" "ip.src == $two.5 && ip.dst == $one.1"; do
		[ "$(tshark -r "$tmp/file" -Y "$way && udp.dstport == 4791" 2>/dev/null | wc -l)" -ge 40 ] || { cat "$tmp/capture.err"; return 1; }
	done
	[ -z "$(tshark -r "$tmp/file" -Y "ip && ip.addr != $one.1 || ip && ip.addr != $two.5" 2>/dev/null | head -n 3)" ]
}

# What a fault takes of what comes is in a capture, too, and says so.
taken() {
	rm -f "$tmp/file"
	lost=$(counter a "[.hosts[].hcas[].counters.drops_fault] | add")
	"$SOFTHCA" fault a drop 20% --from "$two.5" || return 1
	"$SOFTHCA" capture a -w "$tmp/file" 2>"$tmp/capture.err" &
	capture=$!
	until_true test -s "$tmp/file" && across "$TOOLS/ibv_rc_pingpong" --verify -n 100 || return 1
	"$SOFTHCA" fault a off && kill -INT "$capture" && wait "$capture" || return 1
	lost=$(($(counter a "[.hosts[].hcas[].counters.drops_fault] | add") - lost))
	[ "$lost" -gt 0 ] && [ "$(tshark -r "$tmp/file" -Y "frame.comment && ip.src == $two.5" 2>/dev/null | wc -l)" -eq "$lost" ]
}

by_lid() {
	for transport in rc uc ud srq; do
		ok "$1 $transport, by LID" ours across "$TOOLS/ibv_${transport}_pingpong" --verify -n 50
	done
	ok "$1 xsrq, by LID" ours across "$TOOLS/ibv_xsrq_pingpong" --verify -n 50
	# The completion of a datagram has the LID that the peer tells.
	ok "$1 datagrams, and whom they are from" ours across "$PROGRAMS/wire_peers" ud
	ok "$1 every operation" ours across "$PROGRAMS/wire_peers" all
}
by_gid() {
	for transport in rc ud; do
		ok "$1 $transport, by GID" ours across "$TOOLS/ibv_${transport}_pingpong" --verify -g 1 -n 50
		ok "$1 $transport of rdma-core, by GID" across "ibv_${transport}_pingpong" -g 1 -c -n 50
	done
}
connections() { # connections NAME ADDRESS-OF-a ADDRESS-OF-b
	ok "$1 rping" by_address "rping -s -C 10 -V" "rping -c -a $2 -C 10 -V"
	ok "$1 rping, bound to its address" by_address "rping -s -a $2 -C 5" "rping -c -I $3 -a $2 -C 5"
	ok "$1 ucmatose, by GID" by_address "ucmatose -f gid -P ib -c 2" "ucmatose -f gid -P ib -c 2 -s ::ffff:$2"
	ok "$1 udaddy" by_address "udaddy -c 2" "udaddy -s $2 -c 2"
}

# Each LID is the one that the peer's own instance has, so programs that exchange LIDs find each other.
ok "two instances on two networks" pair "--wire A.1/24 --peer 5=B.5" "--wire B.5/24 --peer 1=A.1,0x3fe=192.0.2.9"
ok "show names the peers" tells
by_lid "a peer:"
by_gid "a peer:"
connections "a peer:" "$one.1" "$two.5"
ok "packets of strangers" strangers
ok "a fault to a peer" ours fault drop 100% --to "$two.5"
ok "a fault of what comes from it" ours fault drop 100% --from "$two.5"
ok "a partition" ours fault partition on --to "$two.5"
ok "a fault to an address that is none" fault_of_none
if command -v tshark >/dev/null; then
	ok "a capture has the peer's address" ours captured
	ok "a capture has what a fault takes when it comes" ours taken
else
	skip "a capture has the peer's address" "install tshark"
fi

# On one machine a program must not take the hosts of both instances for one.
names() {
	for instance in a b; do
		on "$instance" sh -c 'hostname && uname -n && cat /etc/hostname /proc/sys/kernel/hostname && hostid && cat /proc/sys/kernel/random/boot_id' \
			>"$tmp/$instance.names" || return 1
	done
	cat "$tmp/a.names" "$tmp/b.names"
	[ "$(head -n 4 "$tmp/a.names" | sort -u)" = "softhca-$(tr . - <<<"$one.1")" ] &&
		[ "$(head -n 4 "$tmp/b.names" | sort -u)" = "softhca-$(tr . - <<<"$two.5")" ] &&
		[ -z "$(comm -12 <(sort "$tmp/a.names") <(sort "$tmp/b.names"))" ] && [ "$(sort -u "$tmp/a.names" | wc -l)" -eq 3 ]
}
# What the device calls itself, from the address of its host's first port: described INSTANCE HOST ADDRESS
described() {
	text=$(on "$1" env "SOFTHCA_HOST=$2" cat /sys/class/infiniband/mlx4_0/node_desc) || return 1
	[ "$text" = "softhca-$(tr . - <<<"$3") HCA-1" ] || { echo "$text"; return 1; }
}
devices() { described a 0 "$one.1" && described b 0 "$two.5"; }
# The names are known in both, by each call.
resolves() {
	for instance in a b; do
		for address in "$one.1" "$two.5"; do
			on "$instance" python3 -c 'import socket, sys
name, address = sys.argv[1:]
for n in name, name.upper(), name + ".":
    assert socket.gethostbyname(n) == address, n
    assert socket.gethostbyname_ex(n) == (name, [], [address]), socket.gethostbyname_ex(n)
    got = socket.getaddrinfo(n, 80, socket.AF_INET, socket.SOCK_STREAM, 0, socket.AI_CANONNAME)
    assert [(g[3], g[4]) for g in got] == [(name, (address, 80))], got' "softhca-$(tr . - <<<"$address")" "$address" || return 1
		done
	done
	status 2 on a getent hosts softhca-10-1-2
}
ok "hosts of one machine have names of their own" names
ok "which are known in each instance" resolves
ok "and so have their devices" devices
own_name() {
	"$SOFTHCA" start c && on c hostname >"$tmp/c.name" && "$SOFTHCA" stop c && [ "$(cat "$tmp/c.name")" = "$(uname -n)" ]
}
ok "a host without a wire keeps the machine's name" own_name
ok "nothing came damaged" shows a '.wire.bad_icrc == 0'
ok "nothing is left behind" unpair

# The LIDs are this side's alone, and programs exchange others: the GIDs decide. B.5 would have LID 5 there, which here is another port's.
ok "two instances with other LIDs for each other" pair "--wire A.1/24 --peer 0x200=B.5" "--wire B.5/24 --peer 0x300=A.1"
by_gid "another LID:"
connections "another LID:" "$one.1" "$two.5"
ok "nothing is left behind" unpair

# These addresses give no LID.
ok "two instances with --lid" pair "--wire A.9/8 --lid 1 --peer 2=B.9" "--wire B.9/8 --lid 2 --peer 1=A.9"
by_lid "--lid:"
by_gid "--lid:"
connections "--lid:" "$one.9" "$two.9"
lids() { shows a ".wire.addresses == [{address: \"$one.9\", lid: 1}] and .hosts[0].hcas[0].ports[0].lid == 1 and .wire.peers[0].lid == 2"; }
ok "show tells these LIDs" lids
ok "nothing is left behind" unpair

# Instances of two hosts each: an address for each port, host after host.
hosts() {
	shows a ".wire.addresses == [{address: \"$one.1\", lid: 1}, {address: \"$one.2\", lid: 2}] and [.hosts[].hcas[].ports[].lid] == [1, 2]" &&
		shows b '[.hosts[].hcas[].ports[].lid] == [3, 4]'
}
host_names() {
	for at in "a 0 $one.1" "a 1 $one.2" "b 0 $one.3" "b 1 $one.4"; do
		# shellcheck disable=SC2086 # words
		set -- $at
		timeout 60 "$SOFTHCA" run --instance "$1" --host "$2" -- sh -c 'hostname && cat /etc/hostname && getent hosts "$(hostname)"' >"$tmp/names" || return 1
		name=softhca-$(tr . - <<<"$3")
		[ "$(sort -u "$tmp/names" | tr -s ' ')" = "$(printf '%s\n' "$3 $name" "$name")" ] && on "$1" env "SOFTHCA_HOST=$2" "$PROGRAMS/addresses" wire "$3" 24 ||
			{ cat "$tmp/names"; return 1; }
	done
}
rsh() { # rsh HOST NAME
	[ "$(on a "$(dirname "$SOFTHCA")/softhca-rsh" "$1" hostname)" = "softhca-$(tr . - <<<"$2")" ]
}
inside() { # between the hosts of one instance, by the address on the wire
	on a env SOFTHCA_HOST=1 rping -s -a "$one.2" -C 5 >"$tmp/server.out" 2>&1 &
	server=$!
	until_true holds a "$listens" && on a rping -c -a "$one.2" -C 5
	wait "$server" && until_true holds a "$no_channel"
}
not_its_own() {
	status 255 on a env SOFTHCA_HOST=1 rping -s -a "$one.1" -C 1 >"$tmp/out" 2>&1 && grep -q 'assign requested address' "$tmp/out" || { cat "$tmp/out"; return 1; }
}
parted() {
	"$SOFTHCA" fault a drop 100% --from "$one.2" --to "$one.4" && across "$TOOLS/ibv_rc_pingpong" -n 10 || return 1
	if across env SOFTHCA_HOST=1 "$TOOLS/ibv_rc_pingpong" -n 3 --timeout 8 >"$tmp/failed" 2>&1; then
		echo "it went through"
		return 1
	fi
	"$SOFTHCA" fault a off
}
ok "two instances of two hosts" pair "--hosts 2 --wire A.1/24,A.2" "--hosts 2 --wire A.3/24,A.4"
ok "each host has its address" hosts
host_devices() { described a 0 "$one.1" && described a 1 "$one.2" && described b 0 "$one.3" && described b 1 "$one.4"; }
ok "and a name of it" host_names
ok "and so has its device" host_devices
for at in "host0 $one.1" "host1 $one.2" "$one.2 $one.2" "softhca-$(tr . - <<<"$one.2") $one.2" "localhost $one.1"; do
	# shellcheck disable=SC2086 # words
	ok "softhca-rsh ${at% *}" rsh $at
done
for transport in rc ud srq; do
	ok "hosts: $transport, between the first ones" ours across "$TOOLS/ibv_${transport}_pingpong" --verify -n 50
	ok "hosts: $transport, between the second ones" ours across env SOFTHCA_HOST=1 "$TOOLS/ibv_${transport}_pingpong" --verify -n 50
done
ok "hosts: rc, by GID" ours across env SOFTHCA_HOST=1 "$TOOLS/ibv_rc_pingpong" --verify -g 1 -n 50
ok "hosts: rping" by_address "env SOFTHCA_HOST=1 rping -s -C 10 -V" "rping -c -a $one.2 -C 10 -V"
ok "hosts: ucmatose, by GID" by_address "env SOFTHCA_HOST=1 ucmatose -f gid -P ib -b ::ffff:$one.2" "env SOFTHCA_HOST=1 ucmatose -f gid -P ib -s ::ffff:$one.2"
ok "hosts: rping inside an instance" inside
ok "hosts: the other host's address is not to bind to" not_its_own
ok "hosts: a fault between two of them" ours parted
ok "nothing is left behind" unpair

# Launchers take two instances of one machine for two nodes. docs/hosts.md has their remote shell.
sed -n '/^#!\/bin\/sh$/,/^exec softhca/p' "$srcdir/../../docs/hosts.md" | sed "s|exec softhca|exec $SOFTHCA|; s/=one/=a/; s/=two/=b/" >"$tmp/pair-rsh"
chmod +x "$tmp/pair-rsh"
job() { # four ranks, two in each instance, all of which another instance has sent to
	before=$(counter b .wire.sent)
	on a "$@" >"$tmp/job" 2>&1 && grep -q '4 ranks: every byte verified' "$tmp/job" && [ "$(counter b .wire.sent)" -gt $((before + 50)) ] ||
		{ cat "$tmp/job"; return 1; }
}
openmpi() { # openmpi HOST HOST
	options=()
	for setting in "${ucx_settings[@]}" UCX_TLS=rc_v,self; do options+=(-x "$setting"); done
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_orte_tmpdir_base=$tmp job mpirun.openmpi --oversubscribe --host "$1:2,$2:2" \
		--mca plm_rsh_agent "$tmp/pair-rsh" --mca oob_tcp_if_include lo --mca pml ucx --mca osc ucx --mca pml_ucx_tls any --mca pml_ucx_devices any \
		"${options[@]}" "$tmp/alltoall" 10
}
hydra() {
	options=()
	for setting in "${ucx_settings[@]}" UCX_TLS=rc_v,self; do options+=(-genv "${setting%%=*}" "${setting#*=}"); done
	job mpiexec.hydra -genvnone -launcher ssh -launcher-exec "$tmp/pair-rsh" -iface lo -hosts "$1:2,$2:2" -n 4 "${options[@]}" "$tmp/alltoall" 10
}
if ! all_rows; then
	: # wire_machines.sh has Open MPI between two network namespaces
elif command -v mpirun.openmpi >/dev/null && command -v mpicc.openmpi >/dev/null; then
	mpicc.openmpi -O2 -o "$tmp/alltoall" "$srcdir/mpi_alltoall.c" || exit 1
	ok "two instances on the loopback" two
	ok "Open MPI, by address" openmpi "$net.1" "$net.2"
	ok "Open MPI, by name" openmpi "softhca-$(tr . - <<<"$net.1")" "softhca-$(tr . - <<<"$net.2")"
	if command -v mpiexec.hydra >/dev/null && command -v mpicc.mpich >/dev/null; then
		mpicc.mpich -O2 -o "$tmp/alltoall" "$srcdir/mpi_alltoall.c" || exit 1
		ok "MPICH, by address" hydra "$net.1" "$net.2"
	else
		skip "MPICH, by address" "install mpich and libmpich-dev"
	fi
	ok "nothing is left behind" unpair
else
	skip "Open MPI" "install openmpi-bin and libopenmpi-dev"
fi

# Two ports, of which one has an address that gives a LID.
two_ports() {
	"$SOFTHCA" start --ports 2 --wire "$one.7/24,$two.7" --lid 7,600 c 2>"$tmp/c.out" && return 1
	"$SOFTHCA" start --ports 2 --wire "${one%.*}.0.7/16,${one%.*}.99.7" --lid 7,600 c || return 1
	shows c '[.wire.addresses[].lid] == [7, 600] and [.hosts[0].hcas[0].ports[].lid] == [7, 600]'
	result=$?
	"$SOFTHCA" stop c && return "$result"
}
ok "a LID for each of two ports" two_ports

refused() { # refused TEXT OPTION...
	text=$1
	shift
	status 125 "$SOFTHCA" start "$@" c 2>"$tmp/c.out" && [ "$(wc -l <"$tmp/c.out")" -eq 1 ] && grep -q -- "$text" "$tmp/c.out" || { cat "$tmp/c.out"; return 1; }
}
ok "a peer without a wire" refused '--peer is about a wire' --peer 5=192.0.2.9
ok "a peer in the network" refused '--peer: 127.0.77.9 is in the .* leave it out' --wire 127.0.77.1/24 --peer 5=127.0.77.9
ok "a peer with the own LID" refused '--peer: LID 1 is that of 127.0.77.1 already: choose' --wire 127.0.77.1/24 --peer 1=192.0.2.9
ok "a peer of the other version" refused '--peer: fd00::9 is not of the' --wire 127.0.77.1/24 --peer 5=fd00::9
ok "LIDs of more ports than there are" refused '--lid: there are more LIDs' --wire 127.0.77.1/8 --lid 5,6
finish
