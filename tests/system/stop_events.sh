#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: `softhca stop` tells programs first: before calls fail, each thread that is blocked
# in ibv_get_async_event() gets IBV_EVENT_DEVICE_FATAL, of every device, on every host. Then the
# instance ends. A program that is stopped delays none of this, and gets its event when it
# continues. All this also holds if a signal ends the daemon. Programs keep what is in their memory.
. "$srcdir/lib.sh" || exit 1

# watcher HOST NAME THREADS: starts told.c there, and waits until its threads are blocked. $pid
watcher() {
	rm -f "$tmp/$2.out" "$tmp/$2.err"
	ours "$SOFTHCA" run --instance lab --host "$1" -- "$PROGRAMS/told" >"$tmp/$2.out" 2>"$tmp/$2.err" &
	eval "$2=$!"
	until_true grep -qs pid= "$tmp/$2.out" || { cat "$tmp/$2.err"; return 1; }
	eval "$(grep pid= "$tmp/$2.out")"
	until_true blocked "$pid" "$3" || { cat "$tmp/$2.out" "$tmp/$2.err"; return 1; }
}
# So many threads are in read(). Its number depends on the processor.
read=$(printf '#include <sys/syscall.h>\nSYS_read\n' | $CC -E - | tail -n 1)
blocked() { [ "$(cat "/proc/$1/task/"*/syscall 2>/dev/null | grep -c "^$read ")" -eq "$2" ]; }
# was_told NAME DEVICES: the program has got the events, and has ended by itself and well.
was_told() {
	eval "program=\$$1"
	wait "$program" && [ "$(grep -c DEVICE_FATAL "$tmp/$1.out")" -eq "$2" ] && grep -q over "$tmp/$1.out" ||
		{ echo "$1:"; cat "$tmp/$1.out" "$tmp/$1.err"; return 1; }
}

everywhere() {
	"$SOFTHCA" start --hosts 2 --hcas 2 "$@" lab >/dev/null && watcher 0 first 2 && watcher 1 second 2 || return 1
	timeout 30 "$SOFTHCA" stop lab || { echo "stop: status $?"; return 1; }
	was_told first 2 && was_told second 2 && no_instance
}
for face in mainline ofed; do
	ok "each device of each host, $face" everywhere --kernel $face
	ok "each device of each host, $face, trap" everywhere --kernel $face --mmio trap
