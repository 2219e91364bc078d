#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: 100 QPs share a socket whose receive buffer is that of a stock system, and whose receiver gets no processor for a
# while. The kernel drops packets. That costs time, and fails no request: of WRITEs, READs and SENDs.
. "$srcdir/lib.sh" || exit 1
. "$srcdir/wire_pair.sh" || exit 1

for tool in jq ib_write_bw; do
	command -v $tool >/dev/null && continue
	skip "a small receive buffer" "install jq and perftest"
	finish
done

small() {
	# shellcheck disable=SC2086,SC2119 # words: $CC; two() has options, which none is given here
	$CC -shared -fPIC -o "$tmp/stock_buffer.so" "$srcdir/stock_buffer.c" && LD_PRELOAD=$tmp/stock_buffer.so two || return 1
	granted=$(counter b .wire.receive_buffer) && echo "$granted bytes" &&
		[ "$granted" -eq 212992 ]
}
ok "two instances whose sockets have the buffer of a stock system" small

dropped() { [ "$(counter "$1" .wire.dropped_by_socket)" -gt "$before" ]; }
# loses RECEIVER TOOL [ARGUMENT...]: while what executes the packets of RECEIVER stands still, some are dropped. Then all goes on.
loses() {
	receiver=$1
	shift
	before=$(counter "$receiver" .wire.dropped_by_socket) engine=$(counter "$receiver" .wire.pid) || return 1
	across "$@" >"$tmp/across.out" 2>&1 &
	pair=$!
	until_true sends && kill -STOP "$engine" && until_true dropped "$receiver"
	lost=$?
	kill -CONT "$engine"
	wait "$pair" || { cat "$tmp/across.out"; return 1; }
	return "$lost"
}
sends() { [ "$(counter b .wire.sent)" -gt "$((sent + 200))" ]; }
for tool in ib_write_bw ib_send_bw ib_read_bw; do
	# The answers to READs come to the client's end.
	may_lock 32768 "100 QPs: $tool" || continue
	receiver=a
	[ $tool != ib_read_bw ] || receiver=b
	sent=$(counter b .wire.sent)
	ok "100 QPs: $tool" loses $receiver $tool -q 100 -s 65536 -n 5 -u 17
done
ok "the instances are stopped" eval '"$SOFTHCA" stop a && "$SOFTHCA" stop b'
finish
