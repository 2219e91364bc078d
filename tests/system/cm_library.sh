#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: on a host of two HCAs, programs with our librdmacm and with Debian's find the device of an address, wait for events
# in threads and by epoll, go on in children, get data that comes before they hear that the connection is there, and have
# the ports that the thread which binds has the right to. Both ends of a connection find in their ids, events and QPs what they are to find.
. "$srcdir/lib.sh" || exit 1

cm=${OURS%%:*}/../../librdmacm/.libs
build() {
	flags=
	! sanitized || flags=-fsanitize=address,undefined
	for program in cm_library cm_rows; do
		# shellcheck disable=SC2086 # words: $CC, $flags
		$CC -g $flags -D_GNU_SOURCE -o "$tmp/$program" "$srcdir/$program.c" -I"$srcdir/../../include" \
			-I"$srcdir/../../librdmacm/include" -L"$cm" -lrdmacm -L"${OURS%%:*}" -libverbs -lpthread || return 1
	done
}
ok "the programs are built" build
runs() { # runs KERNEL WAY CASE [LD_LIBRARY_PATH]
	timeout 60 "$SOFTHCA" run --kernel "$1" --mmio "$2" --hcas 2 ${4:+--libibverbs ours} -- env ${4:+LD_LIBRARY_PATH="$4"} \
		"$tmp/$(program "$3")" "$3"
}
program() { if [ "$1" = rows ]; then echo cm_rows; else echo cm_library; fi; }
without() {
	status 1 env LD_LIBRARY_PATH="$cm:$OURS" "$tmp/cm_library" threads >"$tmp/without"
	grep -q "rdma_create_event_channel: No such \(device\|file or directory\)" "$tmp/without" && return 0
	cat "$tmp/without"
	return 1
}
if [ -e /dev/infiniband ]; then
	skip "without a device there is no channel" "this machine has one"
else
	ok "without a device there is no channel" ours without
fi
for kernel in ofed mainline; do
	for case in devices threads edges selects processes passed_on at_once rights rows; do
		ok "$case, $kernel, our library" ours runs $kernel kick $case "$cm:$OURS"
		if sanitized; then
			:
		elif [ -e /usr/lib/"$($CC -print-multiarch 2>/dev/null)"/librdmacm.so.1 ]; then
			ok "$case, $kernel, Debian's library" runs $kernel kick $case
		else
			skip "$case, $kernel, Debian's library" "install librdmacm1"
		fi
	done
	# Debian's library turns the event into an error in some of a hundred moves.
	ok "moves, $kernel, our library" ours runs $kernel kick moves "$cm:$OURS"
	for case in processes at_once rows; do
		ok "$case, $kernel, in trap, our library" ours runs $kernel trap $case "$cm:$OURS"
	done
done
# Where an inode comes again soon, as on a disk: in shared memory it does not.
inodes() {
	SOFTHCA_DIR=$tmp/disk timeout 60 "$SOFTHCA" run --kernel "$1" -- "$PROGRAMS/cm_inode" "$tmp/disk" >"$tmp/inodes" 2>&1
	came=$?
	cat "$tmp/inodes"
	[ "$came" -eq 0 ] || [ "$came" -eq 77 ]
}
mkdir -m 700 "$tmp/disk"
for kernel in ofed mainline; do
	ok "an inode comes again, $kernel" inodes "$kernel"
	[ "$came" -ne 77 ] || skip "an inode comes again, $kernel" "$tmp gives no inode twice"
done
ok "nothing is left behind" until_true no_instance
finish
