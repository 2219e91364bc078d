#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=dash
#
# Runs our tools in the guest and reports in TAP.

# shellcheck source=tests/kernel/guest/result.sh
. /result.sh

# has FILE PATTERN...: every pattern is on a line of the file.
has() {
	file=$1
	shift
	for pattern in "$@"; do
		if ! grep -q "$pattern" "$file"; then
			echo "no line matches: $pattern" >>"$file"
			return 1
		fi
	done
}

# Waits until something listens on the port.
listening() {
	hex=$(printf ':%04X 0' "$1")
	for _ in $(seq 600); do
		cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep "$hex" | grep -q ' 0A ' && return
		usleep 100000
	done
	return 1
}

port=18515
# pair DESCRIPTION TOOL ARGUMENTS: a server and a client, each of which has to do all its exchanges. The client is $client,
# where that is set.
client=
pair() {
	description=$1 tool=$2
	shift 2
	port=$((port + 1))
	timeout 60 "$tool" -p $port "$@" >/tmp/server 2>&1 &
	server=$!
	listening $port && timeout 60 "${client:-$tool}" -p $port "$@" "$GUEST_ADDRESS" >/tmp/client 2>&1
	client_status=$?
	wait $server
	server_status=$?
	echo "server: $server_status, client: $client_status" >/tmp/statuses
	[ $server_status -eq 0 ] && [ $client_status -eq 0 ] && has /tmp/server ' bytes in ' && has /tmp/client ' bytes in '
	result $? "$description" /tmp/server /tmp/client /tmp/statuses
}

ibv_devices >/tmp/out 2>&1 && has /tmp/out 'rxe0'
result $? "ibv_devices" /tmp/out

ibv_devinfo >/tmp/out 2>&1 && has /tmp/out 'hca_id:.*rxe0' 'state:.*PORT_ACTIVE (4)' 'max_mtu:.*4096 (5)' \
	'active_mtu:.*1024 (3)' 'link_layer:.*Ethernet'
result $? "ibv_devinfo" /tmp/out

ibv_devinfo -v >/tmp/out 2>&1 && has /tmp/out 'GID\[' 'max_qp:' 'atomic_cap:.*ATOMIC_HCA'
result $? "ibv_devinfo -v" /tmp/out

gids=/sys/class/infiniband/rxe0/ports/1/gids
gid=$(cd $gids && grep -l '^0000:0000:0000:0000:0000:ffff:' [0-9] | head -n 1)
echo "# GID index of $GUEST_ADDRESS: $gid"

pair "ibv_rc_pingpong" ibv_rc_pingpong -g "$gid" -n 200 --chk
pair "ibv_rc_pingpong with events" ibv_rc_pingpong -g "$gid" -n 200 -e --chk
pair "ibv_uc_pingpong" ibv_uc_pingpong -g "$gid" -n 200 --chk
pair "ibv_ud_pingpong" ibv_ud_pingpong -g "$gid" -n 200 -s 1000 --chk
pair "ibv_ud_pingpong with events" ibv_ud_pingpong -g "$gid" -n 200 -s 1000 -e --chk
pair "ibv_srq_pingpong" ibv_srq_pingpong -g "$gid" -n 200 -q 4 --chk

# The watcher says so before it waits for the first event.
ibv_asyncwatch -d rxe0 >/tmp/out 2>&1 &
watcher=$!
shown() {
	for _ in $(seq 600); do
		grep -q "$1" /tmp/out && return
		kill -0 $watcher 2>/dev/null || return
		usleep 100000
	done
}
shown rxe0
ip link set dummy0 down
shown IBV_EVENT_PORT_ERR
ip link set dummy0 up
shown IBV_EVENT_PORT_ACTIVE
kill $watcher
wait $watcher 2>/dev/null
has /tmp/out 'IBV_EVENT_PORT_ERR (10), port 1' 'IBV_EVENT_PORT_ACTIVE (9), port 1'
result $? "ibv_asyncwatch" /tmp/out

# 32-bit programs on this 64-bit kernel, which passes their commands on as they are.
if [ -s /i386.missing ]; then
	number=$((number + 1))
	echo "ok $number - 32-bit tools # SKIP $(cat /i386.missing)"
else
	/i386/ibv_devinfo >/tmp/out 2>&1 && has /tmp/out 'hca_id:.*rxe0' 'state:.*PORT_ACTIVE (4)'
	result $? "ibv_devinfo of 32 bits" /tmp/out
	pair "ibv_rc_pingpong of 32 bits" /i386/ibv_rc_pingpong -g "$gid" -n 200 -e --chk
	pair "ibv_ud_pingpong of 32 bits" /i386/ibv_ud_pingpong -g "$gid" -n 200 -s 1000 --chk
	pair "ibv_srq_pingpong of 32 bits" /i386/ibv_srq_pingpong -g "$gid" -n 200 -q 4 --chk
	client=ibv_rc_pingpong
	pair "ibv_rc_pingpong of 32 bits, with a client of 64" /i386/ibv_rc_pingpong -g "$gid" -n 200 --chk
fi

echo "1..$number"
