#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: rsockets on both faces: our own program, and Debian's on our library and on theirs at either end, with and
# without librspreload.so.
. "$srcdir/lib.sh" || exit 1

export cm=${OURS%%:*}/../../librdmacm/.libs
export pair=$tmp/pair

for kernel in ofed mainline; do
	ok "rsockets, $kernel" ours timeout 100 "$SOFTHCA" run --kernel "$kernel" --require-traffic -- \
		env LD_LIBRARY_PATH="$cm:$OURS" "$PROGRAMS/rsockets"
	ok "rsockets connect and wait, $kernel" ours timeout 100 "$SOFTHCA" run --kernel "$kernel" --require-traffic -- \
		env LD_LIBRARY_PATH="$cm:$OURS" "$PROGRAMS/rsocket_waits"
	ok "datagram rsockets, $kernel" ours timeout 100 "$SOFTHCA" run --kernel "$kernel" --require-traffic -- \
		env LD_LIBRARY_PATH="$cm:$OURS" "$PROGRAMS/rsocket_datagrams"
	ok "rsockets that another thread closes, $kernel" ours timeout 100 "$SOFTHCA" run --kernel "$kernel" -- \
		env LD_LIBRARY_PATH="$cm:$OURS" "$PROGRAMS/rsocket_closed"
	ok "rsockets whose peer is killed, $kernel" ours timeout 100 "$SOFTHCA" run --kernel "$kernel" --require-traffic -- \
		env LD_LIBRARY_PATH="$cm:$OURS" "$PROGRAMS/rsocket_killed"
	ok "mapped memory of rsockets where a call waits, $kernel" ours timeout 100 "$SOFTHCA" run --kernel "$kernel" --require-traffic -- \
		env LD_LIBRARY_PATH="$cm:$OURS" "$PROGRAMS/rsocket_mapped"
	ok "datagram rsockets and addresses that nobody can resolve, $kernel" ours timeout 150 "$SOFTHCA" run --kernel "$kernel" -- \
		env LD_LIBRARY_PATH="$cm:$OURS" "$PROGRAMS/rsocket_strangers"
	ok "rsockets where ibacm is slow, $kernel" ours timeout 100 "$SOFTHCA" run --kernel "$kernel" --require-traffic -- \
		env LD_LIBRARY_PATH="$cm:$OURS" "$PROGRAMS/rsocket_acm"
	ok "what rsockets do inside, $kernel" ours timeout 100 "$SOFTHCA" run --kernel "$kernel" --require-traffic -- \
		env LD_LIBRARY_PATH="$cm:$OURS" "$PROGRAMS/rsocket_inside"
	ok "rsockets take RDMA, trap, $kernel" ours timeout 60 "$SOFTHCA" run --kernel "$kernel" --mmio trap --require-traffic -- \
		env LD_LIBRARY_PATH="$cm:$OURS" "$PROGRAMS/rsockets" flags
done

ok "rclose() waits as long as SO_LINGER says" ours timeout 60 "$SOFTHCA" run -- \
	env LD_LIBRARY_PATH="$cm:$OURS" "$PROGRAMS/rsocket_linger" "$SOFTHCA fault \$SOFTHCA_INSTANCE drop 100%"

for how in read poll select busy tries; do
	ok "SO_KEEPALIVE tells that the peer is out of reach: $how" ours timeout 100 "$SOFTHCA" run -- \
		env LD_LIBRARY_PATH="$cm:$OURS" "$PROGRAMS/rsocket_alive" "$how" "$SOFTHCA fault \$SOFTHCA_INSTANCE drop 100%"
done

# The program's own end is what counts: softhca run says that its instance is gone. A device that is gone takes nothing back, so the library
# keeps what it cannot give back, and AddressSanitizer is not to ask for it.
for what in read write poll poll_nothing connect no_id send_datagrams read_datagram poll_datagram; do
	stopped() {
		ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 timeout 60 "$SOFTHCA" run -- bash -c 'LD_LIBRARY_PATH=$cm:$OURS "$1" "$2" "$3" >&2; echo "status $?" >"$4"' - \
			"$PROGRAMS/rsocket_stopped" "$what" "$SOFTHCA stop \$SOFTHCA_INSTANCE" "$tmp/status" || true
		[ "$(cat "$tmp/status")" = "status 0" ]
	}
	ok "rsockets whose device is taken away: $what" ours stopped
done

