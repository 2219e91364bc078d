#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: a resource that is missing leads to an errno and a message, never to a crash: locked
# memory, address space, files, device memory. And all of it works for an unprivileged user.
. "$srcdir/lib.sh" || exit 1

# The unprivileged user: the one who runs this test, or nobody if root does.
as_user() {
	if [ "$(id -u)" -ne 0 ]; then
		"$@"
	else
		setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all \
			env HOME="$tmp/home" SOFTHCA_DIR="$tmp/home/instances" "$@"
	fi
}
can_be_user=yes
if [ "$(id -u)" -eq 0 ]; then
	mkdir -m 711 "$tmp/home"
	mkdir -m 700 "$tmp/home/instances"
	chmod 711 "$tmp"
	command -v setpriv >/dev/null || can_be_user=no
	chown 65534:65534 "$tmp/home" "$tmp/home/instances"
	for_others && as_user test -x "$SOFTHCA" || can_be_user=no
fi

unprivileged() {
	mine=$tmp/home/$RANDOM
	[ "$(id -u)" -eq 0 ] || mine=$tmp
	as_user env tmp="$mine" bash -c 'mkdir -p "$tmp"; [ "$(id -u)" -ne 0 ] || exit 1; within() { '"$(declare -f within | sed '1,2d;$d')"'; }; "$@"' \
		x within "$@"
}
small_lock() { (ulimit -S -l "$1" && ulimit -H -l "$1" && shift && unprivileged "$@"); }

if [ $can_be_user = yes ]; then
	for face in mainline ofed; do
		for mmio in kick trap; do
			each_once $face $mmio || continue
			on="--kernel $face --mmio $mmio"
			# shellcheck disable=SC2086 # words: $on
			ok "RC without rights, $face, $mmio" ours unprivileged $on -- pingpong "$TOOLS/ibv_rc_pingpong" -n 100 --verify
			# shellcheck disable=SC2086 # words: $on
			ok "XRC without rights, $face, $mmio" ours unprivileged $on -- xsrq 2 --verify
		done
	done
	# The limit is 64 KiB, so a buffer of 1 MiB cannot be locked, and the tool says so.
	refused() {
		small_lock 64 --kernel "$1" -- "$TOOLS/ibv_rc_pingpong" -s 1048576 -p 1 >"$tmp/refused" 2>&1
		got=$?
		[ "$got" -ne 0 ] && [ "$got" -lt 124 ] && grep -q 'Cannot allocate memory' "$tmp/refused" ||
			{ echo "status $got"; cat "$tmp/refused"; return 1; }
	}
	ok "more memory than may be locked is ENOMEM, mainline" ours refused mainline
	ok "more memory than may be locked is ENOMEM, ofed" ours refused ofed
	ok "as much memory as may be locked still works" ours small_lock 8192 -- pingpong "$TOOLS/ibv_rc_pingpong" -n 100 --verify
else
	skip "without rights" "install util-linux: there is no setpriv(1); or set TMPDIR to where user 65534 may look and execute files"
fi

# A GiB of address space for the daemon and for each program.
in_a_gibibyte() { (ulimit -v 1048576 && "$@"); }
for mmio in kick trap; do
	ok "RC in 1 GiB of address space, $mmio" ours in_a_gibibyte within --mmio $mmio -- pingpong "$TOOLS/ibv_rc_pingpong" -n 100 --verify
	if [ -x /usr/bin/ibv_rc_pingpong ]; then
		ok "RC in little address space by Debian's tools" in_a_gibibyte within --mmio $mmio -- pingpong /usr/bin/ibv_rc_pingpong -n 100
	else
		skip "RC in little address space by Debian's tools" "no /usr/bin/ibv_rc_pingpong"
	fi
	[ $can_be_user = no ] ||
		ok "RC in little address space without rights" ours in_a_gibibyte unprivileged --mmio $mmio -- pingpong "$TOOLS/ibv_rc_pingpong" -n 100 --verify
done

# Address space or descriptors are short: whichever step fails first, the program reports an error
# and gets no signal.
graceful() {
	limit=$1
	value=$2
	shift 2
	(ulimit -S "$limit" "$value" || exit 125; exec timeout 20 "$@") 2>&1 | cat >"$tmp/limited"
	got=${PIPESTATUS[0]}
	# A server without a client fails in any case.
	case $* in */ibv_devinfo*|*/layout*) [ "$got" -eq 0 ] || felt=yes ;; esac
	[ "$got" -lt 124 ] || { echo "limit $limit $value: status $got"; tail -n 20 "$tmp/limited"; return 1; }
}
limited_tool() {
	flag=$1
	shift
	felt=
	for value in "$@"; do
		graceful "$flag" "$value" "$TOOLS/ibv_rc_pingpong" -s 4194304 --timeout 1 || return 1
		graceful "$flag" "$value" "$TOOLS/ibv_devinfo" || return 1
		graceful "$flag" "$value" "$PROGRAMS/layout" "$tmp/domain" </dev/null || return 1
	done
	# If nothing failed, the limit was too high to show anything.
	[ -n "$felt" ] || { echo "nothing failed with limit $flag $*"; return 1; }
	# Other programs still work.
	pingpong "$TOOLS/ibv_rc_pingpong" --verify -n 10
}
# None of these programs makes a file larger.
no_files() {
	felt=
	graceful -f 0 "$TOOLS/ibv_devinfo" && graceful -f 0 "$PROGRAMS/layout" "$tmp/domain" </dev/null || return 1
	[ -z "$felt" ] || { cat "$tmp/limited"; return 1; }
}
export -f graceful limited_tool no_files
step=18000
[ "${TIER:-}" = full ] && step=4000
# shellcheck disable=SC2046
ok "little address space" ours within -- limited_tool -v $(seq 6000 $step 60000)
# shellcheck disable=SC2046
ok "few descriptors" ours within -- limited_tool -n $(seq 8 $((step / 8000 + 1)) 16)
ok "no files to write" ours within -- no_files

