# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For run-matrix: TAP, a work directory, our libraries.
# Environment, from make: top_srcdir, top_builddir (absolute), TIER; SOFTHCA overrides the command under test,
# WAYS (kick) the ways of MMIO.

set -u
number=0
failures=0
# shellcheck disable=SC2034 # for who sources this
softhca=${SOFTHCA:-$top_builddir/softhca/cli/softhca}
work=$(mktemp -d) || exit 1
# shellcheck source=tests/place.sh
. "$top_srcdir/tests/place.sh" || exit 1
SOFTHCA_DIR=$(place "$work") || exit 1
export SOFTHCA_DIR

# The ways of MMIO that softhca has on this machine, or those of them that WAYS names.
# shellcheck disable=SC2034 # for who sources this
case $(uname -m) in
x86_64) ways=${WAYS:-kick trap} ;;
*)	ways=kick ;;
esac

# What programs register counts against the limit of locked memory: as far as it goes.
ulimit -l unlimited 2>/dev/null || ulimit -S -l hard

# What runs on our libraries, of this build tree: ours PROGRAM [ARGUMENT...], inside `softhca run`.
# shellcheck disable=SC2034 # for who sources this
ours="env LD_LIBRARY_PATH=$top_builddir/libibverbs/.libs:$top_builddir/libmlx4/.libs RDMAV_DRIVERS=mlx4"

cleanup() {
	# The number may be another process's by now: a daemon of ours has our directory.
	for instance in "$SOFTHCA_DIR"/softhca/*/pid; do
		[ -f "$instance" ] && pid=$(cat "$instance") &&
			grep -qszFx "SOFTHCA_DIR=$SOFTHCA_DIR" "/proc/$pid/environ" && kill "$pid" 2>/dev/null
	done
	rm -rf "$work" "$SOFTHCA_DIR"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# ok DESCRIPTION COMMAND...: one test, bounded. What it prints is shown as comments when it fails; its last line says why
# when it exits with 77, which skips it.
ok() {
	number=$((number + 1))
	description=$1
	shift
	if output=$("$@" 2>&1); then
		echo "ok $number - $description"
	else
		status=$?
		if [ $status -eq 77 ]; then
			echo "ok $number - $description # SKIP ${output##*$'\n'}"
			return
		fi
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
