#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: every public function has a man page, whose SYNOPSIS, structures and constants are the headers'; every
# tool has one; pages are well-formed and refer to nothing that is not there.
. "$srcdir/../system/lib.sh" || exit 1
. "$srcdir/page_tree.sh" || exit 1

export LC_ALL=C
man=$top_srcdir/man
# Of the package that is in its own directory.
mlx4=$top_srcdir/libmlx4
include=$top_srcdir/include
headers=$(cd "$include" && echo infiniband/*.h)
# Pages of the system that ours may refer to.
system_pages='dlopen(3) env(1) execve(2) fork(2) getrlimit(2) madvise(2) mlock(2) open(2) poll(2) ssh(1)'

# What a header itself says, preprocessed, on one line.
text_of() {
	echo "#include <$1>" >"$tmp/one.c"
	$CC -I"$include" -E "$tmp/one.c" |
		$AWK -v own="$1" '/^# [0-9]/ { ours = index($3, own "\"") } ours && !/^#/' | tr '\n\t' '  ' | tr -s ' '
}

# One line per function, as synopsis.awk writes them.
prototypes() {
	for header in $headers; do
		text_of "$header" | sed ':a; s/{[^{}]*}/;/g; ta' | tr ';' '\n' |
			sed 's/__attribute__ *(([^)]*([^)]*)*)*)//; s/__attribute__ *(([a-z_]*))//; s/^ *//; s/ *$//; s/^static inline //' |
			sed -n 's/^\([a-z][a-z0-9_ ]*[ *]\+\)\(ibv_[a-z0-9_]*\|mult_to_ibv_rate\)(\([^()]*\))$/\1\2(\3)/p' |
			grep -v '^typedef ' | sed "s|^|$header |"
	done
}

synopses() {
	for page in "$man"/*.3; do
		grep -q '^\.so ' "$page" || $AWK -f "$srcdir/synopsis.awk" "$page"
	done
}

synopsis_is_prototype() {
	prototypes | sort >"$tmp/prototypes"
	synopses | sort >"$tmp/synopses"
	[ "$(wc -l <"$tmp/prototypes")" -ge 90 ] || { echo "no prototypes found"; return 1; }
	diff -u "$tmp/prototypes" "$tmp/synopses" || { echo "a header (-) and the pages (+) differ"; return 1; }
}
ok "the SYNOPSIS of the pages is what the headers declare, and no function is missing" synopsis_is_prototype

# A comment ends on the line before each function, structure, union and enumeration, or stands in it.
documented() {
	for header in $headers; do
		$AWK -v header="$header" '
			/^(struct|union|enum)( [a-z0-9_]+)? \{/ || /^[a-z].*[ *](ibv_[a-z0-9_]+|mult_to_ibv_rate|htonll|ntohll)\(/ {
				n++
				if (before !~ /\*\/$/ && !/\*\//) {
					print header ": no comment: " $0
					bad = 1
				}
			}
			{ before = $0 }
			END { print header, n + 0 > "/dev/stderr"; exit bad }' "$include/$header" || return 1
	done 2>"$tmp/documented"
	[ "$($AWK '{ n += $2 } END { print n }' "$tmp/documented")" -ge 240 ] || { echo "declarations are missed"; return 1; }
}
ok "every declaration of the headers has a comment" documented

functions() {
	sed 's/(.*//; s/.*[ *]//' "$tmp/prototypes" | sort -u
}

page_by_name() {
	bad=0
	for name in $(functions); do
		page=$man/$name.3
		if ! [ -f "$page" ]; then
			echo "$name has no page"
			bad=1
			continue
		fi
		target=$(sed -n 's|^\.so man3/||p' "$page")
		if ! grep -qx "\.Fo $name" "$man/${target:-$name.3}" || ! grep -q "^\.Nm $name\( ,\)\?$" "$man/${target:-$name.3}"; then
			echo "$name.3 does not lead to a page about it"
			bad=1
		fi
	done
	return "$bad"
}
ok "each function is found by its name" page_by_name

names_are_functions() {
	for page in "$man"/*.3; do
		sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([a-z0-9_]*\).*/\1/p' "$page"
	done | sort >"$tmp/names"
	functions | diff - "$tmp/names"
}
ok "no page names anything else" names_are_functions

# Structures, unions and enumerations that a page shows in full.
structures() {
	for header in $headers; do
		text_of "$header"
	done >"$tmp/headers"
	bad=0
	found=0
	for page in "$man"/*.[1-8] "$mlx4"/*.[1-8]; do
		$AWK '/^\.Bd -literal$/ { block = ""; inside = 1; next } /^\.Ed/ { if (block ~ /^(struct|union|enum) [a-z_]+ \{/)
			print block; inside = 0; next } inside { while ((from = index($0, "/*")) && (to = index($0, "*/"))) $0 = substr($0, 1, from - 1) substr($0, to + 2)
		block = block " " $0; sub(/^ /, "", block) }' \
			"$page" >"$tmp/blocks"
		while read -r block; do
			found=$((found + 1))
			block=$(echo "$block" | tr -s ' ' | sed 's/ $//')
			grep -qF -- "$block" "$tmp/headers" || { echo "$page: not in the headers: $block"; bad=1; }
		done <"$tmp/blocks"
	done
	[ "$found" -ge 12 ] || { echo "only $found structures found"; return 1; }
	return "$bad"
}
ok "structures are shown as the headers have them" structures

