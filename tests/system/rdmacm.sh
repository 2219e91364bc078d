#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: Debian's rdmacm-utils and perftest, unmodified, connect by address: on both kernels, in kick and in trap, within a
# host and between two. If one end is killed, the other one hears of it. Afterwards no channel is left.
TEST_TIMEOUT=${TEST_TIMEOUT:-600}
. "$srcdir/lib.sh" || exit 1

for program in rdma_server rping ucmatose udaddy mckey rdma_xserver riostream ib_send_bw; do
	if [ ! -x /usr/bin/$program ]; then
		skip "Debian's tools" "install rdmacm-utils and perftest: there is no $program"
		finish
	fi
done

. "$srcdir/cm_pairs.sh" || exit 1

# perftest's server begins to listen for the test's QP after the hand-shake that lets its client connect. A client that is
# faster is rejected, and crashes (perftest 4.5); the server then waits for ever. That is to try again, and nothing else is.
perftest_pair() {
	for _ in 1 2 3 4 5; do
		pair "$@" && return 0
		grep -q "RDMA_CM_EVENT_REJECTED; error: 8" "$tmp/client.out" || return 1
	done
	return 1
}

everything() { # everything FACE WAY
	for where in "0 127.0.0.1" "0 127.128.0.1" "1 host0"; do
		set -- "$1" "$2" "${where% *}" "${where#* }"
		k="$1, $2, from host $3 to $4:"
		ok "$k rdma_client" pair "$3" "$listens" rdma_server "rdma_client -s $4"
		ok "$k rping" pair "$3" "$listens" "rping -s -C 20 -V" "rping -c -a $4 -C 20 -V"
		ok "$k ucmatose" pair "$3" "$listens" "ucmatose -m -c 5 -C 10 -S 100" \
			"ucmatose -m -s $4 -c 5 -C 10 -S 100"
		ok "$k udaddy" pair "$3" "$listens" "udaddy -c 2" "udaddy -s $4 -c 2"
	done
	ok "$1, $2: rping with its own QP" pair 1 "$listens" "rping -s -q -C 10" "rping -c -q -a host0 -C 10"
	ok "$1, $2: udaddy over IPOIB" pair 1 "$listens" "udaddy -p 0x0002" "udaddy -p 0x0002 -s host0"
	ok "$1, $2: riostream" pair 1 "$listens" "riostream -S 64 -I 2 -C 2" "riostream -s host0 -S 64 -I 2 -C 2"
	ok "$1, $2: mckey" pair 1 joined "stdbuf -oL mckey -m 239.1.2.3 -b 127.128.0.1" "mckey -s -m 239.1.2.3 -b 127.128.1.1"
	ok "$1, $2: ib_send_bw -R" perftest_pair 1 "$listens" "timeout 15 ib_send_bw -R -n 20" "ib_send_bw -R -n 20 host0"
}

refused() {
	on 1 ucmatose -s host0 >"$tmp/client.out" 2>&1
	grep -q "REJECTED, error: 8" "$tmp/client.out" || { cat "$tmp/client.out"; return 1; }
}

unknown_host() {
	on 1 ucmatose -s 127.128.9.1 >"$tmp/client.out" 2>&1
	grep -q "ADDR_ERROR, error: -110" "$tmp/client.out" || { cat "$tmp/client.out"; return 1; }
}

# Kills one end of an established connection.
killed() { # killed VICTIM
	on 0 rping -s -v -C 1000000 >"$tmp/server.out" 2>&1 &
	server=$!
	soon shows "$listens" || return 1
	on 1 rping -c -a host0 -C 1000000 >"$tmp/client.out" 2>&1 &
	client=$!
	soon shows '"state": "established"' || return 1
	kill -9 "$(process_on "$1")"
	wait "$server" "$client"
	survivor=$tmp/server.out
	[ "$1" -eq 1 ] || survivor=$tmp/client.out
	grep -q DISCONNECT "$survivor" || { tail "$survivor"; return 1; }
	soon nothing_left
}

for face in mainline ofed; do
	for way in kick trap; do
		if ! "$SOFTHCA" start --hosts 2 --kernel "$face" --mmio "$way" cm >"$tmp/start.out" 2>&1; then
			ok "$face, $way: an instance" cat "$tmp/start.out"
			continue
		fi
		everything $face $way
		ok "$face, $way: a thread that waits" on 0 "$PROGRAMS/cm_sleep"
		ok "$face, $way: nobody listens" refused
		ok "$face, $way: no such host" unknown_host
		ok "$face, $way: the client is killed" killed 1
		ok "$face, $way: the server is killed" killed 0
		if [ $face = mainline ]; then
			ok "$face, $way: AF_IB" pair 1 "$listens" "ucmatose -f gid -P ib" "ucmatose -P ib -s host0"
			ok "$face, $way: mckey whose sender is no full member" pair 1 joined "stdbuf -oL mckey -m 239.1.2.4 -b 127.128.0.1" \
				"mckey -s -o -m 239.1.2.4 -b 127.128.1.1"
			ok "$face, $way: XRC ids" pair 1 "$listens" "rdma_xserver -c x" "rdma_xclient -s host0 -c x"
		fi
		"$SOFTHCA" stop cm >/dev/null
	done
done
finish
