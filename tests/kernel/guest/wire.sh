#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=dash
#
# Two peers on one wire: the kernel's Soft-RoCE, and softhca in a network namespace of its own. Both run our programs, which name
# the ports by GID, since those of RoCE have no LIDs. Soft-RoCE answers by the kernel's own rules, and checks each packet's ICRC.

if [ -s /softhca.missing ]; then
	echo "1..1"
	echo "ok 1 - softhca and Soft-RoCE # SKIP $(cat /softhca.missing)"
	exit
fi
# shellcheck source=/dev/null
. /paths
number=0 near=10.78.0.1 far=10.78.0.2 near6=fd78::1 far6=fd78::2 instance=lab
export PATH=$bindir:$PATH LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$libdir

# result STATUS DESCRIPTION FILE...
result() {
	status=$1 description=$2
	shift 2
	number=$((number + 1))
	if [ "$status" -eq 0 ]; then
		echo "ok $number - $description"
	else
		tail -n 40 "$@" | sed 's/^/# /'
		echo "not ok $number - $description"
	fi
}

mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
unshare -n sleep 1000000 &
namespace=$!
there() {
	nsenter -t $namespace -n "$@"
}
# Until it has a namespace of its own.
for _ in $(seq 100); do
	[ "$(readlink /proc/$namespace/ns/net)" = "$(readlink /proc/self/ns/net)" ] || break
	usleep 50000
done
{
	iproute2-ip link add near type veth peer name far netns $namespace &&
		ip addr add $near/24 dev near && iproute2-ip addr add $near6/64 dev near nodad && ip link set near up &&
		there ip addr add $far/24 dev far && there iproute2-ip addr add $far6/64 dev far nodad &&
		there ip link set far up && there ip link set lo up &&
		rxe_link rxe1 near && there softhca start --kernel ofed --wire $far/24 lab &&
		there softhca start --kernel ofed --wire $far6/64 lab6
} >/tmp/out 2>&1
result $? "softhca start --wire, beside Soft-RoCE on the other end of the link" /tmp/out
# gid_index PATTERN: of Soft-RoCE's GID.
gid_index() {
	(cd /sys/class/infiniband/rxe1/ports/1/gids && grep -l "$1" [0-9] | head -n 1)
}
gid=$(gid_index '^0000:0000:0000:0000:0000:ffff:')

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
	GID_INDEX=1 there softhca run --instance $instance -- timeout 100 "$@"
}

port=19000
# both DESCRIPTION "COMMAND -p" "COMMAND -p": words; each end is the server once.
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
		[ $client_status -eq 0 ] && [ $server_status -eq 0 ]
		result $? "$1, server $server" /tmp/server /tmp/client
	done
}
# tool NAME OPTION...
tool() {
	name=$1
	shift
	both "$name $*" "$name -d rxe1 -g $gid $* --chk --timeout 60 -p" "$name -g 1 $* --chk --timeout 60 -p"
}
tool ibv_rc_pingpong -n 200
tool ibv_rc_pingpong -n 200 -e
tool ibv_uc_pingpong -n 200
tool ibv_ud_pingpong -n 200 -s 1000
tool ibv_srq_pingpong -n 200 -q 4
both "all operations of RC" "wire_peers all -p" "wire_peers all -p"

# The server listens at no socket that a test could see: a client that comes too early is rejected, and comes again.
# connects DESCRIPTION "SERVER" "CLIENT -a": both are words; each end is the server once.
# shellcheck disable=SC2086
connects() {
	for server in rxe hca; do
		case $server in
		rxe) client=hca address=$near ;;
		hca) client=rxe address=$far ;;
		esac
		$server $2 >/tmp/server 2>&1 &
		waits=$!
		for _ in $(seq 60); do
			$client $3 $address >/tmp/client 2>&1
			client_status=$?
			grep -q 'REJECTED, error:* 8\|Connection refused\|UNREACHABLE, error: 1$' /tmp/client || break
			usleep 500000
		done
		wait $waits
		server_status=$?
		# At its end one thread of rping closes the channel, perhaps before the other one waits for an event again.
		[ $client_status -eq 0 ] || ! grep -q 'rdma_get_cm_event: Bad file descriptor' /tmp/client || client_status=0
		[ $client_status -eq 0 ] && [ $server_status -eq 0 ]
		result $? "by address: $1, server $server" /tmp/server /tmp/client
	done
}
connections() {
	connects "rping$1" "rping -s -C 10 -V" "rping -c -C 10 -V -a"
	connects "ucmatose, three connections$1" "ucmatose -c 3 -C 10 -S 100" "ucmatose -c 3 -C 10 -S 100 -s"
}
connections ""
# Datagrams themselves are above: our library finds no way back to the sender of one that rxe has received.
connects "udaddy, two questions" "udaddy -c 2 -C 0" "udaddy -c 2 -C 0 -s"
refused() {
	"$1" ucmatose -s "$2" >/tmp/client 2>&1
	grep -q 'REJECTED, error: 8' /tmp/client
	result $? "by address: nobody listens, client $1" /tmp/client
}
refused rxe $far
refused hca $near

# The same over IPv6, where the numbers that both ends exchange go over IPv4.
gid4=$gid near4=$near far4=$far
gid=$(gid_index '^fd78:') instance=lab6
tool ibv_rc_pingpong -n 100 -s 10000
tool ibv_uc_pingpong -n 50
tool ibv_ud_pingpong -n 100 -s 1000
both "all operations of RC, IPv6" "wire_peers all -p" "wire_peers all -p"
near=$near6 far=$far6
connects "rping, IPv6" "rping -s -a :: -C 10 -V" "rping -c -C 10 -V -a"
there softhca show lab6 >/tmp/show 2>&1
grep -q '^ *malformed: 0$' /tmp/show && grep -q '^ *bad_icrc: 0$' /tmp/show
result $? "every packet of Soft-RoCE's was right, IPv6" /tmp/show
there softhca stop lab6 >/tmp/out 2>&1
result $? "softhca stop, IPv6" /tmp/out
gid=$gid4 near=$near4 far=$far4 instance=lab

iproute2-tc qdisc add dev near root netem loss 1% duplicate 1% delay 1ms reorder 25% && there iproute2-tc qdisc add dev far root netem loss 1%
result $? "netem" /tmp/out
tool ibv_rc_pingpong -n 200
both "all operations of RC, with losses, duplicates and packets out of order" "wire_peers lossy -p" "wire_peers lossy -p"
connections ", with losses, duplicates and packets out of order"

there softhca show lab >/tmp/show 2>&1
grep -q '^ *malformed: 0$' /tmp/show && grep -q '^ *bad_icrc: 0$' /tmp/show
result $? "every packet of Soft-RoCE's was well-formed, with the right ICRC" /tmp/show
softhca stop lab >/tmp/out 2>&1
result $? "softhca stop" /tmp/out
kill $namespace
echo "1..$number"