constants() {
	bad=0
	for name in $(grep -hv '^\.Dt ' "$man"/*.[37] "$mlx4"/*.7 | grep -oE '\<IBV_[A-Z0-9_]+' | sort -u); do
		# Variables of the environment begin like constants.
		case $name in IBV_FORK_SAFE | IBV_DRIVERS) continue ;; esac
		grep -qw "$name" "$include"/infiniband/*.h || { echo "$name is no constant"; bad=1; }
	done
	return "$bad"
}
ok "constants exist" constants

page_tree "$man"/*.[1-8] "$mlx4"/*.[1-8]
lint_pages

references() {
	bad=0
	for page in "$tmp"/tree/man?/*; do
		for reference in $(sed -n 's/^\.\(It \)\?Xr (\? \?\([a-zA-Z0-9_-]*\) \([1-8]\).*/\2(\3)/p' "$page") \
			$($AWK '/^\.Bd/ { code = 1 } !code && !/^\./; /^\.Ed/ { code = 0 }' "$page" | grep -oE '[a-z_][a-z0-9_-]*\([1-8]\)'); do
			case " $system_pages " in *" $reference "*) continue ;; esac
			name=${reference%(*}
			section=${reference#*(}
			[ -f "$tmp/tree/man${section%)}/$name.${section%)}" ] || { echo "${page##*/}: no page $reference"; bad=1; }
		done
	done
	return "$bad"
}
ok "SEE ALSO and other references lead somewhere" references

ends_with_references() {
	bad=0
	for page in "$man"/*.[1-8] "$mlx4"/*.[1-8]; do
		grep -q '^\.so \|^\.Sh SEE ALSO' "$page" || { echo "${page##*/} has no SEE ALSO"; bad=1; }
	done
	return "$bad"
}
ok "every page has a SEE ALSO" ends_with_references

error_sections() {
	bad=0
	for page in "$man"/*.3; do
		grep -q '^\.so \|^\.Sh RETURN VALUES' "$page" || { echo "${page##*/} has no RETURN VALUES"; bad=1; }
	done
	return "$bad"
}
ok "every page of section 3 tells what is returned" error_sections

tools() {
	bad=0
	for tool in $(tools_of "$top_srcdir/examples/Makefile.am") softhca softhca-check-mpi softhca-rsh; do
		[ -f "$man/$tool.1" ] || { echo "$tool has no page"; bad=1; }
	done
	return "$bad"
}
ok "every tool has a page" tools

# listed DIRECTORY: what is there, and what its Makefile installs.
listed() {
	(cd "$1" && ls -- *.[1-8]) >"$tmp/present"
	$AWK '/^dist_man_MANS/ { on = 1 } on { print } !/\\$/ { on = 0 }' "$1/Makefile.am" |
		grep -oE '[a-zA-Z0-9_-]+\.[1-8]' | sort | diff "$tmp/present" -
}

installed() {
	listed "$man" && listed "$mlx4"
}
ok "every page is installed" installed
# Each of several errors has brackets of its own.
brackets() {
	bad=0
	# All at once, and each by itself to find out which.
	mandoc -Tascii "$man"/*.[1-8] "$mlx4"/*.[1-8] 2>/dev/null | sed "s/.$(printf '\b')//g" | grep -q '\[E[A-Z]*, \[E' || return 0
	for page in "$man"/*.[1-8] "$mlx4"/*.[1-8]; do
		mandoc -Tascii "$page" 2>/dev/null | sed "s/.$(printf '\b')//g" | grep -n '\[E[A-Z]*, \[E' && { echo "in $page"; bad=1; }
	done
	return "$bad"
}
# groff 1.22, which man(1) uses, calls every mdoc page one of BSD's unless the page says otherwise.
linux() {
	bad=0
	for page in "$man"/*.[1-8] "$mlx4"/*.[1-8]; do
		grep -q '^\.so ' "$page" && continue
		if ! grep -qx '\.ds doc-volume-operating-system' "$page" || ! grep -qx '\.Os Linux' "$page"; then
			echo "${page##*/} has BSD in its header or footer"
			bad=1
		fi
	done
	return "$bad"
}
ok "no header or footer names another system" linux

if command -v mandoc >/dev/null; then
	ok "errors stand in brackets of their own" brackets
else
	skip "errors in brackets" "install mandoc"
fi
finish
