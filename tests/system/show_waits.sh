#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: `softhca show --waits` says for each of a number of known situations what it waits
# for, within 100 columns. It takes none of them for a lost wake-up, does not need the daemon, and
# leaves the instance as it is. waits.c makes the situations.
. "$srcdir/lib.sh" || exit 1

if ! command -v jq >/dev/null; then
	skip "softhca show --waits" "install jq"
	finish
fi

# situation NAME: starts waits.c in this situation; $pid, $peer, $daemon
situation() {
	"$SOFTHCA" start --kernel ofed lab >/dev/null || exit 1
	daemon=$(cat "$SOFTHCA_DIR/softhca/lab/pid")
	# The shell empties the file only when the program is about to begin.
	: >"$tmp/out"
	ours "$SOFTHCA" run --instance lab -- "$PROGRAMS/waits" "$1" >"$tmp/out" 2>"$tmp/err" &
	program=$!
	until_true grep -q peer= "$tmp/out" || { cat "$tmp/err"; exit 1; }
	eval "$(tr ' ' '\n' <"$tmp/out")"
}

over() {
	kill -KILL "$pid" 2>/dev/null
	[ "$peer" -eq 0 ] || kill -KILL "$peer" 2>/dev/null
	# `softhca run` stops together with its command.
	pkill -CONT -P $program
	wait $program 2>/dev/null
	"$SOFTHCA" stop lab >/dev/null
}

look() {
	"$SOFTHCA" show --waits lab >"$tmp/text" || return 1
	"$SOFTHCA" show --waits --json lab >"$tmp/json" || return 1
	awk 'length > 100 { print "too wide: " $0; bad = 1 } END { exit bad }' "$tmp/text"
}

# says PATTERN...: the output, with its lines joined, has each pattern, in this order, and $lost
# lost wake-ups.
says() {
	look || return 1
	pattern=$(printf '.*%s' "$@")
	tr -s ' \n' ' ' <"$tmp/text" | grep -q "$pattern" || { cat "$tmp/text"; return 1; }
	[ "$lost" -ne 0 ] || grep -q '^no wake-up is lost$' "$tmp/text" || { cat "$tmp/text"; return 1; }
	jq -e --argjson lost "$lost" '.lost == $lost' "$tmp/json" >/dev/null || { cat "$tmp/json"; return 1; }
}
lost=0

# Each look takes half a second, or more under load.
before_long() {
	for _ in $(seq 30); do
		"$@" >"$tmp/said" && return 0
	done
	cat "$tmp/said"
	return 1
}

# due FILTER: something outstanding fits this description.
due() {
	jq -e --argjson pid "$pid" --argjson peer "$peer" "any(.outstanding[]; $1)" "$tmp/json" \
		>/dev/null || { cat "$tmp/json"; return 1; }
}

qp='QP 0x[0-9a-f]\{6\}'

situation receive
ok "a receiver that waits for a message that its peer has not posted" before_long says \
	"$qp, process $pid; peer mlx4_0 $qp, process $peer waits: 3 receives posted" \
	"; the peer has posted nothing"
ok "the same for programs" due '.kind == "receive" and .pid == $pid and .peer_pid == $peer and
	.count == 3 and .verdict == "waits" and .peer_hca == 0'
ok "the receiver's thread, and the helper thread" says "process $pid, host 0" \
	"thread $pid sleeps: in the program" \
	"thread [0-9]* sleeps: helper thread, next timer not set"
# The device still fills the program's receives.
kill -STOP "$pid"
ok "the receiver still counts as waiting while its process is stopped" before_long says "thread $pid stopped: in the program" \
	"$qp, process $pid (stopped); peer mlx4_0 $qp, process $peer waits: 3 receives posted"
over

situation rnr
ok "a sender that backs off, since its receiver was not ready" before_long says \
	"$qp, process $pid; peer mlx4_0 $qp, process $peer waits: 1 request not acknowledged, receiver not ready" \
	", sent again .*, without end; 0 receives posted there"
ok "the same for programs" due '.kind == "rnr" and .pid == $pid and .peer_pid == $peer and
	.count == 1 and .verdict == "waits"'
