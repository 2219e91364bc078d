#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: our tools through our libraries, between processes on softhca: every transport, polling and sleeping, in
# trap and in kick, contents verified.
. "$srcdir/lib.sh"

for mmio in kick trap; do
	for transport in rc uc ud srq; do
		ok "$transport, $mmio" ours within --mmio $mmio -- pingpong "$TOOLS/ibv_${transport}_pingpong" --verify
		ok "$transport -e, $mmio" ours within --mmio $mmio -- pingpong "$TOOLS/ibv_${transport}_pingpong" -e --verify
	done
	for size in 1 29 1024 1025 65536 4194304; do
		n=100
		[ $size -gt 65536 ] && n=10
		ok "rc -s $size, $mmio" ours within --mmio $mmio -- \
			pingpong "$TOOLS/ibv_rc_pingpong" -s $size -n $n --verify
	done
	ok "xsrq with four clients, $mmio" ours within --mmio $mmio -- xsrq 4 --verify
	ok "xsrq -e, $mmio" ours within --mmio $mmio -- xsrq 2 -e --verify
done
for abi in 2 3 4; do
	ok "rc, driver ABI $abi" ours within --driver-abi $abi -- pingpong "$TOOLS/ibv_rc_pingpong" --verify
done
ok "rc, completions of 64 bytes" ours within --cqe-size 64 -- pingpong "$TOOLS/ibv_rc_pingpong" --verify
ok "rc, second port" ours within --ports 2 -- pingpong "$TOOLS/ibv_rc_pingpong" -i 2 --verify
ok "rc, second HCA" ours within --hcas 2 -- pingpong "$TOOLS/ibv_rc_pingpong" -d mlx4_1 --verify
ok "nothing is left behind" no_instance
finish
