#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the two tarballs have what the repository tracks, build from a directory that nobody may write to, and
# building and installing them leaves nothing but what make clean and make uninstall remove.
. "$top_srcdir/tests/packaging/lib.sh"

# What is for the repository alone.
tracked() {
	git -C "$top_srcdir" rev-parse >/dev/null 2>&1 || return 0
	(cd "$top_srcdir/$1" && git ls-files .) | grep -v '^\.\|/\.gitignore$' | sort >"$work/tracked"
	tar -tzf "$work/$2".tar.gz | sed -n 's|^[^/]*/||; /./p' | sort >"$work/packed"
	missing=$(comm -23 "$work/tracked" "$work/packed")
	[ -z "$missing" ] || { echo "tracked and not in the tarball:" "$missing"; return 1; }
}

# Nothing that building makes.
clean() {
	! tar -tzf "$work/$1".tar.gz | grep -E '\.(o|lo|la|a|so|log|trs|pc)$|/autom4te|/\.deps/|/debian/files'
}

unpack() {
	tar -xzf "$work/$1".tar.gz -C "$work" && chmod -R a-w "$work/$1"
}

build() {
	# shellcheck disable=SC2086 # words: $jobs
	mkdir -p "$work/build-$1" && cd "$work/build-$1" && "$work/$1/configure" --prefix="$work/prefix" "${@:2}" &&
	"$MAKE" $jobs && "$MAKE" install
}

# After make distclean, the files that are left.
distclean() {
	cd "$work/build-$1" && "$MAKE" uninstall && "$MAKE" distclean &&
	left=$(find . -type f) && [ -z "$left" ] || { echo "left after make distclean: $left"; return 1; }
}

whole=libibverbs-$VERSION
ok "make dist" tarball libibverbs
ok "make dist in libmlx4" tarball libmlx4
alone=$(cd "$work" && echo libmlx4-*.tar.gz)
alone=${alone%.tar.gz}
ok "everything tracked is in the tarball" tracked . "$whole"
ok "everything tracked in libmlx4 is in its tarball" tracked libmlx4 "$alone"
ok "nothing built is in the tarball" clean "$whole"
ok "nothing built is in the tarball of libmlx4" clean "$alone"
ok "unpack" unpack "$whole"
ok "unpack libmlx4" unpack "$alone"
ok "the whole builds out of a read-only tree" build "$whole"
ok "libmlx4 alone builds out of a read-only tree" build "$alone" PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig"
ok "uninstall and distclean of libmlx4" distclean "$alone"
ok "uninstall and distclean of the whole" distclean "$whole"
chmod -R u+w "$work"
finish
