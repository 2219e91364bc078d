#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: an installation in a prefix is complete: libmlx4 configures and builds alone against it, and a program
# compiled against nothing but the installed headers and -libverbs runs on the installed provider and softhca.
. "$top_srcdir/tests/full/lib.sh"

dir=$top_builddir/full-standalone
prefix=$dir/prefix
rm -rf "$dir"
mkdir -p "$dir/libmlx4"

libmlx4_alone() {
	cd "$dir/libmlx4" &&
	"$top_srcdir/libmlx4/configure" --prefix="$prefix" CPPFLAGS="-I$prefix/include" LDFLAGS="-L$prefix/lib" \
		CFLAGS="-g -O2 -Werror" && make && make install
}

without_verbs() {
	mkdir -p "$dir/missing" && cd "$dir/missing" &&
	! "$top_srcdir/libmlx4/configure" CPPFLAGS="-nostdinc" >"$dir/missing.out" 2>&1
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

ok "everything builds for a prefix" "$top_srcdir/scripts/build" "$dir/all" --prefix="$prefix" CFLAGS="-g -O2 -Werror"
ok "make install" make -C "$dir/all" install
ok "libmlx4 configures, builds and installs alone against an installed libibverbs" libmlx4_alone
ok "libmlx4 alone refuses to configure without libibverbs" without_verbs
ok "a program compiled against the installed headers opens the device" program
finish
