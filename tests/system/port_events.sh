#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: `softhca port` and `softhca fault` do what they say: events reach ibv_asyncwatch,
# attributes change, and a reliable connection survives lost, duplicated and damaged packets.
. "$srcdir/lib.sh" || exit 1

"$SOFTHCA" start --ports 2 fabric >/dev/null || exit 1
in_it() { ours "$SOFTHCA" run --instance fabric -- "$@"; }
stdbuf=$(command -v stdbuf)
in_it ${stdbuf:+stdbuf -oL} "$TOOLS/ibv_asyncwatch" >"$tmp/events" 2>&1 &
watch=$!
until_true grep -qs mlx4_0 "$tmp/events"

# change WORDS EVENT: the command makes the event arrive at the watcher.
change() {
	before=$(grep -ci "$2" "$tmp/events")
	# shellcheck disable=SC2086
	"$SOFTHCA" port fabric $1 || return 1
	until_true more "$2" "$before" || { cat "$tmp/events"; return 1; }
}
more() { [ "$(grep -ci "$1" "$tmp/events")" -gt "$2" ]; }
state() { in_it cat "/sys/class/infiniband/mlx4_0/ports/$1/$2"; }

ok "a port goes down" change "mlx4_0:1 down" PORT_ERR
down() { state 1 state | grep -q DOWN && state 2 state | grep -q ACTIVE; }
ok "one port is seen to be down, the other is not" down
ok "the port comes up" change "mlx4_0:1 up" PORT_ACTIVE
ok "the LID of the port changes" change "mlx4_0:1 lid 77" LID_CHANGE
lid() { [ $(($(state 1 lid))) -eq 77 ]; }
ok "the changed LID is seen" lid
ok "a P_Key changes" change "mlx4_0:2 pkey 3 0x8123" PKEY_CHANGE
pkey() { [ "$(state 2 pkeys/3)" = 0x8123 ]; }
ok "the changed P_Key is seen" pkey
ok "the SM changes" change "mlx4_0:2 sm 9" SM_CHANGE
sm() { [ $(($(state 2 sm_lid))) -eq 9 ]; }
ok "the changed SM is seen" sm
bad() { ! "$SOFTHCA" port fabric mlx4_7:1 down 2>"$tmp/err" && [ -s "$tmp/err" ]; }
ok "a device that does not exist is an error with a message" bad
# The daemon closes the queue to which it wrote events when the watcher ends.
daemon=$(cat "$SOFTHCA_DIR/softhca/fabric/pid")
# Beside its own, for messages to QP 1.
queue_open() { [ -n "$(find "/proc/$daemon/fd" -lname '*/events/*' ! -lname '*/events/0.1')" ]; }
no_queue_open() { ! queue_open; }
ok "the daemon has the queue of the watcher open" queue_open
pkill -P $watch
ok "the daemon keeps nothing of a watcher that has ended" until_true no_queue_open

lossy() {
	for kind in drop duplicate corrupt delay; do
		"$SOFTHCA" fault fabric "$kind" 5% || return 1
	done
	export -f pingpong
	in_it bash -c '"$@"' x pingpong "$TOOLS/ibv_rc_pingpong" -n 300 --verify || return 1
	# The faults did hit packets.
	"$SOFTHCA" show fabric | grep -q ' retries: [1-9]' || { "$SOFTHCA" show fabric; return 1; }
	"$SOFTHCA" fault fabric clear
}
ok "RC carries everything over a bad fabric" lossy
ok "the instance ends" "$SOFTHCA" stop fabric

# ---- a daemon that has a descriptor for one request, and none for an event ----

"$SOFTHCA" start few >/dev/null || exit 1
daemon=$(cat "$SOFTHCA_DIR/softhca/few/pid")
ours "$SOFTHCA" run --instance few -- ${stdbuf:+stdbuf -oL} "$TOOLS/ibv_asyncwatch" >"$tmp/few" 2>&1 &
watch=$!
until_true grep -qs mlx4_0 "$tmp/few"
free=0
while [ -L "/proc/$daemon/fd/$free" ]; do
	free=$((free + 1))
done
may_open() { prlimit --pid "$daemon" --nofile=$((free + $1)):; }
delivers() {
	may_open 1 && "$SOFTHCA" port few mlx4_0:1 down && until_true grep -q PORT_ERR "$tmp/few" &&
		"$SOFTHCA" port few mlx4_0:1 up && until_true grep -q PORT_ACTIVE "$tmp/few" &&
		may_open 4 && "$SOFTHCA" show few >/dev/null
}
ok "a daemon without a free descriptor delivers events, and answers" delivers
pkill -P $watch
ended() { ! "$SOFTHCA" show --json few | grep -q asyncwatch; }
ok "it notices that a program ends" until_true ended
ok "it ends" "$SOFTHCA" stop few
ok "nothing is left behind" until_true no_instance
finish
