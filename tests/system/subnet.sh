#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: two hosts with two HCAs of two ports each, as Debian's infiniband-diags show them: every attribute of a port by LID and by
# route, all records, and whose traffic is whose. A second instance of the same user is another subnet.
. "$srcdir/lib.sh" || exit 1
. "$srcdir/umad_tools.sh" || exit 1

needs "Debian's infiniband-diags" "infiniband-diags, ibsim-utils, perftest, rdmacm-utils and jq" smpquery perfquery ibnetdiscover saquery dump_fts ibstat ib_send_bw mckey ibsim jq

# says FILE COMMAND...: the output is that of the file, but for what differs from run to run.
says() {
	wanted=$1
	shift
	"$@" >"$tmp/out" 2>"$tmp/err" || { echo "status $?"; cat "$tmp/out" "$tmp/err"; return 1; }
	sed 's/generated on .*/generated/; s/ActCount\.*[0-9]*/ActCount N/; s/[[:space:]]*$//' "$tmp/out" |
		diff "$srcdir/umad_texts/$wanted.txt" -
}
# The nodes of a host, by /sys: of which HCA and port they are, and their numbers.
# shellcheck disable=SC2016 # the shell on the host expands it
nodes() {
	tool "$1" sh -c 'cd /sys/class/infiniband_mad && for n in *[0-9]; do
		echo $n $(cat $n/ibdev $n/port $n/dev) $(stat -c %t:%T /dev/infiniband/$n); done'
}
port_guids() { tool 0 ibstat -p && tool 1 ibstat -p; }
attributes() {
	for what in nodeinfo nodedesc portinfo pkeys sl2vl vlarb guidinfo; do
		echo "$what:"
		tool 1 smpquery -C mlx4_1 -P 2 -D "$what" 0 || return 1
		[ "$what" = pkeys ] && { tool 0 smpquery "$what" 8 2 || return 1; } || tool 0 smpquery "$what" 8 || return 1
	done
}
records() {
	for what in SWIR SMIR "SL2VL 8" "VLAR 8" "GIR 8/0" "PKTR 8/2/0" "PKTR 1023/8" "LFTR 1023/0" MFTR LR "PIR 1023/8" "NR 8"; do
		echo "$what:"
		# shellcheck disable=SC2086 # words
		tool 0 saquery --smkey 1 $what || return 1
	done
}
errors() { tool 0 ibqueryerrors; }
# A group that rdma_cm has joined, as the subnet's administrator and its switch have it; and when the program has been killed.
group() {
	tool 0 saquery -g && tool 0 saquery --smkey 1 -m && tool 0 ibroute -M 1023 && tool 0 ibtracert -m 0xc000 1 5
}
joined() {
	tool 1 stdbuf -oL mckey -m 239.1.2.3 -b host1 >"$tmp/mckey" 2>&1 &
	joiner=$!
	until_true grep -q 'joined dgid' "$tmp/mckey" || { cat "$tmp/mckey"; return 1; }
	says group group
	result=$?
	kill -KILL "$("$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq '.processes[] | select(.command == "mckey") | .pid')"
	wait "$joiner"
	return "$result"
}
# Nothing is said of a group by a query that has succeeded.
no_group() { groups=$(tool 0 saquery -g 2>"$tmp/why") && [ -z "$groups" ] && [ ! -s "$tmp/why" ]; }
send() {
	take_port
	on 1 timeout 50 ib_send_bw -F -d mlx4_1 -i 2 -n 100 -s 4096 -m 4096 -p "$port" >"$tmp/server" 2>&1 &
	server=$!
	until_true listening || return 1
	on 0 timeout 50 ib_send_bw -F -d mlx4_1 -i 2 -n 100 -s 4096 -m 4096 -p "$port" 127.0.0.1 >"$tmp/client" 2>&1 ||
		{ cat "$tmp/server" "$tmp/client"; return 1; }
	wait "$server"
}
# The server registers, answers, and is killed: who asks then is told, and does not wait for ever.
killed() {
	tool 1 ibping -S >"$tmp/ping" 2>&1 &
	server=$!
	until_true registered || return 1
	has ' 0% packet loss' tool 0 ibping -c 2 5 || return 1
	kill -KILL "$("$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq '.umad_files[0].pid')"
	wait "$server"
	has ' 100% packet loss' tool 0 ibping -c 2 5
}
files() { "$SOFTHCA" show --json "$1" | jq -e "$2" >/dev/null; }
registered() { files "$SOFTHCA_INSTANCE" 'any(.umad_files[].agents[]; .class == "0x32")'; }
# The same server, while the other instance has a file of its own at the same LID.
apart() {
	tool 1 ibping -S >"$tmp/ping" 2>&1 &
	server=$!
	until_true registered || return 1
	files other '.umad_files == []' && has ' 100% packet loss' env SOFTHCA_INSTANCE=other "$SOFTHCA" run --instance other --host 0 -- \
		timeout 50 ibping -c 1 1 && test "$("$SOFTHCA" run --instance other -- timeout 50 ibhosts | wc -l)" -eq 1
	result=$?
	kill "$("$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq '.umad_files[0].pid')"
	wait "$server"
	return "$result"
}

