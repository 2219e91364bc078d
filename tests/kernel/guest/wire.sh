#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=dash
#
# Two peers on one wire: the kernel's Soft-RoCE, and softhca. Both run our programs, which name the ports by GID, since those of
# RoCE have no LIDs. Soft-RoCE answers by the kernel's own rules, and checks each packet's ICRC.

# shellcheck source=tests/kernel/guest/link.sh
. /link.sh

instance=lab
{
	link_up && there softhca start --kernel ofed --wire $far/24 lab && there softhca start --kernel ofed --wire $far6/64 lab6
} >/tmp/out 2>&1
result $? "softhca start --wire, beside Soft-RoCE on the other end of the link" /tmp/out
gid=$(gid_index '^0000:0000:0000:0000:0000:ffff:')

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
both "WRITEs over UC, with and without immediate data" "wire_peers uc -p" "wire_peers uc -p"
both "datagrams with and without immediate data" "wire_peers ud -p" "wire_peers ud -p"

# The server listens at no socket that a test could see: a client that comes too early is rejected, and both begin anew.
# connects DESCRIPTION "SERVER" "CLIENT -a": both are words; each end is the server once.
# shellcheck disable=SC2086
connects() {
	for server in rxe hca; do
		case $server in
		rxe) client=hca address=$near ;;
		hca) client=rxe address=$far ;;
		esac
		for try in $(seq 10); do
			$server $2 >/tmp/server 2>&1 &
			waits=$!
			usleep $((try * 500000))
			$client $3 $address >/tmp/client 2>&1
			client_status=$?
			grep -q 'REJECTED, error:* 8\|Connection refused\|UNREACHABLE, error: 1$' /tmp/client || break
			# The client came too early. If the server has accepted some of its connections meanwhile, both begin anew.
			killall "${2%% *}" 2>/dev/null
			wait $waits
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
both "WRITEs over UC, IPv6" "wire_peers uc -p" "wire_peers uc -p"
both "datagrams with and without immediate data, IPv6" "wire_peers ud -p" "wire_peers ud -p"
near=$near6 far=$far6
connects "rping, IPv6" "rping -s -a :: -C 10 -V" "rping -c -C 10 -V -a"
intact "every packet of Soft-RoCE's was right, IPv6"

# From here on the link is a bad one.
iproute2-tc qdisc add dev near root netem loss 1% duplicate 1% delay 1ms reorder 25% && there iproute2-tc qdisc add dev far root netem loss 1%
result $? "netem" /tmp/out
near=$near4 far=$far4
tool ibv_rc_pingpong -n 200
both "all operations of RC, IPv6, with losses, duplicates and packets out of order" "wire_peers lossy -p" "wire_peers lossy -p"
near=$near6 far=$far6
connects "rping, IPv6, with losses, duplicates and packets out of order" "rping -s -a :: -C 10 -V" "rping -c -C 10 -V -a"
intact "every packet of Soft-RoCE's was right, IPv6, with losses"
there softhca stop lab6 >/tmp/out 2>&1
result $? "softhca stop, IPv6" /tmp/out
gid=$gid4 near=$near4 far=$far4 instance=lab

tool ibv_rc_pingpong -n 200
both "all operations of RC, with losses, duplicates and packets out of order" "wire_peers lossy -p" "wire_peers lossy -p"
connections ", with losses, duplicates and packets out of order"

intact "every packet of Soft-RoCE's was well-formed, with the right ICRC"
softhca stop lab >/tmp/out 2>&1
result $? "softhca stop" /tmp/out
link_down >/tmp/out 2>&1
result $? "Soft-RoCE goes with its interface" /tmp/out
echo "1..$number"
