#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: memcheck finds no error and no leak that has one of our libraries in its stack: in ibv_rc_pingpong, on either
# end, polling and with events, and in tools that connect by address, by RC, XRC and UD, also by several processes of a domain, in rsockets and librspreload, and where a peer stops. In kick: under valgrind the handler of a trapped store sees stale registers.
. "$top_srcdir/tests/full/lib.sh" || exit 1

dir=$top_builddir/full-valgrind
rm -rf "$dir"
mkdir -p "$dir"

# Both ends under memcheck; the client tries again until the server listens.
pingpong() {
	timeout 300 "$top_builddir/softhca/cli/softhca" run --kernel ofed --mmio kick -- sh -c '
		top=$1 dir=$2 name=$3
		shift 3
		export LD_LIBRARY_PATH=$top/libibverbs/.libs:$top/libmlx4/.libs RDMAV_DRIVERS=mlx4
		port=$(( 20000 + $$ % 12000 ))
		memcheck="valgrind --leak-check=full --show-leak-kinds=definite,indirect"
		tool="$top/examples/.libs/ibv_rc_pingpong -p $port -n 50 --timeout 120 -c"
		$memcheck --log-file="$dir/$name.server" $tool "$@" &
		server=$!
		$memcheck --log-file="$dir/$name.client" $tool "$@" localhost || exit 1
		wait $server
	' sh "$top_builddir" "$dir" "$@"
}

# Errors and definite leaks whose stack names a file of ours. libsofthca-shim.so is none of the libraries under test.
clean() {
	! awk -v RS='==[0-9]+== *\n' '/libibverbs|libmlx4|librdmacm|ibv_rc_pingpong|mlx4_|ibv_|rdma_|\((rsocket(_[a-z_]+)?|rping|ucmatose|udaddy|mckey|udpong|preload(_[a-z]+)?|cm_steps|connect|figures|options|stream|talk|tool)\.c:/ && /(Invalid|uninitialised|definitely lost|indirectly lost|Mismatched|overlap)/ { print; found = 1 } END { exit !found }' "$1"
}

for events in "" -e; do
	name=polling${events:+-events}
	ok "ibv_rc_pingpong $events under memcheck" pingpong "$name" $events
	for end in server client; do
		ok "memcheck saw the whole run of the $end $events" grep -q 'ERROR SUMMARY' "$dir/$name.$end"
		ok "memcheck finds nothing of ours on the $end $events" clean "$dir/$name.$end"
	done
done

# The same by address, with the words of both commands. A client that is refused comes too early, and leaves nothing either.
# HOW the server ends: itself, after a client that has succeeded; killed, after it; or it is fed by one client after the other.
by_address() { # by_address HOW NAME SERVER CLIENT ARGUMENT...
	timeout 300 "$top_builddir/softhca/cli/softhca" run --kernel mainline --mmio kick -- sh -c '
		top=$1 dir=$2 how=$3 name=$4 server=$5 client=$6
		shift 6
		export LD_LIBRARY_PATH=$top/librdmacm/.libs:$top/libibverbs/.libs:$top/libmlx4/.libs RDMAV_DRIVERS=mlx4
		memcheck="valgrind --leak-check=full --show-leak-kinds=definite,indirect"
		$memcheck --log-file="$dir/$name.server" $top/librdmacm/.libs/$server "$@" &
		server=$!
		while ! $memcheck --log-file="$dir/$name.client" $top/librdmacm/.libs/$client "$@" || [ $how = fed ]; do
			kill -0 $server || { [ $how = fed ] && break; exit 1; }
		done
		[ $how != killed ] || kill $server
		wait $server
		status=$?
		[ $how != killed ] || [ $status -ne 143 ] || status=0
		exit $status
	' sh "$top_builddir" "$dir" "$@"
}

