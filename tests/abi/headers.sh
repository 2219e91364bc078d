#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Description: the installed headers are the eight of OFED, each compiles alone, as C and as C++, they declare what the
# library exports and nothing else, and a program made with them and -libverbs alone links.

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C
status=0
inc=$tmp/include

fail()
{
	echo "$*"
	status=1
}

# As make install does it, into a root of our own. Under make, ours must not be taken for its sub-make.
if ! env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u DESTDIR "${MAKE:-make}" -C "$top_builddir" install-infinibandHEADERS \
	DESTDIR= infinibanddir="$inc/infiniband" >"$tmp/log" 2>&1; then
	cat "$tmp/log"
	exit 1
fi
headers=$(cd "$inc/infiniband" && echo *)
[ "$headers" = "arch.h driver.h kern-abi.h marshall.h opcode.h sa-kern-abi.h sa.h verbs.h" ] ||
	fail "installed headers: $headers"

compile()
{
	echo "#include <infiniband/$header>" >"$tmp/one.$suffix"
	"$@" -Wall -Wextra -Werror -I"$inc" -fsyntax-only "$tmp/one.$suffix" >"$tmp/log" 2>&1 ||
		{ cat "$tmp/log"; fail "$header: $* fails"; }
}

ccs= cxxs=
for c in ${CC%% *} gcc clang; do
	if command -v "$c" >/dev/null 2>&1; then
		case " $ccs " in *" $c "*) ;; *) ccs="$ccs $c" ;; esac
	fi
done
for c in ${CXX%% *} g++ clang++; do
	if command -v "$c" >/dev/null 2>&1; then
		case " $cxxs " in *" $c "*) ;; *) cxxs="$cxxs $c" ;; esac
	fi
done

for header in $headers; do
	for c in $ccs; do
		suffix=c
		compile "$c" -std=gnu89
		compile "$c" -std=gnu99
		compile "$c" -std=c11
	done
	for c in $cxxs; do
		suffix=cc
		compile "$c" -std=c++98 -Wno-long-long -Wno-variadic-macros
		compile "$c" -std=c++17
	done
done

# Every function that the headers declare without a body, and that is not one of the C library.
for header in $headers; do
	echo "#include <infiniband/$header>"
done >"$tmp/all.c"
set -- $ccs
"$1" -I"$inc" -E "$tmp/all.c" |
	awk '/^# [0-9]/ { ours = $3 ~ /\/infiniband\// } ours' | tr '\n' ' ' |
	sed 's/{[^{}]*}/;/g; s/{[^{}]*}/;/g; s/{[^{}]*}/;/g; s/{[^{}]*}/;/g' | tr ';' '\n' |
	sed -n 's/^\([^()]*[ *]\)\([a-z_][a-z0-9_]*\) *(.*) *$/\1\2/p' |
	grep -v '^ *\(static\|typedef\)\| static ' | sed 's/.*[ *]//' | sort -u >"$tmp/declared"
sed -n 's/^\([a-z0-9_]*\)@.*/\1/p' "$srcdir/libibverbs.symbols" | sort -u >"$tmp/exported"
diff -u "$tmp/exported" "$tmp/declared" || fail "declared (+) and exported (-) functions differ"

cat >"$tmp/use.c" <<'END'
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list)
		ibv_free_device_list(list);
	puts(ibv_wc_status_str(IBV_WC_SUCCESS));
	return 0;
}
END
libs=$top_builddir/libibverbs/.libs
set -- $CC
for c in $ccs; do
	[ "$c" = "$1" ] && cc=$CC || cc=$c
	# The library may be instrumented; only the compiler that did it knows how to link it.
	if [ "$c" != "$1" ] && readelf -Ws --dyn-syms "$libs/libibverbs.so" | grep -q ' __\(a\|ub\)san_'; then
		continue
	fi
	if ! $cc ${CFLAGS:-} -Wall -Wextra -Werror -I"$inc" -o "$tmp/use" "$tmp/use.c" -L"$libs" -libverbs \
		>"$tmp/log" 2>&1; then
		cat "$tmp/log"
		fail "$c does not link with -libverbs"
		continue
	fi
	if ! [ "$(LD_LIBRARY_PATH=$libs "$tmp/use" 2>/dev/null)" = success ]; then
		fail "the program made by $c does not run"
	fi
done
exit $status
