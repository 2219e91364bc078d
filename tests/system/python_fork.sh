#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: Python's ways to make children, in a program with registered memory: multiprocessing,
# subprocess, os.fork().
TEST_TIMEOUT=${TEST_TIMEOUT:-1500}
. "$srcdir/lib.sh" || exit 1

if ! python3 -c 'import ctypes, multiprocessing' 2>/dev/null; then
	skip "children of a Python program" "install python3: there is none with ctypes and multiprocessing"
	finish
fi

rounds=1
[ "${TIER:-}" = full ] && rounds=${ROUNDS:-4}
python() { ours timeout $((60 + rounds * 60)) python3 "$srcdir/python_fork.py" "$1" "$rounds"; }
export -f python ours
export rounds

for mmio in kick trap; do
	for way in fork spawn subprocess os_fork; do
		ok "$way, $mmio" within --mmio $mmio -- python $way
	done
done
finish
