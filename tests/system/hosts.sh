#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: emulated hosts: names, devices and LIDs of their own on one fabric, and traffic between them.
. "$srcdir/lib.sh"

"$SOFTHCA" start --hosts 3 --hcas 2 fabric >/dev/null || exit 1
on() { host=$1; shift; "$SOFTHCA" run --instance fabric --host "$host" -- "$@"; }

names() {
	for host in 0 1 2; do
		[ "$(on $host hostname)" = host$host ] && [ "$(on $host uname -n)" = host$host ] || return 1
	done
}
ok "each host has its name" names
real_name() { [ "$("$SOFTHCA" run -- hostname)" = "$(hostname)" ]; }
ok "a lone one keeps the machine's" real_name
lids() {
	for host in 0 1 2; do
		for device in mlx4_0 mlx4_1; do
			on $host cat /sys/class/infiniband/$device/ports/1/lid
			on $host cat /sys/class/infiniband/$device/node_guid
		done
	done >"$tmp/ids"
	[ "$(sort -u "$tmp/ids" | wc -l)" -eq 12 ]
}
ok "LIDs and GUIDs are all different" lids

between() {
	take_port
	ours on 0 timeout 50 "$TOOLS/ibv_$1" -p "$port" >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || return 1
	ours on 2 timeout 50 "$TOOLS/ibv_$1" -p "$port" -d mlx4_1 127.0.0.1 || return 1
	wait $server || { cat "$tmp/server.out"; return 1; }
}
for tool in rc_pingpong uc_pingpong ud_pingpong srq_pingpong xsrq_pingpong; do
	ok "$tool from host to host" between $tool
done
ok "the instance ends" "$SOFTHCA" stop fabric
ok "nothing is left behind" until_true no_instance
finish
