#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: Debian's perftest and XRC ping-pong on the mainline face, and pairs of one of our
# tools with one of Debian's.
# shellcheck disable=SC2086 # words of a command: $domains $on
. "$srcdir/lib.sh" || exit 1

for program in ib_send_bw ib_write_bw ib_read_lat ib_atomic_lat ibv_xsrq_pingpong ibv_asyncwatch; do
	if [ ! -x /usr/bin/$program ]; then
		skip "Debian's tools" "install perftest, ibverbs-utils and ibverbs-providers: there is no $program"
		finish
	fi
done

# Debian's tools keep their XRC domains in these files, whichever user runs them.
domains="/tmp/xrc_domain /tmp/xrc_domain_client /tmp/xrc_domain_server"
xrc=yes
for domain in $domains; do
	if [ -e "$domain" ] && ! [ -O "$domain" ]; then
		skip "XRC of Debian's tools" "$domain is another user's: remove it"
		xrc=no
	fi
done
# Tests that run at the same time share the files, which stay until the last of these tests ends.
if [ $xrc = yes ]; then
	(umask 337 && touch /tmp/xrc_domain)
	exec 9</tmp/xrc_domain
	flock -s 9
fi

# The last line of a tool has as many numbers as its heading has columns, so the tool has measured
# something.
measured() {
	pingpong "$@" && grep -q '^ *[0-9]\+ \+[0-9]\+ \+[0-9.]\+' "$tmp/client.out" || { cat "$tmp/client.out"; return 1; }
}

# xsrq_of SERVER CLIENTS [ARGUMENT...]: runs a server and its clients, each "ours" or "theirs".
xsrq_of() {
	by=$1
	clients=$2
	shift 2
	take_port
	# shellcheck disable=SC2086
	one_xsrq "$by" server -c "$(set -- $clients; echo $#)" "$@" &
	server=$!
	until_true listening || { cat "$tmp/server.out"; return 1; }
	pids=
	i=0
	for by in $clients; do
		i=$((i + 1))
		one_xsrq "$by" client"$i" "$@" 127.0.0.1 &
		pids="$pids $!"
	done
	bad=0
	for pid in $pids $server; do
		wait "$pid" || bad=1
	done
	[ "$bad" -eq 0 ] || { tail -n 20 "$tmp"/server.out "$tmp"/client*.out; return 1; }
}
one_xsrq() {
	by=$1
	name=$2
	shift 2
	case $by in
	ours) set -- env LD_LIBRARY_PATH="$OURS" RDMAV_DRIVERS=mlx4 "$TOOLS/ibv_xsrq_pingpong" -p "$port" "$@" ;;
	theirs) set -- /usr/bin/ibv_xsrq_pingpong -p "$port" "$@" ;;
	esac
	timeout 50 "$@" >"$tmp/$name.out" 2>&1
}
mixed() {
	name=$1
	shift
	printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" RDMAV_DRIVERS=mlx4 exec "%s/%s" "$@"\n' "$OURS" "$TOOLS" "$name" >"$tmp/$name"
	chmod +x "$tmp/$name"
	pair "$tmp/$name" "$@" -- "/usr/bin/$name" "$@" && pair "/usr/bin/$name" "$@" -- "$tmp/$name" "$@"
}
# The watcher sees the port go down and come back.
asyncwatch() {
	stdbuf -oL timeout 20 /usr/bin/ibv_asyncwatch >"$tmp/watch" 2>&1 &
	watch=$!
	until_true grep -q 'async event FD' "$tmp/watch" || { cat "$tmp/watch"; return 1; }
	"$SOFTHCA" port "$SOFTHCA_INSTANCE" mlx4_0:1 down && "$SOFTHCA" port "$SOFTHCA_INSTANCE" mlx4_0:1 up
	until_true grep -qi 'PORT_ACTIVE' "$tmp/watch" && grep -qi 'PORT_ERR' "$tmp/watch"
	seen=$?
	kill "$watch"
	wait "$watch"
	[ "$seen" -eq 0 ] || cat "$tmp/watch"
	return "$seen"
}
export -f pair pingpong measured xsrq_of one_xsrq mixed asyncwatch

