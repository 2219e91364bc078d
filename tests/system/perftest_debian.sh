#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: perftest, as Debian ships it, on softhca's mainline face: every operation and transport, sleeping, with
# several QPs, in trap and in kick. What it measures is not looked at.
. "$srcdir/lib.sh"

if [ ! -x /usr/bin/ib_send_bw ]; then
	skip "perftest" "install perftest"
	finish
fi
for mmio in kick trap; do
	for test in "ib_send_bw" "ib_send_bw -c UC" "ib_send_bw -c UD" "ib_send_bw -e" "ib_send_bw -q 4" "ib_send_bw -c XRC" \
		"ib_send_lat" "ib_send_lat -c UD" "ib_send_lat -I 64" "ib_write_bw" "ib_write_bw -c UC" "ib_write_bw -q 4" \
		"ib_write_lat" "ib_read_bw" "ib_read_lat" "ib_atomic_bw" "ib_atomic_lat"; do
		# shellcheck disable=SC2086
		ok "$test, $mmio" within --kernel mainline --mmio $mmio -- pingpong /usr/bin/$test -F -n 200
	done
	ok "ib_write_bw of every size, $mmio" within --kernel mainline --mmio $mmio -- pingpong ib_write_bw -F -a -n 5
done
ok "nothing is left behind" no_instance
finish
