#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the Debian packages build from the tarball; lintian finds no error; no file of theirs is one of rdma-core's.
# KEEP_PACKAGES, when set, is a directory to copy them to.
. "$top_srcdir/tests/packaging/lib.sh" || exit 1
needs dpkg-buildpackage dh lintian

[ -z "${KEEP_PACKAGES:-}" ] || rm -f "$KEEP_PACKAGES"/*.deb

packages="ibverbs-xrc-utils libibverbs-xrc-dev libibverbs-xrc1 libmlx4-xrc-dev libmlx4-xrc1 librdmacm-xrc-dev librdmacm-xrc1
	rdmacm-xrc-utils softhca"
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)

build() {
	tarball libibverbs && cd "$work" && tar -xzf libibverbs-"$VERSION".tar.gz && cd libibverbs-"$VERSION" &&
	# Building in the tree of the tarball, as the checkout is built by whoever has only that.
	DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" timeout 2400 dpkg-buildpackage -us -uc -b
}

made() {
	(cd "$work" && for deb in *.deb; do echo "${deb%%_*}"; done) | grep -v -- '-dbgsym$' >"$work/list"
	# shellcheck disable=SC2086 # words: $packages
	same "$(printf '%s\n' $packages)" "$work/list"
}

# Warnings are shown when there is an error among them.
checked() {
	(cd "$work" && HOME=$work lintian --allow-root --fail-on error ./*.changes)
}

unpack() {
	for package in $packages; do
		dpkg-deb -x "$work/$package"_*.deb "$work/root" || return 1
		dpkg-deb -c "$work/$package"_*.deb | awk '$1 !~ /^d/ { sub(/^\./, "", $6); print $6 }' |
			grep -v '^/usr/share/doc/' >"$work/$package.files"
	done
}

# tests/man/links.sh looks at the links, in the files as they are in the tree.
plain() { ! find "$work/root/usr/share/doc" -name '*.md.*' -o -name '*.json.*' -o -name '*.svg.*' | grep .; }

example() { cmp "$work/root/usr/share/doc/libibverbs-xrc-dev/examples/xrc_mesh.c" "$top_srcdir/examples/xrc_mesh.c"; }

lib=/usr/lib/$triplet
contents() {
	same "$lib/xrc-verbs/libibverbs.so.1
$lib/xrc-verbs/libibverbs.so.1.0.0
/usr/lib/udev/rules.d/90-xrc-verbs.rules" "$work/libibverbs-xrc1.files" &&
	grep -v '/man/man7/' "$work/libmlx4-xrc1.files" >"$work/list" &&
	same "$lib/xrc-verbs/libmlx4-rdmav2.so
/etc/xrc-verbs/libibverbs.d/mlx4.driver" "$work/list" &&
	same "$lib/xrc-verbs/libmlx4.a
$lib/xrc-verbs/pkgconfig/libmlx4.pc" "$work/libmlx4-xrc-dev.files" &&
	grep -v '^/usr/share/xrc-verbs/man/man[37]/\(ibv_\|mult_to_\|verbs\.\|xrc\.\)' "$work/libibverbs-xrc-dev.files" >"$work/list" &&
	same "$(printf '/usr/include/xrc-verbs/infiniband/%s.h\n' arch driver kern-abi marshall opcode sa-kern-abi sa verbs)
$lib/xrc-verbs/libibverbs.a
$lib/xrc-verbs/libibverbs.so
$lib/xrc-verbs/pkgconfig/libibverbs.pc
$lib/pkgconfig/libibverbs-xrc.pc" "$work/list" &&
	grep -v '/man/' "$work/softhca.files" >"$work/list" &&
	same "/usr/bin/softhca
/usr/bin/softhca-check-mpi
/usr/bin/softhca-rsh
$lib/xrc-verbs/softhca/libsofthca-shim.so
$lib/xrc-verbs/softhca/libsofthca-trace.so
/usr/share/bash-completion/completions/softhca
/usr/share/softhca/mpi_verify.c
/usr/share/softhca/softhca-show.schema.json
/usr/share/softhca/xrc.lua
/usr/share/zsh/vendor-completions/_softhca" "$work/list" &&
	tools=$(printf '%s\n' asyncwatch devices devinfo rc_pingpong srq_pingpong uc_pingpong ud_pingpong xsrq_pingpong) &&
	same "$(for tool in $tools; do
		echo "/usr/lib/xrc-verbs/bin/ibv_$tool"
		echo "/usr/share/xrc-verbs/man/man1/ibv_$tool.1"
	done)
/usr/bin/xrc-verbs-run
/usr/share/man/man1/xrc-verbs-run.1.gz" "$work/ibverbs-xrc-utils.files"
}

rdmacm_contents() {
	same "$lib/xrc-verbs/librdmacm.so.1
$lib/xrc-verbs/librdmacm.so.1.0.0
$(rdmacm_preloads | sed "s|^|$lib/xrc-verbs/|")" "$work/librdmacm-xrc1.files" &&
	same "$lib/xrc-verbs/librdmacm.a
$lib/xrc-verbs/librdmacm.so
$lib/xrc-verbs/pkgconfig/librdmacm.pc
$lib/pkgconfig/librdmacm-xrc.pc
$(rdmacm_headers | sed 's|^|/usr/include/xrc-verbs/|')
$(for section in 3 7; do rdmacm_pages "$section" | sed "s|^|/usr/share/xrc-verbs/man/man$section/|"; done)" "$work/librdmacm-xrc-dev.files" &&
	same "$(rdmacm_tools | sed 's|^|/usr/lib/xrc-verbs/bin/|')
$(rdmacm_pages 1 | sed 's|^|/usr/share/xrc-verbs/man/man1/|')" "$work/rdmacm-xrc-utils.files"
}

# Where rdma-core's packages are installed, none of their files is one of ours.
beside() {
	for package in rdma-core ibverbs-utils ibverbs-providers libibverbs1 libibverbs-dev librdmacm1 librdmacm-dev rdmacm-utils; do
		dpkg-query -L "$package" 2>/dev/null | while read -r path; do [ -d "$path" ] || echo "$path"; done
	done | sort -u >"$work/theirs"
	sort -u "$work"/*.files >"$work/ours"
	both=$(comm -12 "$work/theirs" "$work/ours")
	[ -z "$both" ] || { echo "both have: $both"; return 1; }
	# Names in directories that everybody searches.
	! grep -E "^(/usr)?(/bin|/sbin)/(ibv|r)|^$lib/lib(ibverbs|mlx4|rdmacm)|^/usr/include/(infiniband|rdma)|^/etc/libibverbs.d" "$work/ours"
}

# symbols LIBRARY LIST: every exported symbol is in the symbols file, so that what uses them depends on us.
symbols() {
	dpkg-deb -e "$work/$1"-xrc1_*.deb "$work/control-$1" &&
	grep -q "^$1.so.1 $1-xrc1 " "$work/control-$1/symbols" &&
	sed 's/@@/@/' "$2" | sort -u >"$work/wanted" &&
	sed -n 's/^ \([^ ]*\) .*/\1/p' "$work/control-$1/symbols" | sort -u >"$work/found" &&
	diff -u "$work/wanted" "$work/found"
}

