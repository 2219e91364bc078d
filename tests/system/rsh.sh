#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: softhca-rsh, the remote shell of an instance: the command lines that launchers give
# to ssh and rsh, quoting, streams, exit status, and the messages about hosts that do not exist.
. "$srcdir/lib.sh" || exit 1

RSH=$(dirname "$SOFTHCA")/softhca-rsh
export RSH
# is WANTED WORD...: softhca-rsh with these words prints WANTED.
is() {
	wanted=$1
	shift
	got=$("$RSH" "$@" </dev/null) || { echo "status $? of $*"; return 1; }
	[ "$got" = "$wanted" ] || { echo "\"$got\", not \"$wanted\": $*"; return 1; }
}
hosts() {
	is host0 host0 hostname && is host1 host1 hostname && is host1 HOST1 hostname && is host1 host1. hostname || return 1
	is host1 somebody@host1 hostname && is host1 a@b@host1 hostname && is host1 ssh://me@host1:22 hostname || return 1
	is host1 127.128.1.1 hostname && is host1 me@127.128.1.2 hostname || return 1
	# The names of the own host.
	is host0 localhost hostname && is host0 127.0.0.1 hostname && is host0 "$(uname -n)" hostname &&
		[ "$("$RSH" host1 "$RSH" localhost hostname)" = host1 ] &&
		[ "$("$RSH" host1 "$RSH" -n host0 'hostname; '"$RSH"' host1 hostname' | tr '\n' ' ')" = "host0 host1 " ]
}
options() {
	is host1 -x host1 hostname && is host1 -n -q -T host1 hostname && is host1 -xqT host1 hostname || return 1
	is host1 -l user host1 hostname && is host1 -luser host1 hostname && is host1 -p 22 host1 hostname || return 1
	is host1 -o StrictHostKeyChecking=no -oBatchMode=yes -i key -F none host1 hostname || return 1
	is host1 -xi key -p22 host1 hostname && is host1 -4 -A -C -X -a -k host1 hostname || return 1
	is host1 host1 -l user -x hostname && is host1 host1 -n hostname && is host1 -- host1 hostname || return 1
	is host1 host1 -- hostname && is host1 -x -- host1 hostname && is host1 -tt host1 hostname || return 1
	# Options behind the command's first word belong to the command.
	is "-l x -- -n" host1 echo -l x -- -n && is "-x" -- host1 printf %s -x
}
quoting() {
	is "a b" host1 echo a b && is "a b" host1 echo "a    b" && is "a    b" host1 "echo 'a    b'" || return 1
	is 'x y' host1 'X="x y"; echo "$X"' && is '1 2' host1 echo '$((1))' '$((1 + 1))' && is "host1 host1" host1 'echo $(hostname) `hostname`' ||
		return 1
	is "$(printf 'a\nb')" host1 printf '"a\nb"' && is "" host1 "" && is '*?;&|<>' host1 echo "'*?;&|<>'" &&
		is "two" host1 "cd / && false || echo two" && is "$PWD" host1 pwd
}
environment() {
	OF_THE_CALLER="a  b" is "a  b" host1 'echo "$OF_THE_CALLER"' && is "$PATH" host1 'echo "$PATH"' &&
		is 1 host1 'echo "$SOFTHCA_HOST"' && SHELL=/bin/sh is /bin/sh host1 'echo "$0"' &&
		SHELL=/bin/bash is bash host1 'basename "$BASH"' && (unset SHELL; is host1 host1 hostname)
}
streams() {
	[ "$(printf 'one\ntwo\n' | "$RSH" host1 cat)" = "$(printf 'one\ntwo')" ] || return 1
	[ "$(echo lost | "$RSH" -n host1 cat)" = "" ] && [ "$(echo lost | "$RSH" host1 -n cat)" = "" ] || return 1
	# softhca-rsh itself reads nothing of the input, neither because of -n nor when it looks up
	# the host.
	[ "$(printf 'first\nsecond\n' | (read -r _; "$RSH" host1 cat))" = second ] || return 1
	"$RSH" host1 'echo out; echo err >&2' >"$tmp/out" 2>"$tmp/err"
	[ "$(cat "$tmp/out") $(cat "$tmp/err")" = "out err" ] || return 1
	# Without a command softhca-rsh starts a shell.
	[ "$(echo 'hostname; exit 3' | SHELL=/bin/sh "$RSH" host1; echo $?)" = "host1
3" ]
}
exits() {
	for n in 0 1 7 125 126 127 254 255; do
		status "$n" "$RSH" host1 "exit $n" || return 1
	done
	status 143 "$RSH" host1 'kill -TERM $$' && status 127 "$RSH" host1 no-such-command 2>/dev/null
}
background() {
	rm -f "$tmp/go" "$tmp/late"
	"$RSH" -f host1 "until [ -e $tmp/go ]; do sleep 0.05; done; hostname >$tmp/late" || return 1
	[ ! -e "$tmp/late" ] || return 1
	: >"$tmp/go"
	until_true test -s "$tmp/late" && [ "$(cat "$tmp/late")" = host1 ]
}
# fails TEXT WORD...: ends with 255 and the text on standard error, and runs nothing.
fails() {
	text=$1
	shift
	rm -f "$tmp/ran"
	status 255 "$RSH" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || { cat "$tmp/out" "$tmp/err"; return 1; }
	grep -q -- "^softhca-rsh: .*$text" "$tmp/err" && [ ! -e "$tmp/ran" ] && [ ! -s "$tmp/out" ] || { cat "$tmp/err"; return 1; }
}
refusals() {
	for host in host2 host255 127.128.2.1; do
		fails "cannot reach $host: .*has 2 hosts, counted from 0: there is no host" "$host" "touch $tmp/ran" || return 1
	done
	for host in node1 host host01 host1x host1000 host-1 127.128.1 127.128.x.1 10.0.0.1 '' '*' '$(touch ran)'; do
		fails "Could not resolve hostname" "$host" "touch $tmp/ran" || return 1
	done
	fails "give a host" && fails "give a host" -x -l user && fails "option -l lacks its value" -l &&
		fails "option -Z is unknown" -Z host1 "touch $tmp/ran" && fails "option -L: .*forwarded" -L 1:host1:2 host1 "touch $tmp/ran" &&
		fails "option -N" -N host1 && fails "option -W" -W a:1 host1 || return 1
	"$RSH" -V 2>&1 | grep -q '^softhca-rsh of softhca [0-9]' && "$RSH" --version | grep -q '^softhca-rsh of softhca [0-9]'
}
helps() {
	(unset SOFTHCA_INSTANCE && "$RSH" --help >"$tmp/out" 2>"$tmp/err") && [ ! -s "$tmp/err" ] || { cat "$tmp/err"; return 1; }
	grep -q '^usage: softhca-rsh ' "$tmp/out" && ! grep -q @ <(grep -v USER@ "$tmp/out") || { cat "$tmp/out"; return 1; }
	# Behind the host the word belongs to the command.
	[ "$("$SOFTHCA" run -- "$RSH" host0 echo --help)" = --help ]
}
no_instance_here() {
	fails "no instance here: run" host0 hostname && SOFTHCA_INSTANCE=gone fails "cannot reach host0: .*gone" host0 hostname
}
lone() {
	[ "$("$SOFTHCA" run -- "$RSH" host0 hostname)" = "$(hostname)" ] &&
		[ "$("$SOFTHCA" run -- "$RSH" "$(hostname)" echo 'a b')" = "a b" ] &&
		[ "$("$SOFTHCA" run -- "$RSH" localhost echo 'a b')" = "a b" ]
}
# Finds softhca-rsh by name, from $PATH; and an instance that stays, by its name.
by_path() {
	"$SOFTHCA" start --hosts 2 lab >/dev/null || return 1
	PATH=$(dirname "$RSH"):$PATH SOFTHCA_INSTANCE=lab softhca-rsh host1 hostname >"$tmp/out"
	got=$?
	"$SOFTHCA" stop lab
	[ "$got" -eq 0 ] && [ "$(cat "$tmp/out")" = host1 ]
}
# A launcher with the path of ssh compiled in: the recipe of docs/hosts.md.
by_mount() {
	printf '#!/bin/sh\necho the real one\n' >"$tmp/ssh"
	printf '#!/bin/sh\n"%s" -q host1 hostname \\; id -u\n' "$tmp/ssh" >"$tmp/starter"
	chmod +x "$tmp/ssh" "$tmp/starter"
	got=$(PATH=$(dirname "$RSH"):$PATH unshare -rm sh -c 'mount --bind "$(command -v softhca-rsh)" "$3" &&
		exec unshare --map-user="$1" --map-group="$2" softhca run --hosts 2 -- "$4"' \
		sh "$(id -u)" "$(id -g)" "$tmp/ssh" "$tmp/starter")
	[ "$got" = "host1
$(id -u)" ] && [ "$("$tmp/ssh")" = "the real one" ] || { echo "$got"; return 1; }
}
export -f status is fails hosts options quoting environment streams exits background refusals

two="--hosts 2"
for what in hosts options quoting environment streams exits background refusals; do
	# shellcheck disable=SC2086 # words: $two
	ok "$what" within $two -- $what
done
ok "outside of an instance, or where it is gone" no_instance_here
ok "--help, wherever it is asked" helps
ok "an instance with one host" lone
ok "found in PATH, with an instance's name" by_path
if unshare -rm unshare --map-user="$(id -u)" true 2>/dev/null; then
	ok "in the place of ssh, in a mount namespace" by_mount
else
	skip "in the place of ssh, in a mount namespace" "users cannot make namespaces here"
fi
ok "nothing is left behind" until_true no_instance
finish
