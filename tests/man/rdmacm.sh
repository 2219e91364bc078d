#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: every function and tool of librdmacm has a man page, whose SYNOPSIS is the headers'; pages are well-formed, refer
# to nothing that is not there, and are all installed.
. "$srcdir/../system/lib.sh" || exit 1
. "$srcdir/page_tree.sh" || exit 1

export LC_ALL=C
man=$top_srcdir/librdmacm/man
include=$top_srcdir/librdmacm/include

# prototypes HEADER NAMES: of the functions whose names fit that expression
prototypes() {
	echo "#include <rdma/$1>" >"$tmp/one.c"
	$CC -I"$include" -I"$top_srcdir/include" -E "$tmp/one.c" |
		$AWK -v header="rdma/$1\"" '/^# [0-9]/ { ours = index($3, header) } ours && !/^#/' | tr '\n\t' '  ' | tr -s ' ' |
		sed ':a; s/{[^{}]*}/;/g; ta' | tr ';' '\n' | sed 's/^ *//; s/ *$//; s/^static inline //; s/ )$/)/' |
		sed -n "s|^\([a-z][a-z0-9_ ]*[ *]\+$2([^()]*)\)\$|rdma/$1 \1|p"
}

synopsis_is_prototype() {
	{
		prototypes rdma_cma.h 'rdma_[a-z0-9_]*'
		prototypes rdma_verbs.h 'rdma_[a-z0-9_]*'
		prototypes rsocket.h 'r[a-z]*'
	} | sort >"$tmp/prototypes"
	for page in "$man"/*.3 "$man/rsocket.7"; do
		grep -q '^\.so ' "$page" || $AWK -f "$srcdir/synopsis.awk" "$page"
	done | sort >"$tmp/synopses"
	[ "$(wc -l <"$tmp/prototypes")" -ge 79 ] || { echo "no prototypes found"; return 1; }
	diff -u "$tmp/prototypes" "$tmp/synopses"
}
ok "the SYNOPSIS of the pages is what the headers declare, and no function is missing" synopsis_is_prototype

page_by_name() {
	bad=0
	for name in $(sed 's/(.*//; s/.*[ *]//' "$tmp/prototypes") \
		$(sed -n 's/^\(r[a-z_]*\)@@.*/\1/p' "$top_srcdir/librdmacm/tests/librdmacm.symbols"); do
		target=$(sed -n 's|^\.so man[37]/||p' "$man/$name.3")
		grep -qx "\.Fo $name" "$man/${target:-$name.3}" || { echo "$name.3 does not lead to a page about it"; bad=1; }
	done
	for tool in $(tools_of "$top_srcdir/librdmacm/Makefile.am"); do
		[ -f "$man/$tool.1" ] || { echo "$tool has no page"; bad=1; }
	done
	return "$bad"
}
ok "each function and tool is found by its name" page_by_name

page_tree "$man"/*.[1-8]
lint_pages

references() {
	bad=0
	for page in "$man"/*.[1-8]; do
		for reference in $(sed -n 's/^\.Xr \([a-z0-9_]*\) \([1-8]\).*/\1.\2/p' "$page"); do
			case $reference in execve.2 | poll.2 | select.2 | epoll_wait.2 | fcntl.2 | pthread_cancel.3) continue ;; esac
			[ -f "$man/$reference" ] || [ -f "$top_srcdir/man/$reference" ] ||
				{ echo "${page##*/}: no page $reference"; bad=1; }
		done
	done
	return "$bad"
}
ok "references lead somewhere" references

constants() {
	bad=0
	for name in $(grep -hv '^\.Dt ' "$man"/*.[37] | grep -oE '\<(RDMA|RAI|IBV)_[A-Z0-9_]+' | sort -u); do
		grep -rqw "$name" "$include" "$top_srcdir/include" || { echo "$name is no constant"; bad=1; }
	done
	return "$bad"
}
ok "constants exist" constants

installed() {
	(cd "$man" && ls) | diff - <(sed -n 's|^\tman/\([a-z0-9_]*\.[1-8]\).*|\1|p' "$top_srcdir/librdmacm/Makefile.am" | sort)
}
ok "every page is installed" installed
finish
