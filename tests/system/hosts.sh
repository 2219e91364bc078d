#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: several emulated hosts in one instance: each has its own names, devices and XRC
# domains, and they share one fabric. XRC as MPI libraries set it up, with its QPs counted against
# plain RC.
# shellcheck disable=SC2086 # words of a command: $three $two
. "$srcdir/lib.sh" || exit 1

names() {
	for host in 0 1 2; do
		[ "$(on "$host" uname -n)" = host"$host" ] || { echo "uname on host $host: $(on "$host" uname -n)"; return 1; }
		[ "$(on "$host" hostname)" = host"$host" ] || { echo "hostname on host $host"; return 1; }
	done
	# Children, and the programs that they execute, are on their parent's host.
	[ "$(on 2 sh -c 'sh -c "uname -n; :"')" = host2 ]
}
devices() {
	lids=
	guids=
	for host in 0 1 2; do
		[ "$(on "$host" ls /sys/class/infiniband | tr '\n' ' ')" = "mlx4_0 mlx4_1 " ] || return 1
		for device in mlx4_0 mlx4_1; do
			lids="$lids $(on "$host" cat /sys/class/infiniband/"$device"/ports/1/lid)"
			guids="$guids $(on "$host" cat /sys/class/infiniband/"$device"/node_guid)"
		done
	done
	# shellcheck disable=SC2086
	[ "$(printf '%s\n' $lids | sort -u | wc -l)" -eq 6 ] && [ "$(printf '%s\n' $guids | sort -u | wc -l)" -eq 6 ] ||
		{ echo "LIDs$lids, GUIDs$guids"; return 1; }
}
# What rdma_cm takes for each port.
addresses() {
	"$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq -r '.hosts[].hcas[].ports[].addresses | join(" ")' >"$tmp/addresses"
	for host in 0 1; do
		for n in 1 2 3 4; do
			echo "127.128.$host.$n fd53:4f46:5448:$host::$n"
		done
	done | sed 's/:0::/::/' | diff - "$tmp/addresses" || return 1
	"$SOFTHCA" show "$SOFTHCA_INSTANCE" | grep -q '127\.128\.1\.4'
}
ports_apart() {
	"$SOFTHCA" port "$SOFTHCA_INSTANCE" --host 1 mlx4_0:1 down || return 1
	on 0 grep -q ACTIVE /sys/class/infiniband/mlx4_0/ports/1/state || { echo "host 0's port went too"; return 1; }
	on 1 grep -q DOWN /sys/class/infiniband/mlx4_0/ports/1/state
}
lone() { [ "$("$SOFTHCA" run -- hostname)" = "$(hostname)" ]; }
across() {
	take_port
	become 0 timeout 50 "$TOOLS/$1" "${@:2}" -p "$port" --verify >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || return 1
	on 1 timeout 50 "$TOOLS/$1" "${@:2}" -p "$port" -d mlx4_1 --verify 127.0.0.1 >"$tmp/client.out" 2>&1
	client=$?
	wait "$server" && [ "$client" -eq 0 ] || { cat "$tmp"/server.out "$tmp"/client.out; return 1; }
}

