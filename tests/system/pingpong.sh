#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: our ping-pongs between processes, contents verified at both ends, on both ways of MMIO: sizes from 1 byte to
# 4 MiB, with and without events, and XRC with several clients.
. "$top_srcdir/tests/system/lib.sh"

rc="$ours $tools/ibv_rc_pingpong -p PORT --timeout 30 -c"
for mmio in kick trap; do
	for size in 1 2 63 64 65 1024 4095 65536 1048577 4194304; do
		iters=$((size > 100000 ? 20 : 100))
		for events in "" -e; do
			ok "ibv_rc_pingpong $events -s $size, $mmio" \
				pingpong "--kernel ofed --mmio $mmio" "$rc $events -s $size -n $iters -r 50" \
				"$rc $events -s $size -n $iters -r 50 localhost"
		done
	done
done

# xsrq CLIENTS OPTIONS...: a server and its clients, all verifying.
xsrq() {
	p=$(port)
	count=$1
	mmio=$2
	shift 2
	timeout -k 5 120 "$softhca" run --kernel ofed --mmio "$mmio" -- sh -c '
		tool=$1; port=$2; count=$3; shift 3
		$tool -p $port --timeout 30 --verify -c $count "$@" &
		server=$!
		clients=
		for i in $(seq $count); do
			$tool -p $port --timeout 30 --verify "$@" localhost &
			clients="$clients $!"
		done
		for client in $clients $server; do wait $client || exit 1; done
	' sh "$ours $tools/ibv_xsrq_pingpong" "$p" "$count" "$@"
}
for mmio in kick trap; do
	for options in "" "-e" "-s 1" "-s 4194304 -n 3"; do
		ok "ibv_xsrq_pingpong -c 4 $options, $mmio" xsrq 4 $mmio $options
	done
done
finish