SOFTHCA_INSTANCE=subnet
export SOFTHCA_INSTANCE
many() {
	"$SOFTHCA" start --kernel mainline --hosts 64 many >/dev/null || return 1
	hosts=$("$SOFTHCA" run --instance many --host 63 -- timeout 100 ibnetdiscover >"$tmp/many" && grep -c '^Ca' "$tmp/many")
	"$SOFTHCA" stop many >/dev/null
	[ "$hosts" -eq 64 ] || { cat "$tmp/many"; return 1; }
	# Each port of the switch leads to another host, port N to the one with LID N.
	sed -n 's/^\[\([0-9]*\)\].*"softhca-host\([0-9]*\) HCA-1" lid \([0-9]*\) .*/\1 \2 \3/p' "$tmp/many" | sort -n >"$tmp/cables"
	seq 64 | awk '{ print $1, $1 - 1, $1 }' | diff "$tmp/cables" -
}
ok "64 hosts" many
# The simulator of a subnet knows each cable of this one.
simulated() {
	tool 0 ibnetdiscover >"$tmp/topology" || return 1
	printf 'dump\nquit\n' | IBSIM_SOCKNAME=softhca-$$ timeout 60 ibsim -s "$tmp/topology" >"$tmp/ibsim" 2>&1 &&
		grep -q 'parsed .* lines' "$tmp/ibsim" && ! grep -qiE 'error|bad|fail' "$tmp/ibsim" || { cat "$tmp/topology" "$tmp/ibsim"; return 1; }
	# Both ends of each: of the switch, and of a port with its LID.
	for lid in $(seq 8); do
		grep -q "\[$lid\].*\"H-.*LinkUp" "$tmp/ibsim" && grep -q "\"S-.*\[$lid\].* lid $lid .*LinkUp" "$tmp/ibsim" ||
			{ cat "$tmp/ibsim"; return 1; }
	done
}
# As rdma-ndd or an administrator would.
named() {
	# shellcheck disable=SC2016 # the shell on the host expands it
	tool 1 sh -c 'echo "$1" >/sys/class/infiniband/mlx4_1/node_desc' x "$1" && has "^Node Description:\.*$2\$" tool 0 smpquery nodedesc 8
}
for face in $(! all_rows || echo ofed) mainline; do
	"$SOFTHCA" start --kernel "$face" --hosts 2 --hcas 2 --ports 2 subnet >/dev/null || exit 1
	ok "ports' GUIDs, $face" says port_guids port_guids
	ok "nodes of files, $face" says nodes nodes 1
	ok "ibnetdiscover, $face" says large_topology tool 0 ibnetdiscover
	ok "ibhosts, $face" says hosts tool 1 ibhosts
	ok "dump_fts, $face" says large_routes tool 0 dump_fts
	ok "all attributes of a port, $face" says attributes attributes
	ok "records, $face" says records records
	ok "SA's ClassPortInfo, $face" says class_port_info tool 0 saquery -c
	ok "rdma_cm's group is the subnet's, $face" joined
	ok "as long as there is a member, $face" until_true no_group
	ok "perftest sends by port 2, $face" send
	ok "which counts it, $face" says counters tool 1 perfquery 8 2
	ok "and port 1 does not, $face" says no_counters tool 1 perfquery 7 1
	ok "ibqueryerrors, $face" says errors errors
	[ "$face" = mainline ] || "$SOFTHCA" stop subnet >/dev/null
done
ok "ibsim makes a subnet of its output" simulated
ok "a description that a host writes" named "rack 3 node 1 HCA-2" "rack 3 node 1 HCA-2"
ok "no more than 64 octets of it" named "$(printf '%070d' 1)" "$(printf '%064d' 0)"
ok "an empty one is the usual one" named "" "softhca-host1 HCA-2"
ok "ibping, and its server is killed" killed
"$SOFTHCA" start --kernel mainline other >/dev/null || exit 1
ok "another instance hears nothing of it" apart
"$SOFTHCA" stop other >/dev/null
"$SOFTHCA" stop subnet >/dev/null
ok "nothing is left" no_instance
finish
