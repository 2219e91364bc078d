# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For the scripts of the full tier. Each works in a directory of its own below the build directory, and prints TAP. They build without
# archives, which would compile each file of a library twice: the ordinary build has them, for tests/packaging/static.sh.
# Environment, from make: top_srcdir, top_builddir (absolute), TIER; FULL_JOBS (jobs.sh).

set -u
number=0
failures=0

# The makes of all scripts share the jobs of the make that runs the scripts. MAKE_JOBS is for scripts/build, too.
if [ -n "${FULL_JOBS:-}" ]; then
	export MAKEFLAGS="-j2 --jobserver-auth=$FULL_JOBS" MAKE_JOBS=
fi

# What configure has found on this machine for the build of these tests holds for other compilers and flags, too.
export ANSWERS="$top_builddir"

# ok DESCRIPTION COMMAND...: one test. Its output is shown as comments.
ok() {
	number=$((number + 1))
	description=$1
	shift
	if output=$("$@" 2>&1); then
		echo "ok $number - $description"
	else
		failures=$((failures + 1))
		printf '%s\n' "$output" | tail -n 60 | sed 's/^/# /'
		echo "not ok $number - $description"
	fi
}

# results DIRECTORY: every test that make check left a .trs file for, since it began, becomes a test of ours. What it printed is
# in DIRECTORY/check.out. A test that skips itself has failed.
results() {
	find "$1" -name '*.trs' -newer "$1/check.begun" | sort | while read -r file; do
		sed -n "s|^:test-result: \([A-Z]*\)\(.*\)|\1 $(basename "${file%.trs}")\2|p" "$file"
	done >"$1/results.txt"
	while read -r result name; do
		number=$((number + 1))
		case $result in
		PASS|XFAIL) echo "ok $number - $name" ;;
		*) failures=$((failures + 1)); echo "not ok $number - $name ($result)" ;;
		esac
	done <"$1/results.txt"
	if [ ! -s "$1/results.txt" ]; then
		number=$((number + 1)); failures=$((failures + 1))
		tail -n 40 "$1/check.out" | sed 's/^/# /'
		echo "not ok $number - tests ran in $1"
	fi
}

# check DIRECTORY ARGUMENT...: make check there; each of its tests becomes a test of ours. Again there: other TESTS. TEST_CFLAGS, if set,
# are for what only calls the code under test, and is not built yet: optimizing that takes longer than running it.
check() {
	touch "$1/check.begun"
	# shellcheck disable=SC2086 # none, where the jobs are shared
	[ -z "${TEST_CFLAGS:-}" ] || make -C "$1" -k ${MAKE_JOBS--j$(nproc)} check "${@:2}" TESTS= CFLAGS="$TEST_CFLAGS" >"$1/check.out" 2>&1
	# shellcheck disable=SC2086 # none, where the jobs are shared
	make -C "$1" -k ${MAKE_JOBS--j$(nproc)} check "${@:2}" >>"$1/check.out" 2>&1
	results "$1"
}

finish() {
	echo "1..$number"
	[ "$failures" -eq 0 ]
}
