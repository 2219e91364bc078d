#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: `softhca show` of a known layout prints every object with its numbers, for programs
# and for people, and nothing of it afterwards. And the messages when the command fails.
. "$srcdir/lib.sh" || exit 1

if ! command -v jq >/dev/null; then
	skip "softhca show" "install jq"
	finish
fi

query() { jq -e "$@" "$tmp/state" >/dev/null || { echo "not so: $*"; cat "$tmp/state"; return 1; }; }
dump() { "$SOFTHCA" show --json lab >"$tmp/state"; }

unchanging() { uncounted <"$tmp/state" | jq 'del(.. | .daemon?, .pid?)'; }

for face in $(faces ofed mainline); do
	"$SOFTHCA" start --kernel "$face" --ports 2 lab >/dev/null || exit 1
	dump
	unchanging >"$tmp/fresh"
	pages=$(jq .daemon.pool_pages_used "$tmp/state")
	rm -f "$tmp/numbers" # of the other face: the program begins to write after its fifo is open
	mkfifo "$tmp/hold"
	ours "$SOFTHCA" run --instance lab -- "$PROGRAMS/layout" "$tmp/domain" <"$tmp/hold" >"$tmp/numbers" 2>"$tmp/layout.err" &
	program=$!
	exec 7>"$tmp/hold"
	until_true grep -qs lid= "$tmp/numbers" || { cat "$tmp/layout.err"; exit 1; }
	eval "$(sed -n 's/^pid=/layout_pid=/p' "$tmp/numbers")"
	dump
	inode=$(stat -c %i "$tmp/domain")

	ok "the instance, $face" query --arg face "$face" '.kernel == $face and .mmio == "kick" and .driver_abi == 3 and
		(.hosts | length) == 1 and .hosts[0].hcas[0].device == "mlx4_0" and (.faults | length) == 0'
	ok "its ports, $face" query --argjson lid "$lid" '.hosts[0].hcas[0].ports | length == 2 and .[0].lid == $lid and
		.[0].state == "ACTIVE" and .[0].pkeys == [{"index": 0, "pkey": "0xffff"}]'
	ok "the process, $face" query --argjson pid "$layout_pid" 'any(.processes[]; .pid == $pid and .connected)'
	ok "the context, $face" query --argjson pid "$layout_pid" '.hosts[0].hcas[0].contexts | length == 1 and .[0].pid == $pid and
		.[0].state == "open" and .[0].doorbells == "kick" and ([.[0].event_queues[].kind] | sort) == ["async", "completion"]'
	ok "the PD with its users, $face" query '.hosts[0].hcas[0].pds | length == 1 and .[0].users == 4'
	ok "the QP, $face" query --argjson qpn "$qpn" --argjson lid "$lid" '.hosts[0].hcas[0].qps | map(select(.qpn == $qpn)) |
		length == 1 and (.[0] | .type == "RC" and .state == "RTS" and .dest_qpn == $qpn and .dlid == $lid and
		.messages_sent == 3 and .messages_received == 3 and .send_outstanding == 0 and .queue_memory == "shared")'
	ok "the CQs, $face" query '.hosts[0].hcas[0].cqs | length == 2 and any(.[]; .entries >= 60 and .producer == 6 and
		.consumer == 6 and has("channel")) and any(.[]; .producer == 0 and (has("channel") | not))'
	ok "the SRQs, $face" query --argjson n "$xsrqn" '.hosts[0].hcas[0] | (.srqs | length == 2) and
		any(.srqs[]; .available == 2 and .max_wr >= 20 and (has("xrcd") | not)) and
		(.xrc_domains[0].xrcd as $d | any(.srqs[]; .srqn == $n and .xrcd == $d))'
	ok "the XRC domain with its inode, receive QP and registration, $face" query --argjson inode "$inode" \
		--argjson qpn "$rcv_qpn" --argjson pid "$layout_pid" '.hosts[0].hcas[0].xrc_domains | length == 1 and (.[0] |
		.inode == $inode and .opens == 1 and (.receive_qps | length == 1 and (.[0].qpn % 16777216) == $qpn and
		[.[0].registrations[].pid] == [$pid]))'
	ok "the memory region, $face" query --arg key "$(printf '0x%08x' "$lkey")" --arg at "$(printf '0x%x' "$address")" \
		'.hosts[0].hcas[0].mrs | length == 1 and .[0].key == $key and .[0].address == $at and .[0].length == 12345'
	ok "counters, $face" query '.hosts[0].hcas[0].counters | .xmit_packets >= 3 and .retries == 0 and .drops_icrc == 0'

	text() {
		"$SOFTHCA" show lab >"$tmp/text" || return 1
		# There is a heading with the number of rows, and a table with aligned columns.
		for heading in 'qps (2)' 'cqs (2)' 'srqs (2)' 'xrc_domain 1' 'receive_qps (1)' 'mrs (1)' 'counters'; do
			grep -q "$heading" "$tmp/text" || { echo "no $heading"; cat "$tmp/text"; return 1; }
		done
		# A QP's number is as ibv_ tools print it, and so is the one of its peer, which is itself.
		[ "$(grep -Ec "^ *$(printf '0x%06x' "$qpn") " "$tmp/text")" -ge 2 ] && grep -q "$(printf '0x%06x .*0x%06x' "$qpn" "$qpn") " "$tmp/text" || { cat "$tmp/text"; return 1; }
		grep -q "$inode" "$tmp/text" || { cat "$tmp/text"; return 1; }
		awk '/mrs \(1\)/ { getline head; getline row; at = index(head, "length")
			exit !(at && substr(row, at, 5) == "12345") }' "$tmp/text" || { cat "$tmp/text"; return 1; }
	}
	ok "the same as text, $face" text
	list() {
		"$SOFTHCA" show --json | jq -e --argjson pid "$(cat "$SOFTHCA_DIR/softhca/lab/pid")" \
			'.instances == [{"name": "lab", "hosts": 1, "pid": $pid}]' && "$SOFTHCA" show | grep -q lab
	}
	ok "the list of instances, $face" list
	exec 7>&-
	wait $program
	same_as_fresh() {
		dump
		[ "$(jq .daemon.pool_pages_used "$tmp/state")" = "$pages" ] || return 1
		unchanging | cmp -s - "$tmp/fresh"
	}
	ok "when the process has ended, the instance is as at its start, $face" until_true same_as_fresh
	"$SOFTHCA" stop lab
	rm -f "$tmp/hold"
