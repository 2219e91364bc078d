# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For tests of programs that connect by address: scripts source this file after lib.sh. They work in the instance
# "cm", and run pairs of a server, on host 0, and a client.

on() { # on HOST COMMAND...
	host=$1
	shift
	"$SOFTHCA" run --instance cm --host "$host" -- timeout 60 "$@"
}

shows() { # a channel whose JSON has this
	local json
	json=$("$SOFTHCA" show --json cm) && [[ ${json//$'\n'/} =~ $1 ]]
}

soon() { # soon COMMAND...: it succeeds within some seconds
	for _ in $(seq 200); do
		"$@" && return 0
		sleep 0.1
	done
	echo "never: $*"
	return 1
}

# pair HOST-OF-CLIENT READY 'SERVER' 'CLIENT': READY is what a line of the server's output or the instance's JSON shows first.
pair() {
	# shellcheck disable=SC2086 # words of a command
	on 0 $3 >"$tmp/server.out" 2>&1 &
	server=$!
	soon ready "$2" || { cat "$tmp/server.out"; wait "$server"; return 1; }
	# shellcheck disable=SC2086
	on "$1" $4 >"$tmp/client.out" 2>&1
	client=$?
	# At its end one thread of rping closes the channel, perhaps before the other one waits for an event again.
	case "$4 $client $(cat "$tmp/client.out")" in
	"rping "*" 255 rdma_get_cm_event: Bad file descriptor") client=0 ;;
	esac
	wait "$server"
	server=$?
	[ "$server" -eq 0 ] && [ "$client" -eq 0 ] && soon nothing_left && return 0
	echo "server: status $server"
	cat "$tmp/server.out"
	echo "client: status $client"
	cat "$tmp/client.out"
	return 1
}

# perftest's server begins to listen for the test's QP after the hand-shake that lets its client connect. A client that is
# faster is rejected, and crashes (perftest 4.5); the server then waits for ever. That is to try again, and nothing else is.
perftest_pair() {
	for _ in 1 2 3 4 5; do
		pair "$@" && return 0
		grep -q "RDMA_CM_EVENT_REJECTED; error: 8" "$tmp/client.out" || return 1
	done
	return 1
}

ready() { grep -q "$1" "$tmp/server.out" || shows "$1"; }
nothing_left() { shows '"connection_channels": \[\]'; }
# shellcheck disable=SC2034 # scripts read it: what shows() finds when a server is ready
listens='"state": "listening"'

# The number of the process that has a channel on this host.
process_on() {
	"$SOFTHCA" show --json cm | tr -d '\n' | grep -o "\"host\": $1, *\"pid\": [0-9]*, *\"commands\"" | head -n 1 |
		grep -o '[0-9]*, *"commands"' | grep -o '^[0-9]*'
}

# What stands in front of the name of a tool of ours.
# shellcheck disable=SC2153 # OURS is of make
cm=${OURS%%:*}/../../librdmacm/.libs
# shellcheck disable=SC2034 # scripts read it
ours="env LD_LIBRARY_PATH=$cm:$OURS${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} RDMAV_DRIVERS=mlx4 $cm/"

# says TEXT COMMAND...: the client prints it as well.
says() {
	text=$1
	shift
	"$@" && grep -q -- "$text" "$tmp/client.out" && return 0
	echo "the client did not say '$text':"
	cat "$tmp/client.out"
	return 1
}

# fails TEXT COMMAND...: with status 1, and this on standard error or output.
fails() {
	text=$1
	shift
	status 1 on 1 "$@" >"$tmp/client.out" 2>&1 && grep -q -- "$text" "$tmp/client.out" && return 0
	echo "not status 1 and '$text':"
	cat "$tmp/client.out"
	return 1
}
