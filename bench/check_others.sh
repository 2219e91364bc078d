#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the benchmarks of crowds, scale, connections, rsockets, the wire and instructions run, briefly, and their JSON has every row.
# A poll has no more than so many instructions, which are counted. No test depends on a measured time.
# shellcheck source=bench/check_lib.sh
. "$srcdir/../../bench/check_lib.sh" || exit 1

crowd() { "$BENCH/messages" --quick --part crowd --json "$tmp/json" >"$tmp/tables"; }
ok "crowd" crowd
ok "its JSON has each number of pairs, ours and what the machine does" query "$is_number"'[.rows[].name] ==
	["crowd-1", "crowd-2", "crowd-4", "crowd-8", "crowd-16", "crowd-busy", "compute-5"] and
	all(.rows[]; .ours | is_stats) and all(.rows[:6][]; .others | .futex, .sched_yield | is_stats)'
ok "and the goals" query '[.rows[] | .goal] | .[:6] == [null, null, null, null, 500, 1000] and .[6] > 5'
ok "which stand beside the figures" awk -F '|' '/^\| work/ { column = $4 }
	/^\| 16 pairs/ && $4 ~ /at most (500|1000) / { n++ }
	/^\| 5 us/ && $4 ~ /at most [0-9]/ { n++ }
	END { if (column !~ /goal/ || n != 3) { print column, n; exit 1 } }' "$tmp/tables"

ok "scale" "$BENCH/scale" --points 1,10 --processes 2 --largest 65536 --clients 2 --json "$tmp/json"
ok "its JSON has each kind at each number" query '[.queue_pairs[] | "\(.type) \(.alive)"] == [("RC", "XRC send",
	"XRC receive", "RC") as $kind | "\($kind) 1", "\($kind) 10"] and all(.queue_pairs[]; .create_us > 0) and
	.run_true_ms > 0 and [.registration[].bytes] == [4096, 65536]'
ok "xrc-scale" "$BENCH/xrc-scale" --json "$tmp/json" --svg "$tmp/svg" 2x2
ok "its JSON has the mesh over three ways" query '[.meshes[] | .mesh + " " + .over] ==
	["2x2 RC", "2x2 RC with SRQ", "2x2 XRC"] and all(.meshes[]; .qps_per_process > 0 and .queue_bytes_per_process > 0)'
ok "connections" "$BENCH/connections" --count 8 --threads 2 --json "$tmp/json"
ok "its JSON has both numbers of threads, TCP's, and what they are made of" query "$is_number"'
	all(.one, .many, .tcp.one, .tcp.many; .per_second | is_number) and (.one.us | keys | length) == 8 and
	all(.commands, .sum_us, .ratio, .alone.command_us, .alone.qp_us; is_number)'
ok "rsockets" "$BENCH/rsockets" --repeat 1 --iterations 20 --json "$tmp/json"
ok "its JSON has both sizes, TCP's, and the copies alone" query "$is_number"'
	([.rows[] | "\(.size) \(.test)"] | sort) == ([(8, 1048576) as $s | "rsocket", "tcp", "tcp-polling", "copies",
	"copies-apart" | "\($s) \(.)"] | sort) and all(.rows[]; is_stats) and
	all(.to_tcp_8, .to_copies_1048576, .to_copies_apart_1048576; is_number)'
iperf3=$(command -v iperf3 >/dev/null && echo '"iperf3"')
ok "wire" "$BENCH/wire" --repeat 1 --iterations 20 --json "$tmp/json"
ok "its JSON has each test, and what it is held against" query "$is_number"'
	([.rows[].test] | sort) == ["chain", "dgrams", "gso", '"${iperf3:+$iperf3, }"'"least", "lossy", "mmsg", "send", "tcp", "udp", "write"] and all(.rows[]; is_stats) and
	all(.send_to_udp, .chain_to_dgrams, .write_to_least, .write_to_tcp, '"${iperf3:+.write_to_iperf3, }"' .write_to_mmsg, .write_to_gso, .lossy_to_write; is_number)'
if ! command -v valgrind >/dev/null; then
	skip "device" "install valgrind"
else
	ok "device" "$BENCH/device" --json "$tmp/json"
	ok "its JSON has where the instructions go" query '(.calls | length) == 11 and all(.calls[];
		.all > 0 and .libraries > 0 and .libraries <= .all) and (.calls[0].functions | length) > 1'
	# These are counts. What looks for polls in vain is all that the device does in a poll that finds something. A hundredth of 5 us is
	# some hundred instructions.
	ok "of a poll that finds something at most 8 are the device's" query '.calls[] | select(.call == "poll_cq, one receive CQE") | .device <= 8'
	ok "of one that finds nothing, between 5 us of work, at most 20" query '.calls[] | select(.call | startswith("poll_cq, empty")) | .device <= 20'
fi
ok "nothing is left behind" until_true no_instance
finish
