#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the benchmarks run (in the quick tier, message rates), with few messages of each kind, and their JSON has every row:
# with this project's figures, with those of the installed peers, with tables made from it. No test
# depends on a measured number.
# shellcheck source=tests/system/lib.sh
. "$srcdir/lib.sh" || exit 1

if ! command -v jq >/dev/null; then
	skip "benchmarks" "install jq"
	finish
fi

query() { jq -e "$@" "$tmp/json" >/dev/null || { echo "not so: $*"; cat "$tmp/json"; return 1; }; }
is_number='def is_number: type == "number" and . > 0;
	def is_stats: (.median | is_number) and .min <= .median and .median <= .max and .runs == 1;
	'

stacks='[.rows[] | select(.part == "stack") | .name] == [("8", "4096", "65536", "1048576", "rate-8") as $of |
	"ucx-rc-\($of)", "ucx-ud-\($of)", "mpi-rc-\($of)"]'

# A machine without the peers: the same commands except theirs.
mkdir "$tmp/bin"
for dir in /bin /usr/bin; do
	find "$dir/" -maxdepth 1 ! -type d ! -name 'ucx_*' ! -name 'fi_*' ! -name 'mpi*' -exec ln -sf -t "$tmp/bin" {} +
done
without() {
	PATH=$tmp/bin "$BENCH/messages" --quick --part rate --json "$tmp/json" 2>&1 | tee "$tmp/said"
	for package in ucx-utils libfabric-bin openmpi-bin; do
		[ "$(grep -c "Debian package $package$" "$tmp/said")" -eq 1 ] || { echo "no $package"; return 1; }
	done
}
ok "a missing peer is named with its package, once" without
ok "and is no part of the result" query '.rows[0].ours and (.rows[0].others | keys) == ["TCP"]'
# What is measured of a stack on softhca alone, too, is that stack.
without_stacks() {
	PATH=$tmp/bin "$BENCH/messages" --quick --part stack --json "$tmp/json" >"$tmp/said" 2>&1 || { cat "$tmp/said"; return 1; }
	for package in ucx-utils openmpi-bin; do
		[ "$(grep -c "Debian package $package$" "$tmp/said")" -eq 1 ] || { echo "no $package"; cat "$tmp/said"; return 1; }
	done
}
ok "without them the rows of stacks on softhca are empty" without_stacks
ok "and there are all of them" query "$stacks"' and all(.rows[]; .ours == null and .others == {})'
ok "an unknown part is refused" status 2 "$BENCH/messages" --part latencies

# The quick tier leaves it at that: tests of verbs send all of this, too.
if [ "${TIER:-}" != full ]; then
	ok "nothing is left behind" until_true no_instance
	finish
fi

peers="ucx libfabric openmpi tcp"
# Standard error names the peers that are not installed.
measured() { "$BENCH/messages" --quick --peers "$peers" --json "$tmp/json" >"$tmp/tables"; }
ok "messages" measured
ok "it has all rows" query '[.rows[] | select(.part != "stack") | .name] == ([("send", "xrc") as $k | (8, 1024, 4096, 65536, 1048576) |
	"\($k)-\(.)"] + ["uc-8", "ud-8", "mcast-8", "heap-65536", "write-8", "read-65536", "rate-8", "events-8"])'
ok "ours is in each" query "$is_number"'all(.rows[] | select(.part != "stack"); .ours | is_stats)'
ok "and TCP's where it has such messages" query "$is_number"'all(.rows[] | select(.part != "stack" and (.name | test("^(write|read)") | not));
	.others.TCP | is_stats)'
ok "and the bare wake-ups" query "$is_number"'.rows[] | select(.part == "wake-up") | .others.pipe, .others.futex | is_stats'
ok "a ratio is to the best of them" query 'all(.rows[] | select(.best); (.ratio - .ours.median / .others[.best].median) |
	fabs < 1e-9) and all(.rows[] | select(.unit == "us" and .best); .others[.best].median ==
	([.others | to_entries[] | select(.key != "pipe" and .key != "futex") | .value.median] | min))'
ok "it has the rows of stacks on softhca" query "$stacks"
# stack NAMES COLUMNS: the rows with such names have figures on softhca and of these ways, and their ratio.
stack() {
	query --arg names "$1" --arg columns "$2" "$is_number"'[.rows[] | select(.part == "stack" and (.name | test($names)))] as $rows |
		($rows | length) > 0 and all($rows[]; (.ours | is_stats) and (.ratio | is_number) and
			.others as $others | all($columns | split(",")[]; $others[.] | is_stats))'
}
while IFS=: read -r name program names columns; do
	if command -v "$program" >/dev/null; then
		ok "with $name beside its own shared memory" stack "$names" "$columns"
	else
		skip "with $name beside its own shared memory" "scripts/install-packages test"
	fi
done <<'END'
UCX:ucx_perftest:^ucx-:UCX posix,UCX shm
Open MPI:mpirun.openmpi:^mpi-:Open MPI
END
ok "it says where" query '.quick and (.machine | .cpu != "" and .kernel != "" and .compiler != "" and (.pinned | length) == 2)'
ok "it prints a line of each row" awk -F '|' '/^\| (RC SEND|XRC SEND|RDMA|8 B SENDs|SEND 8 B)/ { n++ }
	END { if (n != 30) { print n " lines"; exit 1 } }' "$tmp/tables"
ok "the JSON alone prints the same" sh -c '"$0" --show "$1" | cmp - "$2"' "$BENCH/messages" "$tmp/json" "$tmp/tables"

ok "crowd" "$BENCH/messages" --quick --part crowd --json "$tmp/json"
ok "its JSON has each number of pairs, ours and what the machine does" query "$is_number"'[.rows[].name] ==
	["crowd-1", "crowd-2", "crowd-4", "crowd-8", "crowd-16", "crowd-busy", "compute-5"] and
	all(.rows[]; .ours | is_stats) and all(.rows[:6][]; .others | .futex, .sched_yield | is_stats)'

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
ok "wire" "$BENCH/wire" --repeat 1 --iterations 20 --json "$tmp/json"
ok "its JSON has each test, and what it is held against" query "$is_number"'
	([.rows[].test] | sort) == ["chain", "dgrams", "gso", "least", "lossy", "mmsg", "send", "tcp", "udp", "write"] and all(.rows[]; is_stats) and
	all(.send_to_udp, .chain_to_dgrams, .write_to_least, .write_to_tcp, .write_to_mmsg, .write_to_gso, .lossy_to_write; is_number)'
if ! command -v valgrind >/dev/null; then
	skip "device" "install valgrind"
else
	ok "device" "$BENCH/device" --json "$tmp/json"
	ok "its JSON has where the instructions go" query '(.calls | length) == 10 and all(.calls[];
		.all > 0 and .libraries > 0 and .libraries <= .all) and (.calls[0].functions | length) > 1'
fi
ok "nothing is left behind" until_true no_instance
finish
