# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For the system tests: each script sources this file, prints TAP through ok(), and ends with
# finish. It works in a temporary directory of its own, $tmp, and has its instances in another,
# $SOFTHCA_DIR. Both are removed at the end, with all that still runs in them. Environment, from make: SOFTHCA
# (the command), TOOLS (directory of our ibv_* tools), OURS (LD_LIBRARY_PATH of our libraries),
# PROGRAMS (directory of the test programs), CC.

# A shell cannot trap signals that were ignored when it started, and a background job starts with
# SIGINT ignored.
[ -n "${SIGNALS_RESET:-}" ] || SIGNALS_RESET=1 exec env --default-signal bash "$0" "$@"

set -u
# softhca refuses directories that a group can write to. Some users' umask makes such directories.
umask 022
number=0
failures=0
tmp=$(mktemp -d "${TMPDIR:-/tmp}/softhca-test.XXXXXX") || exit 1
# shellcheck source=tests/place.sh
. "$(dirname "${BASH_SOURCE[0]}")/../place.sh" || exit 1
SOFTHCA_DIR=$(place "$tmp") || exit 1
export SOFTHCA_DIR
instances=$SOFTHCA_DIR
# For take_port: of all tests of this user
ports=${TMPDIR:-/tmp}/softhca-test-ports-$UID
# The tests must not use instances of their caller's environment.
unset SOFTHCA_INSTANCE SOFTHCA_HOST SOFTHCA_MMIO XDG_RUNTIME_DIR RDMAV_DRIVERS IBV_DRIVERS SYSFS_PATH

# A test that hangs ends here. Its plan is then missing.
(sleep "${TEST_TIMEOUT:-1200}" && kill -TERM $$) >/dev/null 2>&1 &
watchdog=$!

