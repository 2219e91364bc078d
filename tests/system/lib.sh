# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# For the shell tests of this folder. They print TAP; one `ok` line is one outcome that a user cares about.
# Environment, from make: top_srcdir, top_builddir (absolute), TIER; SOFTHCA overrides the command under test.
# Variables for tests: work (an empty directory of this test's own, removed at the end), softhca, tools.

set -u
number=0
failures=0
softhca=${SOFTHCA:-$top_builddir/softhca/cli/softhca}
tools=$top_builddir/examples/.libs
work=$(mktemp -d)
export SOFTHCA_DIR=$work/instances
mkdir -m 700 "$SOFTHCA_DIR"

# What runs on our libraries, of this build tree: ours PROGRAM [ARGUMENT...], inside `softhca run`.
ours="env LD_LIBRARY_PATH=$top_builddir/libibverbs/.libs:$top_builddir/libmlx4/.libs RDMAV_DRIVERS=mlx4"

cleanup() {
	for instance in "$SOFTHCA_DIR"/*/pid; do
		[ -f "$instance" ] && kill "$(cat "$instance")" 2>/dev/null
	done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# ok DESCRIPTION COMMAND...: one test, bounded. What it prints is shown as comments when it fails.
ok() {
	number=$((number + 1))
	description=$1
	shift
	if output=$("$@" 2>&1); then
		echo "ok $number - $description"
	else
		status=$?
		failures=$((failures + 1))
		printf '%s\n' "$output" | tail -n 40 | sed 's/^/# /'
		echo "# exit status $status"
		echo "not ok $number - $description"
	fi
}

finish() {
	echo "1..$number"
	[ "$failures" -eq 0 ]
}

# A TCP port that no other test of this machine was given: ports are handed out one after another.
port() {
	(
		flock 9
		last=$(cat "${TMPDIR:-/tmp}/verbs-test-port" 2>/dev/null || echo 0)
		next=$(( (last + 1) % 12000 ))
		echo "$next" >"${TMPDIR:-/tmp}/verbs-test-port"
		echo $((20000 + next))
	) 9>"${TMPDIR:-/tmp}/verbs-test-port.lock"
}

# pingpong RUN-OPTIONS SERVER-COMMAND CLIENT-COMMAND: both ends in one instance; the client tries until the server
# listens. PORT in the commands is replaced by a free one. Succeeds when both do.
pingpong() {
	p=$(port)
	server=$(printf '%s' "$2" | sed "s/PORT/$p/g")
	client=$(printf '%s' "$3" | sed "s/PORT/$p/g")
	timeout -k 5 120 "$softhca" run $1 -- sh -c '
		$1 >"$3/server.out.$4" 2>&1 &
		server=$!
		for try in $(seq 100); do
			awk -v port="$(printf :%04X "$4")" "index(\$2, port) && \$4 == \"0A\" { found = 1 } END { exit !found }" \
				/proc/net/tcp /proc/net/tcp6 && break
			kill -0 $server 2>/dev/null || break
			sleep 0.05
		done
		$2
		client=$?
		wait $server || { status=$?; cat "$3/server.out.$4"; echo "server: exit status $status"; exit 1; }
		echo "--- server"; cat "$3/server.out.$4"
		exit $client
	' sh "$server" "$client" "$work" "$p"
}