# Without its timer the sender would wait for ever.
memory() { find "/proc/$daemon/fd" -lname '/memfd:softhca (deleted)' | head -1; }
ok "the timer of the sender is taken away" until_true "$PROGRAMS/lose" "$(memory)"
lost=1
ok "the timer that was taken away is named as lost" before_long says "lost wake-ups" "$qp, process $pid; peer mlx4_0 $qp" \
	"lost: 1 request not acknowledged, receiver not ready, .*: no timer is set"
ok "the same for programs" due '.kind == "rnr" and .pid == $pid and .verdict == "lost"'
kill -STOP "$pid"
lost=0
ok "no timer is named as lost while its process is stopped" before_long says "stopped: 1 request not acknowledged"
over

situation stopped
ok "a sender whose peer is stopped" before_long says "thread $peer stopped: in the program, tg*kill()" \
	"process $pid; peer mlx4_0 $qp, process $peer (stopped) waits: 1 request not acknowledged" \
	", receiver not ready"
over

situation doze
ok "a thread that polls in vain and gives way" before_long says \
	"sleeps: dozes in poll_cq until a completion comes"
over

situation event
ok "a thread that reads completion events" before_long says \
	"thread $pid sleeps: reads completion events, of event queue [0-9]*"
over

situation accept
ok "a system call of the program's has its name" before_long says "thread $pid sleeps: in the program, accept4()"
over

situation daemon
kill -STOP "$daemon"
ok "a command, and a daemon that is stopped" before_long says \
	"daemon $daemon thread $daemon stopped: in the daemon" \
	"thread $pid sleeps: waits for the daemon's answer to [AD][A-Z]*_PD; for"
kill -CONT "$daemon"
over

situation copy
kill -STOP "$daemon"
ok "a copy that the daemon is to make, and a daemon that is stopped" before_long says \
	"thread $pid sleeps: waits until the daemon has copied for it, from or to memory of process $peer; for" \
	"the daemon (stopped) stopped: 8 bytes to copy from or to memory of process $peer"
ok "JSON has this copy" due '.kind == "copy" and .verdict == "stopped" and .peer_pid == $peer and .count == 8'
kill -CONT "$daemon"
over

# Looking leaves device memory with as many pages as before. The daemon gives up pages that are not
# used some seconds after the last change, so the test waits for that.
nothing_spare() { "$SOFTHCA" show --json lab | jq -e '.daemon.pool_pages_spare == 0' >/dev/null; }
situation receive
until_true nothing_spare
# shellcheck disable=SC2034 # eval reads it
blocks=$(stat -L -c %b "$(memory)")
ok "looking allocates no page of device memory" eval 'look && [ "$(stat -L -c %b "$(memory)")" -eq "$blocks" ]'
over

export SOFTHCA_QUEUES=copy
situation receive
# Two CQs, and both queues of two QPs.
ok "queues that it cannot look into are not passed over in silence" eval 'look && grep -q "^6 queues were not looked into" "$tmp/text" &&
	jq -e ".unseen == 6" "$tmp/json" >/dev/null'
over
unset SOFTHCA_QUEUES

# Both ends poll all the time, while the command looks at their CQs.
"$SOFTHCA" start lab >/dev/null || exit 1
ours "$SOFTHCA" run --instance lab -- bash -c 'pingpong "$@"' pingpong "$TOOLS/ibv_rc_pingpong" -n 100000000 >"$tmp/pingpong" 2>&1 &
program=$!
busy() { "$SOFTHCA" show --json lab | jq -e '[.. | objects | select(.state? == "RTS")] | length >= 2' >/dev/null; }
plausible() {
	for _ in $(seq 12); do
		"$SOFTHCA" show --waits --json lab >"$tmp/json" || return 1
		jq -e 'all(.outstanding[] | select(.kind == "poll"); .count < 1000)' "$tmp/json" >/dev/null || { cat "$tmp/json"; return 1; }
	done
}
ok "a ping-pong runs" until_true busy
ok "completions that programs poll meanwhile are not counted as outstanding" plausible
kill $program
wait $program 2>/dev/null
"$SOFTHCA" stop lab >/dev/null

ok "without a name it is refused" status 2 "$SOFTHCA" show --waits
ok "for an instance that does not run it fails" status 125 "$SOFTHCA" show --waits lab
ok "nothing is left behind" until_true no_instance
finish
