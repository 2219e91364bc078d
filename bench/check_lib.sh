# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What the tests of the benchmarks share. Needs $srcdir and what tests/system/lib.sh needs.
# shellcheck source=tests/system/lib.sh
. "$srcdir/lib.sh" || exit 1

if ! command -v jq >/dev/null; then
	skip "benchmarks" "install jq"
	finish
fi

query() { jq -e "$@" "$tmp/json" >/dev/null || { echo "not so: $*"; cat "$tmp/json"; return 1; }; }
# shellcheck disable=SC2034 # for what sources this
is_number='def is_number: type == "number" and . > 0;
	def is_stats: (.median | is_number) and .min <= .median and .median <= .max and .runs == 1;
	'
