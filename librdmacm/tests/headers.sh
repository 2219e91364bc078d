#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Description: each header compiles alone, as C and as C++, and the headers declare what the library exports and nothing else.

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C
n=0
status=0

result() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		status=1
	fi
}

# In the quick tier those of one kind alone.
ccs= cxxs=
others="clang clang++"
[ "${TIER:-}" = full ] || others=
for c in ${CC%% *} gcc ${others% *}; do
	command -v "$c" >/dev/null 2>&1 && case " $ccs " in *" $c "*) ;; *) ccs="$ccs $c" ;; esac
done
for c in g++ ${others#* }; do
	command -v "$c" >/dev/null 2>&1 && cxxs="$cxxs $c"
done

compile() {
	# shellcheck disable=SC2086 # words: $IBVERBS_CPPFLAGS
	"$@" -Wall -Wextra -Werror -I"$top_srcdir/include" $IBVERBS_CPPFLAGS -fsyntax-only "$tmp/one.$suffix"
	result $? "$header: $*"
}

for header in infiniband/ib.h rdma/rdma_cma.h rdma/rdma_cma_abi.h rdma/rdma_verbs.h rdma/rsocket.h; do
	echo "#include <$header>" >"$tmp/one.c"
	cp "$tmp/one.c" "$tmp/one.cc"
	suffix=c
	for c in $ccs; do
		compile "$c" -std=gnu89
		compile "$c" -std=gnu99
		compile "$c" -std=gnu11
	done
	suffix=cc
	for c in $cxxs; do
		compile "$c" -std=gnu++98 -Wno-long-long
		compile "$c" -std=gnu++17
	done
done

# Every function that the headers declare without a body.
printf '#include <rdma/%s>\n' rdma_verbs.h rsocket.h >"$tmp/all.c"
# shellcheck disable=SC2086 # words: $CC, $IBVERBS_CPPFLAGS
$CC -I"$top_srcdir/include" $IBVERBS_CPPFLAGS -E "$tmp/all.c" |
	awk '/^# [0-9]/ { ours = $3 ~ /\/rdma\// } ours' | tr '\n' ' ' |
	sed ':a; s/{[^{}]*}/;/g; ta' | tr ';' '\n' |
	sed -n 's/^\([^()]*[ *]\)\(r[a-z0-9_]*\) *(.*) *$/\1\2/p' |
	grep -v '^ *static\| static ' | sed 's/.*[ *]//' | sort -u >"$tmp/declared"
sed -n 's/^\([a-z0-9_]*\)@.*/\1/p' "$srcdir/librdmacm.symbols" | sort -u | diff -u - "$tmp/declared"
result $? "declared (+) and exported (-) functions are the same"
echo "1..$n"
exit $status
