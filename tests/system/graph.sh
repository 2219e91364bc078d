#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: `softhca graph` draws an instance in a language that Graphviz reads: every host, port,
# process, QP, SRQ and XRC domain once, an edge for each connection, and with --processes the number
# of QPs between two processes.
. "$srcdir/lib.sh" || exit 1

if ! command -v dot >/dev/null || ! command -v jq >/dev/null; then
	skip "softhca graph" "install graphviz and jq"
	finish
fi

# drawn [OPTION]: nodes and edges, as Graphviz understands them
drawn() {
	"$SOFTHCA" graph "$@" lab >"$tmp/dot" && dot -Tjson0 "$tmp/dot" >"$tmp/drawn" 2>"$tmp/err" || { cat "$tmp/err"; return 1; }
	# Graphviz complains on standard error, and draws something.
	[ ! -s "$tmp/err" ] || { cat "$tmp/err"; return 1; }
}
query() { jq -e "$@" "$tmp/drawn" >/dev/null || { echo "not so: $*"; cat "$tmp/dot"; return 1; }; }
# edge FROM TO [CONDITION]: there is one such edge, no more
edge() {
	query --arg from "$1" --arg to "$2" '. as $g | [.edges[] | select($g.objects[.tail].name == $from and $g.objects[.head].name == $to)] |
		length == 1 and (.[0] | '"${3:-true}"')'
}
node() { query --arg name "$1" '[.objects[] | select(.name == $name)] | length == 1 and (.[0] | '"${2:-true}"')'; }

"$SOFTHCA" start --hosts 2 --ports 2 lab >/dev/null || exit 1

empty() {
	drawn && node host0/mlx4_0/port1 '.label | test("LID 1.*ACTIVE")' && node fabric && edge host1/mlx4_0/port2 fabric '.style == null' &&
		query '[.objects[].name | select(test("/qp"))] == []'
}
ok "hosts and ports of an instance without processes" empty

# A process whose name is hard to write.
cp "$PROGRAMS/layout" "$tmp/lay\"o\\ut"
mkfifo "$tmp/hold"
ours "$SOFTHCA" run --instance lab --host 1 -- "$tmp/lay\"o\\ut" "$tmp/domain" <"$tmp/hold" >"$tmp/numbers" 2>"$tmp/layout.err" &
exec 7>"$tmp/hold"
until_true grep -qs lid= "$tmp/numbers" || { cat "$tmp/layout.err"; exit 1; }
eval "$(sed -n 's/^pid=/layout_pid=/p' "$tmp/numbers")"
"$SOFTHCA" show --json lab >"$tmp/state"
at() { jq -r "$1" "$tmp/state"; }
hex() { xargs printf '0x%06x\n'; }
qpn=$(at '.hosts[1].hcas[0].qps[] | select(.type == "RC") | .qpn' | hex)
receiver=$(at '.hosts[1].hcas[0].qps[] | select(.type == "XRC_TGT") | .qpn' | hex)
srqn=$(at '.hosts[1].hcas[0].srqs[] | select(.xrcd) | .srqn' | hex)
own=host1/mlx4_0

everything() {
	drawn && query --argjson state "$(cat "$tmp/state")" '
		[$state.hosts[].hcas[] | .qps[], .srqs[], .xrc_domains[], .ports[]] as $all |
		[.objects[].name | select(test("/((qp|srq)0x[0-9a-f]{6}|(xrcd|port)[0-9]+)$"))] | length == ($all | length) and length > 6'
}
ok "every QP, SRQ, XRC domain and port, once" everything
process() { node "cluster_$own/process$layout_pid" '.label | startswith("lay\"o\\\\ut ") and endswith(" '"$layout_pid"'")'; }
ok "a process with its name, whatever that is" process
connected() { edge "$own/qp$qpn" "$own/qp$qpn" '.dir == "both"' && node "$own/qp$qpn" '.label | startswith("RC '"$qpn"'")'; }
ok "a pair of QPs is one edge" connected
domain() {
	edge "$own/qp$receiver" "$own/xrcd1" && edge "$own/xrcd1" "$own/srq$srqn" &&
		node "$own/xrcd1" '.label | endswith("inode '"$(stat -c %i "$tmp/domain")"'")' &&
		node "$own/qp$receiver" '.label | startswith("XRC receive QP '"$receiver"'") and endswith("registered by: '"$layout_pid"'")'
}
ok "an XRC domain, from its receive QP to its SRQ" domain
down() {
	"$SOFTHCA" port lab --host 0 mlx4_0:1 down && drawn && edge host0/mlx4_0/port1 fabric '.style == "dashed"' &&
		edge host0/mlx4_0/port2 fabric '.style == null'
}
ok "a port that is down" down
summary() {
	drawn --processes && node "$own/process$layout_pid" '.label | contains("1 RC")' &&
		edge "$own/process$layout_pid" "$own/process$layout_pid" '.label == "RC: 1"' &&
		node "$own/xrcd1" '.label | endswith("1 receive QP")' && edge "$own/xrcd1" "$own/process$layout_pid" &&
		query '[.objects[].name | select(test("/qp"))] == []'
}
ok "processes with the number of their QPs" summary
exec 7>&-
wait -n
gone() { drawn && query '[.objects[].name | select(test("process"))] == []'; }
ok "a process that has ended is gone" until_true gone

# Between two hosts: each of two ranks on a node sends to the other node's receive QP.
mkfifo "$tmp/mesh"
take_port
mesh() { ours "$SOFTHCA" run --instance lab --host "$1" -- "$TOOLS/xrc_mesh" --procs 2 --port "$port" --node "$@"; }
"$SOFTHCA" port lab --host 0 mlx4_0:1 up
mesh 0 --hold <"$tmp/mesh" >"$tmp/mesh.out" 2>&1 &
exec 7>"$tmp/mesh"
until_true listening || { cat "$tmp/mesh.out"; exit 1; }
mesh 1 --server 127.0.0.1 >"$tmp/mesh1.out" 2>&1 7>&- &
until_true grep -q connected "$tmp/mesh.out" || { cat "$tmp/mesh.out" "$tmp/mesh1.out"; exit 1; }
crossing() {
	drawn && query '. as $g | def name: $g.objects[.].name;
		[.edges[] | select((.tail | name | test("/qp")) and (.head | name | test("/qp"))) | {from: (.tail | name[0:5]), to: (.head | name[0:5])}] |
		length == 4 and all(.[]; .from != .to)'
}
ok "XRC send QPs of two hosts lead to the other's receive QPs" crossing
counted() {
	drawn --processes && query '. as $g | def name: $g.objects[.].name;
		[.edges[] | select((.tail | name | test("process")) and (.head | name | test("xrcd"))) | .label] == ["XRC_INI: 1", "XRC_INI: 1", "XRC_INI: 1", "XRC_INI: 1"]'
}
ok "and are counted by process" counted
exec 7>&-

ok "no name is a misused command line" status 2 "$SOFTHCA" graph
ok "so is an unknown option" status 2 "$SOFTHCA" graph --all lab
ok "an instance that does not run is a failure" status 125 "$SOFTHCA" graph nobody
full() { status 125 "$SOFTHCA" graph lab >/dev/full; }
ok "a full disk is a failure" full
finish
