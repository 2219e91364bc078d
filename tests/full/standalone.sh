#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: an installation in a prefix is complete: libmlx4 and librdmacm configure and build alone against it, and a program
# compiled against nothing but the installed headers and -libverbs runs on the installed provider and softhca.
. "$top_srcdir/tests/full/lib.sh" || exit 1

dir=$top_builddir/full-standalone
prefix=$dir/prefix
rm -rf "$dir"
mkdir -p "$dir"

# alone PACKAGE: what the whole tree installed of it goes first.
alone() {
	make -C "$dir/all/$1" uninstall && mkdir -p "$dir/$1" && cd "$dir/$1" &&
	"$top_srcdir/$1/configure" --prefix="$prefix" --disable-static CPPFLAGS="-I$prefix/include" LDFLAGS="-L$prefix/lib" \
		CFLAGS="-g -O2 -Werror" && make && make install
}

without_verbs() {
	mkdir -p "$dir/missing-$1" && cd "$dir/missing-$1" &&
	! "$top_srcdir/$1/configure" CPPFLAGS="-nostdinc" >"$dir/missing-$1.out" 2>&1
}

# In a prefix of its own, beside the librdmacm that the whole tree installed with libibverbs.
beside() {
	mkdir -p "$dir/beside" && cd "$dir/beside" &&
	"$top_srcdir/librdmacm/configure" --prefix="$dir/own" --disable-static PKG_CONFIG_PATH="$prefix/lib/pkgconfig" &&
	make && make install || return 1
	for file in "$dir/own"/bin/* "$dir/own"/lib/rsocket/librspreload.so; do
		env -u LD_LIBRARY_PATH ldd "$file" >"$dir/beside.out" && grep -q "librdmacm.so.1 => $dir/own/lib/" "$dir/beside.out" &&
			grep -q "libibverbs.so.1 => $prefix/lib/" "$dir/beside.out" || { echo "$file:"; cat "$dir/beside.out"; return 1; }
	done
}

program() {
	cat >"$dir/open.c" <<-'EOF'
	#include <infiniband/verbs.h>
	#include <stdio.h>

	int main(void)
	{
		struct ibv_device **list = ibv_get_device_list(NULL);
		struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
		struct ibv_device_attr attr;

		if (!context || ibv_query_device(context, &attr) || !attr.max_qp)
			return 1;
		printf("%s %s\n", ibv_get_device_name(list[0]), attr.fw_ver);
		ibv_close_device(context);
		ibv_free_device_list(list);
		return 0;
	}
	EOF
	gcc -Wall -Wextra -Werror -I"$prefix/include" "$dir/open.c" -o "$dir/open" -L"$prefix/lib" -libverbs \
		-Wl,-rpath,"$prefix/lib" &&
	"$prefix/bin/softhca" run --kernel ofed -- "$dir/open"
}

ok "everything builds for a prefix" "$top_srcdir/scripts/build" "$dir/all" --disable-static --prefix="$prefix" CFLAGS="-g -O2 -Werror"
ok "make install" make -C "$dir/all" install
ok "librdmacm alone, in a prefix of its own: its programs load it, and not the one beside libibverbs" beside
for package in libmlx4 librdmacm; do
	ok "$package configures, builds and installs alone against an installed libibverbs" alone $package
	ok "$package alone refuses to configure without libibverbs" without_verbs $package
done
ok "a program compiled against the installed headers opens the device" program
finish
