#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Description: libibverbs.so.1 exports exactly the names and versions of libibverbs.symbols, under its SONAME.

lib=$top_builddir/libibverbs/.libs/libibverbs.so.1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C

if ! [ -e "$lib" ]; then
	echo "$lib is not built"
	exit 1
fi

# A sanitizer's run-time puts names of its own into what it instruments: they carry no version.
nm -D --defined-only --with-symbol-versions "$lib" >"$tmp/nm" || exit 1
awk '{ print $NF }' "$tmp/nm" | sed 's/^\(IBVERBS_1\.[01]\)$/\1@@\1/' | grep -v '^__\(asan\|ubsan\|odr_asan\)' |
	sort >"$tmp/exported"
sort "$srcdir/libibverbs.symbols" >"$tmp/golden"

status=0
if ! diff -u "$tmp/golden" "$tmp/exported"; then
	echo "the exported symbols differ: - missing, + not to be there"
	status=1
fi

soname=$(readelf -d "$lib" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
if [ "$soname" != libibverbs.so.1 ]; then
	echo "SONAME is '$soname', must be 'libibverbs.so.1'"
	status=1
fi

file=$(basename "$(readlink -f "$lib")")
if [ "$file" != libibverbs.so.1.0.0 ]; then
	echo "the file is '$file', must be 'libibverbs.so.1.0.0'"
	status=1
fi
exit $status
