#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=dash
#
# Two peers on one wire, neither of which runs anything of ours: Debian's perftest and ping-pongs with Debian's libibverbs, on its
# rxe provider and the kernel's Soft-RoCE at one end, on its mlx4 provider and softhca at the other. Each end is the server once.

# shellcheck source=tests/kernel/guest/link.sh
. /link.sh
if [ -s /debian.missing ]; then
	echo "1..1"
	echo "ok 1 - Debian's tools on softhca and Soft-RoCE # SKIP $(cat /debian.missing)"
	exit
fi

instance=theirs
{
	link_up && there softhca start --kernel mainline --wire $far/24 $instance
} >/tmp/out 2>&1
result $? "softhca start --kernel mainline --wire, beside Soft-RoCE" /tmp/out
gid=$(gid_index '^0000:0000:0000:0000:0000:ffff:')
theirs="env LD_LIBRARY_PATH=/debian/lib:/lib"

# What the tests below rest on.
# shellcheck disable=SC2086 # words: $theirs
none_of_ours() {
	"$1" $theirs LD_DEBUG=libs /debian/bin/ibv_rc_pingpong -d none >/tmp/libs 2>&1
	grep 'calling init' /tmp/libs >/tmp/inits
	grep -q '/debian/lib/libibverbs' /tmp/inits && grep -q "lib$2-rdmav" /tmp/inits && ! grep " /lib/libibverbs\| $libdir/lib" /tmp/inits
	result $? "Debian's libraries and $2 provider, none of ours" /tmp/inits
}
none_of_ours rxe rxe
none_of_ours hca mlx4

pingpong() {
	name=$1
	shift
	measures=' bytes in '
	both "Debian's $name $*" "$theirs /debian/bin/$name -d rxe1 -g $gid $* -p" "$theirs /debian/bin/$name -g 1 $* -p"
}
pingpong ibv_rc_pingpong -n 200 -c
pingpong ibv_uc_pingpong -n 100 -c
pingpong ibv_ud_pingpong -n 200 -s 1000 -c
pingpong ibv_srq_pingpong -n 200 -q 4 -c

# The last line has a size and a number of iterations, so the tool has measured something. Where an emulated processor does not tell
# its frequency, the times are infinite.
perf() {
	name=$1
	shift
	measures='^ *[0-9]\+ \+[0-9]\+ \+\([0-9.]\+\|inf\)'
	both "$name $*" "$theirs /debian/bin/$name -d rxe1 -x $gid -F -u 18 $* -p" "$theirs /debian/bin/$name -d mlx4_0 -x 1 -F -u 18 $* -p"
}
perf ib_send_bw -n 50 -s 20000
perf ib_send_lat -n 50
perf ib_write_bw -n 50 -s 20000
perf ib_read_bw -n 50 -s 20000
perf ib_atomic_bw -n 50
perf ib_send_bw -n 50 -s 1000 -r 100 -c UD
perf ib_send_bw -n 50 -s 3000 -r 100 -c UC
perf ib_write_bw -n 50 -s 3000 -c UC

intact "every packet of theirs was well-formed, with the right ICRC"

# What a message takes, which is reported and not judged: this machine's time is emulated. Soft-RoCE alone, whose packets do not leave it;
# two instances of softhca; and each of both with the other one. figure DESCRIPTION "SERVER" "CLIENT" ADDRESS: words that run a command.
# shellcheck disable=SC2086
figure() {
	for size in "8 -n 500" "65536 -n 100"; do
		port=$((port + 1))
		case $2 in
		rxe) place=here server_options="-d rxe1 -g $gid" ;;
		*) place=there server_options="-g 1" ;;
		esac
		case $3 in
		rxe) client_options="-d rxe1 -g $gid" ;;
		*) client_options="-g 1" ;;
		esac
		$2 $theirs /debian/bin/ibv_rc_pingpong $server_options -s $size -p $port >/tmp/server 2>&1 &
		waits=$!
		listening $port $place && $3 $theirs /debian/bin/ibv_rc_pingpong $client_options -s $size -p $port $4 >/tmp/client 2>&1
		status=$?
		wait $waits && [ $status -eq 0 ] && sed -n "s/.*Mbit.sec/# $1, ${size%% *} B: &/p; s/.* = \([0-9.]* usec.iter\)/# $1, ${size%% *} B, to and fro: \1/p" /tmp/client
		result $? "$1, ${size%% *} B" /tmp/server /tmp/client
	done
}
other() { GID_INDEX=1 there softhca run --instance other -- timeout 100 "$@"; }
{ there ip addr add 10.78.0.3/24 dev far && there softhca start --kernel mainline --wire 10.78.0.3/24 other; } >/tmp/out 2>&1
result $? "another instance on the wire" /tmp/out
figure "Soft-RoCE" rxe rxe $near
figure "softhca, two instances" hca other $far
figure "softhca, inside an instance" hca hca $far
figure "Soft-RoCE to softhca" hca rxe $far
figure "softhca to Soft-RoCE" rxe hca $near
there softhca stop other >/tmp/out 2>&1
result $? "softhca stop, the other instance" /tmp/out

stopped "softhca stop"
