#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: libFuzzer finds nothing in a few seconds for each fuzz target (FUZZ_SECONDS), from the corpus in the tree on.
# An input that ends a target is shown in base64. The corpora themselves are replayed in every tier. Without FUZZ_SECONDS the
# seed is fixed, so that a slower machine tries fewer of the same inputs and no others: `make fuzz` is what looks for new
# ones, and scripts/test long.
. "$top_srcdir/tests/full/lib.sh" || exit 1

dir=$top_builddir/fuzz
rm -rf "$dir"/*.result "$dir/tier"
[ -n "${FUZZ_SECONDS:-}" ] || FUZZ_OPTIONS="-seed=1 -runs=2000 ${FUZZ_OPTIONS:-}"
out=$(FUZZ_KEEP=$dir/tier FUZZ_OPTIONS=${FUZZ_OPTIONS:-} FUZZ_SECONDS=${FUZZ_SECONDS:-5} sh "$top_srcdir/tests/fuzz/fuzz.sh" 2>&1)
printf '%s\n' "$out" | sed 's/^/# /'
for file in "$top_srcdir"/tests/fuzz/*.mk; do
	target=$(basename "${file%.mk}")
	ok "$target: nothing found" grep -q '^ok ' "$dir/$target.result"
done
finish
