#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: automake has nothing to say of the Makefiles (a merge can leave a variable in them that is set twice, and the
# first list is lost; in the full tier), and every script of tests/system is in its list.
. "$srcdir/../system/lib.sh" || exit 1

# The name is OFED's.
known="autoconf input should be named 'configure.ac', not 'configure.in'"

# warnings DIRECTORY: what automake says of a copy of that tree and of libmlx4's and librdmacm's in it.
warnings() {
	rm -rf "$tmp/copy"
	mkdir "$tmp/copy" && (cd "$1" && find . \( -name 'build*' -o -name 'full-*' -o -name .git -o -name autom4te.cache \) -prune -o \
		\( -name Makefile.am -o -name '*.mk' -o -name '*.in' ! -name Makefile.in -o -name aclocal.m4 -o -path '*/config/*' \) \
		-type f -print0 | xargs -0 cp --parents -t "$tmp/copy") && chmod -R u+w "$tmp/copy" || return 1
	for dir in . libmlx4 librdmacm; do
		(cd "$tmp/copy/$dir" && automake --add-missing --copy --foreign 2>&1) | grep -vF "$known"
	done
}

tree() {
	warnings "$top_srcdir" >"$tmp/warnings"
	[ -f "$tmp/copy/tests/system/Makefile.in" ] && [ -f "$tmp/copy/libmlx4/tests/Makefile.in" ] && [ -f "$tmp/copy/librdmacm/tests/Makefile.in" ] || { echo "automake did not run:"; cat "$tmp/warnings"; return 1; }
	cat "$tmp/warnings"
	[ ! -s "$tmp/warnings" ]
}

# The check itself: a list that a merge has doubled.
doubled() {
	mkdir "$tmp/merged" && cp -r "$tmp/copy/." "$tmp/merged" || return 1
	echo 'scripts = lists.sh' >>"$tmp/merged/tests/man/Makefile.am"
	warnings "$tmp/merged" | grep -q "scripts multiply defined\|'scripts' multiply"
}

listed() {
	(cd "$top_srcdir/tests/system" && ls -- *.sh | grep -vxE 'cm_pairs.sh|lib.sh|umad_tools.sh|wire_apart.sh|wire_pair.sh|xrc_ranks.sh') | sort >"$tmp/there"
	# shellcheck disable=SC2016
	env -u MAKEFLAGS -u MAKELEVEL make -s -C "$top_builddir/tests/system" --no-print-directory --eval 'print-scripts: ; @printf "%s\n" $(scripts)' \
		print-scripts | sort >"$tmp/in_list"
	diff "$tmp/there" "$tmp/in_list"
}
ok "every script of tests/system is in the list of its Makefile, once" listed

# It takes as long as autogen.sh.
[ "${TIER:-}" = full ] || finish
if command -v automake >/dev/null && command -v aclocal >/dev/null; then
	ok "automake warns of nothing" tree
	ok "and would warn of a list that is there twice" doubled
else
	skip "warnings of automake" "install automake"
fi
finish
