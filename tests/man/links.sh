#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: links between the documents lead to files and headings that are there, and man pages that they name exist.
. "$srcdir/../system/lib.sh"

export LC_ALL=C.UTF-8
cd "$top_srcdir" || exit 1
documents=$(ls ./*.md docs/*.md 2>/dev/null)

# A document without its code.
prose() {
	$AWK '/^```/ { code = !code; next } !code' "$1"
}

# The anchors of a document's headings, as forges make them.
anchors() {
	prose "$1" | sed -n 's/^#\{1,6\} //p' | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

links() {
	bad=0
	found=0
	for document in $documents; do
		for link in $(prose "$document" | grep -oE '\]\([^)# ]*(#[^) ]*)?\)' | sed 's/^](//; s/)$//'); do
			case $link in http://* | https://* | mailto:*) continue ;; esac
			found=$((found + 1))
			file=${link%%#*}
			target=$(dirname "$document")/$file
			[ -n "$file" ] || target=$document
			if ! [ -e "$target" ]; then
				echo "$document: $link is not there"
				bad=1
			elif [ "${link#*#}" != "$link" ] && ! anchors "$target" | grep -qxF -- "${link#*#}"; then
				echo "$document: $link has no such heading"
				bad=1
			fi
		done
	done
	[ "$found" -gt 0 ] || { echo "no links found"; return 1; }
	return "$bad"
}
ok "links between documents resolve" links

pages() {
	bad=0
	for document in $documents; do
		for page in $(prose "$document" | grep -oE '\<(ibv_[a-z0-9_]+|softhca|softhca-check-mpi|softhca-rsh|verbs|xrc|libmlx4|libibverbs)\([1-8]\)' | sort -u); do
			section=${page#*(}
			file=${page%(*}.${section%)}
			[ -f "man/$file" ] || [ -f "libmlx4/$file" ] || { echo "$document: no page $page"; bad=1; }
		done
	done
	return "$bad"
}
ok "man pages that documents name exist" pages
finish
