#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: docs/architecture.md has a table of which room includes headers of which. Each include between rooms of softhca is in
# that table, and each arrow of the table is in the code; the headers that are for most of a room are those that the page names; and
# nothing outside softhca includes a header of it.
. "$srcdir/../system/lib.sh" || exit 1

export LC_ALL=C.UTF-8
cd "$top_srcdir" || exit 1
page=docs/architecture.md

# "FROM TO" for each arrow of the table: rooms as paths below softhca, or below the top of the tree, and single files.
table() {
	$AWK -F'|' '
		/^\| of \| includes headers of \|$/ { inside = 1; next }
		inside && !/^\|/ { exit }
		inside && /`/ {
			n = split($3, words, "`")
			split($2, from, "`")
			for (i = 2; i <= n; i += 2)
				print from[2], words[i]
		}' "$page" | while read -r from to; do
		for name in "$from" "$to"; do
			if [ -e "softhca/$name" ]; then echo "softhca/$name"; else echo "$name"; fi
		done | xargs
	done | sort -u
}

# "FILE HEADER" for each include of a header of the tree. A file names those of its own folder alone, and others by their path, but for those
# of libmlx4 that make has in the search path.
includes() {
	find softhca -name '*.[chS]' -exec grep -oE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^"]+"' {} + |
		sed 's/:[^"]*"/ /; s/"$//' | while read -r file header; do
		for place in "${file%/*}/$header" "$header" "libmlx4/src/$header"; do
			[ -f "$place" ] || continue
			echo "$file $place"
			break
		done
	done
}

# An arrow between rooms is allowed for a whole room or for the single files on either side.
compared() {
	$AWK 'function room(path) { sub("/[^/]*$", "", path); return path }
		FNR == NR { wanted[$1 " " $2] = 1; next }
		room($1) != room($2) {
			arrows++
			found = 0
			# What a row says of a single file holds for that alone.
			n = split($1 SUBSEP room($1), from, SUBSEP)
			m = split($2 SUBSEP room($2), to, SUBSEP)
			for (i = 1; i <= n; i++)
				for (j = 1; j <= m; j++)
					if ((from[i] " " to[j]) in wanted) {
						used[from[i] " " to[j]] = 1
						found = 1
					}
			if (!found) {
				print $1 " includes " $2 ": no such arrow in the table"
				bad = 1
			}
		}
		END {
			for (arrow in wanted)
				if (!(arrow in used)) {
					print "the table has an arrow that no file needs: " arrow
					bad = 1
				}
			if (arrows < 200) {
				print "only " arrows + 0 " includes between rooms were found"
				bad = 1
			}
			exit bad
		}' "$tmp/table" "$tmp/includes"
}

# A room that includes one that includes it: by way of whole rooms, since a single file is named so that it is no way back.
circles() {
	grep -v '\.[ch]\( \|$\)' "$tmp/table" | tsort >/dev/null
}

# A room of the daemon keeps its state to itself: struct kernel points to it, and no file of another folder follows that pointer.
own_state() {
	local room bad=0
	for room in uverbs rdmacm umad; do
		! grep -rnE --include='*.[ch]' -- "->$room\\>" softhca | grep -v "^softhca/kernel/$room/" || bad=1
	done
	return "$bad"
}

# Of these two rooms only the files by which the daemon calls them see the state of the daemon. A header cannot hand it on: those of
# kernel/ and of the two include none that has it.
doors() {
	! grep -E ' softhca/kernel/kern\.h$' "$tmp/includes" |
		grep -E '^softhca/kernel/((rdmacm|umad)/|[^/]*\.h )' | grep -vE '/(room|requests)\.c '
}

# Headers that three quarters of a room's sources include, of rooms with ten: the page names them, and no others.
for_most() {
	find softhca -name '*.c' >"$tmp/sources"
	$AWK 'function room(path) { sub("/[^/]*$", "", path); return path }
		FNR == NR { sources[room($1)]++; next }
		$1 ~ /\.c$/ && !seen[$1, $2]++ { users[room($1) " " $2]++ }
		END {
			for (pair in users) {
				split(pair, part, " ")
				if (sources[part[1]] >= 10 && users[pair] * 4 >= sources[part[1]] * 3)
					print part[2]
			}
		}' "$tmp/sources" "$tmp/includes" | sort -u >"$tmp/for_most"
	tr '\n' ' ' <"$page" | sed 's/.*Few headers are for most of a room\(.*\)A file includes the headers of its own.*/\1/' |
		grep -oE '`[a-z/]+\.h`' | tr -d '`' | sed 's|^|softhca/|' | sort | diff - "$tmp/for_most"
}

outside() {
	! grep -rnE --include='*.[chS]' '#[[:space:]]*include[[:space:]]*["<][^">]*softhca' include libibverbs libmlx4 librdmacm examples
}

table >"$tmp/table"
includes >"$tmp/includes"
ok "includes between rooms are those of the table" compared
ok "the table has no circle" circles
ok "the state of each of the daemon's rooms is followed by its own files alone" own_state
ok "rdmacm and umad look into the daemon's state where it calls them, and nowhere else" doors
ok "the headers that are for most of a room are those that the page names" for_most
ok "nothing outside softhca includes a header of it" outside
finish
