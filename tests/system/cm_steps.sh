#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: one end of a connection is killed, closed or stopped at each step. The other end hears what the subnet's rules say, and
# no channel, id, port, file, QP or memory is left: RC, XRC and UD, by IP addresses and by GIDs, with this tree's librdmacm and Debian's, on both
# kernels.
. "$srcdir/lib.sh" || exit 1

cm=${OURS%%:*}/../../librdmacm/.libs
libraries=/usr/lib/$(uname -m)-linux-gnu

# What takes time is that ends wait, and no instance waits for another: all three at once.
steps() { # steps KIND COMMAND...: which has the libraries
	kind=$1
	shift
	pids=()
	for how in patient hasty brief; do
		dir=$("$SOFTHCA" show --json "$how" | sed -n 's/^  "instance": "\(.*\)",$/\1/p')
		"$@" "$SOFTHCA" run --instance "$how" -- "$PROGRAMS/cm_steps" "$how" "$dir" "$how" "$kind" &
		pids+=($!)
	done
	bad=0
	for pid in "${pids[@]}"; do
		wait "$pid" || bad=1
	done
	return "$bad"
}
# The kinds of a library on a face. The table of rc has all that can become of a connection; the others' differences are few, and
# the quick tier has the other table, and XRC and GIDs, once.
kinds() { # kinds FACE
	echo rc
	[ "$1" = mainline ] || all_rows || return
	echo xrc ud
	# Kernels of OFED know no GIDs.
	[ "$1" = ofed ] || echo rc-ib ud-ib
}
distributions() {
	env ${LEAVES_CQS:+LEAVES_CQS=yes} LD_LIBRARY_PATH="$libraries" "$@"
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
	for kind in $(kinds $face); do
		ok "$face, $kind: this tree's librdmacm" steps "$kind" ours
	done
	ok "$face: no command makes a system call twice" one_of_each
	[ $face = ofed ] || ok "show --waits says who waits" waits
	# What becomes of the other end is the daemon's, whoever's the library is.
	if [ ! -e "$libraries/librdmacm.so.1" ]; then
		skip "$face: Debian's librdmacm" "install librdmacm1"
	elif [ $face = mainline ] || all_rows; then
		for kind in $(kinds $face); do
			# Its XRC is that of mainline kernels.
			case "$face $kind" in
			"ofed xrc") continue ;;
			*" rc") ;;
			*) all_rows || continue ;;
			esac
			LEAVES_CQS=
			[ "$kind" != xrc ] || LEAVES_CQS=yes
			ok "$face, $kind: Debian's librdmacm" steps "$kind" distributions
		done
	fi
	"$SOFTHCA" stop patient >/dev/null
	"$SOFTHCA" stop hasty >/dev/null
	"$SOFTHCA" stop brief >/dev/null
done
finish