# A device copies short writes without holding the receiver up. So long ones go in steps, and the last step tells of all.
in_steps() {
	timeout 100 "$SOFTHCA" trace -o "$tmp/lines" -- env LD_LIBRARY_PATH="$cm:$OURS" "$PROGRAMS/rsockets" pieces || return 1
	grep ibv_post_send "$tmp/lines" | grep -oE 'IBV_WR_RDMA_WRITE[A-Z_]*|\[\{0x[0-9a-f]+, [0-9]+,' >"$tmp/writes"
	awk '$2 + 0 > 8192 { exit 1 }' "$tmp/writes" || { echo "a longer write"; cat "$tmp/writes"; return 1; }
	# Of 32 KiB
	tr '\n' ' ' <"$tmp/writes" | sed 's/0x[0-9a-f]*, //g' | grep -q \
		'IBV_WR_RDMA_WRITE \[{8192, IBV_WR_RDMA_WRITE \[{8192, IBV_WR_RDMA_WRITE \[{8192, IBV_WR_RDMA_WRITE_WITH_IMM ' ||
		{ echo "no piece of several writes"; cat "$tmp/writes"; return 1; }
}
ok "long messages go in writes of 8 KiB" ours in_steps

if sanitized; then
	finish
fi

# Debian's programs, which know nothing of us, on either library at either end.
theirs=/usr/lib/$(uname -m)-linux-gnu/rsocket/librspreload.so
if ! command -v riostream >/dev/null || [ ! -e "$theirs" ]; then
	skip "Debian's programs on our rsockets" "riostream or librspreload.so is missing (Debian package rdmacm-utils, librdmacm1)"
	finish
fi

# both SERVER CLIENT WORD: each runs on the library that SERVER_ON, CLIENT_ON name, ours or theirs.
# shellcheck disable=SC2086,SC2016 # words: $1, $2; the variables of the inner shell
both() {
	cat >"$tmp/on" <<-'END'
		#!/bin/bash
		# LIBRARY PRELOAD COMMAND...
		on=$1 preload=$2
		shift 2
		[ "$on" = theirs ] || export LD_LIBRARY_PATH=$cm:$OURS RDMAV_DRIVERS=mlx4
		case $preload-$on in
		yes-ours) export LD_PRELOAD=$cm/librspreload.so:$LD_PRELOAD ;;
		yes-theirs) export LD_PRELOAD=$theirs:$LD_PRELOAD ;;
		esac
		exec timeout 40 "$@"
	END
	chmod +x "$tmp/on"
	theirs=$theirs OURS=$OURS timeout 60 "$SOFTHCA" run --kernel "$kernel" --require-traffic -- bash -c '
		$1 >"$pair.server" 2>&1 &
		server=$!
		for _ in $(seq 200); do
			$2 >"$pair.client" 2>&1 && break
			kill -0 $server 2>/dev/null || break
			sleep 0.1
		done
		wait $server
		status=$?
		cat "$pair.server" "$pair.client"
		[ $status -eq 0 ] && grep -q "^custom" "$pair.client"' - \
		"$tmp/on $SERVER_ON $PRELOAD $1" "$tmp/on $CLIENT_ON $PRELOAD $2"
}

for ends in "ofed ours theirs" "ofed theirs ours" "mainline ours ours" "mainline ours theirs" "mainline theirs ours"; do
	read -r kernel SERVER_ON CLIENT_ON <<<"$ends"
	PRELOAD=no
	ok "rstream, $ends" both "rstream -T v -S 5000 -C 200" "rstream -T v -S 5000 -C 200 -s 127.0.0.1"
	case $ends in
	"ofed theirs ours" | "mainline ours theirs") ;;
	*) all_rows || continue ;;
	esac
	ok "rstream of 200,000 bytes, $ends" both "rstream -T v -S 200000 -C 50" "rstream -T v -S 200000 -C 50 -s 127.0.0.1"
	ok "riostream, $ends" both "riostream -T v -S 5000 -C 50" "riostream -T v -S 5000 -C 50 -s 127.0.0.1"
	PRELOAD=yes
	ok "rstream -T s on librspreload.so, $ends" both "rstream -T s -T v -S 5000 -C 200" \
		"rstream -T s -T v -S 5000 -C 200 -s 127.0.0.1"
done
kernel=mainline PRELOAD=no SERVER_ON=ours CLIENT_ON=ours
for way in a n r; do
	ok "rstream -T $way" both "rstream -T v -T $way -S 5000 -C 200" "rstream -T v -T $way -S 5000 -C 200 -s 127.0.0.1"
done
finish
