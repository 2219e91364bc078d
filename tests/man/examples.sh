#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the code examples of the man pages and of the documents compile; whole programs run, and print what the
# page says; shell examples parse, and those that need nothing else run; the page of softhca has every option.
. "$srcdir/../system/lib.sh" || exit 1

include=$top_srcdir/include
flags="-Wall -Wextra -Werror -Wno-unused-function -I$include -I$top_srcdir/librdmacm/include"

# What every fragment may take for granted.
prelude='#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <infiniband/driver.h>'

# Statements of a document are in a function that has these.
names='struct ibv_device *device, struct ibv_context *context, struct ibv_pd *pd, struct ibv_mr *mr, struct ibv_cq *cq,
	struct ibv_comp_channel *channel, struct ibv_qp *qp, struct ibv_srq *srq, struct ibv_xrc_domain *domain, uint32_t rcv_qpn,
	struct ibv_send_wr *bad_wr, int fd, int ret'

mkdir "$tmp/examples"
$AWK -v dir="$tmp/examples" -f "$srcdir/examples.awk" "$top_srcdir"/man/*.[1-8] "$top_srcdir"/libmlx4/*.[1-8] "$top_srcdir"/librdmacm/man/*.[1-8] \
	"$top_srcdir"/*.md "$top_srcdir"/docs/*.md
cd "$tmp/examples" || exit 1

fragment() {
	(echo "$prelude" && cat "$1") >"$tmp/fragment.c"
	# shellcheck disable=SC2086
	$CC $CFLAGS $flags -fsyntax-only "$tmp/fragment.c" && return
	(echo "$prelude" && echo "static void example($names);" && echo "static void example($names)" && echo "{ {" &&
		cat "$1" && echo "} }") >"$tmp/statements.c"
	# shellcheck disable=SC2086
	$CC $CFLAGS $flags -Wno-unused -fsyntax-only "$tmp/statements.c"
}

program() {
	# shellcheck disable=SC2086
	$CC $CFLAGS $flags -o "$tmp/program" "$1" -L"$top_builddir/librdmacm/.libs" -Wl,--as-needed -lrdmacm \
		-L"$top_builddir/libibverbs/.libs" -libverbs -lpthread || return 1
	if ! [ -x "$SOFTHCA" ]; then
		echo "not run: no softhca in this build"
		return 0
	fi
	for kernel in ofed mainline; do
		ours timeout 60 "$SOFTHCA" run --kernel "$kernel" -- "$tmp/program" >"$tmp/printed" || return 1
		if [ -f "${1%.c}.out" ]; then
			diff "${1%.c}.out" "$tmp/printed" || { echo "it prints (>) what the page does not say (<)"; return 1; }
		fi
	done
}

found=0
for file in *.c; do
	found=$((found + 1))
	if grep -q '^int main(' "$file"; then
		ok "${file%.c}: the program compiles and runs" program "$file"
	else
		ok "${file%.c}: the fragment compiles" fragment "$file"
	fi
done
ok "examples were found" test "$found" -ge 12

shells() {
	for file in *.sh *.run; do
		[ -e "$file" ] || break
		bash -n "$file" || { echo "in $file"; return 1; }
	done
}
ok "shell examples parse" shells

# As somebody types it who has the tools, jq and programs of the names that the example has; all in one instance, as the
# last of them look at the one that they run in.
shell() {
	(mkdir -p "$tmp/here" && cd "$tmp/here" || exit 1
	for name in program tests server-and-client.sh; do
		printf '#!/bin/sh\nexec ibv_devinfo\n' >"$name" && chmod +x "$name"
	done
	PATH=$(dirname "$SOFTHCA"):$TOOLS:$top_builddir/librdmacm:$PATH
	export PATH
	ours timeout 60 "$SOFTHCA" run -- bash -euo pipefail "$1")
}
if [ -x "$SOFTHCA" ] && command -v jq >/dev/null; then
	found=0
	for file in *.run; do
		found=$((found + 1))
		ok "${file%.run}: it runs" shell "$tmp/examples/$file"
	done
	ok "shell examples to run were found" test "$found" -ge 3
else
	skip "shell examples run" "no softhca in this build, or jq is not installed"
fi

options() {
	bad=0
	page=$(sed 's/Fl -\([a-z]\)/--\1/g' "$top_srcdir/man/softhca.1")
	for verb in run start stop show port fault doctor; do
		echo "$page" | grep -q "^\.Cm $verb" || { echo "no verb $verb"; bad=1; }
		# shellcheck disable=SC2086 # words: $verb
		for option in $("$SOFTHCA" $verb --help | grep -oE -- '--[a-z][a-z-]+'); do
			echo "$page" | grep -q -- "$option\>" || { echo "no option $option of $verb"; bad=1; }
		done
	done
	return "$bad"
}
if [ -x "$SOFTHCA" ]; then
	ok "softhca.1 has every verb and option" options
else
	skip "softhca.1 has every verb and option" "no softhca in this build"
fi
finish
