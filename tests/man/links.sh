#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: links between the documents lead to files and headings that are there, also where a package installs them, and man
# pages that they name exist.
. "$srcdir/../system/lib.sh" || exit 1

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

# links DOCUMENT...: below the current directory.
links() {
	# Each target is read once.
	local -A headings=()
	bad=0
	found=0
	for document; do
		for link in $(prose "$document" | grep -oE '\]\([^)# ]*(#[^) ]*)?\)' | sed 's/^](//; s/)$//'); do
			case $link in http://* | https://* | mailto:*) continue ;; esac
			found=$((found + 1))
			file=${link%%#*}
			target=${document%/*}/$file
			[ -n "$file" ] || target=$document
			if ! [ -e "$target" ]; then
				echo "$document: $link is not there"
				bad=1
			elif [ "${link#*#}" != "$link" ]; then
				[ -n "${headings[$target]:-}" ] || headings[$target]=$'\n'$(anchors "$target")$'\n'
				case ${headings[$target]} in
				*$'\n'"${link#*#}"$'\n'*) ;;
				*)	echo "$document: $link has no such heading"
					bad=1 ;;
				esac
			fi
		done
	done
	[ "$found" -gt 0 ] || { echo "no links found"; return 1; }
	return "$bad"
}
# shellcheck disable=SC2086 # words: $documents
ok "links between documents resolve" links $documents

# installed PACKAGE FILE...: a package's directory of documents, as dh_installdocs and %doc lay it out.
installed() {
	mkdir -p "$tmp/doc/$1" && (cd "$top_srcdir" && cp -r "${@:2}" "$tmp/doc/$1/") || return 1
	cd "$tmp/doc/$1" || return 1
	found_here=$(find . -name '*.md')
	# shellcheck disable=SC2086 # words: $found_here
	[ -z "$found_here" ] || links $found_here
	got=$?
	cd "$OLDPWD" || return 1
	return "$got"
}
packages=0
for list in debian/*.docs; do
	name=${list##*/}
	packages=$((packages + 1))
	# shellcheck disable=SC2046 # words
	ok "links resolve in the Debian package ${name%.docs}" installed "deb-${name%.docs}" $(cat "$list")
done
while read -r name files; do
	packages=$((packages + 1))
	# shellcheck disable=SC2086 # words: $files
	ok "links resolve in the RPM $name" installed "rpm-$name" $files
done < <($AWK '/^%files/ { name = "libibverbs"; for (i = 2; i <= NF; i++) { if ($i == "-n") name = $(i + 1); else if ($i !~ /^-/ &&
	$(i - 1) !~ /^-[nf]$/) name = "libibverbs-" $i } } /^%doc / { sub(/^%doc/, name); print }' libibverbs.spec.in)
ok "packages with documents were found" test "$packages" -ge 6

pages() {
	bad=0
	for document in $documents; do
		for page in $(prose "$document" | grep -oE '\<(ibv_[a-z0-9_]+|rdma_[a-z0-9_]+|rping|softhca|softhca-check-mpi|softhca-rsh|verbs|xrc|libmlx4|libibverbs)\([1-8]\)' | sort -u); do
			section=${page#*(}
			file=${page%(*}.${section%)}
			[ -f "man/$file" ] || [ -f "libmlx4/$file" ] || [ -f "librdmacm/man/$file" ] || { echo "$document: no page $page"; bad=1; }
		done
	done
	return "$bad"
}
ok "man pages that documents name exist" pages

# A reader of these documents goes by names of functions and files. Functions of the system that no source calls stand here.
others=" forkpty mbind mseal posix_spawn preadv2 shmat splice "
named() {
	bad=0
	found=0
	find bench examples include libibverbs libmlx4 librdmacm softhca tests -name '*.[ch]' -exec cat {} + |
		tr -cs 'A-Za-z0-9_' '\n' | sort -u >"$tmp/words"
	find bench examples include libibverbs libmlx4 librdmacm softhca tests scripts man docs -type f | sed 's,^,/,' >"$tmp/files"
	for document in docs/architecture.md docs/CONTRIBUTING.md docs/decisions.md docs/shared-memory.md docs/xrc-kernels.md; do
		for name in $(prose "$document" | grep -oE '`[a-z0-9_]+\(\)`' | tr -d '`()' | sort -u); do
			found=$((found + 1))
			grep -qxF "$name" "$tmp/words" || [ "${others#* "$name" }" != "$others" ] || { echo "$document: no function $name()"; bad=1; }
		done
		for name in $(prose "$document" | grep -oE '`[a-z0-9_/-]+\.(c|h|sh)`' | tr -d '`' | sort -u); do
			found=$((found + 1))
			grep -q "/$name\$" "$tmp/files" || { echo "$document: no file $name"; bad=1; }
		done
	done
	[ "$found" -gt 200 ] || { echo "$found names found"; return 1; }
	return "$bad"
}
ok "functions and files that documents name are there" named
finish
