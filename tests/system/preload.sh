#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: librspreload.so, in front of the shim and behind it: which sockets its configuration file makes rsockets, by
# program, domain, type and protocol; what children may do; calls under their other names; and servers that fork: one that the file leaves
# out, and ones with RDMAV_FORK_SAFE.
. "$srcdir/lib.sh" || exit 1

export cm=${OURS%%:*}/../../librdmacm/.libs
mkdir "$tmp/programs"
for name in client server; do
	cp "$PROGRAMS/preload" "$tmp/programs/$name" || exit 1
done
export PATH=$tmp/programs:$PATH RS_PRELOAD_CONFIG=$tmp/config

# under ORDER COMMAND...
cat >"$tmp/under" <<-'END'
	#!/bin/bash
	order=$1
	shift
	export LD_LIBRARY_PATH=$cm:$OURS RDMAV_DRIVERS=mlx4
	if [ "$order" = front ]; then
		export LD_PRELOAD=$cm/librspreload.so:$LD_PRELOAD
	else
		export LD_PRELOAD=$LD_PRELOAD:$cm/librspreload.so
	fi
	exec timeout 40 "$@"
END
chmod +x "$tmp/under"
under() { timeout 60 "$SOFTHCA" run -- "$tmp/under" "$@"; }
under_traffic() { timeout 60 "$SOFTHCA" run --require-traffic -- "$tmp/under" "$@"; }

# kinds WORDS LINE...: what becomes of IPv4's streams and datagrams, and IPv6's, with these lines
kinds() {
	words=$1
	shift
	printf '%s\n' "$@" >"$RS_PRELOAD_CONFIG"
	got=$(under front client kinds 2>"$tmp/err")
	[ "$got" = "$words" ] && return 0
	echo "with '$*': $got"
	cat "$tmp/err"
	return 1
}

r=rsocket p=plain
no_file() {
	got=$(RS_PRELOAD_CONFIG=$tmp/none under front client kinds 2>"$tmp/err")
	[ "$got" = "$r $r $r $r" ] || { echo "$got"; cat "$tmp/err"; return 1; }
}
ok "without a file: all" no_file
ok "an empty file: none" kinds "$p $p $p $p" ""
ok "a comment" kinds "$p $p $p $p" "# client * * *"
ok "of all programs" kinds "$r $r $r $r" "* * * *"
ok "of this program, with a comment behind" kinds "$r $r $r $r" "client * * * # all of it"
ok "of another program" kinds "$p $p $p $p" "server * * *"
ok "by domain" kinds "$r $r $p $p" "* INET * *"
ok "by domain, in full" kinds "$p $p $r $r" "* AF_INET6 * *"
ok "by type" kinds "$r $p $r $p" "* * STREAM *"
ok "by type, in full and in small letters" kinds "$p $r $p $r" "* * sock_dgram *"
ok "by protocol, where the program says 0" kinds "$r $p $r $p" "* * * tcp"
ok "by protocol, in full" kinds "$p $r $p $r" "* * * IPPROTO_UDP"
ok "what matches nothing" kinds "$p $p $p $p" "* * STREAM UDP"
ok "several lines, with spaces and tabs" kinds "$r $p $p $r" "server * * *" "  client INET  STREAM TCP" "" \
	"client	INET6	DGRAM	UDP"
ok "lines that are none do no harm" kinds "$p $r $p $p" "client" "* INET" "* MOON STREAM *" "* * RAW *" "* * * SCTP" "client INET DGRAM *"

rm -f "$RS_PRELOAD_CONFIG"
# Behind the shim a library with a sanitizer is too late: the shim would call what that puts in place of libc's functions before it is ready.
for order in front behind; do
	[ "$order" = front ] || ! sanitized || continue
	ok "children, $order" under $order client fork
	ok "sockets that become plain ones, $order" under $order "$PROGRAMS/preload_plain"
	ok "the calls under their other names, $order" under $order client names
	ok "close_range() and closefrom(), $order" under $order client ranges
	ok "FD_CLOEXEC, $order" under $order client flags
	ok "a program that destroys the channels of an id itself, $order" under $order "$PROGRAMS/preload_channel"
	for how in range from each; do
		ok "a program that closes all that it does not know, $how, $order" under $order "$PROGRAMS/preload_close" $how
	done
	ok "several messages with a call, and ioctl(), $order" under $order client many
	ok "sendfile() of a file that becomes shorter, $order" under $order client cut
	ok "recvmmsg() of a peer that is killed, $order" under $order client broken
	ok "FIONREAD of a peer that is killed, $order" under $order client broken-ioctl
	if command -v python3 >/dev/null; then
		ok "a Python program with time-outs, $order" under $order python3 "$srcdir/preload_echo.py"
		ok "Python's asyncio with poll(), $order" under_traffic $order python3 "$srcdir/preload_asyncio.py"
	else
		skip "a Python program with time-outs, $order" "install python3"
	fi
done

# A server and its client: asked [SERVER'S-LIBRARY CLIENT'S-LIBRARY [OPTION]], without which both have this tree's.
asked() {
	rm -f "$tmp/port"
	timeout 60 "$SOFTHCA" run ${3:+"$3"} -- bash -c '
		"$1/$2" front server serve >"$1/port" 2>"$1/err" &
		server=$!
		until [ -s "$1/port" ]; do
			kill -0 $server || { cat "$1/err"; exit 1; }
			sleep 0.1
		done
		[ "$("$1/$3" front client ask "$(cat "$1/port")")" = echo ] && wait $server' - "$tmp" "${1:-under}" "${2:-under}"
}
# The server is left out; its client finds nobody who takes RDMA, and gets the socket that it asked for.
forking_server() {
	echo "client * * *" >"$RS_PRELOAD_CONFIG"
	asked
}
ok "a server that forks, left out by the file" forking_server
# With RDMAV_FORK_SAFE each child's connection is an rsocket, whichever library an end has.
rm -f "$RS_PRELOAD_CONFIG"
others=/usr/lib/$(uname -m)-linux-gnu
export others
cat >"$tmp/others" <<-'END'
	#!/bin/bash
	shift
	export LD_LIBRARY_PATH=$others LD_PRELOAD=$others/rsocket/librspreload.so:$LD_PRELOAD
	exec timeout 40 "$@"
END
chmod +x "$tmp/others"
forking_mode() { # forking_mode ORDER OPTION...: of softhca run
	order=$1
	shift
	RDMAV_FORK_SAFE=1 timeout 60 "$SOFTHCA" run --require-traffic "$@" -- "$tmp/under" "$order" "$PROGRAMS/preload_fork"
}
forking_between() { # forking_between SERVER'S-LIBRARY CLIENT'S-LIBRARY
	RDMAV_FORK_SAFE=1 asked "$1" "$2" --require-traffic
}
for face in ofed mainline; do
	for mmio in kick trap; do
		each_once $face $mmio || continue
		ok "a server that forks, and its clients, $face, $mmio" forking_mode front --kernel $face --mmio $mmio
	done
done
sanitized || ok "a server that forks, and its clients, behind" forking_mode behind
# What Debian's library is loaded into here is a program of this tree, with its sanitizer.
if sanitized; then
	:
elif [ -e "$others/rsocket/librspreload.so" ]; then
	ok "a server that forks, with Debian's client" forking_between under others
	ok "Debian's server that forks, with our client" forking_between others under
else
	skip "a server that forks, with Debian's library" "install librdmacm1"
fi
ok "nothing is left behind" until_true no_instance
finish
