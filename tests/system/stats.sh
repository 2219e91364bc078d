#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: `softhca run --stats` says what each HCA sent and received and what was left open, or
# that nothing was sent over any HCA; --require-traffic makes that an exit status. Otherwise neither
# changes what a command prints or returns.
. "$srcdir/lib.sh" || exit 1

run() { ours timeout 50 "$SOFTHCA" run "$@" >"$tmp/out" 2>"$tmp/err"; }
says() { grep -q "$1" "$tmp/err" || { echo "it does not say: $1"; cat "$tmp/err"; return 1; }; }
silent() { ! grep -q "$1" "$tmp/err" || { echo "it says: $1"; cat "$tmp/err"; return 1; }; }

# Both sides send 1000 messages of 4096 bytes.
messages() {
	run --stats -- bash -c 'set -u; "$@"' x pingpong "$TOOLS/ibv_rc_pingpong" -n 1000 -s 4096 &&
	says '^softhca: host 0, mlx4_0: sent 2000 messages, 8192000 bytes; received 2000 messages, 8192000 bytes$' &&
	silent 'left open' && silent 'nothing went'
}
ok "messages and bytes of QPs that were destroyed" messages
hosts() {
	run --hosts 3 --stats -- bash -c 'set -u
		SOFTHCA_HOST=1 "$TOOLS/ibv_rc_pingpong" -p "$0" -n 100 -s 100 >/dev/null & until_true listening &&
		SOFTHCA_HOST=2 "$TOOLS/ibv_rc_pingpong" -p "$0" -n 100 -s 100 127.0.0.1 && wait $!' "$port" &&
	says '^softhca: host 1, mlx4_0: sent 100 messages, 10000 bytes; received 100 messages, 10000 bytes$' &&
	says '^softhca: host 2, mlx4_0: sent 100 messages' && silent 'host 0,'
}
take_port
export port
ok "each host is counted, and an idle one is left out" hosts
one() {
	run --hosts 3 --stats -- bash -c 'set -u
		SOFTHCA_HOST=1 "$TOOLS/ibv_rc_pingpong" -p "$0" -n 1 -s 1 --verify >/dev/null & until_true listening &&
		SOFTHCA_HOST=2 "$TOOLS/ibv_rc_pingpong" -p "$0" -n 1 -s 1 --verify 127.0.0.1 && wait $!' "$port" &&
	says '^softhca: host 1, mlx4_0: sent 1 message, 1 byte; received 1 message, 1 byte$' &&
	{ grep -qx 'contents of 1 message verified' "$tmp/out" || { cat "$tmp/out"; return 1; }; }
}
ok "one message is no messages" one

# layout destroys nothing, whether it reaches its end or is killed.
left="left open when its program closed the device or ended: 2 QPs, 2 SRQs, 2 CQs, 1 memory region, 1 PD, 1 XRC domain$"
ended() { run --stats -- "$PROGRAMS/layout" "$tmp/domain" </dev/null && says "^softhca: host 0, mlx4_0: $left" && says 'sent 3 messages'; }
ok "objects that a program left open" ended
killed() {
	run --stats -- bash -c '"$PROGRAMS/layout" "$tmp/domain" < <(exec sleep 20) >"$tmp/numbers" & until_true grep -qs lid= "$tmp/numbers"
		kill -KILL $!; wait $!; exit 0' && says "$left" && says 'sent 3 messages'
}
ok "objects that a killed program left open" killed

background() {
	run --stats -- bash -c '(exec 3<>"$0"; exec "$PROGRAMS/layout" "$tmp/domain2" <&3 >"$tmp/numbers2") & until_true grep -qs lid= "$tmp/numbers2"' \
		"$tmp/hold" &&
	says '1 process of the instance still runs'
}
mkfifo "$tmp/hold"
ok "a process in the background is named" background
pkill -f "^$PROGRAMS/(.libs/)?layout $tmp/domain2"
until_true no_instance

nothing() { run --stats -- "$TOOLS/ibv_devinfo" && says 'nothing went over an HCA' && grep -q PORT_ACTIVE "$tmp/out"; }
ok "where nothing went over an HCA, --stats says so" nothing
quiet() { run -- "$TOOLS/ibv_devinfo" && silent '^softhca:'; }
ok "without --stats nothing is printed" quiet
required() { status 125 run --require-traffic -- "$TOOLS/ibv_devinfo" && says 'nothing went over an HCA' && silent 'host 0'; }
ok "--require-traffic fails if no message was sent" required
own() { status 7 run --require-traffic -- sh -c 'exit 7'; }
ok "the command's own failure comes first" own
met() { run --require-traffic -- bash -c 'set -u; "$@"' x pingpong "$TOOLS/ibv_rc_pingpong" -n 10 && silent '^softhca:'; }
ok "--require-traffic is silent where something went" met

# An address that no other test has.
wire() {
	for _ in $(seq 20); do
		run --stats --wire "127.$((1 + RANDOM % 120)).$((RANDOM % 256)).1/24" -- "$TOOLS/ibv_devinfo" && break
	done
	says 'nothing went over an HCA' && silent 'still run'
}
ok "the instance's own process is no program that still runs" wire

# This run does not count what an earlier run sent.
"$SOFTHCA" start lab >/dev/null || exit 1
# What a fault takes was sent: no transport but this was chosen.
lossy() {
	"$SOFTHCA" fault lab drop 100% >/dev/null || return 1
	run --instance lab --stats -- bash -c 'set -u; "$@"' x pingpong "$TOOLS/ibv_rc_pingpong" -n 1 && { cat "$tmp/out"; return 1; }
	"$SOFTHCA" fault lab clear >/dev/null && silent 'nothing went'
}
ok "what a fault took went over an HCA" lossy
ok "in a running instance --require-traffic passes if messages were sent" run --instance lab --require-traffic -- bash -c 'set -u; "$@"' x pingpong "$TOOLS/ibv_rc_pingpong" -n 10
ok "only what this run has sent counts" status 125 run --instance lab --require-traffic -- "$TOOLS/ibv_devinfo"
gone() { status 125 run --instance lab --require-traffic -- "$SOFTHCA" stop lab; }
ok "--require-traffic fails where the instance is stopped meanwhile" gone
ok "start has no such option" status 2 "$SOFTHCA" start --stats lab
ok "nothing is left behind" until_true no_instance
finish
