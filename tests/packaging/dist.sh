#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the three tarballs have what the repository tracks, build from a directory that nobody may write to, and
# building and installing them leaves nothing but what make clean and make uninstall remove. What they install is complete: libmlx4 and
# librdmacm build alone against it, and a program compiled against nothing but the installed headers and -libverbs runs on the installed
# provider and softhca. In the full tier without softhca, which takes most of the time: what the tarball lacks of it is found all the same. The
# long tier (ROWS=all) and `make check-packages` build it, too.
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

# build TARBALL PREFIX CONFIGURE-ARGUMENT...
build() {
	# shellcheck disable=SC2086 # words: $jobs
	mkdir -p "$work/build-$1" && cd "$work/build-$1" && "$work/$1/configure" --prefix="$2" --disable-static CFLAGS=-O0 "${@:3}" &&
	"$MAKE" $jobs "${libtool[@]}" && "$MAKE" install
}

# Whatever the system has of it.
refuses() {
	mkdir -p "$work/missing-$1" && cd "$work/missing-$1" && ! PKG_CONFIG_LIBDIR=$work/none "$work/$1/configure" \
		ac_cv_header_infiniband_driver_h=no ac_cv_header_infiniband_marshall_h=no >"$work/missing-$1.out" 2>&1 &&
		grep 'infiniband/.*not found. Install it: Debian package libibverbs-xrc-dev' "$work/missing-$1.out" || { tail -n 3 "$work/missing-$1.out"; return 1; }
}

# After make distclean, the files that are left.
distclean() {
	cd "$work/build-$1" && "$MAKE" uninstall && "$MAKE" distclean &&
	left=$(find . -type f) && [ -z "$left" ] || { echo "left after make distclean: $left"; return 1; }
}

# No program has its library named by the environment.
loads_its_own() {
	for file in "$work/own"/bin/* "$work/own"/lib/rsocket/librspreload.so; do
		env -u LD_LIBRARY_PATH ldd "$file" >"$work/list" && grep -q "librdmacm.so.1 => $work/own/lib/" "$work/list" &&
			grep -q "libibverbs.so.1 => $work/prefix/lib/" "$work/list" || { echo "$file:"; cat "$work/list"; return 1; }
	done
}

program() {
	cat >"$work/open.c" <<-'EOF'
	#include <infiniband/verbs.h>
	#include <stdio.h>

	int main(void)
	{
		struct ibv_device **list = ibv_get_device_list(NULL);
		struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
		struct ibv_device_attr attr;

		if (!context || ibv_query_device(context, &attr) || !attr.max_qp)
			return 1;
		printf("%s %s\n", ibv_get_device_name(list[0]), attr.fw_ver);
		ibv_close_device(context);
		ibv_free_device_list(list);
		return 0;
	}
	EOF
	$CC -Wall -Wextra -Werror -I"$work/prefix/include" "$work/open.c" -o "$work/open" -L"$work/prefix/lib" -libverbs \
		-Wl,-rpath,"$work/prefix/lib" &&
	mkdir -p "$work/run" && SOFTHCA_DIR=$work/run "$softhca" run --kernel ofed -- "$work/open"
}

whole=libibverbs-$VERSION
without=()
softhca=$work/prefix/bin/softhca
if [ "${ROWS:-}" != all ] && [ -z "${KEEP_PACKAGES:-}" ]; then
	without=(--disable-softhca)
	softhca=$top_builddir/softhca/cli/softhca
fi
ok "make dist" tarball libibverbs
ok "everything tracked is in the tarball" tracked . "$whole"
ok "nothing built is in the tarball" clean "$whole"
ok "unpack" unpack "$whole"
# Archives would have each file compiled twice, libtool takes as long as the compiler, and the build that the tests run on is optimized. The
# packages below are compiled by libtool, as their users compile them.
libtool=("LIBTOOL=\$(SHELL) $work/$whole/scripts/compile \$(top_builddir)/libtool")
ok "the whole builds out of a read-only tree" build "$whole" "$work/prefix" "${without[@]}"
libtool=()
for package in librdmacm libmlx4; do
	ok "make dist in $package" tarball $package
	alone=$(cd "$work" && echo $package-*.tar.gz)
	alone=${alone%.tar.gz}
	ok "everything tracked in $package is in its tarball" tracked $package "$alone"
	ok "nothing built is in the tarball of $package" clean "$alone"
	ok "licence and authors are in the tarball of $package" licence "$alone"
	ok "unpack $package" unpack "$alone"
	ok "$package alone refuses to configure without libibverbs, and names it" refuses "$alone"
	if [ $package = librdmacm ]; then
		# In a prefix of its own, beside the librdmacm that the whole installed with libibverbs.
		ok "$package alone builds out of a read-only tree" build "$alone" "$work/own" PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig"
		ok "its programs load it, and not the one beside libibverbs" loads_its_own
	else
		# What the whole installed goes, so that nothing else is found.
		ok "the whole's $package is uninstalled" "$MAKE" -C "$work/build-$whole/$package" uninstall
		ok "$package alone builds out of a read-only tree" build "$alone" "$work/prefix" CPPFLAGS="-I$work/prefix/include" \
			LDFLAGS="-L$work/prefix/lib"
		ok "a program compiled against the installed headers opens the device with it" program
	fi
	ok "uninstall and distclean of $package" distclean "$alone"
done
ok "uninstall and distclean of the whole" distclean "$whole"
chmod -R u+w "$work"
finish
