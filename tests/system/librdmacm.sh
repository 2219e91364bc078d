#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the tools of librdmacm connect by address on both faces, with each other and with Debian's at the other end. They
# refuse bad options, and tell why if nobody listens or the peer dies. Afterwards no channel is left.
# shellcheck disable=SC2086 # $ours: words in front of the name
. "$srcdir/lib.sh" || exit 1
. "$srcdir/cm_pairs.sh" || exit 1

group=239.1.2.3

alone() { # alone FACE
	ok "rdma_client, $1" says "end 0" pair 1 "$listens" "${ours}rdma_server" "${ours}rdma_client -s host0"
	for type in r x; do
		ok "rdma_xclient -c $type, $1" says "end 0" \
			pair 1 "$listens" "${ours}rdma_xserver -c $type" "${ours}rdma_xclient -c $type -s host0"
	done
	ok "rping, $1" says "rdma-ping-19: " pair 0 "$listens" "${ours}rping -s -C 20 -V" \
		"${ours}rping -c -a 127.0.0.1 -C 20 -V -v"
	ok "rping of 64 KiB, $1" says "rdma-ping-2: " pair 1 "$listens" "${ours}rping -s -C 3 -S 65536" \
		"${ours}rping -c -a host0 -C 3 -S 65536 -V -v"
	ok "ucmatose without messages, $1" says "return status 0" pair 1 "$listens" "${ours}ucmatose -S 0" \
		"${ours}ucmatose -S 0 -s host0"
	ok "ucmatose with many and long messages, from its own address, $1" says "data transfers complete" \
		pair 1 "$listens" "${ours}ucmatose -b host0 -p 7000 -C 100 -S 30000" \
		"${ours}ucmatose -b host1 -s host0 -p 7000 -C 100 -S 30000 -t 8"
	ok "udaddy of IPOIB, $1" says "data transfers complete" pair 1 "$listens" "${ours}udaddy -p 0x2 -C 30 -S 2048" \
		"${ours}udaddy -P ipoib -s host0 -C 30 -S 2048"
}

# Both ends on one host: by the address that any host has for itself, and by the host's own.
within() { # within FACE-AND-WAY
	for to in 127.0.0.1 host0; do
		k="within a host, to $to, $1:"
		ok "$k rdma_client" says "end 0" pair 0 "$listens" "${ours}rdma_server" "${ours}rdma_client -s $to"
		for type in r x; do
			ok "$k rdma_xclient -c $type" says "end 0" \
				pair 0 "$listens" "${ours}rdma_xserver -c $type" "${ours}rdma_xclient -c $type -s $to"
		done
		ok "$k rping" says "rdma-ping-19: " pair 0 "$listens" "${ours}rping -s -C 20 -V" "${ours}rping -c -a $to -C 20 -V -v"
		ok "$k ucmatose" says "return status 0" pair 0 "$listens" "${ours}ucmatose -m -c 3" "${ours}ucmatose -m -c 3 -s $to"
		ok "$k udaddy" says "return status 0" pair 0 "$listens" "${ours}udaddy -c 2" "${ours}udaddy -c 2 -s $to"
		ok "$k riostream" pair 0 "$listens" "${ours}riostream -S 64 -I 2 -C 2 -T v" "${ours}riostream -s $to -S 64 -I 2 -C 2 -T v"
		ok "$k rstream" pair 0 "$listens" "${ours}rstream -S 1000 -I 2 -C 2 -T v" "${ours}rstream -s $to -S 1000 -I 2 -C 2 -T v"
	done
	ok "within a host, $1: mckey" says "joined dgid: ff12:4001:ffff::f01:203 mlid 0x" pair 0 joined \
		"stdbuf -oL ${ours}mckey -c 2 -m $group -b host0" "${ours}mckey -s -c 2 -m $group -b host0"
}

# The server runs until it is stopped.
timed() { # timed SERVER CLIENT STEPS
	on 0 $1 >"$tmp/server.out" 2>&1 &
	server=$!
	soon ready "$listens" || return 1
	on 1 $2 >"$tmp/client.out" 2>&1
	client=$?
	kill "$(process_on 0)"
	wait "$server"
	[ "$client" -eq 0 ] && [ "$(grep -cE '^[a-z ]{13}:( +[0-9]+\.[0-9]{2}){4}$' "$tmp/client.out")" -eq "$3" ] &&
		soon nothing_left && return 0
	cat "$tmp/server.out" "$tmp/client.out"
	return 1
}