n=200
[ "${TIER:-}" = full ] && n=2000
for mmio in kick trap; do
	on="--kernel mainline --mmio $mmio"
	# The quick tier runs one tool of each kind with kick, and two with trap, the full tier all of them with kick, and those with trap,
	# the long one all in each way.
	while read -r line; do
		command=${line#*:}
		case $mmio-${line%%:*} in
		*-both | kick-one) ;;
		trap-full) long_rows || continue ;;
		*) all_rows || continue ;;
		esac
		case $xrc$command in no*XRC*)
			skip "$command, $mmio" "the files of XRC domains are another user's"
			continue ;;
		esac
		# With all sizes, messages have up to 8 MiB.
		count=$n
		case $command in *' -a') count=100 ;; esac
		# shellcheck disable=SC2086
		ok "$command, $mmio" within $on -- measured $command -F -n $count
	done <<-END
		both:ib_send_bw
		one:ib_send_bw -c UC
		one:ib_send_bw -c UD
		one:ib_send_bw -e -q 4
		one:ib_send_bw -c XRC
		full:ib_send_bw -c UC -e
		full:ib_send_bw -c UD -e
		full:ib_send_bw -c UC -q 4
		full:ib_send_bw -c UD -q 4
		full:ib_send_bw -c XRC -q 4
		full:ib_send_bw -b
		full:ib_send_bw -a
		full:ib_send_bw -r 64 --use-srq
		full:ib_send_lat
		full:ib_send_lat -I 64
		full:ib_send_lat -e
		full:ib_send_lat -c UD
		both:ib_write_bw
		one:ib_write_bw -c UC -q 4
		full:ib_write_bw -q 4
		full:ib_write_bw -c UC
		full:ib_write_bw -a
		full:ib_write_lat
		full:ib_write_lat -c UC
		one:ib_read_lat
		full:ib_read_lat -e
		full:ib_read_bw -q 4
		full:ib_read_bw -c XRC
		one:ib_atomic_lat
		full:ib_atomic_lat -A CMP_AND_SWAP
		full:ib_atomic_lat -e
		full:ib_atomic_bw -q 4
		full:ib_atomic_bw -c XRC
	END
	if [ $xrc = yes ]; then
		ok "their ibv_xsrq_pingpong with mixed clients, $mmio" within $on -- xsrq_of theirs "ours theirs ours theirs" -m 1024
	fi
	ok "rc, ours and theirs, $mmio" within $on -- mixed ibv_rc_pingpong -n 200
	[ $mmio = kick ] || long_rows || continue
	if [ $xrc = yes ]; then
		ok "ibv_xsrq_pingpong with four clients, $mmio" within $on -- xsrq_of theirs "theirs theirs theirs theirs"
		ok "ibv_xsrq_pingpong -e with four clients, $mmio" within $on -- xsrq_of theirs "theirs theirs theirs theirs" -e -n 100
		# Debian's server answers one client through the QP of another, so all clients must
		# share a domain.
		ok "their ibv_xsrq_pingpong with four clients of ours, $mmio" within $on -- \
			xsrq_of theirs "ours ours ours ours" -m 1024 -n 100
		ok "our ibv_xsrq_pingpong with mixed clients, $mmio" within $on -- xsrq_of ours "theirs ours theirs ours" -m 1024
		ok "their ibv_xsrq_pingpong -e with mixed clients, $mmio" within $on -- \
			xsrq_of theirs "theirs ours theirs ours" -e -m 1024 -n 100
	fi
	for transport in uc srq; do
		ok "$transport, ours and theirs, $mmio" within $on -- mixed ibv_${transport}_pingpong -n 200
	done
	ok "ud, ours and theirs, $mmio" within $on -- mixed ibv_ud_pingpong -s 1024 -n 200
	ok "xsrq, ours and theirs, $mmio" within $on -- mixed ibv_xsrq_pingpong -m 1024
	ok "ibv_asyncwatch sees a port go and come, $mmio" within $on -- asyncwatch
done
[ $xrc = no ] || ! flock -n -x 9 || rm -f $domains
ok "nothing is left behind" until_true no_instance
finish
