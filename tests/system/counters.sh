#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the counters in sysfs say what went through a port, and through no other one; what
# was lost or damaged stands where a card counts it. The files are there before anything is sent.
. "$srcdir/lib.sh" || exit 1

needs "counters" "perftest and jq" ib_send_bw jq

# shellcheck disable=SC2016 # the shell on the host expands it
counter() { on "$1" sh -c 'cat "/sys/class/infiniband/mlx4_0/$1"' x "ports/$2/counters/$3"; }
is() {
	value=$(counter "$1" "$2" "$3") && test "$value" "$4" "$5" ||
		{ echo "host $1, port $2: $3 is $value"; return 1; }
}
hw() { on "$1" cat "/sys/class/infiniband/mlx4_0/hw_counters/$2"; }
# send PORT: 100 messages of two packets from host 1 to host 0.
send() {
	take_port
	on 0 timeout 50 ib_send_bw -F -d mlx4_0 -i "$1" -n 100 -s 8192 -m 4096 -p "$port" >"$tmp/server" 2>&1 &
	server=$!
	until_true listening || return 1
	on 1 timeout 50 ib_send_bw -F -d mlx4_0 -i "$1" -n 100 -s 8192 -m 4096 -p "$port" 127.0.0.1 >"$tmp/client" 2>&1 ||
		{ cat "$tmp/server" "$tmp/client"; return 1; }
	wait "$server"
}
names() { on 0 ls "/sys/class/infiniband/mlx4_0/ports/2/counters" | sort >"$tmp/names"; diff "$tmp/names" -; }
eleven="VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery local_link_integrity_errors
port_rcv_constraint_errors port_rcv_errors port_rcv_remote_physical_errors port_rcv_switch_relay_errors
port_xmit_constraint_errors port_xmit_discards symbol_error"
four="port_rcv_data port_rcv_packets port_xmit_data port_xmit_packets"
more="port_xmit_wait multicast_rcv_packets multicast_xmit_packets unicast_rcv_packets unicast_xmit_packets"
# shellcheck disable=SC2048,SC2086 # words: $*
sorted() { printf '%s\n' $* | sort; }

for face in ofed mainline; do
	SOFTHCA_INSTANCE=counters-$face
	export SOFTHCA_INSTANCE
	"$SOFTHCA" start --kernel $face --hosts 2 --ports 2 "$SOFTHCA_INSTANCE" >/dev/null || exit 1
	if [ $face = ofed ]; then
		ok "the files, $face" names < <(sorted "$eleven" "$four")
	else
		ok "the files, $face" names < <(sorted "$eleven" "$four" "$more")
	fi
	ok "nothing yet, $face" is 0 2 port_rcv_packets -eq 0
	ok "perftest sends by port 2, $face" send 2
	# A packet has 24 octets of headers and check, and there are no others in the middle.
	ok "packets out, $face" is 1 2 port_xmit_packets -eq 200
	ok "packets in, $face" is 0 2 port_rcv_packets -eq 200
	ok "words out, $face" is 1 2 port_xmit_data -eq $(((819200 + 200 * 24) / 4))
	ok "words in, $face" is 0 2 port_rcv_data -eq $(((819200 + 200 * 24) / 4))
	ok "none by port 1, $face" is 1 1 port_xmit_packets -eq 0
	ok "nothing damaged, $face" is 0 2 symbol_error -eq 0

	"$SOFTHCA" fault "$SOFTHCA_INSTANCE" corrupt 3 >/dev/null
	ok "three packets are damaged, $face" send 1
	ok "as errors of those who receive, $face" test $(($(counter 0 1 port_rcv_errors) + $(counter 1 1 port_rcv_errors))) -eq 3
	ok "and of symbols, $face" test $(($(counter 0 1 symbol_error) + $(counter 1 1 symbol_error))) -eq 3
	"$SOFTHCA" fault "$SOFTHCA_INSTANCE" drop 2 >/dev/null
	ok "two packets are lost, $face" send 1
	ok "as discards of those who send, $face" test $(($(counter 0 1 port_xmit_discards) + $(counter 1 1 port_xmit_discards))) -eq 2
	"$SOFTHCA" port "$SOFTHCA_INSTANCE" mlx4_0:2 down >/dev/null
	ok "a link went down, $face" is 0 2 link_downed -eq 1
	ok "that of the other host did not, $face" is 1 2 link_downed -eq 0
	if [ $face = mainline ]; then
		ok "repetitions, $face" test "$(hw 1 sq_num_to)" -ge 1
		ok "what does not occur, $face" test "$(hw 1 num_cqovf)" -eq 0
	else
		ok "no hw_counters, $face" on 0 test ! -e /sys/class/infiniband/mlx4_0/hw_counters
	fi
	"$SOFTHCA" stop "$SOFTHCA_INSTANCE"
	ok "nothing is left, $face" no_instance
done
finish
