#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: a command that runs for long shows its progress on a terminal, in one line that it
# removes again, and shows none in a pipe or a file: ping-pongs with many iterations, and a soak, in
# `softhca run`.
. "$srcdir/lib.sh" || exit 1

if ! command -v script >/dev/null; then
	skip "progress" "install bsdutils: there is no script(1), which makes a terminal"
	finish
fi

if ! script -qefc true /dev/null >"$tmp/pty" 2>&1 </dev/null; then
	skip "progress" "a terminal cannot be made: mount devpts at /dev/pts ($(tr -d '\r' <"$tmp/pty" | tail -n 1))"
	finish
fi

# terminal FILE COMMAND: runs the command in a terminal of its own. What it shows goes to FILE.
terminal() {
	script -qefc "$2" /dev/null >"$1" 2>&1 </dev/null
}

# side TOOL WHERE ARGUMENTS NAME: runs one side of a ping-pong, with its output in $tmp/NAME.
side() {
	command="exec '$TOOLS/$1' -p $port --timeout 30 $3"
	if [ "$2" = terminal ]; then
		terminal "$tmp/$4" "$command"
	else
		sh -c "$command" >"$tmp/$4" 2>&1
	fi
}

progresses() { tr '\r' '\n' <"$1" | grep -q '^  [0-9]* of [0-9]* messages received ([0-9]*%)'; }
addressed() { grep -q 'remote' "$1"; }

# shows TOOL WHERE-OF-SERVER WHERE-OF-CLIENT ITERATIONS: both sides do the same, and those on a
# terminal show their progress.
shows() {
	take_port
	: >"$tmp/server"
	: >"$tmp/client"
	side "$1" "$2" "-n $4" server &
	until_true listening || return 1
	side "$1" "$3" "-n $4 127.0.0.1" client &
	until_true addressed "$tmp/client" || return 1
	pids=$(pgrep -f "^$TOOLS/(.libs/)?(lt-)?$1 -p $port ")
	# However fast the machine is, a second passes before the next message. script(1) would stop
	# with its child.
	[ "$2" != file ] || stop=$(pgrep -f "^$TOOLS/(.libs/)?(lt-)?$1 -p $port .* -n $4\$")
	[ "$3" != file ] || stop=$(pgrep -f "^$TOOLS/(.libs/)?(lt-)?$1 -p $port .* 127.0.0.1\$")
	# shellcheck disable=SC2086 # words: $stop
	[ -z "${stop:-}" ] || { kill -STOP $stop && sleep 1.2 && kill -CONT $stop; }
	bad=0
	for which in server:$2 client:$3; do
		if [ "${which#*:}" = terminal ]; then
			until_true progresses "$tmp/${which%:*}" || bad=1
		fi
	done
	# shellcheck disable=SC2086 # words: $pids
	kill $pids
	wait
	for which in server:$2 client:$3; do
		[ "${which#*:}" = terminal ] || ! grep -q "received\|$(printf '\r')\|$(printf '\033')" "$tmp/${which%:*}" || bad=1
	done
	[ "$bad" -eq 0 ] || tail "$tmp/server" "$tmp/client"
	return "$bad"
}

# A tool that ends removes its line.
cleans() {
	take_port
	side "$1" file "-n 60000" server &
	until_true listening || return 1
	side "$1" terminal "-n 60000 127.0.0.1" client
	wait
	! progresses "$tmp/client" || tr '\r' '\n' <"$tmp/client" | grep -q "^$(printf '\033')\[K60000\|^$(printf '\033')\[K.*bytes in"
}

# A hang ends here, together with its instance.
timed() { timeout 60 bash -c 'set -u; "$@"' timed "$@"; }

export -f timed terminal side progresses addressed shows cleans

for tool in rc uc ud srq; do
	ok "$tool, a server in a file, a client on a terminal" ours within -- timed shows ibv_${tool}_pingpong file terminal 2147483647
done
ok "rc, a server on a terminal, a client in a file" ours within -- timed shows ibv_rc_pingpong terminal file 2147483647
ok "rc -e, both on terminals" ours within -- timed shows ibv_rc_pingpong terminal terminal "2147483647 -e"
ok "xsrq, a server on a terminal, a client in a file" ours within --mmio trap -- timed shows ibv_xsrq_pingpong terminal file 131071
ok "xsrq, a server in a file, a client on a terminal" ours within --mmio trap -- timed shows ibv_xsrq_pingpong file terminal 131071
ok "a line is taken away in the end" ours within --mmio trap -- timed cleans ibv_rc_pingpong

soak="'$SOFTHCA' run -- '$PROGRAMS/soak' --none --seconds 1 --processes 8"
soak_shows() {
	ours terminal "$tmp/soak" "$soak" && grep -q '^8 processes for 1 seconds' "$tmp/soak" &&
	tr '\r' '\n' <"$tmp/soak" | grep -q '^  [0-9] of 1 s: 8 processes' || { cat "$tmp/soak"; return 1; }
}
soak_silent() {
	ours sh -c "$soak" >"$tmp/soak" 2>&1 && grep -q '^8 processes for 1 seconds' "$tmp/soak" &&
	! grep -q "of 1 s: \|$(printf '\r')" "$tmp/soak" ||
		{ cat "$tmp/soak"; return 1; }
}
ok "a soak on a terminal" soak_shows
ok "a soak in a file" soak_silent
ok "nothing is left behind" until_true no_instance
finish