done

until_true no_instance
none() { [ "$("$SOFTHCA" show)" = "No instance runs. softhca start NAME starts one." ] && "$SOFTHCA" show --json | jq -e '.instances == []'; }
ok "where no instance runs, show says so, and its JSON is an empty list" none
says() {
	wanted=$1
	words=$2
	shift 2
	"$SOFTHCA" "$@" 2>"$tmp/err" >"$tmp/out"
	got=$?
	[ "$got" -eq "$wanted" ] && grep -q "$words" "$tmp/err" || { echo "status $got:"; cat "$tmp/err"; return 1; }
}
ok "an instance that does not exist is an error that says what to do" says 125 'softhca show lists' show nothing
ok "a name that no instance can have" says 125 'letters, digits' show 'a b'
ok "a wrong option" says 2 'takes --json' show --xml
# More than stdio keeps back, so that the first write fails before the last one.
"$SOFTHCA" start --hosts 8 lab >/dev/null || exit 1
full() { status 125 "$SOFTHCA" show "$@" lab >/dev/full 2>"$tmp/err" && grep -q 'cannot write the output: No space left on device' "$tmp/err"; }
ok "a full disk is a failure, and is named" full
ok "and with --json" full --json
"$SOFTHCA" stop lab
ok "a port of an instance that does not exist" says 125 'softhca start makes one' port nothing mlx4_0:1 up
"$SOFTHCA" start lab >/dev/null
ok "a port that does not exist" says 125 . port lab mlx4_0:3 up
ok "a host that does not exist" says 125 . port lab --host 4 mlx4_0:1 up
ok "an unknown change of a port" says 2 'up or down' port lab mlx4_0:1 sideways
ok "an unknown kind of fault" says 2 'dropped (drop)' fault lab lose 5%
ok "a rate of more than 100%" says 2 'from 0% to 100%' fault lab drop 101%
ok "a count of 0" says 2 'a count is from 1 to' fault lab drop 0

# The daemon is stopped: the command does not wait for ever, and the message says what to do.
pid=$(cat "$SOFTHCA_DIR/softhca/lab/pid")
kill -STOP "$pid"
ok "show of a stopped daemon ends, with a message" says 125 "kill -CONT $pid" show lab
ok "the list of instances ends while a daemon is stopped" says 125 "kill -CONT $pid" show
ok "stop of a stopped daemon ends" says 125 "kill -CONT $pid" stop lab
kill -CONT "$pid"
ok "the daemon answers when it goes on" "$SOFTHCA" show lab
ok "the instance stops" "$SOFTHCA" stop lab
ok "nothing is left behind" until_true no_instance
finish
