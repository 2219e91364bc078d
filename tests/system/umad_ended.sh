#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: an instance ends, by `softhca stop` or because its daemon is killed, or a card fails, while programs have umad files open: no thread
# of them sleeps on in a call, or cannot be cancelled, and all calls fail, as when a card is taken out. Nor is a next instance of that name
# asked about files of the first one. Debian's opensm reads on then, and logs each error.
. "$srcdir/lib.sh" || exit 1

SOFTHCA_INSTANCE=ended
export SOFTHCA_INSTANCE
# All threads but the first wait: none runs, and the daemon has nothing to answer.
asleep() { [ "$(cat "/proc/$1/task/"*/stat 2>/dev/null | grep -c ') S ')" -eq "$2" ]; }
# ended WAY ARGUMENTS OPTION...: of the program, of the instance.
ended() {
	way=$1
	arguments=$2
	shift 2
	# What a case has left that failed.
	"$SOFTHCA" stop ended >/dev/null 2>&1
	rm -f "$tmp/in" "$tmp/out"
	"$SOFTHCA" start "$@" ended >/dev/null || return 1
	mkfifo "$tmp/in" || return 1
	# shellcheck disable=SC2086 # none, or one
	become 0 timeout 100 "$PROGRAMS/umad_ended" $arguments <"$tmp/in" >"$tmp/out" 2>"$tmp/err" &
	program=$!
	exec 9>"$tmp/in"
	until_true grep -qs pid= "$tmp/out" || { cat "$tmp/err"; return 1; }
	eval "$(grep pid= "$tmp/out")"
	# shellcheck disable=SC2154 # the program says how many
	until_true asleep "$pid" "$threads" || { cat "/proc/$pid/task/"*/stat; return 1; }
	$way || return 1
	exec 9>&-
	wait "$program"
	result=$?
	rm "$tmp/in"
	[ "$result" -eq 0 ] && grep -q over "$tmp/out" || { echo "status $result"; cat "$tmp/out" "$tmp/err"; return 1; }
}
stopped() { timeout 30 "$SOFTHCA" stop ended && no_instance; }
replaced() { stopped && "$SOFTHCA" start ended >/dev/null; }
killed() {
	daemon=$(cat "$SOFTHCA_DIR/softhca/ended/pid")
	kill -KILL "$daemon" && until_true gone "$daemon"
}
# What tools say of the ports of a host.
ports_say() { cat "$SOFTHCA_DIR/softhca/ended/host$1/sys/class/infiniband/mlx4_0/ports/"*/{state,phys_state} | sort -u | tr '\n' ,; }
failed() {
	"$SOFTHCA" port ended mlx4_0:1 fatal || return 1
	states=$(ports_say 0)$(ports_say 1)$("$SOFTHCA" show --json ended | grep -oE '"state": ?"(ACTIVE|DOWN)"' | cut -d '"' -f 4 | tr '\n' ,)
	[ "$states" = "1: DOWN,3: Disabled,4: ACTIVE,5: LinkUp,DOWN,DOWN,ACTIVE,ACTIVE," ] || { echo "$states"; return 1; }
}

for face in mainline ofed; do
	ok "stop wakes all, $face" ended stopped "" --kernel $face
	ok "a card that fails wakes all, $face" ended failed "" --kernel $face --hosts 2 --ports 2
	"$SOFTHCA" stop ended >/dev/null
done
ok "other programs that have a file get EIO" ended stopped others
ok "and where the name is another instance's by now" ended replaced others
"$SOFTHCA" stop ended >/dev/null
ok "the end of the daemon wakes all" ended killed ""
ok "other programs get EIO then" ended killed others

needs "Debian's opensm" "opensm and jq" opensm jq
sm_pid() { "$SOFTHCA" show --json ended | jq -r '.umad_files | if all(.waiting == 0) then .[] | select(.issm != null) | .pid else empty end'; }
has_manager() { [ -n "$(sm_pid)" ]; }
# As master, with nothing outstanding. Whether SIGTERM ends it then is chance, on cards as well: it cancels the thread that reads,
# and that thread may have the lock of the log.
opensm_hears() {
	"$SOFTHCA" start --hosts 2 ended >/dev/null || return 1
	mkdir "$tmp/osm" || return 1
	become 1 env OSM_TMP_DIR="$tmp/osm" OSM_CACHE_DIR="$tmp/osm" timeout -k 5 100 opensm -f "$tmp/log" -L 10 -s 1000 >"$tmp/opensm" 2>&1 &
	sm=$!
	until_true grep -qs 'SUBNET UP' "$tmp/log" && until_true has_manager || { cat "$tmp/opensm"; return 1; }
	pid=$(sm_pid)
	stopped && until_true goes_on || return 1
	kill -KILL "$pid"
	wait "$sm"
	! grep ERR "$tmp/log" | grep -v 'ERR 5404: recv error on MAD sized umad (Input/output error)$'
}
# It has read often since the instance was removed.
goes_on() { [ "$(grep -c 'ERR 5404' "$tmp/log")" -gt 1000 ]; }
ok "opensm gets EIO, and nothing else" opensm_hears
finish