talk() { # talk SERVER CLIENT, in front of the names; then words for the description
	ok "ucmatose, $3" says "return status 0" pair 1 "$listens" "$1ucmatose -m -c 3" "$2ucmatose -m -c 3 -s host0"
	ok "udaddy, $3" says "return status 0" pair 1 "$listens" "$1udaddy -c 2" "$2udaddy -c 2 -s host0"
	ok "cmtime, $3" timed "$1cmtime" "$2cmtime -s host0 -b host1 -c 20" 8
}

with() { # with SERVER CLIENT WORDS, as for talk; FACE
	talk "$1" "$2" "$3"
	ok "mckey, $3" says "joined dgid: ff12:4001:ffff::f01:203 mlid 0x" pair 1 joined \
		"stdbuf -oL $1mckey -c 2 -m $group -b host0" "$2mckey -s -c 2 -m $group -b host1"
	if [ "$4" = mainline ]; then
		ok "ucmatose with a GID, $3" says "return status 0" pair 1 "$listens" "$1ucmatose -f gid -P ib" \
			"$2ucmatose -P ib -s host0"
	fi
}

# Programs that were linked against Debian's libraries, and need nothing that is newer than ours: mckey does.
debians_on_ours() { # debians_on_ours FACE
	on_ours="${ours% *} /usr/bin/"
	ok "Debian's rdma_client on our library, $1" says "end 0" pair 1 "$listens" "${on_ours}rdma_server" \
		"${on_ours}rdma_client -s host0"
	talk "$on_ours" "$on_ours" "Debian's on our library, $1"
}

# What each tool answers to options that it cannot take.
bad_options() {
	while IFS='|' read -r words text; do
		fails "$text" $ours$words || return 1
	done <<-END
		ucmatose -Z|^usage: 
		udaddy -Z|^usage: 
		mckey -Z|^usage: 
		cmtime -Z|^usage: 
		mckey|^usage: 
		mckey -M ff12:a01b::1|requires binding
		ucmatose -c 0|'0' is no number of connections: give a number from 1
		ucmatose -c many|'many' is no number of connections
		ucmatose -C -1|'-1' is no number of messages
		udaddy -S 1x|'1x' is no size of messages
		ucmatose -t 256|'256' is no type of service
		udaddy -p 3|'3' is no port space
		cmtime -t 0|'0' is no time in ms
		ucmatose -s no.such.host.invalid|no.such.host.invalid, port 7471
		ucmatose -p none|getaddrinfo error
		ucmatose -b 127.128.0.77|bind address failed: .*
		mckey -b host1 -m no.such.group.invalid|no.such.group.invalid
		ucmatose -P foo|'foo' is no port space
		udaddy -P tcp|'tcp' is no port space
		ucmatose -f bar|'bar' is no address format
		rstream -f bar|'bar' is no address format
		rping -s -p 99999|'99999' is no port
		ucmatose -p 65536|'65536' is no port
		cmtime -p 65536|'65536' is no port
		rdma_server -p 65536|'65536' is no port
		rdma_xserver -p 65536|'65536' is no port
		rcopy -p 65536|'65536' is no port
		udpong -p 65536|'65536' is no port
		udaddy -s host0 -S 100000|event: RDMA_CM_EVENT\|larger than active mtu
	END
}

# Usage on standard output, with status 0; no device is asked for.
help() {
	while read -r words; do
		$ours$words >"$tmp/help.out" 2>"$tmp/help.err" </dev/null || { echo "$words: status $?"; return 1; }
		grep -q '^usage\|^rping -s' "$tmp/help.out" || { echo "$words says on standard output:"; cat "$tmp/help.out"; return 1; }
		[ ! -s "$tmp/help.err" ] || { echo "$words says on standard error:"; cat "$tmp/help.err"; return 1; }
	done <<-END
		cmtime -h
		mckey -h
		rcopy -h
		rdma_client -h
		rdma_server -h
		rdma_xclient -h
		rdma_xrc_pingpong -h
		rdma_xrc_pingpong --help
		rdma_xserver -h
		riostream -h
		rping -h
		rstream -h
		ucmatose -h
		udaddy -h
		udpong -h
	END
}