memcheck_of() { # memcheck_of HOW NAME SERVER CLIENT ARGUMENT...
	ok "$2 under memcheck" by_address "$@"
	for end in server client; do
		ok "memcheck saw the whole run of the $end of $2" grep -q 'ERROR SUMMARY' "$dir/$2.$end"
		ok "memcheck finds nothing of ours in the $end of $2" clean "$dir/$2.$end"
	done
}
memcheck_of itself rdma_client rdma_server rdma_client
memcheck_of itself rdma_xclient_rc rdma_xserver rdma_xclient -c r
memcheck_of itself rdma_xclient_xrc rdma_xserver rdma_xclient -c x
memcheck_of itself rdma_xrc_pingpong rdma_xrc_pingpong "rdma_xrc_pingpong 127.0.0.1" -c 2 -n 20
memcheck_of itself rping "rping -s" "rping -c -a 127.0.0.1" -C 5 -V
memcheck_of itself ucmatose ucmatose "ucmatose -s 127.0.0.1" -c 2 -C 5 -m
memcheck_of itself udaddy udaddy "udaddy -s 127.0.0.1" -c 2 -C 5
memcheck_of fed mckey mckey "mckey -s" -b 127.128.0.1 -m 239.1.2.3 -C 5
memcheck_of killed udpong "udpong -b 127.0.0.1" "udpong -s 127.0.0.1 -S 100 -C 20"

# Both ends of rsockets are in one process.
rsockets() { # rsockets CASE
	local program=rsockets

	[ "$1" != datagrams ] || program=rsocket_datagrams
	timeout 300 "$top_builddir/softhca/cli/softhca" run --kernel mainline --mmio kick -- \
		env LD_LIBRARY_PATH="$top_builddir/librdmacm/.libs:$top_builddir/libibverbs/.libs:$top_builddir/libmlx4/.libs" RDMAV_DRIVERS=mlx4 \
		valgrind --leak-check=full --show-leak-kinds=definite,indirect --log-file="$dir/rsockets-$1.%p" \
		"$top_builddir/tests/system/$program" "$1"
}
clean_rsockets() {
	grep -q 'ERROR SUMMARY' "$dir/rsockets-$1".* || return 1
	for log in "$dir/rsockets-$1".*; do
		clean "$log" || return 1
	done
}
ok "the programs are there" make -C "$top_builddir/tests/system" rsockets rsocket_datagrams preload cm_steps
for case in pieces flags ends iomap datagrams; do
	ok "rsockets under memcheck: $case" rsockets "$case"
	ok "memcheck finds nothing of ours: $case" clean_rsockets "$case"
done

libraries=$top_builddir/librdmacm/.libs:$top_builddir/libibverbs/.libs:$top_builddir/libmlx4/.libs
# Logs of all processes, of which those that are killed have no summary; the first is the program's.
clean_of_all() {
	grep -q 'ERROR SUMMARY' "$dir/$1".* || return 1
	for log in "$dir/$1".*; do
		clean "$log" || return 1
	done
}
memcheck="valgrind --trace-children=yes --leak-check=full --show-leak-kinds=definite,indirect"

preloaded() { # preloaded CASE: librspreload.so in front of the shim
	# shellcheck disable=SC2016 # the inner shell expands it
	timeout 300 "$top_builddir/softhca/cli/softhca" run --kernel mainline --mmio kick -- sh -c '
		export LD_LIBRARY_PATH=$1 RDMAV_DRIVERS=mlx4 RS_PRELOAD_CONFIG=$2/none
		LD_PRELOAD=$3/librdmacm/.libs/librspreload.so:$LD_PRELOAD exec $4 --log-file="$2/preload-$5.%p" "$3/tests/system/preload" "$5"
	' sh "$libraries" "$dir" "$top_builddir" "$memcheck" "$1"
}
for case in names many flags fork; do
	ok "librspreload under memcheck: $case" preloaded "$case"
	ok "memcheck finds nothing of ours: $case" clean_of_all "preload-$case"
done

# One end is stopped until the other one gives up.
SOFTHCA=$(cd "$top_builddir" && pwd)/softhca/cli/softhca
export SOFTHCA SOFTHCA_DIR=$dir/instances
steps() {
	# shellcheck disable=SC2086 # words
	timeout 300 "$SOFTHCA" run --instance steps -- env LD_LIBRARY_PATH="$libraries" RDMAV_DRIVERS=mlx4 $memcheck \
		--trace-children-skip='*/softhca,*/sh,*/dash,*/tr' --log-file="$dir/steps-$1.%p" \
		"$top_builddir/tests/system/cm_steps" steps "$SOFTHCA_DIR/softhca/steps" hasty "$1"
}
mkdir -m 700 "$SOFTHCA_DIR"
ok "an instance" "$SOFTHCA" start --hosts 2 --cm-timeout 100ms steps
for kind in rc xrc; do
	ok "peers that stop, under memcheck: $kind" steps $kind
	ok "memcheck finds nothing of ours: $kind" clean_of_all "steps-$kind"
done
"$SOFTHCA" stop steps >/dev/null
finish
