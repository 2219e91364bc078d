# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For the scripts that run XRC programs on xrc_ranks.c: each runs on both kernel faces, in kick and
# in trap, on one to four hosts. The script defines layout, which uses picture to assert what
# `softhca show --json` printed while the ranks were there.
. "$srcdir/lib.sh" || exit 1

if ! command -v jq >/dev/null; then
	skip "XRC as libraries use it" "install jq"
	finish
fi

# What a whole mesh is, for jq: $hosts hosts of $local ranks; each rank has $srqs SRQs and a send QP
# for each host. A host has one domain, with a receive QP for each rank that sends to it. Each rank
# of the host but the sender is registered with it. A rank that has ended is registered nowhere.
# shellcheck disable=SC2016,SC2089
definitions='
def hcas: .hosts[:$hosts][].hcas[0];
def sends: [.qps[] | select(.type != "UD" and .registrations == null)];
def receives: [.xrc_domains[].receive_qps[]];
def registrations: [receives[].registrations[].pid];
def total: $hosts * $local;
def alive: [hcas.contexts[].pid] as $pids |
	all(hcas | registrations[]; . as $pid | $pids | index($pid));
def at($srqs): (.xrc_domains | length == 1) and .xrc_domains[0].opens == $local and
	.xrc_domains[0].xrcd as $domain |
	(.srqs | length == $srqs * $local and all(.[]; .xrcd == $domain)) and
	(sends | length == $local * $hosts and all(.[]; .state == "RTS")) and
	(receives | length == total and
		all(.[].registrations; length == (map(.pid) | unique | length))) and
	(registrations | length == $local * (total - 1));
def whole($srqs): alive and all(hcas; at($srqs)) and
	([hcas.xrc_domains[0].inode] | unique | length == $hosts);
'
# picture N EXPRESSION: the expression holds for the N-th picture.
picture() {
	jq -e --argjson hosts "$hosts" --argjson local "$local" "$definitions $2" \
		"$tmp/ranks/up-$1.json" >/dev/null && return
	echo "picture $1 is not so: $2"
	jq -c '.hosts[].hcas[0] | {contexts: [.contexts[].pid], srqs: [.srqs[] | [.srqn, .pid]],
		qps: [.qps[] | [.qpn, .type, .state, .pid]], xrc_domains}' "$tmp/ranks/up-$1.json"
	return 1
}

nothing_left() {
	"$SOFTHCA" show --json "$SOFTHCA_INSTANCE" >"$tmp/end.json" || return 1
	jq -e '[.hosts[].hcas[] | (.qps + .cqs + .srqs + .mrs + .pds + .xrc_domains + .contexts)[]] |
		length == 0' "$tmp/end.json" >/dev/null
}

# In the instance: runs the program, and checks what was seen while it ran and that nothing is left.
on_hosts() {
	hosts=$2
	local=$3
	rm -rf "$tmp/ranks"
	mkdir "$tmp/ranks" && "$PROGRAMS/$1" "$tmp/ranks" "$hosts" "$local" || return 1
	layout || return 1
	until_true nothing_left || { cat "$tmp/end.json"; return 1; }
}
# shellcheck disable=SC2090
export definitions
export -f picture nothing_left on_hosts

# across PROGRAM N1 N2 N3 N4: runs the program with so many ranks on each of one, two, three, four
# hosts. The quick tier tries each number of hosts on both faces, one of them in kick and the other
# in trap.
across() {
	program=$1
	shift
	export -f layout
	n=0
	for each in "$@"; do
		n=$((n + 1))
		for way in ofed-kick ofed-trap mainline-kick mainline-trap; do
			[ "${TIER:-}" = full ] || case $((n % 2))-$way in
			1-ofed-trap | 1-mainline-kick | 0-ofed-kick | 0-mainline-trap) continue ;;
			esac
			ok "$program, $n x $each, ${way%-*}, ${way#*-}" ours within --kernel "${way%-*}" \
				--mmio "${way#*-}" --hosts $n -- on_hosts "$program" $n "$each"
		done
	done
	ok "nothing is left behind" until_true no_instance
}
