#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: programs find interfaces of their host's ports, and UDP sockets get its address towards hosts of the instance. Other
# sockets are as without softhca. Debian's udpong, which looks for its address by a UDP socket, runs between two hosts.
. "$srcdir/lib.sh" || exit 1

addresses=$PROGRAMS/addresses
between() { on 1 "$addresses" 1 0 4 && on 0 "$addresses" 0 2 4; }
export addresses
export -f on become between

ok "on a host of three" within --hosts 3 --hcas 2 --ports 2 -- between
ok "on the only host" "$SOFTHCA" run -- "$addresses" 0 0 1

udpong_pair() {
	become 0 udpong -b host0 >"$tmp/udpong.server" 2>&1 &
	server=$!
	# It serves until it is killed. Before it does, nothing answers the client.
	for _ in $(seq 20); do
		on 1 timeout 10 udpong -s host0 -C 20 -S 64 >"$tmp/udpong.client" 2>&1
		client=$?
		[ "$client" -ne 124 ] && break
	done
	kill "$server"
	[ "$client" -eq 0 ] && grep -q '^custom *64 ' "$tmp/udpong.client" && return 0
	cat "$tmp/udpong.server" "$tmp/udpong.client"
	return 1
}
export -f udpong_pair
if command -v udpong >/dev/null; then
	for face in mainline ofed; do
		for way in kick trap; do
			each_once $face $way || continue
			ok "Debian's udpong, $face, $way" within --hosts 2 --kernel $face --mmio $way -- udpong_pair
		done
	done
else
	skip "Debian's udpong" "install rdmacm-utils"
fi
ok "nothing is left behind" until_true no_instance
finish
