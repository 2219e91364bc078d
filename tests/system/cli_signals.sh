#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: signals sent to `softhca run` reach the command, and the caller sees what becomes of
# the command.
. "$srcdir/lib.sh" || exit 1

# The command prints that it is ready, and which signal it got.
catcher='trap "echo got $0; exit 9" "$0"; echo ready; while :; do sleep 0.02; done'

forwarded() {
	rm -f "$tmp/out"
	"$SOFTHCA" run -- sh -c "$catcher" "$1" >"$tmp/out" &
	run=$!
	until_true grep -qs ready "$tmp/out" || return 1
	kill -"$1" "$run"
	wait "$run"
	[ $? -eq 9 ] && grep -q "got $1" "$tmp/out"
}
for signal in TERM INT HUP USR1 USR2 QUIT ALRM; do
	# A background job ignores INT and QUIT, and so do its children, perhaps also these tests:
	# this resets them.
	ok "$signal reaches the command" env --default-signal -i PATH="$PATH" HOME=/ \
		bash -c "$(declare -f forwarded pause until_true); catcher='$catcher'; set -m; SOFTHCA=$SOFTHCA; tmp=$tmp
		export SOFTHCA_DIR=$SOFTHCA_DIR; forwarded $signal"
done

# As batch systems do: with a value.
queued() {
	rm -f "$tmp/out"
	"$SOFTHCA" run -- sh -c "$catcher" TERM >"$tmp/out" &
	run=$!
	until_true grep -qs ready "$tmp/out" || return 1
	/bin/kill -q 5 -TERM "$run"
	wait "$run"
	[ $? -eq 9 ] && grep -q "got TERM" "$tmp/out"
}
ok "so does one that is sent by sigqueue()" queued

dies() {
	"$SOFTHCA" run -- sleep 60 &
	run=$!
	until_true pgrep -P "$run" -x sleep >/dev/null || return 1
	kill -TERM "$run"
	wait "$run"
	[ $? -eq 143 ]
}
ok "a command that a forwarded signal kills is seen to be killed" dies

state() { sed 's/.*) //' "/proc/$1/stat" | cut -c1; }
is_state() { [ "$(state "$1")" = "$2" ]; }
stops() {
	rm -f "$tmp/out"
	"$SOFTHCA" run -- sh -c 'echo ready; while :; do sleep 0.02; done' >"$tmp/out" &
	run=$!
	until_true grep -qs ready "$tmp/out" || return 1
	command=$(pgrep -P "$run" -x sh)
	kill -STOP "$command"
	until_true is_state "$run" T || return 1
	kill -CONT "$run"
	until_true is_state "$command" S || return 1
	kill -TERM "$run"
	wait "$run"
	[ $? -eq 143 ]
}
ok "run stops when the command stops, and both go on" stops

continued() {
	rm -f "$tmp/out"
	"$SOFTHCA" run -- sh -c 'echo ready; while :; do sleep 0.02; done' >"$tmp/out" &
	run=$!
	until_true grep -qs ready "$tmp/out" || return 1
	command=$(pgrep -P "$run" -x sh)
	for _ in 1 2 3; do
		kill -STOP "$command"
		until_true is_state "$run" T || return 1
		kill -CONT "$command"
		until_true is_state "$run" S || return 1
	done
	kill -TERM "$run"
	wait "$run"
	[ $? -eq 143 ]
}
ok "run goes on when the command is continued" continued

# The command's first thread has ended, so the process looks like a zombie, stopped or not.
headless() {
	"$SOFTHCA" run -- python3 -c 'import ctypes, threading, time
def stay():
	print("ready", flush=True)
	time.sleep(60)
threading.Thread(target=stay).start()
ctypes.CDLL(None).pthread_exit(None)' >"$tmp/out" &
	run=$!
	until_true grep -qs ready "$tmp/out" || return 1
	until_true pgrep -P "$run" -x python3 >/dev/null || return 1
	command=$(pgrep -P "$run" -x python3)
	until_true is_state "$command" Z || return 1
	kill -STOP "$command"
	until_true is_state "$run" T || return 1
	for _ in 1 2 3 4 5; do
		sleep 0.05
		is_state "$run" T || return 1
	done
	kill -CONT "$command"
	until_true is_state "$run" S || return 1
	kill -TERM "$run"
	wait "$run"
	[ $? -eq 143 ]
}
ok "run stops with a command whose first thread has ended" headless

killed() {
	"$SOFTHCA" run -- sleep 60 &
	run=$!
	until_true pgrep -P "$run" -x sleep >/dev/null || return 1
	command=$(pgrep -P "$run" -x sleep)
	kill -KILL "$run"
	wait "$run" 2>/dev/null
	until_true gone "$command" && until_true no_instance
}
ok "when run is killed, the command and the instance end" killed
until_true no_instance
ok "nothing is left behind" no_instance
finish
