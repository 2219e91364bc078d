#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: where one of our tools fails, the line below its message is about what has happened, and says what to do: no device
# outside of softhca run, a device that is gone or has failed, a server that is not there, a port that is taken.
. "$srcdir/lib.sh" || exit 1

# hint MESSAGE ADVICE [COMMAND...]: the command fails with both, one above the other. Without one, what is in $tmp/said counts.
hint() {
	message=$1
	advice=$2
	shift 2
	if [ $# -gt 0 ]; then
		timeout 40 "$@" >"$tmp/said" 2>&1
		got=$?
		[ "$got" -ne 0 ] && [ "$got" -lt 124 ] || { echo "status $got"; cat "$tmp/said"; return 1; }
	fi
	grep -A 1 -- "$message" "$tmp/said" | tail -n 1 | grep -q -- "^  .*$advice" || { cat "$tmp/said"; return 1; }
}
our=(env LD_LIBRARY_PATH="$OURS" RDMAV_DRIVERS=mlx4)
run=("${our[@]}" "$SOFTHCA" run --)
rc=$TOOLS/ibv_rc_pingpong

# ---- devices ----

outside() {
	"$SOFTHCA" start lab >/dev/null || return 1
	for tool in ibv_devices ibv_devinfo ibv_asyncwatch ibv_rc_pingpong ibv_xsrq_pingpong; do
		hint "Failed to get IB devices list: Function not implemented" 'Without an adapter, start this command with `softhca run --`' \
			"${our[@]}" SYSFS_PATH="$tmp/none" "$TOOLS/$tool" || return 1
	done
	"$SOFTHCA" stop lab
}
ok "an instance runs, and the program is not in softhca run" outside
wrong_host() {
	hint "Failed to get IB devices list" "If no line above says why" "${run[@]}" env SOFTHCA_HOST=7 "$TOOLS/ibv_devinfo" &&
		grep -q '^softhca: ibv_devinfo: there is no device: SOFTHCA_HOST' "$tmp/said"
}
ok "where softhca has said why, the tool does not say otherwise" wrong_host
no_driver() {
	bare_library || return 1
	for tool in ibv_devinfo ibv_rc_pingpong; do
		hint "No IB devices found" "If no line above says why.*install its provider" \
			env -u RDMAV_DRIVERS LD_LIBRARY_PATH="$tmp/bare" "$SOFTHCA" run -- "$TOOLS/.libs/$tool" || return 1
	done
}
[ ! -x "$TOOLS/.libs/ibv_devinfo" ] || ok "a device without its provider" no_driver
ok "a device whose daemon has ended" hint "No such device or address" "The device is gone" "${run[@]}" sh -c "$dead" x "$TOOLS/ibv_devinfo"
failed='"$SOFTHCA" port "$SOFTHCA_INSTANCE" mlx4_0:1 fatal && exec "$@"'
for tool in ibv_rc_pingpong ibv_ud_pingpong ibv_srq_pingpong ibv_xsrq_pingpong; do
	ok "a device that has failed, $tool" hint "Input/output error" "The device has failed" "${run[@]}" sh -c "$failed" x "$TOOLS/$tool"
done
no_sys() {
	unshare -rUm sh -c 'mount -t tmpfs none /sys && shift && exec "$@"' x x "${our[@]}" "$TOOLS/ibv_devices" >"$tmp/said" 2>&1 && return 1
	hint "Failed to get IB devices list" "/sys is not mounted here: mount"
}

# ---- the other side ----

take_port
ok "no server" hint "Couldn't connect to 127.0.0.1:$port: Connection refused" "No server listens there. Start it first" "${run[@]}" "$rc" -p "$port" 127.0.0.1
taken() {
	timeout 40 "$rc" -p "$1" >"$tmp/server.out" 2>&1 &
	server=$!
	port=$1
	until_true listening || { cat "$tmp/server.out"; return 1; }
	"$rc" -p "$1"
	got=$?
	kill "$server"
	return "$got"
}
export -f taken
export rc
take_port
ok "a port that is taken" hint "Couldn't listen to port $port: Address already in use" "Another program on this machine uses the port; -p chooses" \
	"${run[@]}" bash -c 'taken "$1"' x "$port"
take_port
# The server, which exchanges fewer messages, has ended; what the client says is what counts.
fewer='"$0" -p "$1" -n 50 --timeout 20 >/dev/null & "$0" -p "$1" -n 5000 --timeout 3 127.0.0.1 2>&1; got=$?; wait; exit $got'
ok "another number of messages there" hint "No completion in 3 seconds\|transport retry counter exceeded" "was -n the same there" \
	"${run[@]}" sh -c "$fewer" "$rc" "$port"
if unshare -rUmn true 2>/dev/null; then
	ok "no /sys" no_sys
	# A network of its own, in which nothing is up.
	ok "no route" hint "Couldn't connect to 192.0.2.1:18515: Network is unreachable" "No route leads to that address" \
		"${our[@]}" unshare -rUn "$SOFTHCA" run -- "$rc" 192.0.2.1
	name() {
		hint "for no-such-host:18515" "Give the name or address of the server's host" "${our[@]}" unshare -rUn "$SOFTHCA" run -- "$rc" no-such-host &&
			! grep -q "No route to host" "$tmp/said" || { cat "$tmp/said"; return 1; }
	}
	ok "a name that does not resolve" name
else
	skip "no /sys, no route, no name" "this kernel lets no user make namespaces"
fi
ok "nothing is left behind" until_true no_instance
finish
