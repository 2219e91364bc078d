#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: an instance lives as long as a process is in it, and no longer.
. "$srcdir/lib.sh" || exit 1

instances() { ls "$SOFTHCA_DIR/softhca" | grep -c -v "^lock$"; }

at_once() { "$SOFTHCA" run -- true && no_instance; }
ok "the instance is gone when run returns" at_once

background() {
	mkfifo "$tmp/hold"
	"$SOFTHCA" run -- sh -c 'sh -c "read x" <"$0" >/dev/null 2>&1 &' "$tmp/hold" || return 1
	exec 7>"$tmp/hold"
	# The daemon looks at least twice in this time.
	sleep 2.5
	[ "$(instances)" -eq 1 ] || { echo "the instance went"; return 1; }
	exec 7>&-
	until_true no_instance
}
ok "a process in the background keeps the instance" background

# As in a container, the command is process 1: orphans become its children, the daemon among them.
first_process() {
	unshare -rUmpf --mount-proc "$SOFTHCA" run -- sh -c 'sleep 60 >/dev/null 2>&1 &' && [ "$(instances)" -eq 0 ]
}
# The containers have the same process numbers and the same place.
containers() {
	pids=
	for i in 1 2 3 4; do
		unshare -rUmpf --mount-proc "$SOFTHCA" run -- sh -c 'ls /sys/class/infiniband | grep -q mlx4_0' & pids="$pids $!"
	done
	bad=0
	for pid in $pids; do wait "$pid" || bad=1; done
	[ "$bad" -eq 0 ] && [ "$(instances)" -eq 0 ]
}
if unshare -rUmpf --mount-proc true 2>/dev/null; then
	ok "four containers at a time" containers
	ok "an instance that is run as process 1 is gone when run returns" first_process
else
	skip "four containers at a time" "this kernel lets no user make the namespaces of a container"
	skip "an instance that is run as process 1" "this kernel lets no user make the namespaces of a container"
fi

# Whoever is killed while it starts an instance has one that it can stop, or none.
daemon_of() { pgrep -f -- "softhca start --hosts 64 half$$" | grep -vx "$1"; }
killed_start() {
	for _ in $(seq 20); do
		"$SOFTHCA" start --hosts 64 "half$$" >/dev/null 2>&1 &
		starter=$!
		until daemon=$(daemon_of "$starter"); do
			gone "$starter" && { echo "the start has ended before its daemon was seen"; return 1; }
		done
		kill -STOP "$daemon"
		# It has not come so far as to tell the start that it is ready. Else once more.
		if [ ! -e "$SOFTHCA_DIR/softhca/half$$" ]; then
			kill -KILL "$starter"
			wait "$starter" 2>/dev/null
			kill -CONT "$daemon"
			until_true gone "$daemon"
			return
		fi
		kill -CONT "$daemon"
		wait "$starter"
		"$SOFTHCA" stop "half$$"
	done
	echo "the daemon was ready each time before it was stopped"
	return 1
}
ok "a start that is killed leaves no daemon behind" killed_start

parallel() {
	pids=
	for i in 1 2 3 4 5 6 7 8; do
		"$SOFTHCA" run -- sh -c 'ls /sys/class/infiniband | grep -q mlx4_0' & pids="$pids $!"
	done
	bad=0
	for pid in $pids; do wait "$pid" || bad=1; done
	[ "$bad" -eq 0 ] && no_instance
}
ok "eight at a time are eight instances" parallel

apart() {
	a=$("$SOFTHCA" run -- sh -c 'echo $SOFTHCA_INSTANCE'); b=$("$SOFTHCA" run -- sh -c 'echo $SOFTHCA_INSTANCE')
	[ -n "$a" ] && [ ! -e "$a" ] && [ ! -e "$b" ]
}
ok "each instance has a directory of its own, and none stays" apart

nested() { "$SOFTHCA" run -- "$SOFTHCA" run --hcas 2 -- sh -c '[ "$(ls /sys/class/infiniband | wc -l)" = 2 ]' && no_instance; }
ok "a run inside another one uses the inner instance" nested

started() {
	"$SOFTHCA" start --hosts 2 --ports 2 lasting || return 1
	"$SOFTHCA" run --instance lasting --host 1 -- sh -c '[ "$(uname -n)" = host1 ] && [ -d /sys/class/infiniband/mlx4_0/ports/2 ]' || return 1
	"$SOFTHCA" show | grep -q lasting || return 1
	"$SOFTHCA" show --json | grep -q '"lasting"' || return 1
	"$SOFTHCA" show lasting >/dev/null && "$SOFTHCA" show --json lasting | grep -q '{' || return 1
	"$SOFTHCA" start lasting 2>"$tmp/err" && return 1
	grep -q "softhca stop lasting" "$tmp/err" || return 1
	"$SOFTHCA" run --instance lasting --host 2 -- true 2>/dev/null
	[ $? -eq 125 ] || return 1
	"$SOFTHCA" stop lasting && until_true no_instance
}
ok "start, run in it, show, stop" started

stale() {
	"$SOFTHCA" start dead || return 1
	kill -KILL "$(cat "$SOFTHCA_DIR/softhca/dead/pid")"
	until_true stale_free || return 1
	"$SOFTHCA" show 2>/dev/null | grep -q dead && { echo "show lists a dead instance"; return 1; }
	"$SOFTHCA" run --instance dead -- true 2>"$tmp/err"
	[ $? -eq 125 ] && grep -q "softhca start" "$tmp/err" || { cat "$tmp/err"; return 1; }
	"$SOFTHCA" start dead && "$SOFTHCA" stop dead && until_true no_instance
}
stale_free() { flock -n "$SOFTHCA_DIR/softhca/dead/lock" true; }
ok "an instance whose daemon was killed can be started again" stale

daemon_dies() {
	"$SOFTHCA" start gone || return 1
	"$SOFTHCA" run --instance gone -- sh -c "$dead" x cat /sys/class/infiniband/mlx4_0/node_type || return 1
	# Its lock is free when the kernel has done away with the killed daemon.
	until_true flock -n "$SOFTHCA_DIR/softhca/gone/lock" true || return 1
	"$SOFTHCA" start gone && "$SOFTHCA" stop gone
}
ok "a process goes on when its daemon is killed" daemon_dies

refused() {
	mkdir -m 777 "$tmp/open"
	chmod 777 "$tmp/open"
	SOFTHCA_DIR=$tmp/open "$SOFTHCA" run -- true 2>"$tmp/err"
	[ $? -eq 125 ] && grep -q SOFTHCA_DIR "$tmp/err"
}
ok "a base directory open to others is refused, with what to do" refused

# Of command, daemon and program.
small_stack() (
	ulimit -s 64
	"$SOFTHCA" doctor >"$tmp/doctor" || exit 1
	status 125 "$SOFTHCA" show nosuch 2>"$tmp/err" && grep -q 'no instance "nosuch"' "$tmp/err" || exit 1
	"$SOFTHCA" start small && "$SOFTHCA" run --instance small -- true && "$SOFTHCA" show small >"$tmp/show" &&
		"$SOFTHCA" show --waits small >"$tmp/waits" && "$SOFTHCA" port small mlx4_0:1 down && "$SOFTHCA" stop small &&
		"$SOFTHCA" run -- true
)
ok "a stack of 64 KiB suffices" small_stack
ok "nothing is left behind" until_true no_instance
finish
