#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: rstream, riostream, rcopy and udpong of librdmacm work with each other and with Debian's at the other end, on both faces. They refuse bad
# options, and tell why if nobody listens, a file cannot be written or the peer dies. Afterwards no channel is left.
# shellcheck disable=SC2086 # $ours: words in front of the name
. "$srcdir/lib.sh" || exit 1
. "$srcdir/cm_pairs.sh" || exit 1

# In front of the path of a program that is not ours, for our library
on_ours=${ours% *}

head -c 3000001 /dev/urandom >"$tmp/source"

streams() { # streams SERVER CLIENT, in front of the names; then words for the description
	ok "rstream, $3" says "custom    9.7k    20      3       1.1m  " pair 1 "$listens" "$1rstream -S 10000 -C 20 -I 3 -T v" \
		"$2rstream -s host0 -S 10000 -C 20 -I 3 -T v"
	ok "rstream with poll, from its own address, $3" says "custom    64      5       100     62k  " \
		pair 1 "$listens" "$1rstream -S 64 -C 5 -I 100 -T a -T v -b host0 -p 7500" \
		"$2rstream -s host0 -S 64 -C 5 -I 100 -T v -b host1 -p 7500"
	ok "rstream that blocks, $3" says "custom    1.9m    2       2       15m  " pair 1 "$listens" \
		"$1rstream -S 2000000 -C 2 -I 2 -T b -T v" "$2rstream -s host0 -S 2000000 -C 2 -I 2 -T b -T v"
	ok "rcopy, $3" copied "$1rcopy" "$2rcopy" source
	# More turns than its counter has values; and a size that is shorter than the greeting.
	ok "riostream, $3" says "custom    40      3       300     70k  " pair 1 "$listens" "$1riostream -S 40 -C 3 -I 300 -T v" \
		"$2riostream -s host0 -S 40 -C 3 -I 300 -T v"
	ok "riostream with poll, from its own address, $3" says "custom    1.9m    2       2       15m  " pair 1 "$listens" \
		"$1riostream -S 2000000 -C 2 -I 2 -T a -T v -b host0 -p 7500" \
		"$2riostream -s host0 -S 2000000 -C 2 -I 2 -T b -T v -b host1 -p 7500"
	ok "udpong, $3" datagrams "$1udpong -b host0" "$2udpong -s host0 -S 2000 -C 100"
	ok "udpong with poll, from its own address, $3" datagrams "$1udpong -b host0 -T a" \
		"$2udpong -s host0 -b host1 -S 16 -C 100 -T a"
	ok "udpong that gets each datagram back, $3" datagrams "$1udpong -b host0 -T b -T e" \
		"$2udpong -s host0 -S 100 -C 100 -T e"
}

# Datagrams may get lost, and are sent again: their number is not that of the command. Before the server is there, nothing answers
# the client, which asks again.
datagrams() { # datagrams SERVER CLIENT: the server runs until it is stopped
	# Datagram rsockets have ports of UDP, of which all tests of this machine take some.
	take_port
	"$SOFTHCA" run --instance cm --host 0 -- timeout 60 $1 -p "$port" >"$tmp/server.out" 2>&1 &
	server=$!
	on 1 $2 -p "$port" >"$tmp/client.out" 2>&1
	got=$?
	kill "$server"
	wait "$server"
	[ "$got" -eq 0 ] && grep -q '^custom    [0-9.k]* *[0-9.k]* *[0-9.k]* *[0-9.]*s' "$tmp/client.out" && soon nothing_left &&
		return 0
	cat "$tmp/server.out" "$tmp/client.out"
	return 1
}

nobody_answers() {
	take_port
	fails "udpong: no answer from host0, port $port: is a server running there?" ${ours}udpong -s host0 -p "$port"
}