cleanup() {
	pkill -P $watchdog 2>/dev/null
	# shellcheck disable=SC2046
	kill $(jobs -p) 2>/dev/null
	# The number may belong to another process by now. A daemon of this test has its directory
	# in its environment.
	for pid_file in "$instances"/softhca/*/pid; do
		[ -f "$pid_file" ] && pid=$(cat "$pid_file") &&
			grep -qszFx "SOFTHCA_DIR=$instances" "/proc/$pid/environ" && kill "$pid" 2>/dev/null
	done
	[ ! -d "$ports" ] || { find "$ports" -lname "$tmp" -delete; rmdir "$ports" 2>/dev/null; }
	rm -rf "$tmp" "$instances"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# ok DESCRIPTION COMMAND...: runs one test and prints the command's output if it fails.
ok() {
	number=$((number + 1))
	description=$1
	shift
	if "$@" >"$tmp/ok.out" 2>&1; then
		echo "ok $number - $description"
	else
		status=$?
		failures=$((failures + 1))
		echo "# exit status $status from: $*"
		# awk ends the last line, because a killed program may not have done so.
		tail -n 40 "$tmp/ok.out" | awk '{ print "# " $0 }'
		echo "not ok $number - $description"
	fi
}

# What `softhca show --json` says, without the counters of HCAs and ports.
uncounted() {
	jq 'del(.. | .counters?) | walk(if type == "object" then with_entries(select(.key | test("^(xmit|rcv)_") | not)) else . end)'
}

# The quick tier leaves out rows of a matrix that say little more than others do. Tests that run such a script in another build, or on another
# device, ask for all of them: ROWS=all.
all_rows() { [ "${TIER:-}" = full ] || [ "${ROWS:-}" = all ]; }
# What the full tier leaves out, too: most of all what others have in the other way of MMIO.
long_rows() { [ "${ROWS:-}" = all ]; }
# faces FACE...: the faces on which a tool or a command runs that knows little of them: without all rows, the first.
faces() { if all_rows; then echo "$@"; else echo "$1"; fi; }
# each_once FACE WAY: of the pairs without all rows two, which have each face and each way of MMIO.
each_once() { [ "$1 $2" = "mainline kick" ] || [ "$1 $2" = "ofed trap" ] || all_rows; }

# skip DESCRIPTION REASON
skip() {
	number=$((number + 1))
	echo "ok $number - $1 # SKIP $2"
}

# needs WHAT PACKAGES PROGRAM...: skips the whole test where a program is missing. /usr/sbin counts, which an ordinary user may not
# have in PATH.
needs() {
	what=$1 packages=$2
	shift 2
	PATH=$PATH:/usr/sbin
	for program; do
		command -v "$program" >/dev/null || {
			skip "$what" "install $packages: there is no $program"
			finish
		}
	done
}

finish() {
	echo "1..$number"
	[ "$failures" -eq 0 ]
	exit
}

# status N COMMAND...: the command ends with this exit status.
status() {
	wanted=$1
	shift
	"$@"
	got=$?
	[ "$got" -eq "$wanted" ] || { echo "the exit status is $got, not $wanted"; return 1; }
}

# Memory that programs register counts against the limit of locked memory, as on a real kernel. This
# raises the limit as far as possible.
ulimit -l unlimited 2>/dev/null || ulimit -S -l hard

# locks KIB: whether a process here may lock that much. With CAP_IPC_LOCK (14) there is no limit, but in a user namespace there is.
locks() {
	[ $((0x$(awk '/^CapEff/ { print $2 }' /proc/self/status) >> 14 & 1)) -eq 0 ] ||
		[ "$(stat -L -c %i /proc/self/ns/user)" != 4026531837 ] || return 0
	limit=$(ulimit -l)
	[ "$limit" = unlimited ] || [ "$limit" -ge "$1" ]
}
# may_lock KIB DESCRIPTION: the same, and if not, that test is skipped.
may_lock() {
	locks "$1" && return 0
	skip "$2" "it locks up to $1 KiB, and ulimit -l is $(ulimit -l): raise it, by a line in /etc/security/limits.d or docker run --ulimit memlock=-1"
	return 1
}

# Settings for UCX, which registers pools of buffers, and the buffers of long messages. With the 8 MiB of an ordinary user it
# gets small pools, and copies long messages; with more it is as its users have it.
ucx_settings=()
# shellcheck disable=SC2034 # check_mpi.sh and launchers.sh read it
locks 81920 || ucx_settings=(UCX_{RNDV,ZCOPY}_THRESH=inf
	UCX_{RC,UD}_VERBS_{SEG_SIZE=2048,ALLOC=mmap,{RX,TX}_BUFS_GROW=64,RX_QUEUE_LEN=128})

# pause SECONDS: without a process, which would cost more than it waits: nothing ever comes from that FIFO. Another user may not open it.
mkfifo "$tmp/never" || exit 1
pause() {
	read -rt "$1" 2>/dev/null <>"$tmp/never"
	[ $? -gt 128 ] || sleep "$1"
}

# Repeats a command until it succeeds, for a minute at most, however long one call takes. A try costs processes, so what lasts is
# looked at less often.
until_true() {
	local end=$((SECONDS + 60)) tries=0
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || { echo "not true within a minute: $*"; return 1; }
		tries=$((tries + 1))
		if [ "$tries" -lt 10 ]; then pause 0.01; else pause 0.1; fi
	done
}

# gone PID: the process has ended. In some containers process 1 reaps nothing, so it stays a zombie.
gone() { ! grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status"; }

# Copies our library to $tmp/bare, as it is where no provider is installed: it looks in a directory of
# another name. In a build tree from which scripts/quickstart has installed, a provider is installed.
bare_library() {
	mkdir "$tmp/bare" && sed 's,/libibverbs\.d,/libibverbs.0,g' "${OURS%%:*}/libibverbs.so.1" >"$tmp/bare/libibverbs.so.1"
}

# Copies what another user is to run. Such a user may not be able to look into the build tree, for
# instance in /root.
for_others() {
	mkdir -p "$tmp/tree/softhca/cli" "$tmp/tree/softhca/shim/.libs" "$tmp/tree/libs" "$tmp/tree/tools" &&
		cp "$SOFTHCA" "$tmp/tree/softhca/cli/" &&
		cp "$(dirname "$SOFTHCA")/../shim/.libs/libsofthca-shim.so" "$tmp/tree/softhca/shim/.libs/" &&
		cp -P "${OURS%%:*}"/libibverbs.so* "${OURS##*:}"/libmlx4-rdmav2.so "$tmp/tree/libs/" || return 1
	# libtool's scripts would look into the build tree.
	for tool in "$TOOLS"/ibv_*; do
		case $tool in *.o|*.c) continue ;; esac
		[ ! -x "${tool%/*}/.libs/${tool##*/}" ] || tool=${tool%/*}/.libs/${tool##*/}
		cp "$tool" "$tmp/tree/tools/" || return 1
	done
	chmod -R a+rX "$tmp/tree" && chmod 711 "$tmp" || return 1
	SOFTHCA=$tmp/tree/softhca/cli/softhca
	TOOLS=$tmp/tree/tools
	OURS=$tmp/tree/libs
}

# The place has its own lock and nothing else.
no_instance() {
	# shellcheck disable=SC2143 # no directory is right as well
	[ -z "$(ls -A "$SOFTHCA_DIR/softhca" 2>/dev/null | grep -v '^lock$')" ]
}

