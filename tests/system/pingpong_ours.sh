#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: our tools with our libraries, between processes on softhca: every transport, polling
# and sleeping, on both faces, in trap and in kick, with the contents verified.
. "$srcdir/lib.sh" || exit 1

# A hundred messages each way go through the rings of these queues, and two processes that poll take turns on a busy processor.
short="-n 100"
# shellcheck disable=SC2086 # words: $short
for kernel in ofed mainline; do
	for mmio in kick trap; do
		for transport in rc uc ud srq; do
			ok "$transport, $kernel, $mmio" ours within --kernel $kernel --mmio $mmio -- pingpong "$TOOLS/ibv_${transport}_pingpong" $short --verify
			# A process that sleeps is woken in the same way, however the doorbell came.
			[ $kernel$mmio = mainlinekick ] || [ $mmio$transport = traprc ] || long_rows || continue
			ok "$transport -e, $kernel, $mmio" ours within --kernel $kernel --mmio $mmio -- pingpong "$TOOLS/ibv_${transport}_pingpong" $short -e --verify
		done
		sizes="1 29 1024 1025 65536 4194304"
		# Doorbells with a request in them, and without. The face says nothing of sizes.
		[ $mmio = kick ] || long_rows || sizes="29 1025"
		[ $kernel$mmio != mainlinetrap ] && [ $kernel$mmio != ofedkick ] || long_rows || sizes=
		for size in $sizes; do
			n=100
			[ $size -gt 65536 ] && n=10
			# Receives of 64 MiB in all, unless told otherwise: an ordinary user has 8 MiB, also for 65536 bytes.
			few=()
			[ $size -lt 65536 ] || locks 81920 || few=(-r 4)
			[ $size -lt 4194304 ] || may_lock 81920 "rc -s $size, $kernel, $mmio" || size=1048576
			ok "rc -s $size ${few[*]}, $kernel, $mmio" ours within --kernel $kernel --mmio $mmio -- \
				pingpong "$TOOLS/ibv_rc_pingpong" -s $size -n $n --verify "${few[@]}"
		done
		ok "xsrq with four clients, $kernel, $mmio" ours within --kernel $kernel --mmio $mmio -- xsrq 4 --verify
		ok "xsrq -e, $kernel, $mmio" ours within --kernel $kernel --mmio $mmio -- xsrq 2 -e --chk
	done
done
# with LINE ARGUMENT...: runs a ping-pong on a device with these properties: `softhca show` prints
# the line.
with() {
	"$SOFTHCA" show "$SOFTHCA_INSTANCE" >"$tmp/device"
	grep -qx "$1" "$tmp/device" || { cat "$tmp/device"; return 1; }
	pingpong "$TOOLS/ibv_rc_pingpong" -n 100 --verify "${@:2}"
}
export -f with
for abi in 2 3 4; do
	ok "rc, driver ABI $abi" ours within --kernel ofed --driver-abi $abi -- with "driver_abi: $abi"
done
ok "rc, completions of 64 bytes" ours within --kernel mainline --cqe-size 64 -- with "cqe_size: 64"
ok "rc, second port" ours within --ports 2 -- with " *ports (2)" -i 2
ok "rc, second HCA" ours within --hcas 2 -- with " *hca mlx4_1" -d mlx4_1
ok "nothing is left behind" no_instance
finish
