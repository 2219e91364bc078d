#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: memcheck finds no error and no leak that has one of our libraries in its stack: in ibv_rc_pingpong, on either
# end, polling and with events, and in tools that connect by address, by RC and XRC, and in rsockets. In kick: under valgrind the handler of a trapped store sees stale registers.
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
	! awk -v RS='==[0-9]+== *\n' '/libibverbs|libmlx4|librdmacm|ibv_rc_pingpong|mlx4_|ibv_|rdma_|\(rsocket(_[a-z_]+)?\.c:/ && /(Invalid|uninitialised|definitely lost|indirectly lost|Mismatched|overlap)/ { print; found = 1 } END { exit !found }' "$1"
}

for events in "" -e; do
	name=polling${events:+-events}
	ok "ibv_rc_pingpong $events under memcheck" pingpong "$name" $events
	for end in server client; do
		ok "memcheck saw the whole run of the $end $events" grep -q 'ERROR SUMMARY' "$dir/$name.$end"
		ok "memcheck finds nothing of ours on the $end $events" clean "$dir/$name.$end"
	done
done

# The same by address. A client that is refused comes too early, and leaves nothing either.
by_address() {
	timeout 300 "$top_builddir/softhca/cli/softhca" run --kernel mainline --mmio kick -- sh -c '
		top=$1 dir=$2 name=$3 server=$4 client=$5
		shift 5
		export LD_LIBRARY_PATH=$top/librdmacm/.libs:$top/libibverbs/.libs:$top/libmlx4/.libs RDMAV_DRIVERS=mlx4
		memcheck="valgrind --leak-check=full --show-leak-kinds=definite,indirect"
		$memcheck --log-file="$dir/$name.server" $top/librdmacm/.libs/$server "$@" &
		server=$!
		while ! $memcheck --log-file="$dir/$name.client" $top/librdmacm/.libs/$client "$@"; do
			kill -0 $server || exit 1
		done
		wait $server
	' sh "$top_builddir" "$dir" "$@"
}

memcheck_of() { # memcheck_of NAME SERVER CLIENT ARGUMENT...
	ok "$1 under memcheck" by_address "$@"
	for end in server client; do
		ok "memcheck saw the whole run of the $end of $1" grep -q 'ERROR SUMMARY' "$dir/$1.$end"
		ok "memcheck finds nothing of ours in the $end of $1" clean "$dir/$1.$end"
	done
}
memcheck_of rdma_client rdma_server rdma_client
memcheck_of rdma_xclient_rc rdma_xserver rdma_xclient -c r
memcheck_of rdma_xclient_xrc rdma_xserver rdma_xclient -c x

# Both ends of rsockets are in one process.
rsockets() { # rsockets CASE
	timeout 300 "$top_builddir/softhca/cli/softhca" run --kernel mainline --mmio kick -- \
		env LD_LIBRARY_PATH="$top_builddir/librdmacm/.libs:$top_builddir/libibverbs/.libs:$top_builddir/libmlx4/.libs" RDMAV_DRIVERS=mlx4 \
		valgrind --leak-check=full --show-leak-kinds=definite,indirect --log-file="$dir/rsockets-$1.%p" \
		"$top_builddir/tests/system/rsockets" "$1"
}
clean_rsockets() {
	grep -q 'ERROR SUMMARY' "$dir/rsockets-$1".* || return 1
	for log in "$dir/rsockets-$1".*; do
		clean "$log" || return 1
	done
}
ok "the program of rsockets is there" make -C "$top_builddir/tests/system" rsockets
for case in pieces flags ends iomap datagrams; do
	ok "rsockets under memcheck: $case" rsockets "$case"
	ok "memcheck finds nothing of ours: $case" clean_rsockets "$case"
done
finish
