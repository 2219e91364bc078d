#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: jobs of polling ranks end, however little processor time they get. The jobs are
# examples/xrc_mesh and an alltoall of Open MPI, eight ranks each, beside a load. A job that does
# not end within a limit that starvation alone does not reach fails the test. The test then keeps
# the stacks of the job's threads, and what `softhca show --waits` prints, in $HANG_DIR.
#
# RUNS (of each job), AT_ONCE (how many of them side by side, each with an instance of its own), LOAD
# (busy processes beside them), LIMIT (seconds for a job), JOBS ("mesh mpi"), RUN_LOG (a file that gets
# a line for each run). The long tier has RUNS=500 AT_ONCE=4 LOAD=20. With one at a time 500 runs of both take
# most of a day; with LOAD=0 they are the load of each other, and no processor time is spent on anything else.
. "$srcdir/lib.sh" || exit 1

if [ "${TIER:-}" = full ]; then
	: "${RUNS:=2}" "${LOAD:=20}" "${JOBS:=mesh mpi}"
fi
: "${RUNS:=1}" "${AT_ONCE:=1}" "${LOAD:=0}" "${LIMIT:=300}" "${JOBS:=mesh}"
: "${HANG_DIR:=$PWD/hang_hunt.kept}" "${RUN_LOG:=/dev/null}"
export LIMIT HANG_DIR

# The limit in lib.sh is for a few runs. Its shell ends without its sleep, which would otherwise stay.
pkill -P $watchdog 2>/dev/null
(sleep $((2 * RUNS * LIMIT + 300)) && kill -TERM $$) >/dev/null 2>&1 &
watchdog=$!

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_orte_tmpdir_base=$tmp OMPI_MCA_oob_tcp_if_include=lo

mesh() {
	take_port
	ours "$TOOLS/xrc_mesh" --procs 4 --port "$port" --node 1 --messages 200 &
	other=$!
	ours "$TOOLS/xrc_mesh" --procs 4 --port "$port" --node 0 --messages 200 && wait "$other"
}

# UCX gives up a peer that has not answered a datagram for 30 s, even if the peer has had no
# processor time. LIMIT finds what hangs.
mpi() {
	mpirun.openmpi --oversubscribe -np 8 --mca pml ucx --mca osc ucx --mca pml_ucx_tls any \
		--mca pml_ucx_devices any -x UCX_TLS=rc_v,self -x "UCX_UD_TIMEOUT=${LIMIT}s" "$tmp/alltoall" 40 >"$tmp/mpi.$$" 2>&1 &&
		grep -q "8 ranks: every byte verified" "$tmp/mpi.$$" ||
		{ kept_output "$tmp/mpi.$$"; return 1; }
}

# Prints the end of what a failed job printed, and keeps all of it.
kept_output() {
	mkdir -p "$HANG_DIR"
	cp "$1" "$HANG_DIR/" && echo "all that it printed is in $HANG_DIR/${1##*/}; the end of it:"
	tail -n 20 "$1"
}

# Keeps all that can be known of the hanging job.
keep() {
	kept=$HANG_DIR/$1.$$
	mkdir -p "$kept"
	"$SOFTHCA" show --waits "$SOFTHCA_INSTANCE" >"$kept/waits.txt" 2>&1
	"$SOFTHCA" show --waits --json "$SOFTHCA_INSTANCE" >"$kept/waits.json" 2>&1
	"$SOFTHCA" show --json "$SOFTHCA_INSTANCE" >"$kept/show.json" 2>&1
	for pid in $(sed -n 's/^process \([0-9]*\).*/\1/p' "$kept/waits.txt"); do
		cat "/proc/$pid/task/"*/{comm,status,schedstat,stack} >"$kept/$pid.proc" 2>&1
		! command -v gdb >/dev/null ||
			timeout 60 gdb -p "$pid" -batch -ex 'thread apply all backtrace' \
				>"$kept/$pid.gdb" 2>&1
	done
	echo "not within $LIMIT s; in $kept:"
	cat "$kept/waits.txt"
}

# In the instance: runs the job, and keeps its state if it takes too long.
watched() {
	"$1" &
	job=$!
	while kill -0 "$job" 2>/dev/null; do
		[ "$SECONDS" -lt "$LIMIT" ] || { keep "$1"; return 1; }
		sleep 0.1
	done
	wait "$job"
}
export -f mesh mpi keep kept_output watched ours

# Every AT_ONCE-th run, beginning with the run that the last argument names.
some_runs() {
	for run in $(seq "$3" "$AT_ONCE" "$RUNS"); do
		began=$(date +%s%N)
		timeout $((LIMIT + 200)) nice -n 10 taskset -c "$processors" "$SOFTHCA" run --kernel "$2" -- \
			bash -c 'watched "$1"' watched "$1" || { echo "run $run of $1"; return 1; }
		echo "$1 $run $((($(date +%s%N) - began) / 1000000)) ms" | tee -a "$RUN_LOG"
	done
}
hunt() {
	workers=
	for first in $(seq "$AT_ONCE"); do
		some_runs "$1" "$2" "$first" &
		workers="$workers $!"
	done
	ended=0
	for worker in $workers; do
		wait "$worker" || ended=1
	done
	return "$ended"
}

# Two processors that this test may use. Load and jobs have the same low priority, because other
# tests may run beside this one.
processors=$(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' |
	awk -F- '{ for (i = $1; i <= ($2 ? $2 : $1); i++) print i }' | head -2 | paste -sd,)
for _ in $(seq "$LOAD"); do
	nice -n 10 taskset -c "$processors" bash -c \
		'while kill -0 "$1" 2>/dev/null; do for i in {1..100000}; do :; done; done' busy $$ &
done
for job in $JOBS; do
	kernel=ofed
	if [ "$job" = mpi ]; then
		kernel=mainline
		if ! command -v mpirun.openmpi >/dev/null || ! command -v mpicc.openmpi >/dev/null; then
			skip "Open MPI's alltoall" "install openmpi-bin and libopenmpi-dev"
			continue
		fi
		mpicc.openmpi -O2 -Wall -Wextra -o "$tmp/alltoall" "$srcdir/mpi_alltoall.c" \
			>"$tmp/mpicc.out" 2>&1 ||
			{ ok "the alltoall is compiled" cat "$tmp/mpicc.out"; continue; }
	fi
	ok "$job ends, $RUNS times, $AT_ONCE at once beside a load of $LOAD" hunt "$job" $kernel
	sort -n -k 3 "$tmp/ok.out" | awk -v job="$job" '
		$1 == job && $4 == "ms" { n++; most = $3 }
		END { print "# " n + 0 " runs of " job ", the longest " most + 0 " ms" }'
done
ok "nothing is left behind" until_true no_instance
finish
