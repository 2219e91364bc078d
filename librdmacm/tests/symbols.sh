#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Description: librdmacm.so.1 exports exactly the names and versions of librdmacm.symbols, under its SONAME.

lib=$top_builddir/.libs/librdmacm.so.1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C

nm -D --defined-only --with-symbol-versions "$lib" >"$tmp/nm" || exit 1
awk '{ print $NF }' "$tmp/nm" | sed 's/^\(RDMACM_1\.0\)$/\1@@\1/' | grep -v '^__\(asan\|ubsan\|odr_asan\)' |
	sort >"$tmp/exported"

status=0
echo 1..2
if sort "$srcdir/librdmacm.symbols" | diff -u - "$tmp/exported"; then
	echo "ok 1 - the symbols"
else
	echo "not ok 1 - the symbols: - missing, + not to be there"
	status=1
fi
soname=$(readelf -d "$lib" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
file=$(basename "$(readlink -f "$lib")")
if [ "$soname $file" = "librdmacm.so.1 librdmacm.so.1.0.0" ]; then
	echo "ok 2 - SONAME and file"
else
	echo "not ok 2 - SONAME and file are $soname $file"
	status=1
fi
exit $status
