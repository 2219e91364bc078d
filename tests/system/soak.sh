#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: many client processes on one instance are killed at random and replaced, and others
# are stopped at random for a while. No other process loses a message, and afterwards the instance
# is as it was at first. SOAK_SECONDS and SOAK_PROCESSES say for how long and how many, SOAK_SEED
# which ones.
. "$srcdir/lib.sh" || exit 1

if ! command -v jq >/dev/null; then
	skip "soak" "install jq"
	finish
fi
seconds=2
processes=16
if [ "${TIER:-}" = full ]; then
	seconds=20
	processes=64
fi
seconds=${SOAK_SECONDS:-$seconds}
processes=${SOAK_PROCESSES:-$processes}
seed=${SOAK_SEED:-$RANDOM}
progress=/dev/null
[ -t 1 ] && progress=/dev/tty

# Counters go on counting. Everything else must be gone.
state() { "$SOFTHCA" show --json lab | uncounted | jq 'del(.daemon.commands, .daemon.failed, .daemon.ranges_shared,
	.daemon.regions_shared, .daemon.regions_private, .daemon.regions_revoked)'; }
idle() { [ "$(state)" = "$fresh" ]; }
# The daemon's own memory. It does not include device memory, which is shared: numbers are given out
# in turn, so every object ever made touches more of its tables, up to their size.
memory() { awk '/^RssAnon/ { print $2 }' "/proc/$daemon/status"; }
descriptors() { find "/proc/$daemon/fd" -mindepth 1 | wc -l; }
files() { find "$SOFTHCA_DIR/softhca/lab" -type f -o -type p | grep -c -v /host; }

# What ends by the limit says who waits, which tells a lost wake-up from too little processor time.
soak() {
	local limit=$((SECONDS + ${3%.*} + 400)) job
	"$SOFTHCA" run --instance lab -- "$PROGRAMS/soak" "$1" --processes "$2" --seconds "$3" --seed "$seed" --progress "$progress" &
	job=$!
	until gone "$job"; do
		[ "$SECONDS" -lt "$limit" ] || {
			echo "has not ended after $3 s and 400 s more; the load is $(cat /proc/loadavg)"
			"$SOFTHCA" show --waits lab
			kill "$job"
			break
		}
		pause 0.1
	done
	wait "$job" || { echo "to repeat it: SOAK_SEED=$seed"; return 1; }
}
in_peace() {
	until_true idle || { diff <(echo "$fresh") <(state); return 1; }
}
flat() {
	after=$(memory)
	echo "RssAnon $before kB before, $after kB after"
	[ "$after" -le $((before + 1024)) ]
}
closed() {
	echo "$fds descriptors before, $(descriptors) after; $leaf files before, $(files) after"
	[ "$(descriptors)" -eq "$fds" ] && [ "$(files)" -eq "$leaf" ]
}
serves() { ours "$SOFTHCA" run --instance lab -- bash -c '"$@"' x pingpong "$TOOLS/ibv_rc_pingpong" --verify; }

for face in mainline ofed; do
	if [ $face = ofed ]; then
		[ "${TIER:-}" = full ] || continue
		seconds=$((seconds / 3 + 1))
	fi
	"$SOFTHCA" start --kernel $face lab >/dev/null || exit 1
	daemon=$(cat "$SOFTHCA_DIR/softhca/lab/pid")
	fresh=$(state)
	fds=$(descriptors)
	leaf=$(files)
	# The first run makes what the daemon allocates only once.
	ok "$processes processes, none of them killed, $face" ours soak --none "$processes" 1
	in_peace >/dev/null
	before=$(memory)
	ok "$processes processes, killed at random for $seconds s, seed $seed, $face" ours soak --kill "$processes" "$seconds"
	ok "after the kills the instance is as before, $face" in_peace
	ok "after the kills the daemon's memory is as before, $face" flat
	ok "after the kills the daemon's descriptors and files are as before, $face" until_true closed
	half=$(((seconds + 1) / 2))
	ok "$processes processes, stopped at random for $half s, $face" ours soak --stop "$processes" $half
	ok "killed and stopped processes leave nothing, $face" in_peace
	ok "the instance still serves, $face" serves
	ok "the instance ends, $face" "$SOFTHCA" stop lab
done
ok "nothing is left behind" until_true no_instance
finish
