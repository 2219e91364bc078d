#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: Debian's rdmacm-utils and perftest, unmodified, connect by address: on both kernels, in kick and in trap, within a
# host and between two. If one end is killed, the other one hears of it. Afterwards no channel is left.
. "$srcdir/lib.sh" || exit 1

for program in rdma_server rping ucmatose udaddy mckey rdma_xserver riostream rstream ib_send_bw; do
	if [ ! -x /usr/bin/$program ]; then
		skip "Debian's tools" "install rdmacm-utils and perftest: there is no $program"
		finish
	fi
done

. "$srcdir/cm_pairs.sh" || exit 1

everything() { # everything FACE WAY
	for where in "0 127.0.0.1" "0 127.128.0.1" "1 host0"; do
		# Doorbells trap in the same way on any host; the second address of a host is the same on either face.
		case "$1 $2 $where" in
		*" 1 host0" | *" kick 0 127.0.0.1" | "mainline kick "*) ;;
		*" trap 0 127.128.0.1") [ "${TIER:-}" = full ] || continue ;;
		*) long_rows || continue ;;
		esac
		set -- "$1" "$2" "${where% *}" "${where#* }"
		k="$1, $2, from host $3 to $4:"
		ok "$k rdma_client" pair "$3" "$listens" rdma_server "rdma_client -s $4"
		ok "$k rping" pair "$3" "$listens" "rping -s -C 20 -V" "rping -c -a $4 -C 20 -V"
		ok "$k ucmatose" pair "$3" "$listens" "ucmatose -m -c 5 -C 10 -S 100" \
			"ucmatose -m -s $4 -c 5 -C 10 -S 100"
		ok "$k udaddy" pair "$3" "$listens" "udaddy -c 2" "udaddy -s $4 -c 2"
	done
	[ "$2" = kick ] || all_rows || return 0
	ok "$1, $2: rping with its own QP" pair 1 "$listens" "rping -s -q -C 10" "rping -c -q -a host0 -C 10"
	ok "$1, $2: udaddy over IPOIB" pair 1 "$listens" "udaddy -p 0x0002" "udaddy -p 0x0002 -s host0"
	ok "$1, $2: riostream" pair 1 "$listens" "riostream -S 64 -I 2 -C 2" "riostream -s host0 -S 64 -I 2 -C 2"
	ok "$1, $2: mckey" pair 1 joined "stdbuf -oL mckey -m 239.1.2.3 -b 127.128.0.1" "mckey -s -m 239.1.2.3 -b 127.128.1.1"
	ok "$1, $2: ib_send_bw -R" perftest_pair 1 "$listens" "timeout 15 ib_send_bw -R -n 20" "ib_send_bw -R -n 20 host0"
}

# What the options of the tools change, they change in every way of MMIO; and on every face, but for those that the kernel is to know.
options() { # options FACE
	ok "$1: ucmatose with a time-out of acknowledgements" acknowledged "$1"
	[ "$1" = mainline ] || all_rows || return 0
	ok "$1: rping of a server that serves one after the other" persists
	ok "$1: ucmatose from its own address, with a type of service" pair 1 "$listens" "ucmatose -b 127.128.0.1 -c 2" \
		"ucmatose -b 127.128.1.1 -s host0 -t 8 -c 2"
	ok "$1: udaddy -P ipoib" pair 1 "$listens" "udaddy -P ipoib" "udaddy -P ipoib -s host0"
	# With -T f it takes no rsockets. With -T a the end of its peer may be an error to it: librdmacm 44 says POLLHUP
	# together with the last data.
	for letter in b n r; do
		ok "$1: rstream -T $letter" says "^custom " pair 1 "$listens" "rstream -S 1000 -C 10 -T v -T $letter" \
			"rstream -S 1000 -C 10 -T v -T $letter -s host0"
	done
}

# Two clients, and a server that is stopped.
persists() {
	on 0 rping -s -P -C 5 >"$tmp/server.out" 2>&1 &
	server=$!
	soon ready "$listens" || return 1
	on 1 rping -c -a host0 -C 5 -V >"$tmp/client.out" 2>&1 && on 0 rping -c -a host0 -C 5 -V >>"$tmp/client.out" 2>&1
	client=$?
	kill "$(process_on 0)"
	wait "$server"
	# As in pair(): one thread of rping may close the channel before the other one has left it.
	[ "$client" -eq 0 ] || grep -q "rdma_get_cm_event: Bad file descriptor" "$tmp/client.out" || { cat "$tmp/server.out" "$tmp/client.out"; return 1; }
	soon nothing_left
}

# The kernel of OFED knows no such option, and the tool says so and goes on.
acknowledged() { # acknowledged FACE
	pair 1 "$listens" "ucmatose" "ucmatose -a 14 -s host0" || return 1
	grep -q "set ack timeout option failed: Function not implemented" "$tmp/client.out"
	[ $? -eq "$([ "$1" = ofed ]; echo $?)" ] && return 0
	cat "$tmp/client.out"
	return 1
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
		[ $way = trap ] || options $face
		if [ $way = trap ] && ! all_rows; then
			"$SOFTHCA" stop cm >/dev/null
			continue
		fi
		ok "$face, $way: a thread that waits" on 0 "$PROGRAMS/cm_sleep"
		ok "$face, $way: nobody listens" refused
		ok "$face, $way: no such host" unknown_host
		ok "$face, $way: the client is killed" killed 1
		ok "$face, $way: the server is killed" killed 0
		if [ $face = mainline ]; then
			ok "$face, $way: AF_IB" pair 1 "$listens" "ucmatose -f gid -P ib" "ucmatose -P ib -s host0"
			ok "$face, $way: mckey whose sender is no full member" pair 1 joined "stdbuf -oL mckey -m 239.1.2.4 -b 127.128.0.1" \
				"mckey -s -o -m 239.1.2.4 -b 127.128.1.1"
			ok "$face, $way: mckey that does not hear itself" pair 1 joined "stdbuf -oL mckey -l -m 239.1.2.5 -b 127.128.0.1" \
				"mckey -s -l -m 239.1.2.5 -b 127.128.1.1"
			ok "$face, $way: mckey with the address of a group of InfiniBand" pair 1 joined \
				"stdbuf -oL mckey -M ff12:a01b:fe80::1 -b 127.128.0.1" "mckey -s -M ff12:a01b:fe80::1 -b 127.128.1.1"
			ok "$face, $way: XRC ids" pair 1 "$listens" "rdma_xserver -c x" "rdma_xclient -s host0 -c x"
		fi
		"$SOFTHCA" stop cm >/dev/null
	done
done
finish
