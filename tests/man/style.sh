#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: scripts/style finds nothing in the tree, with what takes seconds; and each of its checks fails for a fault
# of its kind in a made-up tree, and for a tool that is missing. The commits that only format are those of this history.
. "$srcdir/../system/lib.sh" || exit 1
# With what the scripts source, shellcheck computes for a minute.
shellcheck=scripts
[ "${TIER:-}" != full ] || shellcheck=shell
unset TIER

for tool in clang-format clang-tidy codespell shellcheck sparse; do
	command -v $tool >/dev/null && continue
	skip "the checks of make style" "install $tool"
	finish
done
# Whatever version of these tools a distribution has, it is no judge of a release.
[ -e "$top_srcdir/.git" ] || { skip "the checks of make style" "this is not a git tree"; finish; }
for check in format $shellcheck sparse spelling; do
	ok "$check" timeout 900 "$top_srcdir/scripts/style" "$top_builddir" "$check"
done
# Where there is the whole history, the names that git blame is to pass over are in it: with one that is not, it fails. A copy whose
# history begins later has none of them.
passed_over() {
	[ "$(git -C "$top_srcdir" rev-parse --is-shallow-repository)" = false ] || return 0
	grep -v '^#' "$top_srcdir/.git-blame-ignore-revs" >"$tmp/revisions" || return 1
	git -C "$top_srcdir" cat-file -e "$(head -n 1 "$tmp/revisions")" 2>/dev/null || return 0
	while read -r commit; do
		git -C "$top_srcdir" merge-base --is-ancestor "$commit" HEAD || { echo "$commit is not in this history"; return 1; }
	done <"$tmp/revisions"
}
ok "the commits that git blame passes over are there" passed_over

tree=$tmp/tree
mkdir -p "$tree/scripts" "$tree/softhca/device" "$tree/build" "$tree/bin"
cp "$top_srcdir/scripts/style" "$tree/scripts/"
cp "$top_srcdir/.clang-format" "$tree/"
: >"$tree/build/config.h"
printf '#!/bin/sh\necho good\n' >"$tree/scripts/good"
printf 'int good(void);\nint good(void)\n{\n\treturn 0;\n}\n' >"$tree/softhca/device/good.c"
for tool in bash sh dirname mktemp rm find grep sort head tr nproc xargs cat; do
	ln -s "$(command -v $tool)" "$tree/bin/"
done

look() { (cd / && "$tree/scripts/style" "$tree/build" "$1"); }
finds() { status 1 look "$1" >"$tmp/found" 2>&1 && grep -q "$2" "$tmp/found" || { cat "$tmp/found"; return 1; }; }

for check in format shell scripts sparse spelling analyse; do
	ok "$check passes what is right" look $check
	PATH=$tree/bin ok "$check fails without its tool, which it names" finds $check 'is missing. Install it (Debian package'
done

printf 'int  good(void) { return 0; }\n' >"$tree/softhca/device/good.c"
ok "format finds a file that is written otherwise" finds format 'good.c:1:.*clang-format'
# shellcheck disable=SC2016 # for that script
printf '#!/bin/sh\nrm -r $1\n' >"$tree/scripts/good"
ok "shell finds a word that is split" finds shell 'scripts/good:2:.*SC2086'
printf '#!/bin/sh\nlocal=1 read -r x; [ $x == 1 ]\n' >"$tree/scripts/good"
ok "scripts finds what dash does not know" finds scripts 'scripts/good:2:.*SC3014'
cat >"$tree/softhca/device/good.c" <<'END'
#include <linux/types.h>
__be32 good(__u32 x);
__be32 good(__u32 x)
{
	return x;
}
END
ok "sparse finds a missing swap" finds sparse 'good.c:5:.*incorrect type'
printf '/* It is recie%sed. */\n' v >"$tree/softhca/device/good.c"
ok "spelling finds a word" finds spelling 'good.c:1:.*==>'
cat >"$tree/softhca/device/good.c" <<'END'
int good(int x);
int good(int x)
{
	int *at = x ? &x : 0;

	return *at;
}
END
ok "analyse finds a null pointer" finds analyse 'good.c:6:.*NullDereference'
ok "there are no other checks" status 2 look taste
finish