nobody() {
	fails "cmatose: event: RDMA_CM_EVENT_REJECTED, error: 8" ${ours}ucmatose -c 3 -s host0 &&
		fails "udaddy: event: RDMA_CM_EVENT_UNREACHABLE, error: 1" ${ours}udaddy -s host0 &&
		fails "3 of 3 connections to host0 failed" ${ours}cmtime -c 3 -s host0 &&
		fails "2 of 2 connections to 127.128.9.1 failed" ${ours}cmtime -c 2 -t 100 -s 127.128.9.1 && soon nothing_left
}

# The server waits for a second client while the first one waits for messages.
lost() { # lost HOST-OF-VICTIM TEXT: the other one fails and says this
	on 0 ${ours}ucmatose -c 2 >"$tmp/server.out" 2>&1 &
	server=$!
	soon ready "$listens" || return 1
	on 1 ${ours}ucmatose -s host0 >"$tmp/client.out" 2>&1 &
	client=$!
	soon shows '"state": "established"' || return 1
	kill -9 "$(process_on "$1")"
	survivor=$tmp/client.out
	if [ "$1" -eq 1 ]; then
		wait "$client"
		# The server notices when it is to send.
		on 1 ${ours}ucmatose -s host0 >"$tmp/client.out" 2>&1
		survivor=$tmp/server.out
		wait "$server"
		[ $? -eq 1 ]
	else
		wait "$server"
		wait "$client"
		[ $? -eq 1 ]
	fi && grep -q "$2" "$survivor" && soon nothing_left && return 0
	cat "$tmp/server.out" "$tmp/client.out"
	return 1
}

# One client more than the server has room for.
too_many() {
	on 0 ${ours}ucmatose >"$tmp/server.out" 2>&1 &
	server=$!
	soon ready "$listens" || return 1
	fails "RDMA_CM_EVENT_REJECTED, error: 28" ${ours}ucmatose -c 2 -s host0 || return 1
	wait "$server"
	grep -q "failing connection request" "$tmp/server.out" && soon nothing_left
}

sizes() { # the two ends differ
	on 0 ${ours}ucmatose -S 100 >"$tmp/server.out" 2>&1 &
	server=$!
	soon ready "$listens" || return 1
	on 1 ${ours}ucmatose -s host0 -S 1000 >"$tmp/client.out" 2>&1
	client=$?
	wait "$server"
	[ $? -eq 1 ] && [ $client -eq 1 ] && grep -q "does the peer have the same -S" "$tmp/server.out"
}

# The client decides when to end. As with Debian's, a server with a smaller -C goes on; with a greater one ours fails, and so do both ends
# where the server has less memory than a ping takes. Nobody waits for ever: on() has a limit.
unequal() { # unequal SERVER-OPTIONS CLIENT-OPTIONS SERVER-STATUS CLIENT-STATUS PINGS [TEXT]: what the server says
	on 0 ${ours}rping -s $1 >"$tmp/server.out" 2>&1 &
	server=$!
	soon ready "$listens" || return 1
	on 1 ${ours}rping -c -a host0 -v $2 >"$tmp/client.out" 2>&1
	client=$?
	wait "$server"
	server=$?
	[ "$server $client" = "$3 $4" ] && [ "$(grep -c '^ping data: ' "$tmp/client.out")" -eq "$5" ] &&
		grep -q -- "$6" "$tmp/server.out" && soon nothing_left && return 0
	echo "server: status $server"
	cat "$tmp/server.out"
	echo "client: status $client"
	cat "$tmp/client.out"
	return 1
}

