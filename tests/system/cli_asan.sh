#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: a program that was built with ASan elsewhere runs in `softhca run`, and ASan still
# works there.
. "$srcdir/lib.sh" || exit 1

cat >"$tmp/prog.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
	char *p = malloc(8);
	FILE *f = fopen("/sys/class/infiniband/mlx4_0/node_type", "r");

	(void)argv;
	if (!f || !fgets(p, 8, f) || strncmp(p, "1: CA", 5))
		return 3;
	fclose(f);
	p[argc > 1 ? 8 : 7] = 0;
	free(p);
	return 0;
}
C
build() { ${CC:-cc} -g -fsanitize=address "$@" -o "$tmp/prog" "$tmp/prog.c"; }
is_clang() { ${CC:-cc} --version | grep -qi clang; }
for kind in "" -static-libasan -shared-libasan; do
	# Each compiler has an option for the linkage that is not its default.
	case $kind in
	-shared-libasan) is_clang || continue ;;
	-static-libasan) is_clang && continue ;;
	esac
	rpath=
	[ "$kind" != -shared-libasan ] ||
		rpath=-Wl,-rpath,$(dirname "$($CC -print-file-name="libclang_rt.asan-$(uname -m).so")")
	# shellcheck disable=SC2086 # words: $rpath
	ok "it compiles${kind:+ ($kind)}" build $kind $rpath
	ok "it runs${kind:+ ($kind)}" "$SOFTHCA" run -- "$tmp/prog"
	caught() { "$SOFTHCA" run -- "$tmp/prog" overflow 2>"$tmp/err" && return 1; grep -q heap-buffer-overflow "$tmp/err"; }
	ok "ASan sees its errors there${kind:+ ($kind)}" caught
done
finish