# depends PACKAGE WANTED...: and on no library of rdma-core's.
depends() {
	dpkg-deb -f "$work/$1"_*.deb Depends | tr ',' '\n' | sed 's/^ *//' >"$work/list"
	cat "$work/list"
	shift
	! grep -E '^(libibverbs1|librdmacm1)( |$)' "$work/list" || return 1
	for wanted; do grep -q "^$wanted " "$work/list" || { echo "no $wanted"; return 1; }; done
}
dependencies() {
	depends libmlx4-xrc1 libibverbs-xrc1 && depends ibverbs-xrc-utils libibverbs-xrc1 && depends librdmacm-xrc1 libibverbs-xrc1 &&
	depends rdmacm-xrc-utils libibverbs-xrc1 librdmacm-xrc1 && depends librdmacm-xrc-dev libibverbs-xrc-dev librdmacm-xrc1
}

ok "dpkg-buildpackage" build
ok "the packages are these" made
ok "lintian finds no error" checked
ok "they unpack" unpack
ok "their files are these" contents
ok "those of librdmacm are its library, headers, tools and pages" rdmacm_contents
ok "documents have the names that links have" plain
ok "the example is a source as in the tree" example
ok "no file is one of rdma-core's" beside
ok "the symbols file has what the library exports" symbols libibverbs "$top_srcdir/tests/abi/libibverbs.symbols"
ok "that of librdmacm too" symbols librdmacm "$top_srcdir/librdmacm/tests/librdmacm.symbols"
ok "packages depend on each other, and on none of rdma-core's" dependencies
if [ "$failures" -eq 0 ] && [ -n "${KEEP_PACKAGES:-}" ]; then
	mkdir -p "$KEEP_PACKAGES" && for package in $packages; do cp "$work/$package"_*.deb "$KEEP_PACKAGES"; done
fi
finish