# on HOST COMMAND...: runs the command on a host of the instance that this shell is in.
on() {
	host=$1
	shift
	"$SOFTHCA" run --instance "$SOFTHCA_INSTANCE" --host "$host" -- "$@"
}
# The same, but in place of this shell, for the background: signals then reach the command.
become() {
	host=$1
	shift
	exec "$SOFTHCA" run --instance "$SOFTHCA_INSTANCE" --host "$host" -- "$@"
}

# Runs a command with our tools and libraries from the build tree.
ours() {
	LD_LIBRARY_PATH=$OURS${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} RDMAV_DRIVERS=mlx4 "$@"
}

# Were our libraries built with AddressSanitizer? Then programs that are not ours cannot load them.
sanitized() { grep -q __asan_init "${OURS%%:*}/libibverbs.so.1"; }

# tcp WORDS: a TCP socket of this machine has $port, and these behind it. The tests ask thousands of times, so this starts no process.
tcp() {
	local file line hex lines
	printf -v hex '%04X' "$port"
	for file in /proc/net/tcp /proc/net/tcp6; do
		[ -r "$file" ] && mapfile -t lines <"$file" || continue
		for line in "${lines[@]}"; do
			# The pattern is one.
			# shellcheck disable=SC2053
			[[ $line != *": "*([0-9A-F])":$hex "$1* ]] || return 0
		done
	done
	return 1
}

# Finds a TCP port without any connection, even one that is over, because not every server sets
# SO_REUSEADDR. Tests run side by side, and a server listens some time after its port was looked for: so the port stays this test's until
# it ends. A link in $ports says so, where there may be one. $port
take_port() {
	port=$((10240 + (RANDOM * 32768 + RANDOM) % 22000))
	mkdir -p "$ports" 2>/dev/null
	while tcp "" || { [ -w "$ports" ] && ! ln -sT "$tmp" "$ports/$port" 2>/dev/null; }; do
		port=$((port + 1))
	done
}

# The other end of a socket that listens has no port; its state is 0A.
listening() { tcp '*([0-9A-F]):0000 0A '; }

# For sh -c "$dead" x COMMAND: the command, in an instance whose daemon has been killed.
# shellcheck disable=SC2016,SC2034 # that shell expands it; tests use it
dead='pid=$(cat "$SOFTHCA_INSTANCE/pid"); kill -KILL "$pid"
while [ -n "$(ls "/proc/$pid/fd" 2>/dev/null)" ]; do sleep 0.01; done
exec "$@"'

# Waits for $server; both must have succeeded, or what they printed is shown: both_good CLIENT-STATUS
both_good() {
	client=$1
	wait "$server"
	server=$?
	[ "$server" -eq 0 ] && [ "$client" -eq 0 ] && return 0
	echo "server: status $server"
	cat "$tmp/server.out"
	echo "client: status $client"
	cat "$tmp/client.out"
	return 1
}

# pair SERVER-COMMAND -- CLIENT-COMMAND: gives both commands -p PORT, and the client the address;
# both must succeed. Both run inside the instance that this shell is in. Exported to the shell that
# `softhca run` starts.
pair() {
	server_command=
	while [ "$1" != -- ]; do
		server_command="$server_command $1"
		shift
	done
	shift
	take_port
	# shellcheck disable=SC2086 # words: $server_command
	timeout 50 $server_command -p "$port" >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || { cat "$tmp/server.out"; return 1; }
	timeout 50 "$@" -p "$port" 127.0.0.1 >"$tmp/client.out" 2>&1
	both_good $?
}

# pingpong TOOL [ARGUMENT...]: a pair with the same command at both ends.
pingpong() { pair "$@" -- "$@"; }

# xsrq CLIENTS [ARGUMENT...]: runs the server and that many clients.
xsrq() {
	clients=$1
	shift
	take_port
	timeout 50 "$TOOLS/ibv_xsrq_pingpong" -p "$port" -c "$clients" "$@" >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || { cat "$tmp/server.out"; return 1; }
	pids=
	for i in $(seq "$clients"); do
		timeout 50 "$TOOLS/ibv_xsrq_pingpong" -p "$port" "$@" 127.0.0.1 >"$tmp/client$i.out" 2>&1 &
		pids="$pids $!"
	done
	bad=0
	for pid in $pids; do
		wait "$pid" || bad=1
	done
	wait "$server" || bad=1
	[ $bad -eq 0 ] && return 0
	tail -n 20 "$tmp"/server.out "$tmp"/client*.out
	return 1
}

# within RUN-OPTIONS -- FUNCTION [ARGUMENT...]: calls one of the functions above in a new instance.
within() {
	options=
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	# shellcheck disable=SC2086
	"$SOFTHCA" run $options -- bash -c 'set -u; "$@"' within "$@"
}
export SOFTHCA TOOLS OURS PROGRAMS CC srcdir tmp ports
export -f pause until_true gone tcp listening take_port both_good pair pingpong xsrq