# rping -s -P: a client without an end, and beside it one that is killed, one that has another -S, and one that ends well.
# The device will be taken away (for_good), and takes nothing back then: so AddressSanitizer is not to ask for it.
several() {
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 on 0 ${ours}rping -s -P >"$tmp/server.out" 2>&1 &
	server=$!
	soon ready "$listens" || return 1
	on 1 ${ours}rping -c -a host0 -v -C 100000000 >"$tmp/long.out" 2>&1 &
	long=$!
	soon grep -q "^ping data: " "$tmp/long.out" || return 1
	on 1 timeout -s KILL 1 ${ours}rping -c -a host0 -C 100000000 >"$tmp/killed.out" 2>&1
	on 1 ${ours}rping -c -a host0 -S 1000 >"$tmp/other.out" 2>&1
	on 1 ${ours}rping -c -a host0 -v -C 3 >"$tmp/client.out" 2>&1
	client=$?
	kill -0 "$long" && [ $client -eq 0 ] && [ "$(grep -c '^ping data: ' "$tmp/client.out")" -eq 3 ] &&
		grep -q "size 1000; this end has -S 64" "$tmp/server.out" && return 0
	echo "client: status $client"
	cat "$tmp/client.out" "$tmp/server.out"
	return 1
}

# The device is gone: the server says it once for the listener, and ends, and so does the client that there is.
for_good() {
	"$SOFTHCA" stop cm >/dev/null
	wait "$long"
	wait "$server"
	server=$?
	[ $server -eq 1 ] && [ "$(grep -c '^rdma_get_request: ' "$tmp/server.out")" -eq 1 ] && [ "$(wc -l <"$tmp/server.out")" -lt 20 ] &&
		return 0
	echo "server: status $server"
	head -n 30 "$tmp/server.out"
	return 1
}

ok "-h of each tool" help
for face in ofed mainline; do
	if ! "$SOFTHCA" start --hosts 2 --kernel "$face" cm >"$tmp/start.out" 2>&1; then
		ok "$face: an instance" cat "$tmp/start.out"
		continue
	fi
	alone $face
	! all_rows || within $face
	with "$ours" "$ours" "$face" $face
	if sanitized; then
		:
	elif [ -x /usr/bin/ucmatose ]; then
		# One direction on each face; what crosses the device is the same.
		[ $face = mainline ] && ! all_rows || with "$ours" /usr/bin/ "ours serves Debian's, $face" $face
		[ $face = ofed ] && ! all_rows || with /usr/bin/ "$ours" "Debian's serves ours, $face" $face
		! all_rows || debians_on_ours $face
	else
		skip "ours and Debian's, $face" "install rdmacm-utils"
	fi
	if [ $face = ofed ] && ! all_rows; then
		"$SOFTHCA" stop cm >/dev/null
		continue
	fi
	ok "bad options, $face" bad_options
	ok "nobody listens, $face" nobody
	ok "the server is killed, $face" lost 0 "the peer disconnected when 0 of 10 messages had come"
	ok "the client is killed, $face" lost 1 "cmatose: connection 1: "
	ok "more clients than the server takes, $face" too_many
	ok "messages of two sizes, $face" sizes
	ok "rping: the server counts fewer pings, $face" unequal "-C 3" "-C 10" 0 0 10 "server DISCONNECT EVENT"
	ok "rping: the client counts fewer pings, $face" unequal "-C 10" "-C 3" 1 0 3 "server DISCONNECT EVENT"
	ok "rping: the client's pings are longer, $face" unequal "-C 3" "-C 3 -S 1000" 1 1 0 "size 1000; this end has -S 64"
	ok "rping: the client's pings are shorter, $face" unequal "-C 3 -S 1000" "-C 3" 0 0 3 "server DISCONNECT EVENT"
	ok "rping -s -P: several clients at a time, $face" several
	ok "rping -s -P: no device any more, $face" for_good
done
# Doorbells trap in the same way on either face, so that the full tier has what is short on both.
for face in ofed mainline; do
	all_rows || break
	if ! "$SOFTHCA" start --hosts 2 --kernel $face --mmio trap cm >"$tmp/start.out" 2>&1; then
		ok "$face, trap: an instance" cat "$tmp/start.out"
		continue
	fi
	within "$face, trap"
	if [ $face = mainline ] && long_rows; then
		alone "mainline, trap"
		with "$ours" "$ours" "mainline, trap" mainline
	fi
	"$SOFTHCA" stop cm >/dev/null
done
finish
