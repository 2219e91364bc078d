#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: a program linked with the archives of libibverbs, libmlx4 and libsysfs, found by pkg-config, needs no shared
# library of ours and no provider plug-in, and sends on softhca. Its C library stays shared: softhca is preloaded.
. "$top_srcdir/tests/packaging/lib.sh" || exit 1

prefix=$work/prefix

# What a static program must do without goes afterwards.
built() {
	# shellcheck disable=SC2086 # words: $jobs
	mkdir -p "$work/build" && cd "$work/build" && "$top_srcdir/scripts/answers" "$top_builddir" >config.cache &&
	"$top_srcdir/configure" --config-cache --prefix="$prefix" --disable-softhca CFLAGS="-O2 -Werror" &&
	for package in libibverbs libmlx4; do
		"$MAKE" $jobs -C $package install || return 1
	done &&
	# Its tools need no archive.
	"$MAKE" $jobs -C librdmacm install-libLTLIBRARIES &&
	rm -f "$prefix"/lib/lib*.so* "$prefix"/lib/*.la
}

linked() {
	flags=$(PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig pkg-config --static --cflags --libs libmlx4 libibverbs) || return 1
	echo "$flags"
	# The archive of libsysfs too, where there is one.
	flags=${flags//-lsysfs/-Wl,-Bstatic -lsysfs -Wl,-Bdynamic}
	# shellcheck disable=SC2086 # words: $flags
	$CC -Wall -Wextra -Werror -O2 -o "$work/static" "$top_srcdir/tests/packaging/static.c" $flags
}

needs_nothing() {
	readelf -d "$work/static" | grep NEEDED
	! readelf -d "$work/static" | grep -E 'NEEDED.*(ibverbs|mlx4|sysfs)'
}

sends() {
	mkdir -p "$work/run" &&
	SOFTHCA_DIR=$work/run timeout 60 "$top_builddir/softhca/cli/softhca" run "$@" -- "$work/static" | tee "$work/said" &&
	grep -q '^mlx4_0: a message$' "$work/said"
}

ok "the libraries are built with archives, and installed" built
ok "a program links with the archives" linked
ok "it needs no shared library of ours" needs_nothing
for face in ofed mainline; do
	for mmio in kick trap; do
		ok "it sends on softhca, $face, $mmio" sends --kernel $face --mmio $mmio
	done
done
finish