# mesh_once QPS [OPTION...]: runs one xrc_mesh per host and looks at the instance meanwhile; $seen
# is the largest number of QPs at once.
mesh_once() {
	expected=$1
	shift
	take_port
	become 1 timeout 50 "$TOOLS/xrc_mesh" --procs 4 --port "$port" --node 1 "$@" >"$tmp/node1.out" 2>&1 &
	other=$!
	timeout 50 "$TOOLS/xrc_mesh" --procs 4 --port "$port" --node 0 "$@" >"$tmp/node0.out" 2>&1 &
	self=$!
	seen=0
	rm -f "$tmp/whole"
	while kill -0 "$self" 2>/dev/null; do
		"$SOFTHCA" show --json "$SOFTHCA_INSTANCE" >"$tmp/state" || return 1
		read -r now contexts < <(jq -r '"\([.hosts[].hcas[].qps[]] | length) \([.hosts[].hcas[].contexts[]] | length)"' "$tmp/state")
		if [ "$now" -gt "$seen" ]; then
			seen=$now
		fi
		[ "$now" -ne "$expected" ] || [ "$contexts" -ne 8 ] || cp "$tmp/state" "$tmp/whole"
	done
	wait "$self"
	first=$?
	wait "$other" && [ "$first" -eq 0 ] || { cat "$tmp"/node?.out; return 1; }
	[ "$seen" -le "$expected" ] || { echo "$seen QPs, not $expected"; return 1; }
	jq -e '[.hosts[].hcas[] | (.qps + .cqs + .srqs + .mrs + .pds + .xrc_domains + .contexts)[]] | length == 0' \
		<("$SOFTHCA" show --json "$SOFTHCA_INSTANCE") >/dev/null
}
# If the looks were too rare to see all QPs at once, tries again with more messages.
mesh() {
	messages=400
	while mesh_once "$@" --messages "$messages"; do
		[ -f "$tmp/whole" ] && return
		messages=$((messages * 4))
		[ "$messages" -gt 30000 ] && { echo "never more than $seen QPs, not $1"; return 1; }
	done
	return 1
}
# Two hosts with four ranks each. With RC every rank has a QP for each of the four ranks of the
# other host; with XRC it has one to send and one to receive.
mesh_rc() { mesh 32 --rc; }
mesh_xrc() {
	mesh 16 || return 1
	# Each host has one domain, with the inode of a file of its own. Four processes have opened
	# it. It has four receive QPs, with the registrations of their creator and all four ranks.
	jq -e 'all(.hosts[].hcas[0].xrc_domains; length == 1) and all(.hosts[].hcas[0].xrc_domains[0]; .opens == 4 and
		(.receive_qps | length) == 4) and .hosts[0].hcas[0].xrc_domains[0].inode !=
		.hosts[1].hcas[0].xrc_domains[0].inode' "$tmp/whole" || { jq '.hosts[].hcas[0].xrc_domains' "$tmp/whole"; return 1; }
}
# One file on two hosts stands for two domains.
domains_apart() {
	: >"$tmp/domain"
	take_port
	become 0 timeout 20 "$TOOLS/ibv_xsrq_pingpong" -p "$port" --domain="$tmp/domain" >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || { cat "$tmp/server.out"; return 1; }
	become 1 timeout 20 "$TOOLS/ibv_xsrq_pingpong" -p $((port + 1)) --domain="$tmp/domain" >"$tmp/other.out" 2>&1 &
	other=$!
	port=$((port + 1))
	until_true listening || { cat "$tmp/other.out"; return 1; }
	"$SOFTHCA" show --json "$SOFTHCA_INSTANCE" >"$tmp/state"
	kill "$server" "$other"
	wait "$server" "$other" 2>/dev/null
	jq -e '[.hosts[0,1].hcas[0].xrc_domains[] | [.opens, .inode]] | length == 2 and .[0] == .[1] and .[0][0] == 1' \
		"$tmp/state" || { jq '.hosts[].hcas[0].xrc_domains' "$tmp/state"; return 1; }
}
export -f on become names devices addresses ports_apart across mesh mesh_once mesh_rc mesh_xrc domains_apart

for face in ofed mainline; do
	three="--kernel $face --hosts 3 --hcas 2"
	two="--kernel $face --hosts 2"
	ok "ibv_xsrq_pingpong across, $face" ours within $three -- across ibv_xsrq_pingpong
	ok "one file is a domain on each host, $face" ours within $two -- domains_apart
	ok "a mesh of 2 x 4 ranks, plain RC: 32 QPs, $face" ours within $two -- mesh_rc
	ok "the same over XRC: 16 QPs, $face" ours within $two -- mesh_xrc
	# What the shim does for hosts, it does on either face.
	[ $face = mainline ] || all_rows || continue
	ok "uname, gethostname, $face" within $three -- names
	ok "devices, LIDs and GUIDs are each host's own, $face" within $three -- devices
	ok "a port goes down on one host only, $face" within $three -- ports_apart
	for tool in "ibv_rc_pingpong -n 100" "ibv_uc_pingpong -n 100" "ibv_ud_pingpong -n 100" "ibv_srq_pingpong -n 100"; do
		ok "${tool%% *} across, $face" ours within $three -- across $tool
	done
	ok "addresses of ports, $face" within $two --hcas 2 --ports 2 -- addresses
done
# Outside of an instance there is no device, so the ranks end.
no_ranks() {
	take_port
	status 1 ours timeout 50 "$TOOLS/xrc_mesh" --procs 2 --port "$port" --node 0
}
ok "a mesh whose ranks cannot begin ends" no_ranks
# refused_mesh WORDS OPTION...: it ends at once with usage, which begins with what is wrong.
refused_mesh() {
	words=$1
	shift
	status 2 ours timeout 20 "$TOOLS/xrc_mesh" "$@" 2>"$tmp/err" >"$tmp/out" && head -n 1 "$tmp/err" | grep -q -- "^xrc_mesh: .*$words" &&
		grep -q '^Usage: xrc_mesh' "$tmp/err" && [ ! -s "$tmp/out" ] || { cat "$tmp/out" "$tmp/err"; return 1; }
}
ok "a mesh that is not told its node prints its usage" refused_mesh "--node must say which node this is"
ok "so does one that is told only the rest" refused_mesh "--node must say" --procs 2
ok "a mesh with a number out of range says which" refused_mesh "--procs must be from 1 to 64" --node 0 --procs 65
ok "a node that is not there too" refused_mesh "--node less" --node 2
ok "and one with two layouts" refused_mesh "exclude each other" --node 0 --rc --rc-srq
ok "a lone host keeps the machine's name" lone
range() {
	status 125 "$SOFTHCA" run --hosts 2 --host 2 -- true 2>"$tmp/err" && grep -q 'counted from 0' "$tmp/err"
}
ok "a host that does not exist is an error that says how many exist" range
ok "nothing is left behind" until_true no_instance
finish
