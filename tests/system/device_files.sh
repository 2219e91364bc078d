#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the files of devices are opened with the flags that programs say; what lists, copies and describes files
# does so without a complaint; the files of management datagrams stand below their device in /sys.
. "$srcdir/lib.sh" || exit 1

SOFTHCA_INSTANCE=device-files
export SOFTHCA_INSTANCE
"$SOFTHCA" start --hcas 2 "$SOFTHCA_INSTANCE" >/dev/null || exit 1

# Without a word of complaint.
silent() {
	on 0 "$@" >"$tmp/out" 2>"$tmp/err" || { echo "status $?"; cat "$tmp/err"; return 1; }
	[ ! -s "$tmp/err" ] || { cat "$tmp/err"; return 1; }
}
copies() {
	silent cp -a /sys/class/infiniband_mad/umad1/ibdev "$tmp/copy" && [ "$(cat "$tmp/copy")" = mlx4_1 ]
}
seen_mode() { [ "$(on 0 stat -c %a "/dev/infiniband/$1")" = "$2" ] || { on 0 stat "/dev/infiniband/$1"; return 1; }; }
below() {
	link=$(on 0 realpath "/sys/class/infiniband_mad/$1/device") || return 1
	[ "$link" = "$(on 0 realpath "/sys/class/infiniband/$2/device")" ] || { echo "$1/device is $link"; return 1; }
	[ "$(on 0 cat "$link/infiniband_mad/$1/ibdev" "/sys/class/infiniband_mad/$1/device/vendor")" = "$2
0x15b3" ] || return 1
	on 0 test -L "/sys/class/infiniband_mad/$1"
}

# What only the kernel changes is refused to root as well, and stays what it was.
# shellcheck disable=SC2016 # the shell on the host expands it
read_only() {
	for name in ports/1/counters/port_xmit_packets ports/1/state ports/1/pkeys/0 node_guid; do
		file=/sys/class/infiniband/mlx4_0/$name
		was=$(on 0 cat "$file") && for way in 'echo 7 >$1' 'echo 7 >>$1' 'echo 7 1<>$1' ': >$1'; do
			on 0 env LC_ALL=C bash -c "$way" x "$file" 2>"$tmp/err" && { echo "$file: $way"; return 1; }
			grep -q 'Permission denied' "$tmp/err" || { cat "$tmp/err"; return 1; }
		done
		[ "$(on 0 cat "$file")" = "$was" ] || { echo "$file has changed"; return 1; }
	done
}
described() { on 0 sh -c 'echo mine >/sys/class/infiniband/mlx4_1/node_desc' && [ "$(on 0 cat /sys/class/infiniband/mlx4_1/node_desc)" = mine ]; }

attribute_mode() { [ "$(on 0 stat -c %a "/sys/class/infiniband/mlx4_0/$1")" = "$2" ]; }
# A daemon that modes bind, which those of ordinary users are, writes its files all the same.
bound() {
	plain=()
	[ "$(id -u)" -ne 0 ] || plain=(setpriv --bounding-set -dac_override)
	"${plain[@]}" "$SOFTHCA" start bound >/dev/null || return 1
	"$SOFTHCA" port bound mlx4_0:1 down
	state=$SOFTHCA_DIR/softhca/bound/host0/sys/class/infiniband/mlx4_0/ports/1/state
	[ "$(cat "$state")" = "1: DOWN" ] && [ "$(stat -c %a "$state")" = 444 ]
	result=$?
	"$SOFTHCA" stop bound >/dev/null
	return "$result"
}

ok "the flags of open()" on 0 "$PROGRAMS/device_files" flags
ok "extended attributes" on 0 "$PROGRAMS/device_files" attributes
ok "ls -l of nodes" silent ls -l /dev/infiniband
ok "ls -lZ of nodes" silent ls -lZ /dev/infiniband
ok "ls -l of /sys" silent ls -l /sys/class/infiniband_mad /sys/class/infiniband_mad/umad0/
ok "stat" silent stat /dev/infiniband/umad0 /dev/infiniband/issm0 /sys/class/infiniband_mad/umad0
ok "find -ls" silent find /dev/infiniband /sys/class/infiniband_mad/ -ls
ok "cp -a" copies
ok "attributes cannot be written" read_only
ok "nor by stdio" on 0 "$PROGRAMS/device_files" stdio
ok "but a description can" described
ok "their modes" attribute_mode ports/1/counters/port_xmit_packets 444
ok "and that of a description" attribute_mode node_desc 644
ok "a daemon that modes bind" bound
ok "a port has a manager as long as issm is open" on 0 "$PROGRAMS/device_files" manager
ok "modes" seen_mode umad0 600
ok "of issm" seen_mode issm0 600
ok "of uverbs" seen_mode uverbs0 666
ok "of rdma_cm" seen_mode rdma_cm 666
ok "the device of a umad file" below umad0 mlx4_0
ok "of the second device's" below umad1 mlx4_1
ok "of an issm file" below issm1 mlx4_1
"$SOFTHCA" stop "$SOFTHCA_INSTANCE" >/dev/null
finish