# Each of the first $1 programs has all that it wants, or has printed what it could not get.
settled() {
	# shellcheck disable=SC2046 # words
	[ -z "$(cd "$tmp" && grep -L -e '^layout: ' -e '^pid=' $(seq -f full%.0f "$1") 2>&1)" ]
}
# full_device ROOM: the daemon has only ROOM KiB of memory left. It lives on, the command fails with
# ENOMEM, and other programs work.
full_device() {
	daemon=$(cat "$SOFTHCA_INSTANCE/pid")
	# Only the soft limit, because an unprivileged user may not raise the hard one again.
	used=$(awk '/^VmSize/ { print $2 }' "/proc/$daemon/status")
	prlimit --pid "$daemon" --as=$(((used + $1) * 1024)): || return 1
	# All at once, because the daemon would reuse what programs that have ended gave back.
	mkfifo "$tmp/hold$1"
	exec 7<>"$tmp/hold$1"
	pids=
	for i in $(seq 100); do
		"$PROGRAMS/layout" "$tmp/domain$i" <"$tmp/hold$1" >"$tmp/full$i" 2>&1 7>&- &
		pids="$pids $!"
	done
	until_true settled 100 || until_true settled 100 || until_true settled 100 || return 1
	exec 7>&-
	refused=
	for pid in $pids; do
		wait "$pid"
		got=$?
		[ "$got" -lt 124 ] || { echo "status $got"; return 1; }
		[ "$got" -eq 0 ] || refused=yes
	done
	# If nothing failed, the limit was too high to show anything.
	[ -n "$refused" ] || [ "$1" -gt 0 ] || { echo "nothing failed"; return 1; }
	prlimit --pid "$daemon" --as=unlimited:
	pingpong "$TOOLS/ibv_rc_pingpong" --verify -n 10
}
export -f full_device settled
for room in 0 64 200; do
	ok "a daemon with $room KiB left" ours within -- full_device $room
done
# To programs this looks like a kernel with pages of another size.
cat >"$tmp/pages.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
long sysconf(int name)
{
	long (*real)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");

	return name == _SC_PAGESIZE ? 65536 : real(name);
}
END
$CC -shared -fPIC -o "$tmp/pages.so" "$tmp/pages.c" -ldl || exit 1
other_pages() {
	for verb in "run -- true" "start paged"; do
		# shellcheck disable=SC2086
		status 125 env LD_PRELOAD="$tmp/pages.so" "$SOFTHCA" $verb 2>"$tmp/err" &&
			grep -q "this kernel has pages of 65536: boot one" "$tmp/err" || { echo "$verb:"; cat "$tmp/err"; return 1; }
	done
	# Now only for the program.
	"$SOFTHCA" run -- sh -c 'LD_PRELOAD="$0:$LD_PRELOAD" exec "$@"' "$tmp/pages.so" "$TOOLS/ibv_devinfo" >"$tmp/out" 2>"$tmp/err" &&
		{ cat "$tmp/out"; return 1; }
	grep -q "this kernel has pages of 65536: boot one" "$tmp/err" || { cat "$tmp/err"; return 1; }
}
ok "pages of another size are refused by the daemon, and by what a program preloads" ours other_pages
# In there the numbers of processes are others: the program could not reach its peers' memory.
own_pids() {
	for proc in "" --mount-proc; do
		# shellcheck disable=SC2086 # words: $proc
		"$SOFTHCA" run -- "${make_pids[@]}" $proc "$TOOLS/ibv_devinfo" >"$tmp/out" 2>"$tmp/err" && { cat "$tmp/out"; return 1; }
		grep -q "no device can be opened: .*PID namespace" "$tmp/err" || { cat "$tmp/err"; return 1; }
	done
}
# A daemon of its own is in there with it.
own_daemon() { "${make_pids[@]}" --mount-proc "$SOFTHCA" run -- "$TOOLS/ibv_devinfo" >"$tmp/out" 2>&1 || { cat "$tmp/out"; return 1; }; }
make_pids=(unshare -pf)
[ "$(id -u)" -eq 0 ] || make_pids+=(-r)
if "${make_pids[@]}" --mount-proc true 2>/dev/null; then
	ok "a program in a PID namespace of its own gets no device, and is told why" ours own_pids
	ok "with a daemon of its own it has a device there" ours own_daemon
else
	skip "a PID namespace" "let this user make one, with a /proc of its own"
fi
ok "nothing is left behind" until_true no_instance
finish
