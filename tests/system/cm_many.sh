#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: many connections by address: 1,000 at once, to a listener with a backlog of 128, are all established; and of
# connections one after the other (CONNECTIONS: 2,000 in the full tier, 10,000 in the long one), no channel, id, QP, file or page is left.
. "$srcdir/lib.sh" || exit 1

program=$PROGRAMS/../../bench/cm_connections
if [ ! -x "$program" ]; then
	skip "many connections" "run make in bench/"
	finish
fi
count=300
[ "${TIER:-}" != full ] || count=${CONNECTIONS:-2000}
"$SOFTHCA" start many >"$tmp/start.out" 2>&1 || cat "$tmp/start.out"
dir=$("$SOFTHCA" show --json many | sed -n 's/^  "instance": "\(.*\)",$/\1/p')
run() { ours "$SOFTHCA" run --instance many -- "$program" "$@"; }
state() { "$SOFTHCA" show --json many | tr -d ' \n'; }
# 0.1 is the daemon's own: messages to QP 1.
files() { find "$dir/channels" "$dir/events" "$dir/files" -mindepth 1 ! -path "$dir/events/0.1" | wc -l; }

# Through a FIFO, whose end ends the server.
mkfifo "$tmp/end"
run serve 128 <"$tmp/end" >"$tmp/ready" &
server=$!
exec 3>"$tmp/end"
for _ in $(seq 600); do
	[ ! -s "$tmp/ready" ] || break
	sleep 0.1
done

at_once() {
	run at-once 1000 >"$tmp/at-once" || { cat "$tmp/at-once"; return 1; }
	grep '"established": 1000' "$tmp/at-once"
}
# The server has its channel and its listener.
only_the_server() {
	for _ in $(seq 300); do
		! state | grep -q '"channels":1,"ids":1,' || return 0
		sleep 0.1
	done
	state
	return 1
}
nothing() {
	for _ in $(seq 300); do
		state >"$tmp/state"
		! grep -q '"channels":0,"ids":0,' "$tmp/state" || ! grep -q '"pool_pages_used":0,' "$tmp/state" ||
			! grep -q '"processes":\[\]' "$tmp/state" || [ "$(files)" -ne 0 ] || return 0
		sleep 0.1
	done
	cat "$tmp/state"
	find "$dir"
	return 1
}

ok "1,000 connections at once" at_once
ok "nothing of them is left" only_the_server
ok "$count connections, one after the other" run loop 2 $((count / 2))
ok "nothing of them is left, either" only_the_server
exec 3>&-
ok "the server ends" wait "$server"
ok "nothing of it is left" nothing
"$SOFTHCA" stop many >/dev/null
finish
