#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: docs/memory-order.md names each source file that has an atomic operation, a barrier, a futex or a mutex; and
# every file, and every name in one, that the page mentions is there.
. "$srcdir/../system/lib.sh" || exit 1

export LC_ALL=C.UTF-8
cd "$top_srcdir" || exit 1
page=docs/memory-order.md
rooms="softhca libmlx4/src libibverbs librdmacm/src librdmacm/tools include examples"
pattern='__atomic_|__sync_|\<atomic_(bool|flag|int|uint|load|store|exchange|fetch|compare)|\<_Atomic\>'
pattern="$pattern"'|SYS_futex|FUTEX_|: *"memory"\)|\<udma_[a-z_]*barrier\(|mmio_flush_writes\('
pattern="$pattern"'|sh_program_order\(|sh_order_stores\(|pthread_(mutex|rwlock|spin|once|cond)_'

sources() {
	# shellcheck disable=SC2086 # words: $rooms
	grep -rlE --include='*.[chS]' "$pattern" $rooms | sort
}

# Files as the page writes them: those of softhca without their room; and names behind a colon.
mentions() {
	grep -oE '`[a-z0-9_-]+(/[A-Za-z0-9_.-]+)+\.[chS](:[A-Za-z0-9_]+)?`' "$page" | tr -d '`' | sort -u
}

finds() {
	for text in '__atomic_load_n(&a, b)' 'static atomic_bool stop;' 'atomic_flag_clear(&busy)' \
		'syscall(SYS_futex, a)' '__asm__ volatile("" ::: "memory")' \
		'udma_from_device_barrier();' 'pthread_mutex_t list_lock;'; do
		printf '%s\n' "$text" | grep -qE "$pattern" || { echo "passes over $text"; return 1; }
	done
	[ "$(sources | wc -l)" -gt 60 ] || { echo "only these have any:"; sources; return 1; }
}

named() {
	bad=0
	mentions | cut -d: -f1 >"$tmp/mentions"
	for file in $(sources); do
		grep -qxF -- "${file#softhca/}" "$tmp/mentions" && continue
		echo "$page does not name $file, which has:"
		grep -nE "$pattern" "$file" | head -n 3
		bad=1
	done
	return "$bad"
}

there() {
	bad=0
	for mention in $(mentions); do
		file=${mention%%:*}
		[ -f "softhca/$file" ] && file=softhca/$file
		if ! [ -f "$file" ]; then
			echo "$page: $mention: there is no such file"
			bad=1
		elif [ "${mention#*:}" != "$mention" ] && ! grep -qw -- "${mention#*:}" "$file"; then
			echo "$page: $mention: not in that file"
			bad=1
		fi
	done
	return "$bad"
}

ok "the pattern finds what orders memory" finds
ok "each file that orders memory is named" named
ok "files and names that the page mentions are there" there
finish
