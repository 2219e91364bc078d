#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=dash
#
# Multicast groups that have members at Soft-RoCE and at softhca: each end sends to the group, and the other one receives.

# shellcheck source=tests/kernel/guest/link.sh
. /link.sh

instance=groups
{
	link_up && there softhca start --kernel mainline --wire $far/24 groups && there softhca start --kernel mainline --wire $far6/64 groups6
} >/tmp/out 2>&1
result $? "softhca start --wire, for groups" /tmp/out
gid=$(gid_index '^0000:0000:0000:0000:0000:ffff:')

# The receiver does not say when it is a member, and what comes before that is lost: the sender sends again until the receiver has
# all of its messages.
# group DESCRIPTION GROUP "MCKEY": words
# shellcheck disable=SC2086
group() {
	for receiver in rxe hca; do
		case $receiver in
		rxe) sender=hca to=$near from=$far ;;
		hca) sender=rxe to=$far from=$near ;;
		esac
		$receiver $3 -m $2 -C 10 -S 500 -b $to >/tmp/server 2>&1 &
		waits=$!
		for _ in $(seq 20); do
			$sender $3 -m $2 -C 10 -S 500 -s -b $from >/tmp/client 2>&1
			sender_status=$?
			[ $sender_status -eq 0 ] && kill -0 $waits 2>/dev/null || break
		done
		wait $waits
		receiver_status=$?
		echo "receiver: $receiver_status, sender: $sender_status" >/tmp/statuses
		there softhca show $instance >/tmp/show 2>&1
		[ $sender_status -eq 0 ] && [ $receiver_status -eq 0 ] && grep -q 'receiving data transfers' /tmp/server &&
			grep -q 'data transfers complete' /tmp/server
		result $? "$1, receiver $receiver" /tmp/server /tmp/client /tmp/statuses /tmp/show
	done
}
group "mckey" 239.1.2.3 mckey
if [ -s /debian.missing ]; then
	number=$((number + 1))
	echo "ok $number - Debian's mckey # SKIP $(cat /debian.missing)"
else
	group "Debian's mckey" 239.1.2.4 "env LD_LIBRARY_PATH=/debian/lib:/lib /debian/bin/mckey"
fi

# Of IPv6. The kernel's rdma_cm refuses to join such a group over RoCEv2, so programs attach and send by verbs. Soft-RoCE then takes the
# group's frames, but the kernel's IPv6 drops the packets unless the interface is in the group, as this address puts it. While it is there,
# nothing that is sent to the group leaves.
near4=$near far4=$far
near=$near6 far=$far6 instance=groups6
iproute2-ip address add ff15::78/128 dev near autojoin >/tmp/out 2>&1
result $? "the interface of Soft-RoCE is in a group of IPv6" /tmp/out
gid=$(gid_index '^fd78:')
for receiver in rxe hca; do
	case $receiver in
	rxe) sender=hca from=$far ;;
	hca)
		sender=rxe from=$near
		iproute2-ip address delete ff15::78/128 dev near
		;;
	esac
	printf 'attach ff15::78\nnext\n' | $receiver wire_groups >/tmp/server 2>&1 &
	waits=$!
	for _ in $(seq 20); do
		printf 'send ff15::78 hello\n' | $sender wire_groups >/tmp/client 2>&1 && kill -0 $waits 2>/dev/null || break
	done
	wait $waits
	grep -q '^sent' /tmp/client && grep -q "^hello $from ff15::78\$" /tmp/server
	result $? "datagrams to a group of IPv6, receiver $receiver" /tmp/server /tmp/client
done
intact "every packet of Soft-RoCE's to a group was right, IPv6"
there softhca stop groups6 >/tmp/out 2>&1
result $? "softhca stop, after groups of IPv6" /tmp/out
near=$near4 far=$far4 instance=groups

intact "every packet of Soft-RoCE's to a group was well-formed, with the right ICRC"
stopped "softhca stop, after groups"
