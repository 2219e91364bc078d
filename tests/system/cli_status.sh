#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: `softhca run` is to a script what `env` or `nice` is: exit status, streams, environment, arguments.
. "$srcdir/lib.sh" || exit 1

run() { "$SOFTHCA" run "$@"; }

ok "a command that succeeds gives status 0" status 0 run -- true
ok "the command's exit status comes through" status 37 run -- sh -c 'exit 37'
ok "a signal n is 128 + n" status 143 run -- sh -c 'kill -TERM $$'
ok "SIGKILL is 137" status 137 run -- sh -c 'kill -KILL $$'
ok "a command that is not there is 127" status 127 run -- "$tmp/nothing"
: >"$tmp/plain"
ok "one that cannot be run is 126" status 126 run -- "$tmp/plain"
ok "an unknown option is 125" status 125 run --no-such-option -- true
ok "a bad value is 125" status 125 run --kernel solaris -- true
ok "no command is 125" status 125 run
ok "softhca leaves the command's own options to it" status 0 run sh -c 'test "$1" = --help' x --help

streams() {
	[ "$(printf 'in\n' | run -- sh -c 'read x; echo "$x" out; echo err >&2' 2>"$tmp/err")" = "in out" ] &&
		[ "$(cat "$tmp/err")" = err ]
}
ok "standard streams pass through" streams
closed() { run -- sh -c '[ ! -e /proc/self/fd/0 ] || exit 3' <&-; }
ok "a closed standard input stays closed" closed
pipe_ends() { timeout 10 "$SOFTHCA" run -- echo hello | cat | grep -q hello; }
ok "the daemon keeps no end of a pipe open" pipe_ends
other_fd() { run -- sh -c 'read x <&5; [ "$x" = five ]' 5< <(echo five); }
ok "other descriptors are inherited" other_fd
cwd() { cd "$tmp" && [ "$(run -- pwd)" = "$tmp" ]; }
ok "the working directory stays" cwd
arguments() { [ "$(run -- printf '<%s>' 'a b' '' '*')" = '<a b><><*>' ]; }
ok "the command gets its arguments unchanged" arguments
preload() { LD_PRELOAD=libm.so.6 run -- sh -c 'case $LD_PRELOAD in *softhca-shim.so*libm.so.6*) ;; *) exit 1 ;; esac'; }
ok "a user's own LD_PRELOAD stays" preload
asan_options() { ASAN_OPTIONS=color=never run -- sh -c '[ "$ASAN_OPTIONS" = color=never:verify_asan_link_order=0 ]'; }
ok "a user's ASAN_OPTIONS stay" asan_options
named() { run -- sh -c '[ -S "$SOFTHCA_INSTANCE/control" ] && [ "$SOFTHCA_HOST" = 0 ]'; }
ok "the command is told its instance and host" named
mask() { run -- grep -q '^SigBlk:.0*$' /proc/self/status; }
ok "the command starts with no signal blocked" mask
ignored() { (trap '' HUP; run -- grep '^SigIgn:.*[13579bdf]$' /proc/self/status); }
ok "a signal that was ignored stays ignored" ignored
children() {
	timeout -k 5 30 env --ignore-signal=CHLD "$SOFTHCA" run -- grep '^SigIgn:.*[13579bdf]....$' /proc/self/status &&
		timeout -k 5 30 env --ignore-signal=CHLD "$SOFTHCA" run -- sh -c 'exit 3'
	[ $? -eq 3 ]
}
ok "an ignored SIGCHLD stays ignored, and the command's status is told" children
closed() {
	local closed
	for closed in '<&-' '>&-' '2>&-' '<&- >&-' '>&- 2>&-' '<&- 2>&-' '<&- >&- 2>&-'; do
		rm -f "$tmp/closed"
		eval "timeout -k 5 30 \"\$SOFTHCA\" run -- sh -c 'for fd in 0 1 2; do
			[ ! -e /proc/\$\$/fd/\$fd ] || set -- \"\$@\" \$fd; done; echo \"\$*\" >\$0; exit 5' \"$tmp/closed\" $closed"
		[ $? -eq 5 ] || return 1
		case "$closed" in
		'<&-') [ "$(cat "$tmp/closed")" = "1 2" ] ;;
		'<&- >&- 2>&-') [ -z "$(cat "$tmp/closed")" ] ;;
		esac || return 1
	done
}
ok "standard descriptors that are closed stay closed for the command" closed
# shellcheck disable=SC2086 # words: $verb
helps() { for verb in run start stop show port fault doctor; do "$SOFTHCA" $verb --help | grep -q "softhca $verb" || return 1; done; }
ok "every verb has --help" helps
help_verb() {
	for verb in run start stop show port fault doctor; do
		"$SOFTHCA" "$verb" --help >"$tmp/option" 2>&1 && "$SOFTHCA" help "$verb" >"$tmp/verb" 2>&1 && cmp "$tmp/option" "$tmp/verb" || return 1
	done
	"$SOFTHCA" help >"$tmp/verb" && "$SOFTHCA" --help | cmp - "$tmp/verb"
}
ok "help VERB says what VERB --help says, and help alone what --help says" help_verb
help_of() { status 2 "$SOFTHCA" help "${@:2}" >"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/out" ] && grep -q "$1" "$tmp/err" || { cat "$tmp/out" "$tmp/err"; return 1; }; }
help_everywhere() {
	for words in "help --help" "port lab --help" "port -h" "fault lab drop --help" "stop -h" "show -h" "doctor -h" "run -h"; do
		# shellcheck disable=SC2086 # words: $words
		"$SOFTHCA" $words >"$tmp/out" 2>&1 && grep -q '^Usage: softhca' "$tmp/out" && ! awk 'length > 100' "$tmp/out" | grep . ||
			{ echo "$words:"; cat "$tmp/out"; return 1; }
	done
}
ok "--help and -h, wherever they stand, in 100 columns" help_everywhere
ok "help of no verb is an error that names the word" help_of 'unknown verb "walk"' walk
ok "so is help of two" help_of 'leave out "stop"' run stop
ok "nothing is left behind" no_instance
finish
