#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: which names and identifiers differ between the hosts of an instance. Their names
# resolve, forward and backward, by every call that there is, to addresses that TCP reaches.
# shellcheck disable=SC2086 # words of a command: $shape
. "$srcdir/lib.sh" || exit 1

names=$PROGRAMS/names
# Names that the instance does not know are looked up elsewhere, where perhaps no server answers.
export RES_OPTIONS='timeout:1 attempts:1'
# Asks on hosts 0 and 2, about the host itself and about another one.
asks() {
	for from in 0 2; do
		for of in 0 2; do
			EARLY=host$of on "$from" "$names" "$1" "$of" || { echo "on host$from, about host$of"; return 1; }
		done
	done
}
identities() {
	for host in 0 1 2; do
		on "$host" "$names" identity || return 1
	done >"$tmp/identities"
	# Asks again from other shells, from a child, and by coreutils: each answer is as before.
	for host in 0 1 2; do
		on "$host" "$names" identity || return 1
	done | diff "$tmp/identities" - || return 1
	[ "$(on 1 sh -c "'$names' identity; :")" = "$(sed -n 2p "$tmp/identities")" ] || return 1
	for host in 0 1 2; do
		line=$(sed -n $((host + 1))p "$tmp/identities")
		[ "${line%% *}" = host"$host" ] || { echo "on host$host: $line"; return 1; }
		id=${line##* }
		[ "$(on "$host" hostid)" = "${id: -8}" ] || { echo "hostid: $(on "$host" hostid), gethostid: $id"; return 1; }
	done
	[ "$(sort -u -k 2 "$tmp/identities" | wc -l)" -eq 3 ] || { cat "$tmp/identities"; return 1; }
}
files() {
	boots=
	for host in 0 1 2; do
		[ "$(on "$host" cat /proc/sys/kernel/hostname /etc/hostname)" = "host$host
host$host" ] || { echo "files on host$host: $(on "$host" cat /proc/sys/kernel/hostname /etc/hostname)"; return 1; }
		boot=$(on "$host" cat /proc/sys/kernel/random/boot_id)
		[ "$boot" = "$(on "$host" sh -c 'read -r line </proc/sys/kernel/random/boot_id; echo $line')" ] || return 1
		expr "$boot" : '[0-9a-f]\{8\}-[0-9a-f]\{4\}-4[0-9a-f]\{3\}-[89ab][0-9a-f]\{3\}-[0-9a-f]\{12\}$' >/dev/null ||
			{ echo "boot id $boot"; return 1; }
		boots="$boots $boot"
	done
	# shellcheck disable=SC2086
	[ "$(printf '%s\n' $boots "$machine_boot" | sort -u | wc -l)" -eq 4 ] || { echo "boot ids$boots"; return 1; }
}
machine_boot=$(cat /proc/sys/kernel/random/boot_id)

tcp() {
	# That of the server before would be taken for this one's.
	rm -f "$tmp/port"
	become "$1" "$names" serve >"$tmp/port" &
	server=$!
	until_true grep -q . "$tmp/port" || return 1
	on "$2" "$names" connect "host$1" "$(cat "$tmp/port")"
	client=$?
	wait "$server" && [ "$client" -eq 0 ]
}
both_ways() { tcp 1 0 && tcp 0 1 && tcp 2 2; }

programs() {
	[ "$(on 1 getent hosts host2)" = "127.128.2.1     host2" ] || { on 1 getent hosts host2; return 1; }
	[ "$(on 1 getent hosts 127.128.0.3)" = "127.128.0.3     host0" ] || { on 1 getent hosts 127.128.0.3; return 1; }
	[ "$(on 1 getent ahostsv4 HOST1 | awk '{ print $1 }' | sort -u)" = 127.128.1.1 ] || return 1
	[ "$(on 1 hostname) $(on 1 hostname -i) $(on 1 hostname -f) $(on 1 hostname -s)" = "host1 127.128.1.1 host1 host1" ] ||
		{ echo "hostname: $(on 1 hostname -i) $(on 1 hostname -f)"; return 1; }
	# The machine's own name, and other names, resolve as before.
	[ "$(on 1 getent hosts localhost)" = "$(getent hosts localhost)" ] || return 1
	on 1 getent hosts host3 && return 1
	on 1 getent hosts 127.128.3.1 && return 1
	return 0
}
python() {
	on 1 python3 -c '
import socket
assert socket.gethostname() == "host1", socket.gethostname()
assert socket.gethostbyname("host2") == "127.128.2.1"
assert socket.gethostbyname_ex("host2") == ("host2", [], ["127.128.2.1"]), socket.gethostbyname_ex("host2")
assert socket.gethostbyaddr("127.128.0.2") == ("host0", [], ["127.128.0.2"]), socket.gethostbyaddr("127.128.0.2")
assert socket.getfqdn() == "host1", socket.getfqdn()
assert socket.getnameinfo(("127.128.2.1", 80), socket.NI_NUMERICSERV) == ("host2", "80")
'
}
# An address sanitizer checks that freeaddrinfo() gets what libc allocated.
sanitized() { EARLY=host1 on 1 "$tmp/names-asan" forward 1 && EARLY=host1 on 1 "$tmp/names-asan" elsewhere 1; }

lone() {
	[ "$("$SOFTHCA" run -- hostname)" = "$(hostname)" ] || return 1
	[ "$("$SOFTHCA" run -- hostid)" = "$(hostid)" ] || return 1
	[ "$("$SOFTHCA" run -- cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/hostname)" = \
		"$(cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/hostname)" ] || return 1
	if getent hosts host0 >/dev/null; then
		[ "$("$SOFTHCA" run -- getent hosts host0)" = "$(getent hosts host0)" ]
	else
		"$SOFTHCA" run -- "$names" lone
	fi
}
export names machine_boot
export -f on become asks identities files tcp both_ways programs python sanitized

shape="--hosts 3 --hcas 2 --ports 2"
ok "name and id are each host's own, the same from every shell" within $shape -- identities
ok "boot id and the files that have a host's name are each host's own" within $shape -- files
for call in forward backward elsewhere; do
	ok "names resolve: $call" within $shape -- asks $call
done
ok "names that do not resolve give errors" within $shape -- "$names" errors 1
ok "TCP by name: a server at its own name's address" within $shape -- both_ways
ok "getent and hostname" within $shape -- programs
if command -v python3 >/dev/null; then
	ok "Python's socket module" within $shape -- python
else
	skip "Python's socket module" "python3 is not installed"
fi
if $CC -fsanitize=address -g -o "$tmp/names-asan" "$srcdir/names.c" -lpthread 2>"$tmp/cc.err"; then
	ok "in a program with AddressSanitizer" within $shape -- sanitized
else
	skip "in a program with AddressSanitizer" "$CC has no such"
fi
ok "the only host keeps the machine's names, and is host0 as well" lone
ok "nothing is left behind" until_true no_instance
finish
