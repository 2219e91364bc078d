#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the three tarballs have what the repository tracks, build from a directory that nobody may write to, and
# building and installing them leaves nothing but what make clean and make uninstall remove.
. "$top_srcdir/tests/packaging/lib.sh" || exit 1

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

# The texts themselves, and not where they are in the whole tree.
licence() {
	for file in COPYING AUTHORS; do
		tar -xOzf "$work/$1".tar.gz "$1/$file" | cmp - "$top_srcdir/$file" || return 1
	done
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

# No tool has its library named by the environment.
runs() {
	for tool in $(rdmacm_tools); do
		env -u LD_LIBRARY_PATH ldd "$work/prefix/bin/$tool" >"$work/list" && grep -q "librdmacm.so.1 => $work/prefix/lib/" "$work/list" &&
			grep -q "libibverbs.so.1 => $work/prefix/lib/" "$work/list" || { echo "$tool:"; cat "$work/list"; return 1; }
	done
}

whole=libibverbs-$VERSION
ok "make dist" tarball libibverbs
ok "everything tracked is in the tarball" tracked . "$whole"
ok "nothing built is in the tarball" clean "$whole"
ok "unpack" unpack "$whole"
# Archives would have each file compiled twice.
ok "the whole builds out of a read-only tree" build "$whole" --disable-static
# Their files that the whole installed go, so that those of their own tarballs are found and nothing else.
for package in libmlx4 librdmacm; do
	ok "the whole's $package is uninstalled" "$MAKE" -C "$work/build-$whole/$package" uninstall
done
for package in libmlx4 librdmacm; do
	ok "make dist in $package" tarball $package
	alone=$(cd "$work" && echo $package-*.tar.gz)
	alone=${alone%.tar.gz}
	ok "everything tracked in $package is in its tarball" tracked $package "$alone"
	ok "nothing built is in the tarball of $package" clean "$alone"
	ok "licence and authors are in the tarball of $package" licence "$alone"
	ok "unpack $package" unpack "$alone"
	ok "$package alone builds out of a read-only tree" build "$alone" --disable-static PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig"
	[ $package = libmlx4 ] || ok "its programs find both libraries" runs
	ok "uninstall and distclean of $package" distclean "$alone"
done
ok "uninstall and distclean of the whole" distclean "$whole"
chmod -R u+w "$work"
finish