# Both ends wait for the other one, of which each has another size in mind.
other_options() {
	ends=
	for tool in "rstream -T b" "rstream -T a" "rstream -T n" riostream; do
		take_port
		name=$tmp/other.${tool##* }
		on 0 $ours$tool -S 2000 -C 5 -p "$port" >"$name.server" 2>&1 &
		ends="$ends $!"
		(
			for _ in $(seq 100); do
				on 1 $ours$tool -S 1000 -C 5 -s host0 -p "$port" >"$name.client" 2>&1
				! grep -q "Connection refused" "$name.client" || { sleep 0.2; continue; }
				break
			done
		) &
		ends="$ends $!"
	done
	# shellcheck disable=SC2086 # words
	wait $ends
	for tool in "rstream -T b" "rstream -T a" "rstream -T n" riostream; do
		for end in server client; do
			grep -q "the other end has done nothing for 30 s\|the peer has closed\|rrecv: \|rsend: \|riowrite: " "$tmp/other.${tool##* }.$end" ||
				{ echo "$tool, $end:"; cat "$tmp/other.${tool##* }.$end"; return 1; }
		done
		cat "$tmp/other.${tool##* }".* | grep -q "the other end has done nothing" || { cat "$tmp/other.${tool##* }".*; return 1; }
	done
}

: >"$tmp/empty"

copied() { # copied SERVER CLIENT FILE
	rm -f "$tmp/copy"
	while_serving "$1" on 1 $2 "$tmp/$3" "host0:$tmp/copy" && cmp "$tmp/$3" "$tmp/copy"
}

while_serving() { # while_serving SERVER COMMAND...: the server runs until it is stopped
	on 0 $1 >"$tmp/server.out" 2>&1 &
	server=$!
	shift
	soon ready "$listens" || return 1
	"$@" >"$tmp/client.out" 2>&1
	got=$?
	kill "$(process_on 0)"
	wait "$server"
	cat "$tmp/server.out" "$tmp/client.out"
	soon nothing_left && return $got
}

no_place() {
	while_serving "${ours}rcopy" fails "the server cannot open $tmp/none/x: No such file" ${ours}rcopy "$tmp/source" \
		"host0:$tmp/none/x"
}

bad_options() {
	while IFS='|' read -r words text; do
		fails "$text" $ours$words || return 1
	done <<-END
		rstream -Z|^usage: 
		riostream -Z|^usage: 
		riostream -T s|'s' is no test option
		riostream -s host0|rconnect: Connection refused
		udpong -Z|^usage: 
		udpong -S 15|give -S a number from 16 to 2048
		udpong -S 2049|give -S a number from 16 to 2048
		udpong -T v|'v' is no test option
		rcopy -Z|^usage 1: 
		rcopy one two three|^usage 1: 
		rstream -S 0|'0' is no size of transfers: give a number from 1
		rstream -I many|'many' is no number of iterations
		rstream -T x|'x' is no test option
		rstream -s no.such.host.invalid|no.such.host.invalid, port 7471
		rcopy /no/such/file host0|cannot read /no/such/file: No such file
		rcopy / host0|cannot copy /: Invalid argument
		rstream -s host0|rconnect: Connection refused
		rcopy $tmp/source host0|rconnect: Connection refused
	END
	soon nothing_left
}

# More than anybody waits for.
killed() { # killed TOOL HOST-OF-VICTIM
	on 0 $ours$1 -T a -S 1000 -C 1 -I 1000000000 >"$tmp/server.out" 2>&1 &
	server=$!
	soon ready "$listens" || return 1
	on 1 $ours$1 -T a -s host0 -S 1000 -C 1 -I 1000000000 >"$tmp/client.out" 2>&1 &
	client=$!
	soon shows '"state": "established"' || return 1
	kill -9 "$(process_on "$2")"
	survivor=$tmp/client.out
	[ "$2" -eq 0 ] || survivor=$tmp/server.out
	wait "$server"
	wait "$client"
	grep -q "$1: the peer has closed\|rsend: \|rrecv: \|riowrite: " "$survivor" && soon nothing_left && return 0
	cat "$survivor"
	return 1
}

for face in ofed mainline; do
	if ! "$SOFTHCA" start --hosts 2 --kernel "$face" cm >"$tmp/start.out" 2>&1; then
		ok "$face: an instance" cat "$tmp/start.out"
		continue
	fi
	if sanitized; then
		:
	elif [ -x /usr/bin/rstream ]; then
		# They speak to each other through the device alone, so one face each is enough for the quick tier.
		[ $face = mainline ] && ! all_rows || streams "$ours" /usr/bin/ "ours serves Debian's, $face"
		[ $face = ofed ] && ! all_rows || streams /usr/bin/ "$ours" "Debian's serves ours, $face"
		# Without -b it listens on ::1.
		ok "Debian's udpong on our library, on all addresses of IPv6, $face" datagrams "$on_ours /usr/bin/udpong -b ::" \
			"${ours}udpong -s host0 -S 2000 -C 50"
		! all_rows || ok "Debian's rcopy on our library, $face" copied "$on_ours /usr/bin/rcopy" "$on_ours /usr/bin/rcopy" source
	else
		skip "ours and Debian's, $face" "install rdmacm-utils"
	fi
	# rsockets.sh has the library on both faces.
	if [ $face = ofed ] && ! all_rows; then
		"$SOFTHCA" stop cm >/dev/null
		continue
	fi
	streams "$ours" "$ours" "$face"
	ok "udpong on all addresses of IPv6, for a client of IPv4, $face" datagrams "${ours}udpong -b ::" "${ours}udpong -s host0 -S 2000 -C 50"
	ok "and each datagram back, $face" datagrams "${ours}udpong -b :: -T b" "${ours}udpong -s 127.128.0.1 -S 100 -C 50 -T e"
	# Debian's maps the file, which fails then.
	ok "rcopy of an empty file, $face" copied "${ours}rcopy" "${ours}rcopy" empty
	ok "rstream whose server forks, $face" says "custom  " pair 1 "$listens" "${ours}rstream -S 100 -T f" "${ours}rstream -s host0 -S 100"
	ok "bad options, $face" bad_options
	ok "a file that cannot be written, $face" no_place
	for tool in rstream riostream; do
		ok "the server of $tool is killed, $face" killed $tool 0
		ok "the client of $tool is killed, $face" killed $tool 1
	done
	ok "udpong without a server, $face" nobody_answers
	[ $face = ofed ] || ok "both ends end that would wait for each other" other_options
	"$SOFTHCA" stop cm >/dev/null
done
# Doorbells trap in the same way on either face.
if long_rows; then
	if "$SOFTHCA" start --hosts 2 --mmio trap cm >"$tmp/start.out" 2>&1; then
		streams "$ours" "$ours" "mainline, trap"
		"$SOFTHCA" stop cm >/dev/null
	else
		ok "mainline, trap: an instance" cat "$tmp/start.out"
	fi
fi
finish
