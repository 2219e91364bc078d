#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: message benchmarks run (in the quick tier, message rates), with few messages of each kind, and their JSON has every row:
# with this project's figures, with those of the installed peers, with tables made from it. No test
# depends on a measured number.
# shellcheck source=bench/check_lib.sh
. "$srcdir/../../bench/check_lib.sh" || exit 1

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

ok "nothing is left behind" until_true no_instance
finish
