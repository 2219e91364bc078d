# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=dash
#
# What the scripts that have Soft-RoCE and softhca on one wire share: a link, one end of which is in a network namespace of
# softhca's, since Soft-RoCE takes the port of RoCEv2 at all addresses; and a server and a client, each at one end. The script
# sets $instance, softhca's, and $gid, the index of Soft-RoCE's GID.

if [ -s /softhca.missing ]; then
	echo "1..1"
	echo "ok 1 - softhca and Soft-RoCE # SKIP $(cat /softhca.missing)"
	exit
fi
# shellcheck source=/dev/null
. /paths
near=10.78.0.1 far=10.78.0.2 near6=fd78::1 far6=fd78::2
export PATH=$bindir:$PATH LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$libdir

# shellcheck source=tests/kernel/guest/result.sh
. /result.sh

mkdir -p /dev/shm
grep -q ' /dev/shm ' /proc/mounts || mount -t tmpfs tmpfs /dev/shm
unshare -n sleep 1000000 &
namespace=$!
there() {
	nsenter -t $namespace -n "$@"
}
# Soft-RoCE at one end of a cable, whose other end is in the namespace.
link_up() {
	# Until it has a namespace of its own.
	for _ in $(seq 100); do
		[ "$(readlink /proc/$namespace/ns/net)" = "$(readlink /proc/self/ns/net)" ] || break
		usleep 50000
	done
	iproute2-ip link add near type veth peer name far netns $namespace &&
		ip addr add $near/24 dev near && iproute2-ip addr add $near6/64 dev near nodad && ip link set near up &&
		there ip addr add $far/24 dev far && there iproute2-ip addr add $far6/64 dev far nodad &&
		there ip link set far up && there ip link set lo up && rxe_link rxe1 near
}
# The kernel takes its time over a device whose interface has gone, and the next script's has the same name.
link_down() {
	iproute2-ip link delete near
	kill $namespace
	for _ in $(seq 100); do
		[ -e /sys/class/infiniband/rxe1 ] || return 0
		usleep 50000
	done
	return 1
}
# gid_index PATTERN: of Soft-RoCE's GID.
gid_index() {
	(cd /sys/class/infiniband/rxe1/ports/1/gids && grep -l "$1" [0-9] | head -n 1)
}

listening() {
	hex=$(printf ':%04X 0' "$1")
	for _ in $(seq 600); do
		"$2" cat /proc/net/tcp /proc/net/tcp6 | grep "$hex" | grep -q ' 0A ' && return
		usleep 100000
	done
	return 1
}
here() {
	"$@"
}
# rxe and hca run their arguments with the device of that end.
rxe() {
	DEVICE=rxe1 GID_INDEX=$gid timeout 100 "$@"
}
hca() {
	GID_INDEX=1 there softhca run --instance "$instance" -- timeout 100 "$@"
}

port=19000
# both DESCRIPTION "COMMAND -p" "COMMAND -p": words, first of Soft-RoCE's end; each end is the server once. $measures, where that
# is set: a line that the client has to print.
measures=
# shellcheck disable=SC2086
both() {
	for server in rxe hca; do
		port=$((port + 1))
		case $server in
		rxe) client=hca place=here address=$near server_command=$2 client_command=$3 ;;
		hca) client=rxe place=there address=$far server_command=$3 client_command=$2 ;;
		esac
		$server $server_command $port >/tmp/server 2>&1 &
		waits=$!
		listening $port $place && $client $client_command $port $address >/tmp/client 2>&1
		client_status=$?
		wait $waits
		server_status=$?
		echo "server: $server_status, client: $client_status" >/tmp/statuses
		[ $client_status -eq 0 ] && [ $server_status -eq 0 ] &&
			{ [ -z "$measures" ] || grep -q "$measures" /tmp/client; }
		result $? "$1, server $server" /tmp/server /tmp/client /tmp/statuses
	done
}

# intact DESCRIPTION: whatever Soft-RoCE has sent until now.
intact() {
	there softhca show "$instance" >/tmp/show 2>&1
	grep -q '^ *malformed: 0$' /tmp/show && grep -q '^ *bad_icrc: 0$' /tmp/show
	result $? "$1" /tmp/show
}
stopped() {
	there softhca stop "$instance" >/tmp/out 2>&1 && link_down >/tmp/out 2>&1
	result $? "$1" /tmp/out
	echo "1..$number"
}