done
by_signal() {
	"$SOFTHCA" start lab >/dev/null && watcher 0 first 1 && kill -TERM "$(cat "$SOFTHCA_DIR/softhca/lab/pid")" && was_told first 1 &&
		until_true no_instance
}
ok "the daemon ends by a signal" by_signal
# A device that has failed before raises its event only once.
already() {
	"$SOFTHCA" start lab >/dev/null && watcher 0 first 1 && "$SOFTHCA" port lab mlx4_0:1 fatal &&
		until_true grep -q DEVICE_FATAL "$tmp/first.out" && "$SOFTHCA" stop lab && was_told first 1
}
ok "a device that has failed before" already
held() {
	"$SOFTHCA" start lab >/dev/null && watcher 0 first 1 || return 1
	kill -STOP "$pid"
	timeout 30 "$SOFTHCA" stop lab
	ended=$?
	no_instance || ended=1
	kill -CONT "$pid"
	# `softhca run` has stopped with its program.
	pkill -CONT -P "$first"
	[ "$ended" -eq 0 ] && was_told first 1
}
ok "a stopped program is told when it goes on, and stop ends meanwhile" held
objects() { "$SOFTHCA" show --json lab | jq '.hosts[].hcas[] | .contexts, .pds, .cqs, .qps, .mrs'; }
# A program that has outlived its instance sends its commands to no other instance.
another() {
	mkfifo "$tmp/hold" "$tmp/hold2"
	# What an earlier program has written is not taken for this one's.
	rm -f "$tmp"/first.out "$tmp"/second.out
	"$SOFTHCA" start lab >/dev/null || return 1
	ours "$SOFTHCA" run --instance lab -- "$PROGRAMS/told" wait <"$tmp/hold" >"$tmp/first.out" 2>"$tmp/first.err" &
	first=$!
	exec 7>"$tmp/hold"
	until_true grep -qs pid= "$tmp/first.out" && "$SOFTHCA" stop lab && until_true grep -q DEVICE_FATAL "$tmp/first.out" &&
		"$SOFTHCA" start lab >/dev/null || return 1
	# The context and the objects of this program have the same numbers as the first program's
	# had.
	ours "$SOFTHCA" run --instance lab -- "$PROGRAMS/told" wait <"$tmp/hold2" >"$tmp/second.out" 2>"$tmp/second.err" 7>&- &
	# shellcheck disable=SC2034 # was_told reads it by name
	second=$!
	exec 8>"$tmp/hold2"
	until_true grep -qs pid= "$tmp/second.out" || return 1
	objects >"$tmp/before"
	exec 7>&-
	was_told first 1 && objects | diff "$tmp/before" - && "$SOFTHCA" stop lab || return 1
	exec 8>&-
	was_told second 1
}
ok "programs of another instance of that name get no event" another
shared() { [ "$("$SOFTHCA" show --json lab | jq .daemon.regions_shared)" -gt 0 ]; }
# keeps COMMAND...: a program has all of its memory after the command has ended the instance.
keeps() {
	[ -p "$tmp/hold3" ] || mkfifo "$tmp/hold3"
	rm -f "$tmp/outlives.out"
	ours "$SOFTHCA" run --instance lab -- "$PROGRAMS/outlives" <"$tmp/hold3" >"$tmp/outlives.out" 2>"$tmp/outlives.err" &
	outlives=$!
	exec 9>"$tmp/hold3"
	until_true grep -qs ready "$tmp/outlives.out" && shared && "$@"
	ended=$?
	until_true no_instance || ended=1
	exec 9>&-
	wait "$outlives" && [ "$ended" -eq 0 ] || { cat "$tmp/outlives.err"; return 1; }
}
for face in mainline ofed; do
	for mmio in kick trap; do
		each_once $face $mmio || continue
		"$SOFTHCA" start --kernel $face --mmio $mmio lab >/dev/null
		ok "stop leaves programs their memory, $face, $mmio" keeps "$SOFTHCA" stop lab
	done
done
by_term() { kill -TERM "$(cat "$SOFTHCA_DIR/softhca/lab/pid")"; }
"$SOFTHCA" start lab >/dev/null
ok "a signal does so, too" keeps by_term
# Ends of a connection that send when the instance ends: they end by themselves, and not by a signal.
rpings() {
	cm=${OURS%%:*}/../../librdmacm/.libs
	"$SOFTHCA" start --hosts 2 lab >/dev/null || return 1
	ours env LD_LIBRARY_PATH="$cm:$OURS" "$SOFTHCA" run --instance lab --host 0 -- "$cm/rping" -s -v -C 100000000 >"$tmp/server" 2>&1 &
	server=$!
	until_true shows || { cat "$tmp/server"; return 1; }
	ours env LD_LIBRARY_PATH="$cm:$OURS" "$SOFTHCA" run --instance lab --host 1 -- "$cm/rping" -c -a host0 -C 100000000 >"$tmp/client" 2>&1 &
	client=$!
	until_true grep -q ping "$tmp/server" || return 1
	"$SOFTHCA" stop lab || return 1
	wait "$server"
	ends=$?
	wait "$client"
	ends="$ends $?"
	until_true no_instance || return 1
	case $ends in
	*1[2-9][0-9]* | 0* | *" 0") echo "status $ends"; tail -n 5 "$tmp/server" "$tmp/client"; return 1 ;;
	esac
}
shows() { "$SOFTHCA" show --json lab | grep -q '"state": "listening"'; }
ok "rping at both ends ends" rpings
ok "nothing is left behind" until_true no_instance
finish
