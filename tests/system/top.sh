#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: `softhca top` shows what goes over an instance: as tables one below the other, and on a
# terminal, where keys choose, sort and enter tables (top.py).
. "$srcdir/lib.sh" || exit 1

"$SOFTHCA" start --hosts 2 lab >/dev/null || exit 1

batch() { "$SOFTHCA" top --batch --delay 100ms "$@" lab >"$tmp/top" || { cat "$tmp/top"; return 1; }; }
idle() {
	batch --count 2 && [ "$(grep -c '^lab: 0 processes, 0 QPs; 0 messages/s' "$tmp/top")" -eq 2 ] &&
		[ "$(grep -c '^PID ' "$tmp/top")" -eq 2 ] && [ "$(wc -l <"$tmp/top")" -eq 5 ]
}
ok "two tables of an idle instance" idle
ports() { batch --count 1 --view ports && [ "$(grep -c '^host[01]/mlx4_0:1 *ACTIVE *[12] *0 *0 *0 *0 *0$' "$tmp/top")" -eq 2 ]; }
ok "each port, with its LID" ports

take_port
mesh() { ours "$SOFTHCA" run --instance lab --host "$1" -- "$TOOLS/xrc_mesh" --procs 2 --port "$port" --messages 1000000000 --node "$@"; }
mesh 0 >"$tmp/mesh0" 2>&1 &
until_true listening || { cat "$tmp/mesh0"; exit 1; }
mesh 1 --server 127.0.0.1 >"$tmp/mesh1" 2>&1 &

# moves VIEW COLUMN PATTERN ROWS: each of so many rows has a rate above 0 in the column.
moves() {
	batch --count 1 --view "$1" && [ "$(grep "$3" "$tmp/top" | awk -v c="$2" '$c !~ /^0$/ { n++ } END { print n + 0 }')" -eq "$4" ]
}
until_true moves processes 5 xrc_mesh 4 && ranks=$(awk '$2 == "xrc_mesh" { print $1 }' "$tmp/top")
# They poll for ever, even when the instance has ended: an HCA that is gone completes nothing.
# shellcheck disable=SC2086,SC2154 # words: $ranks
trap 'kill $ranks 2>/dev/null; cleanup' EXIT
[ -n "$ranks" ] || { cat "$tmp/top" "$tmp/mesh0" "$tmp/mesh1"; exit 1; }
ok "processes send" until_true moves processes 5 xrc_mesh 4
ok "HCAs send" until_true moves hcas 3 mlx4 2
ok "ports send" until_true moves ports 4 mlx4 2
ok "QPs of senders send" until_true moves qps 5 INI 4
quiet() { batch --count 1 --view qps && [ "$(awk '$NF == "0"' "$tmp/top" | grep -c '/0x')" -eq 8 ]; }
ok "nothing vanishes" quiet
"$SOFTHCA" fault lab drop 5% >/dev/null
ok "QPs count packets that vanish" until_true moves qps 10 /0x 8
ok "and processes those for their QPs" until_true moves processes 10 xrc_mesh 4
"$SOFTHCA" fault lab off >/dev/null
ok "XRC domains receive" until_true moves domains 6 xrcd 2
users() { grep -q 'xrc_mesh:[0-9]' "$tmp/top"; }
ok "and tell who uses them" users
narrow() { ! grep -E '.{80}' "$tmp/top"; }
ok "no line has more than 79 columns" narrow

says() { "${@:2}" >"$tmp/out" 2>"$tmp/err"; status=$?; cat "$tmp/err"; grep -q -- "$1" "$tmp/err"; }
wrong() { says "$@"; [ "$status" -eq 2 ]; }
ok "no name" wrong 'needs the name of an instance' "$SOFTHCA" top
ok "an unknown view" wrong 'there is no view "switches": choose processes' "$SOFTHCA" top --view switches lab
ok "an unknown column" wrong 'has no column "LID": choose one of "PID", "COMMAND"' "$SOFTHCA" top --sort LID lab
ok "a delay without unit" wrong '--delay must be from 100ms to 1000s, with its unit (us, ms, s), not "1"' "$SOFTHCA" top --delay 1 lab
ok "an option without its value" wrong 'option --count needs a value' "$SOFTHCA" top lab --count
absent() { says 'no instance "nobody"' "$SOFTHCA" top nobody; [ "$status" -eq 125 ]; }
ok "an instance that does not run" absent
full() { "$SOFTHCA" top --batch --count 1 lab >/dev/full 2>"$tmp/err"; [ $? -eq 125 ] && grep -q 'No space left' "$tmp/err"; }
ok "a full disk is a failure" full

python=/usr/bin/python3
[ -x $python ] || python=python3
if ! $python -c 'import pyte' 2>/dev/null; then
	skip "softhca top on a terminal" "install python3-pyte"
elif ! grep -q 'define HAVE_NCURSES 1' ../../config.h; then
	skip "softhca top on a terminal" "build with libncurses-dev"
elif ! $python -c 'import os; os.openpty()' 2>"$tmp/pty"; then
	skip "softhca top on a terminal" "a terminal cannot be made: mount devpts at /dev/pts ($(tail -n 1 "$tmp/pty"))"
else
	# It stops the instance in the end.
	screen() { $python -B "$srcdir/top.py" "$SOFTHCA" lab; }
	screen >"$tmp/screen"
	bad() { cat "$tmp/screen"; false; }
	while IFS= read -r line; do
		case $line in
		"ok "*)	ok "terminal: ${line#*- }" true ;;
		"not ok "*) ok "terminal: ${line#*- }" bad ;;
		esac
	done <"$tmp/screen"
	whole() { grep '^1\.\.' "$tmp/screen"; }
	ok "terminal: to the end" whole
fi
finish
