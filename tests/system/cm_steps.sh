#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: one end of a connection is killed, or stopped, at each step. The other end hears what the subnet's rules say, and
# no channel, id, port, file, QP or memory is left: with this tree's librdmacm and Debian's, on both kernels.
. "$srcdir/lib.sh" || exit 1

cm=${OURS%%:*}/../../librdmacm/.libs
libraries=/usr/lib/$(uname -m)-linux-gnu

steps() { # steps COMMAND...: which has the libraries
	for how in patient hasty brief; do
		dir=$("$SOFTHCA" show --json "$how" | sed -n 's/^  "instance": "\(.*\)",$/\1/p')
		"$@" "$SOFTHCA" run --instance "$how" -- "$PROGRAMS/cm_steps" "$how" "$dir" "$how" || return 1
	done
}
distributions() {
	LD_LIBRARY_PATH=$libraries "$@"
}

one_of_each() {
	LD_LIBRARY_PATH=$cm ours "$SOFTHCA" run --instance patient -- "$PROGRAMS/cm_calls"
}

# A server that waits for a request, in read().
waits() {
	LD_LIBRARY_PATH=$cm ours "$SOFTHCA" run --instance patient -- "$cm/rdma_server" >"$tmp/waits.out" 2>&1 &
	for _ in $(seq 100); do
		! "$SOFTHCA" show --waits patient >"$tmp/waits" || ! grep "reads events of rdma_cm, of channel 0" "$tmp/waits" || break
		sleep 0.1
	done
	# The server itself: what runs in the background here is the shell around it.
	pid=$("$SOFTHCA" show --json patient | tr -d ' \n' |
		sed -n 's/.*"connection_channels":\[{"channel":0,"host":0,"pid":\([0-9]*\),.*/\1/p')
	[ -z "$pid" ] || kill "$pid"
	wait $!
	grep "reads events of rdma_cm, of channel 0" "$tmp/waits" || { cat "$tmp/waits" "$tmp/waits.out"; return 1; }
}

for face in mainline ofed; do
	"$SOFTHCA" start --hosts 2 --kernel $face patient >"$tmp/start.out" 2>&1 || cat "$tmp/start.out"
	"$SOFTHCA" start --hosts 2 --kernel $face --cm-timeout 100ms hasty >"$tmp/start.out" 2>&1 || cat "$tmp/start.out"
	"$SOFTHCA" start --hosts 2 --kernel $face --cm-timeout 10ms brief >"$tmp/start.out" 2>&1 || cat "$tmp/start.out"
	ok "$face: this tree's librdmacm" steps ours
	ok "$face: no command makes a system call twice" one_of_each
	[ $face = ofed ] || ok "show --waits says who waits" waits
	# What becomes of the other end is the daemon's, whoever's the library is.
	if [ $face = ofed ] && ! all_rows; then
		:
	elif [ -e "$libraries/librdmacm.so.1" ]; then
		ok "$face: Debian's librdmacm" steps distributions
	else
		skip "$face: Debian's librdmacm" "install librdmacm1"
	fi
	"$SOFTHCA" stop patient >/dev/null
	"$SOFTHCA" stop hasty >/dev/null
	"$SOFTHCA" stop brief >/dev/null
done
finish
