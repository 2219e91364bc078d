#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: a queue pair costs the same however many exist: in instructions of its process, in
# mappings, in device memory, and when `softhca show` looks at it. Nothing is timed. The test makes a thousand, or QUEUE_PAIRS (in
# the long tier a hundred thousand). Where less memory may be locked it makes a few hundred, enough to see code that looks at each
# of them.
TEST_TIMEOUT=${TEST_TIMEOUT:-1500}
. "$srcdir/lib.sh" || exit 1

# A page of queue each, or two, and its records: what may be locked decides how many there can be.
many=${QUEUE_PAIRS:-1000}
locks $((many * 12)) || many=$(($(ulimit -l) / 12 - 40))
some=$((many < 5000 ? many : 5000))
case $(uname -m) in
x86_64 | aarch64) ;;
*)
	skip "many queue pairs" "no single-stepping here"
	finish ;;
esac
if [ "$many" -lt 200 ]; then
	skip "many queue pairs" "locked memory is limited to $(ulimit -l) KiB: raise ulimit -l to 8192"
	finish
fi

# A thread that waits for another one executes more instructions the longer it waits, so a count may be too large on a busy machine. Three
# tries in a row fail only if the cost grows with the number of queue pairs.
counted() {
	for _ in 1 2 3; do
		! ours timeout 250 "$SOFTHCA" run "$@" || return 0
	done
	return 1
}

for kind in rc xrc receive; do
	# Except in the long tier, a kind on one face.
	[ $kind = receive ] || { [ $kind = xrc ] && long_rows; } && ok "$many $kind" counted -- "$PROGRAMS/scale" $kind "$many"
	[ $kind != receive ] || long_rows && ok "$some $kind, ofed" counted --kernel ofed -- "$PROGRAMS/scale" $kind "$some"
done
safe() { RDMAV_FORK_SAFE=1 counted -- "$PROGRAMS/scale" rc "$some"; }
ok "$some that a forked child does not get" safe

if ! command -v jq >/dev/null; then
	skip "many queue pairs from outside" "install jq"
	finish
fi

# Prints how many bytes of device memory are in use, without those that stand in for clients' own
# pages.
device() {
	"$SOFTHCA" show --json lab >"$tmp/state" || return 1
	pages=$(jq '.daemon.pool_pages_used + .daemon.pool_pages_spare + .daemon.shared_pages_used' "$tmp/state")
	echo $(($(stat -L -c %b "$memory") * 512 - pages * 4096))
}
seen() {
	jq -e --argjson many "$many" '.daemon.ranges_copied == 0 and .daemon.maps_failed == 0 and
		(.hosts[0].hcas[0].qps | length == $many and all(.[]; .state == "RTS" and .queue_memory == "shared"))' \
		"$tmp/state" >/dev/null || { jq .daemon "$tmp/state"; return 1; }
}
# The process needs some pages besides those of its QPs, and so do objects that came and went.
lean() {
	echo "$before bytes before, $after with $many"
	[ $((after - before)) -le $((many * 1024 + 262144)) ]
}
own() {
	echo "RssAnon $private kB before, $(private) kB after"
	[ $(($(private) - private)) -le $((many / 2 + 4096)) ]
}
private() { awk '/^RssAnon/ { print $2 }' "/proc/$daemon/status"; }
empty() {
	"$SOFTHCA" show --json lab >"$tmp/state" || return 1
	jq -e '.daemon.pool_pages_used == 0 and .daemon.contexts_releasing == 0 and (.hosts[0].hcas[0].qps | length == 0)' \
		"$tmp/state" >/dev/null
}

# hold NUMBER: makes that many, which stay until descriptor 7 is closed.
hold() {
	rm -f "$tmp/hold"
	mkfifo "$tmp/hold"
	ours "$SOFTHCA" run --instance lab -- "$PROGRAMS/scale" rc "$1" hold <"$tmp/hold" >"$tmp/out" 2>&1 &
	program=$!
	exec 7>"$tmp/hold"
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		until_true grep -q '^alive' "$tmp/out" >/dev/null && return
		kill -0 $program 2>/dev/null || return
	done
}
# Its counts are judged above; here they only have to be there.
ended() {
	wait "$program" || { cat "$tmp/out"; [ "$(grep -c 'instructions with' "$tmp/out")" -eq 6 ] || return 1; }
}

"$SOFTHCA" start lab >/dev/null || exit 1
daemon=$(cat "$SOFTHCA_DIR/softhca/lab/pid")
for memory in /proc/"$daemon"/fd/*; do
	case $(readlink "$memory") in
	/memfd:softhca\ *) break ;;
	esac
done
before=$(device)
private=$(private)
hold "$many"
after=$(device)
ok "show has them all, and no queue fell back" seen
ok "at most 1 KiB of device memory each" lean
ok "the daemon's own memory grows by at most half of that, also after softhca show" own
exec 7>&-
ok "$many rc" ended
ok "no QP stays when its program has ended" empty

hold $some
pkill -KILL -P $program
kill -KILL $program 2>/dev/null
exec 7>&-
ok "no QP stays when its process is killed" until_true empty
"$SOFTHCA" stop lab
finish
