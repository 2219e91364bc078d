#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: make install DESTDIR= puts every file where it belongs and nothing beside, pkg-config files say where, and
# make uninstall leaves nothing.
. "$top_srcdir/tests/packaging/lib.sh" || exit 1

prefix=$(sed -n 's/^prefix = //p' "$top_builddir/Makefile")
dest=$work/dest

install_into() {
	"$MAKE" -C "$top_builddir" install DESTDIR="$dest"
}

tools="ibv_asyncwatch ibv_devices ibv_devinfo ibv_rc_pingpong ibv_srq_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_xsrq_pingpong"

files() {
	for tool in $tools $(rdmacm_tools) softhca softhca-check-mpi softhca-rsh; do
		echo "bin/$tool"
	done
	echo "etc/libibverbs.d/mlx4.driver
etc/udev/rules.d/90-ib.rules
lib/libibverbs.la
lib/libibverbs.so
lib/libibverbs.so.1
lib/libibverbs.so.1.0.0
lib/libmlx4-rdmav2.la
lib/libmlx4-rdmav2.so
lib/libmlx4.a
lib/pkgconfig/libibverbs.pc
lib/librdmacm.la
lib/librdmacm.so
lib/librdmacm.so.1
lib/librdmacm.so.1.0.0
lib/pkgconfig/libmlx4.pc
lib/pkgconfig/librdmacm.pc
lib/softhca/libsofthca-shim.la
lib/softhca/libsofthca-shim.so
lib/softhca/libsofthca-trace.la
lib/softhca/libsofthca-trace.so
share/bash-completion/completions/softhca
share/doc/libibverbs/examples/xrc_mesh.c
share/softhca/mpi_verify.c
share/softhca/softhca-show.schema.json
share/softhca/xrc.lua
share/zsh/site-functions/_softhca"
	for header in arch driver kern-abi marshall opcode sa-kern-abi sa verbs; do
		echo "include/infiniband/$header.h"
	done
	for header in $(rdmacm_headers); do
		echo "include/$header"
	done
	! has_archives || printf 'lib/%s.a\n' libibverbs librdmacm
	rdmacm_preloads | sed 's|^|lib/|'
	echo lib/rsocket/librspreload.la
}

installed() {
	(cd "$dest$prefix" && find . ! -type d | sed 's|^\./||' | grep -v '^share/man/man[1-8]/[a-z0-9_-]*\.[1-8]$') >"$work/list"
	same "$(files)" "$work/list"
}

# Outside the prefix nothing is touched.
inside() {
	outside=$(cd "$dest" && find . ! -type d ! -path ".$prefix/*")
	[ -z "$outside" ] || { echo "outside the prefix: $outside"; return 1; }
}

pages() {
	for tool in $tools $(rdmacm_tools); do
		[ -s "$dest$prefix/share/man/man1/$tool.1" ] || { echo "no manual page of $tool"; return 1; }
	done
}

# `man -l` looks for the target of .so among the system's pages.
page_links() (
	cd "$dest$prefix/share/man/man3" || return 1
	! grep -l '^\.so ' -- * || { echo "these are no symbolic links"; return 1; }
	[ -n "$(find . -type l)" ] || { echo "there are no links"; return 1; }
	dangling=$(find . -xtype l)
	[ -z "$dangling" ] || { echo "links to nothing: $dangling"; return 1; }
)

pc() {
	PKG_CONFIG_LIBDIR=$dest$prefix/lib/pkgconfig pkg-config "$@"
}

# Where the loader searches the directory of libraries, programs need no rpath.
rpath=" -Wl,-rpath,$prefix/lib"
case " $(sed -n 's/^searched = //p; s/^LOADER_PATH = //p' "$top_builddir/libibverbs/Makefile" | tr '\n' ' ') " in
*" $prefix/lib "*) rpath= ;;
esac

pkgconfig() {
	[ "$(pc --modversion libibverbs)" = "$VERSION" ] &&
	[ "$(pc --cflags libibverbs | sed 's/ *$//')" = "-I$prefix/include" ] &&
	[ "$(pc --libs libibverbs | sed 's/ *$//')" = "-L$prefix/lib$rpath -libverbs" ] &&
	pc --static --libs libibverbs | grep -q -- -lsysfs &&
	pc --static --libs libmlx4 | grep -q -- '-lmlx4.*-libverbs.*-lsysfs' &&
	[ "$(pc --cflags librdmacm | sed 's/ *$//')" = "-I$prefix/include" ] &&
	pc --libs librdmacm | grep -q -- "-L$prefix/lib .*-lrdmacm .*-libverbs" &&
	# It may be in another prefix than libibverbs, whose rpath is then not its own.
	{ [ -z "$rpath" ] || grep -q '^Libs: .*-Wl,-rpath,' "$dest$prefix/lib/pkgconfig/librdmacm.pc"; } &&
	pc --static --libs librdmacm | grep -q -- '-lrdmacm.*-libverbs.*-lsysfs'
}

# The rule does not know what its kernel calls the node, but for the group and the mode.
rule() {
	grep -q '^SUBSYSTEM=="infiniband_verbs", KERNEL=="uverbs\[0-9\]\*", GROUP="rdma", MODE="0660"$' \
		"$dest$prefix/etc/udev/rules.d/90-ib.rules"
}

uninstall() {
	"$MAKE" -C "$top_builddir" uninstall DESTDIR="$dest" || return 1
	left=$(cd "$dest" && find . ! -type d; find . -type d \( -name infiniband -o -name softhca -o -name '*.d' -o -name 'rdma*' -o -name 'librdmacm*' -o -name pkgconfig -o -name '*zsh*' -o -name '*bash*' \))
	[ -z "$left" ] || { echo "left: $left"; return 1; }
}

# The directories are in what was built.
elsewhere() {
	"$MAKE" -C "$top_builddir" "$@" >"$work/out" 2>&1 && { echo "make $* was not refused"; return 1; }
	grep -q "was built for libraries in $prefix/lib, .* and not for $work/elsewhere/" "$work/out" && grep -q 'make install DESTDIR=ROOT' "$work/out" &&
		[ ! -e "$work/elsewhere" ] || { cat "$work/out"; return 1; }
}
refused() { elsewhere install prefix="$work/elsewhere" && elsewhere -j4 install libdir="$work/elsewhere/lib64" && elsewhere install-data exec_prefix="$work/elsewhere"; }

ok "another prefix than configure's is refused, with what to do, before a file is there" refused
ok "make install DESTDIR=" install_into
ok "the installed files are these" installed
ok "nothing is outside the prefix" inside
ok "each tool has its manual page" pages
ok "the pages of further names are symbolic links" page_links
ok "pkg-config files" pkgconfig
ok "udev rule" rule
ok "make uninstall leaves nothing" uninstall
finish
