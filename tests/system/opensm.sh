#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: Debian's opensm, unmodified, in the foreground: it becomes the subnet's manager, finds what is there, answers
# tools and UD QPs, and when it ends, however, the built-in manager is there again. What runs meanwhile goes on.
. "$srcdir/lib.sh" || exit 1
. "$srcdir/umad_tools.sh" || exit 1

needs "Debian's opensm" "opensm, infiniband-diags, ibverbs-utils and jq" opensm sminfo saquery ibv_asyncwatch ibv_rc_pingpong ibportstate jq

same() { cmp "$tmp/$1" "$tmp/$2" || { diff "$tmp/$1" "$tmp/$2"; return 1; }; }
ports() { "$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq -c '[.hosts[].hcas[].ports[] | {state, lid, sm_lid}]' >"$tmp/$1"; }
mask() { test "$(tool "$1" cat /sys/class/infiniband/mlx4_0/ports/1/cap_mask)" = "$2"; }

# manager HOST OPTION...: opensm in the background, until it says that the subnet is up.
manager() {
	where=$1
	shift
	mkdir -p "$tmp/osm$where"
	rm -f "$tmp/log"
	on "$where" env OSM_TMP_DIR="$tmp/osm$where" OSM_CACHE_DIR="$tmp/osm$where" timeout 120 \
		opensm -f "$tmp/log" -D 0x43 -d 2 "$@" >"$tmp/opensm" 2>&1 &
	sm=$!
	until_true grep -qs 'SUBNET UP' "$tmp/log" || { cat "$tmp/log" "$tmp/opensm"; return 1; }
}
nodes() { test "$(tool 2 saquery 2>/dev/null | grep -c 'dump:$')" -eq "$1"; }
its_pid() { "$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq -r '.umad_files[] | select(.issm != null) | .pid'; }
no_files() { "$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq -e '.umad_files == []' >/dev/null; }
# ends SIGNAL: that of opensm itself.
ends() {
	kill -"$1" "$(its_pid)"
	wait "$sm"
	until_true no_files
}
# opensm logs what it cannot do with ERR.
no_errors() { ! grep ERR "$tmp/log"; }
# once OPTION...: one sweep of one that knows nothing of earlier LIDs.
once() {
	rm -rf "$tmp/osm-o"
	mkdir "$tmp/osm-o"
	tool 0 env OSM_TMP_DIR="$tmp/osm-o" OSM_CACHE_DIR="$tmp/osm-o" opensm -o "$@" -f "$tmp/osm-o/log" -D 0x43 >"$tmp/out" 2>&1 &&
		grep -q 'SUBNET UP' "$tmp/osm-o/log" && ! grep ERR "$tmp/osm-o/log"
}
switch_lid() { echo $(($(sed -n 's/^0x0002c90300200000 \(0x[0-9a-f]*\) .*/\1/p' "$tmp/osm-o/guid2lid"))); }
lid() { "$SOFTHCA" port "$SOFTHCA_INSTANCE" --host "$1" mlx4_0:1 lid "$2" >/dev/null; }
# Hosts 0 and 2 have each other's LID, and get them back while the other one still has it.
reassigns() { lid 0 500 && lid 2 1 && lid 0 3 && once -r; }
# What opensm has assigned leads where it is to, by datagrams and by messages: its file has the GUID of each port, and its first and last LID.
leads() {
	test "$(grep -c ^0x "$tmp/osm-o/guid2lid")" -eq 4 || { cat "$tmp/osm-o/guid2lid"; return 1; }
	grep ^0x "$tmp/osm-o/guid2lid" | while read -r guid lid _; do
		has "^PortGuid:\.*$guid\$" tool 0 smpquery nodeinfo $((lid)) </dev/null || exit 1
	done || return 1
	for host in 0 1 2; do
		has "^0x0002c903001000*$((4 * host + 1)) $(printf '0x%04x' "$(tool "$host" cat /sys/class/infiniband/mlx4_0/ports/1/lid)") " \
			cat "$tmp/osm-o/guid2lid" || return 1
	done
	take_port
	on 2 timeout 50 ibv_rc_pingpong -p "$port" -n 100 >"$tmp/server" 2>&1 &
	server=$!
	until_true listening || return 1
	on 0 timeout 50 ibv_rc_pingpong -p "$port" -n 100 127.0.0.1 >"$tmp/client" 2>&1 && wait "$server" ||
		{ cat "$tmp/server" "$tmp/client"; return 1; }
}
watching() { grep -q 'async event FD' "$tmp/events"; }
# A ping-pong between hosts 0 and 2 that has no end of its own. Its ends sleep between the messages, so that they leave others a processor.
ping() {
	take_port
	become 0 ibv_rc_pingpong -e -g 0 -p "$port" -n 2147483647 >"$tmp/server" 2>&1 &
	server=$!
	until_true listening || return 1
	become 2 ibv_rc_pingpong -e -g 0 -p "$port" -n 2147483647 127.0.0.1 >"$tmp/client" 2>&1 &
	client=$!
	goes_on
}
sent() { tool 0 cat /sys/class/infiniband/mlx4_0/ports/1/counters/port_xmit_packets; }
# More than what a QP whose messages are lost repeats before it gives up. Nothing else sends packets there.
has_sent() { [ "$(sent)" -gt $(($1 + 100)) ]; }
goes_on() { until_true has_sent "$(sent)" || { cat "$tmp/client" "$tmp/server"; return 1; }; }
# Both ends are there until the test ends them, at once: whoever is left alone gives up.
pinged() {
	result=0
	kill "$client" "$server"
	for end in "$client" "$server"; do
		status 143 wait "$end" || result=1
	done
	[ "$result" -eq 0 ] || { cat "$tmp/client" "$tmp/server"; return 1; }
}

for face in $(faces mainline ofed); do
	SOFTHCA_INSTANCE=opensm-$face
	export SOFTHCA_INSTANCE
	"$SOFTHCA" start --kernel "$face" --hosts 3 "$SOFTHCA_INSTANCE" >/dev/null || exit 1
	ports before
	ok "the node of issm, $face" test "$(on 1 stat -c %F:%t:%T:%a /dev/infiniband/issm0 /dev/char/231:64 | sort -u)" = \
		"character special file:e7:40:600"
	ok "opensm -o, $face" once
	ports once
	ok "has moved nothing, $face" same before once
	on 0 ibv_asyncwatch >"$tmp/events" 2>&1 &
	watch=$!
	until_true watching || exit 1
	ok "a ping-pong begins, $face" ping
	ok "opensm of host 1, $face" manager 1 -s 1
	ok "the ping-pong goes on, $face" goes_on
	ok "has no errors, $face" no_errors
	ok "is the manager, $face" has 'sm lid 2 sm guid 0x2c90300100005.*state 3' tool 0 sminfo
	ok "says so in its port's mask, $face" mask 1 0x0251086a
	ok "and no other says so, $face" mask 0 0x02510868
	ok "answers for paths, $face" has 'dlid.*3$' tool 0 saquery -p --src-to-dst 1:3
	ok "with one record, $face" test "$(tool 0 saquery -p --src-to-dst 1:3 2>/dev/null | grep -c 'dump:$')" -eq 1
	ok "with the subnet's nodes, $face" test "$(tool 0 saquery 2>/dev/null | grep -c 'dump:$')" -eq 4
	ok "a second one on that port, $face" has 'another instance of OpenSM' tool 1 \
		env OSM_TMP_DIR="$tmp/osm-o" OSM_CACHE_DIR="$tmp/osm-o" opensm -o -f /dev/stdout
	ok "opensm is killed, $face" ends KILL
	ports after
	ok "the ports are as before, $face" same before after
	ok "the built-in manager is there, $face" has 'sm lid 1 .*state 3' tool 2 sminfo
	ok "its mask too, $face" mask 1 0x02510868
	ok "programs heard of both, $face" test "$(grep -c SM_CHANGE "$tmp/events")" -eq 2
	ok "and are to register anew, $face" test "$(grep -c CLIENT_REREGISTER "$tmp/events")" -ge 2
	ok "and the ping-pong goes on still, $face" goes_on
	ok "until it is ended, $face" pinged
	# It looks at the subnet when a Trap tells it to, and not by itself. A port that is down has not heard of it.
	"$SOFTHCA" port "$SOFTHCA_INSTANCE" --host 0 mlx4_0:1 down >/dev/null
	ok "opensm again, $face" manager 2 -s 1000
	ok "has seen the links that are up, $face" until_true nodes 3
	"$SOFTHCA" port "$SOFTHCA_INSTANCE" --host 1 mlx4_0:1 down >/dev/null
	ok "hears of a link that is down, $face" until_true nodes 2
	"$SOFTHCA" port "$SOFTHCA_INSTANCE" --host 0 mlx4_0:1 up >/dev/null
	ok "of one that is up for the first time, $face" until_true nodes 3
	"$SOFTHCA" port "$SOFTHCA_INSTANCE" --host 1 mlx4_0:1 up >/dev/null
	ok "and of one that is up again, $face" until_true nodes 4
	ok "a second ping-pong begins, $face" ping
	ok "opensm ends as it is told, $face" ends TERM
	ok "the second ping-pong goes on, $face" goes_on
	ok "until it is ended as well, $face" pinged
	ports after
	ok "and leaves the ports as before, $face" same before after
	# Links by Set, at the switch and at a host.
	ok "ibportstate disable, $face" tool 0 ibportstate 1023 3 disable
	ok "the port is down, $face" has 'LinkState:.*Down' tool 0 ibportstate 1023 3 query
	ok "and disabled, $face" has 'PhysLinkState:.*Disabled' tool 0 ibportstate 1023 3 query
	ok "the host's end is not, $face" test "$(tool 2 cat /sys/class/infiniband/mlx4_0/ports/1/phys_state)" = "2: Polling"
	ok "ibportstate enable, $face" tool 0 ibportstate 1023 3 enable
	ports after
	ok "it is up again, $face" same before after
	# The switch gets a LID that a host has had.
	ok "opensm -r, $face" reassigns
	ok "each LID leads to who has it, $face" leads
	ok "and ibnetdiscover finds the switch at its own, $face" has "^Switch.* lid $(switch_lid) lmc 0" tool 2 ibnetdiscover
	# The watcher alone is left.
	kill "$("$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq '.processes[].pid')"
	"$SOFTHCA" stop "$SOFTHCA_INSTANCE" >/dev/null
	wait "$watch"
	ok "nothing is left, $face" no_instance
done
finish
