#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: programs built to the structures of libibverbs 1.0 and of 1.1 (tests/abi/prog.h) do real work in
# `softhca run`: messages through a queue and an SRQ, with completion events, on each kernel face and each MMIO way.
. "$top_srcdir/tests/verbs/lib.sh" || exit 1

${MAKE:-make} -s -C "$top_builddir/tests/abi" prog_1_0 prog_1_1 >&2 || exit 1
for name in prog_1_0 prog_1_1; do
	program=$top_builddir/tests/abi/$name
	[ -x "$top_builddir/tests/abi/.libs/$name" ] && program=$top_builddir/tests/abi/.libs/$name
	for face in ofed mainline; do
		for mmio in $ways; do
			# shellcheck disable=SC2086 # words: $ours
			ok "$name, $face, $mmio" timeout -k 5 60 "$softhca" run --kernel "$face" --mmio "$mmio" -- $ours "$program"
		done
	done
done
finish
