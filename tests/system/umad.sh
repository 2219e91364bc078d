#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: Debian's infiniband-diags, unmodified, on both kernels: they find the fabric, its
# ports and links as `softhca port` has made them, and the counters of what perftest has sent.
. "$srcdir/lib.sh" || exit 1
. "$srcdir/umad_tools.sh" || exit 1

needs "Debian's infiniband-diags" "infiniband-diags, perftest and jq" smpquery perfquery ibnetdiscover saquery ib_send_bw jq

# says FILE COMMAND...: the output is that of the file, but for what differs from run to run.
says() {
	wanted=$1
	shift
	"$@" >"$tmp/out" 2>"$tmp/err" || { echo "status $?"; cat "$tmp/out" "$tmp/err"; return 1; }
	sed 's/generated on .*/generated/; s/activity count [0-9]*/activity count N/; s/[[:space:]]*$//
		s/^\(Pong.*time\) .*/\1 T/; s/^\(rtt\) .*/\1 T/; s/, time [0-9]* ms/, time T/
		'"s/$(on 1 hostname)\\.[^ ]*/HOST/" "$tmp/out" |
		diff "$srcdir/umad_texts/$wanted.txt" -
}
counter() { tool 0 perfquery "$@" | sed -n "s/^$name:\.*//p"; }
records() { tool 0 saquery "$@" >"$tmp/out" 2>&1 && grep -c 'dump:$' "$tmp/out"; }
lose() { ! "$@" >"$tmp/out" 2>&1 || { cat "$tmp/out"; return 1; }; }
send() {
	take_port
	on 1 timeout 50 ib_send_bw -F -n 100 -s 8192 -m 4096 -p "$port" >"$tmp/server" 2>&1 &
	server=$!
	until_true listening || return 1
	on 0 timeout 50 ib_send_bw -F -n 100 -s 8192 -m 4096 -p "$port" 127.0.0.1 >"$tmp/client" 2>&1 || { cat "$tmp/server" "$tmp/client"; return 1; }
	wait "$server"
}
counts() {
	name=$1
	shift
	got=$(counter "$@")
	[ "$got" = "$wanted" ] || { echo "$name is $got, not $wanted"; return 1; }
}
# served CLASS SERVER COMMAND...: while host 1 runs the server, which registers for that class, and then answers.
served() {
	class=$1
	on 1 timeout 50 "$2" -S >"$tmp/served" 2>&1 &
	server=$!
	shift 2
	until_true registered || return 1
	"$@"
	result=$?
	serving=$("$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq '.umad_files[0].pid')
	kill "$serving"
	wait "$server"
	return "$result"
}
registered() { "$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq -e "any(.umad_files[].agents[]; .class == \"$class\")" >/dev/null; }
ping() { says ping tool 0 ibping -c 2 2; }
sysstat() {
	says sysstat tool 0 ibsysstat 2 ping && says sysstat_host tool 0 ibsysstat 2 host && has '^cpu 0: ' tool 0 ibsysstat 2 cpu
}
# What sysfs says of the counters of host 0, as perfquery does under its own names.
same_in_sysfs() {
	tool 0 perfquery -x 1 1 >"$tmp/wide" && tool 0 perfquery 1 1 >"$tmp/narrow" || return 1
	while read -r file query; do
		is=$(tool 0 cat "/sys/class/infiniband/mlx4_0/ports/1/counters/$file" </dev/null)
		grep -q "^$query:\.*$is\$" "$tmp/wide" "$tmp/narrow" || { echo "$file is $is"; cat "$tmp/wide" "$tmp/narrow"; return 1; }
	done <<-END
		port_xmit_data PortXmitData
		port_rcv_data PortRcvData
		port_xmit_packets PortXmitPkts
		port_rcv_packets PortRcvPkts
		symbol_error SymbolErrorCounter
		link_downed LinkDownedCounter
		port_rcv_errors PortRcvErrors
		port_xmit_discards PortXmitDiscards
		port_rcv_constraint_errors PortRcvConstraintErrors
		VL15_dropped VL15Dropped
	END
}
cleared() { tool 0 perfquery -R 1 1 && tool 0 perfquery 1 1 && tool 0 perfquery -x 1 1; }
cleared_wide() { tool 0 perfquery -x -R 1 1 && tool 0 perfquery -x 1 1; }
no_files() { "$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq -e '.umad_files == []' >/dev/null; }

for face in $(faces mainline ofed); do
	SOFTHCA_INSTANCE=umad-$face
	export SOFTHCA_INSTANCE
	"$SOFTHCA" start --kernel "$face" --hosts 3 "$SOFTHCA_INSTANCE" >/dev/null || exit 1
	ok "the node of a file, $face" test "$(on 1 stat -c %F:%t:%T:%a /dev/infiniband/umad0 /dev/char/231:0 | sort -u)" = \
		"character special file:e7:0:600"
	ok "the interface's version, $face" test "$(on 1 cat /sys/class/infiniband_mad/abi_version)" = 5
	ok "ibaddr, $face" says ibaddr tool 1 ibaddr
	ok "sminfo, $face" says sminfo tool 1 sminfo
	ok "ibstat, $face" says ibstat tool 1 ibstat
	ok "ibstatus, $face" says ibstatus tool 1 ibstatus
	ok "smpquery by LID, $face" says nodeinfo tool 0 smpquery nodeinfo 3
	ok "smpquery portinfo, $face" says portinfo tool 0 smpquery portinfo 3 1
	ok "smpquery switchinfo, $face" says switchinfo tool 0 smpquery switchinfo 1023
	ok "smpquery by GUID, $face" has 'PortGuid:.*0x0002c90300100005' tool 0 smpquery -G nodeinfo 0x2c90300100005
	ok "a route to the switch, $face" says switch_nodeinfo tool 0 smpquery -D nodeinfo 0,1
	ok "a route to a host, $face" has 'PortGuid:.*0x0002c90300100009' tool 0 smpquery -D nodeinfo 0,1,3
	ok "a route past the last port, $face" lose tool 0 smpquery -t 100 -D nodeinfo 0,1,4
	ok "a route through a host, $face" lose tool 0 smpquery -t 100 -D nodeinfo 0,1,2,1
	ok "a LID that nobody has, $face" lose tool 0 smpquery -t 100 nodeinfo 77
	ok "ibnetdiscover, $face" says topology tool 0 ibnetdiscover
	ok "ibhosts, $face" says three_hosts tool 2 ibhosts
	ok "ibswitches, $face" says switches tool 2 ibswitches
	ok "iblinkinfo, $face" says links tool 0 iblinkinfo
	ok "ibtracert, $face" says trace tool 0 ibtracert 2 3
	ok "ibroute, $face" says routes tool 0 ibroute 1023
	ok "ibqueryerrors, $face" says no_errors tool 0 ibqueryerrors
	ok "ibportstate, by a combined route, $face" says port_state tool 0 ibportstate 1023 2
	ok "saquery, nodes, $face" says node_records tool 0 saquery
	ok "saquery, paths, $face" says path_records tool 0 saquery -p
	ok "saquery, links, $face" says link_records tool 0 saquery LR
	ok "saquery, one path, $face" says path tool 0 saquery -p --src-to-dst 1:3
	ok "ibping, $face" served 0x32 ibping ping
	ok "ibsysstat, $face" served 0x33 ibsysstat sysstat
	ok "smpdump by LID, $face" says dump tool 0 smpdump 2 0x11 1
	ok "smpdump by route, $face" says dump_string tool 0 smpdump -s -D 0,1 0x10
	ok "ibnodes, $face" says nodes_of_three tool 0 ibnodes
	ok "saquery, ports of an SM, $face" says no_managers tool 0 saquery -s
	ok "dump_fts, $face" says three_routes tool 0 dump_fts

	ok "perftest sends, $face" send
	wanted=200
	ok "packets out, $face" counts PortXmitPkts 1 1
	ok "packets in, $face" counts PortRcvPkts 2 1
	ok "through the switch, $face" counts PortRcvPkts 1023 1
	ok "wide counters, $face" counts PortUnicastXmitPkts -x 1 1
	wanted=$(((819200 + 200 * 24) / 4))
	ok "words, $face" counts PortXmitData 1 1
	ok "all counters, $face" says sent_counters tool 0 perfquery 1 1
	ok "all wide counters, $face" says wide_counters tool 0 perfquery -x 1 1
	ok "all of the switch, $face" says switch_counters tool 0 perfquery 1023 1
	ok "sysfs says the same, $face" same_in_sysfs
	ok "perfquery -R, $face" says cleared cleared
	wanted=0
	ok "has cleared them, $face" counts PortXmitPkts 1 1
	wanted=200
	ok "and the wide ones not, $face" counts PortXmitPkts -x 1 1
	wanted=200
	ok "nor those of the switch, $face" counts PortRcvPkts 1023 1
	ok "which it clears as well, $face" tool 0 perfquery -R 1023 1
	wanted=0
	ok "when it is asked to, $face" counts PortRcvPkts 1023 1
	ok "perfquery -x -R, $face" says cleared_wide cleared_wide

	# libibmad tries three times, each for a second, in which a crowded machine may not answer.
	lose_two() { "$SOFTHCA" fault "$SOFTHCA_INSTANCE" drop 2 >/dev/null && has 'PortGuid:.*0x0002c90300100009' tool 0 smpquery -t 1000 nodeinfo 3; }
	ok "two datagrams are lost, $face" until_true lose_two
	"$SOFTHCA" fault "$SOFTHCA_INSTANCE" drop 100% >/dev/null
	ok "all are, $face" lose tool 0 smpquery -t 100 nodeinfo 3
	ok "but those that stay at their port, $face" has 'LinkState:.*Active' tool 0 smpquery -t 1000 -D portinfo 0 1
	"$SOFTHCA" fault "$SOFTHCA_INSTANCE" drop 10% >/dev/null
	three() { [ "$(tool 2 ibhosts -t 1000 | wc -l)" -eq 3 ]; }
	ok "each tenth is, $face" until_true three
	"$SOFTHCA" fault "$SOFTHCA_INSTANCE" off >/dev/null

	"$SOFTHCA" port "$SOFTHCA_INSTANCE" --host 2 mlx4_0:1 down >/dev/null
	"$SOFTHCA" port "$SOFTHCA_INSTANCE" --host 1 mlx4_0:1 lid 40 >/dev/null
	ok "a link that is down, $face" says links_down tool 0 iblinkinfo
	ok "a host behind it, $face" lose tool 0 smpquery -t 100 nodeinfo 3
	ok "it sees itself, $face" has 'LinkState:.*Down' tool 2 smpquery -C mlx4_0 -P 1 -D portinfo 0 1
	ok "two hosts are left, $face" test "$(tool 0 ibhosts | wc -l)" -eq 2
	ok "and their paths, $face" test "$(records -p)" -eq 9
	ok "another LID, $face" has 'PortGuid:.*0x0002c90300100005' tool 0 smpquery nodeinfo 40
	ok "no file is left open, $face" until_true no_files
	"$SOFTHCA" stop "$SOFTHCA_INSTANCE"
	ok "nothing is left, $face" no_instance
done
finish
