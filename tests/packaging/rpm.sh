#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the RPMs build from the three tarballs with the specs that are in them, libmlx4's and librdmacm's against what
# libibverbs's hold, and their files are these. KEEP_PACKAGES, when set, is a directory to copy them to.
. "$top_srcdir/tests/packaging/lib.sh" || exit 1
needs rpmbuild rpm2cpio cpio

[ -z "${KEEP_PACKAGES:-}" ] || rm -f "$KEEP_PACKAGES"/*.rpm

top=$work/rpmbuild
lib=$(rpm --define '_topdir /' -E '%{_libdir}')
etc=$(rpm -E '%{_sysconfdir}')

# The packages that a spec needs have RPM's names, which dpkg does not know: --nodeps.
build() {
	tarball "$1" && timeout 2400 rpmbuild -tb --nodeps --define "_topdir $top" --define "_smp_mflags $jobs" \
		"$work/$1"-[0-9]*.tar.gz
}

unpack() {
	# shellcheck disable=SC2044 # names that rpmbuild made
	mkdir -p "$work/root" && cd "$work/root" && for rpm in $(find "$top/RPMS" -name 'libibverbs*.rpm'); do
		rpm2cpio "$rpm" | cpio -idm --quiet || return 1
	done
}

build_alone() {
	CPPFLAGS=-I$work/root/usr/include LDFLAGS="-L$work/root$lib -Wl,-rpath-link,$work/root$lib" PKG_CONFIG=false build "$1"
}

made() {
	(cd "$top/RPMS" && find . -name '*.rpm' -exec rpm -qp --qf '%{NAME}\n' {} +) | grep -v -- '-debug' >"$work/list"
	same "$(printf '%s\n' libibverbs libibverbs-devel libibverbs-devel-static libibverbs-utils softhca libmlx4 libmlx4-devel \
		librdmacm librdmacm-devel librdmacm-utils)" "$work/list"
}

# holds PACKAGE FILES: without documentation.
holds() {
	rpm=$(find "$top/RPMS" -name "$1-[0-9]*.rpm")
	[ -f "$rpm" ] || { echo "no package $1"; return 1; }
	rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "$rpm" | sed -n 's/^[-l][^ ]* //p' |
		grep -v '^/usr/share/\(doc\|licenses\)/\|/\.build-id/' | sed 's/\.[gx]z$//' >"$work/list"
	if [ "$1" = libibverbs-devel ]; then
		# The functions and overviews are many; that each has a page is another test's. Those of librdmacm are in its own.
		! grep '/man[37]/\(rdma\|r[a-z]*socket\)' "$work/list" || { echo "pages of librdmacm in $1"; return 1; }
		grep -q '/man3/ibv_create_qp\.3$' "$work/list" || { echo "no manual pages in $1"; return 1; }
		sed -i '/\/man[37]\//d' "$work/list"
	fi
	same "$2" "$work/list"
}

example() { rpm -qlp "$top"/RPMS/*/libibverbs-devel-[0-9]*.rpm | grep '/doc/libibverbs-devel[^/]*/xrc_mesh\.c$'; }

tools="asyncwatch devices devinfo rc_pingpong srq_pingpong uc_pingpong ud_pingpong xsrq_pingpong"
# What building takes without softhca, and that no package is made of it.
without_softhca() {
	rpmspec -q --buildrequires --without softhca "$top_builddir/libibverbs.spec" | sed 's/ .*//' | sort >"$work/list" &&
	same "$(printf '%s\n' gcc libsysfs-devel make pkgconfig)" "$work/list" &&
	! rpmspec -q --without softhca "$top_builddir/libibverbs.spec" | grep '^softhca-'
}

shell_pages=$(cd "$top_srcdir/man" && for page in softhca*.1; do [ ! -e "$page" ] || echo "/usr/share/man/man1/$page"; done)

ok "libibverbs builds from its tarball" build libibverbs
ok "its packages unpack" unpack
ok "libmlx4 builds from its tarball, against them" build_alone libmlx4
ok "librdmacm builds from its tarball, against them" build_alone librdmacm
ok "the packages are these" made
ok "libibverbs" holds libibverbs "$lib/libibverbs.so.1
$lib/libibverbs.so.1.0.0
/usr/lib/udev/rules.d/90-ib.rules"
ok "libibverbs-devel" holds libibverbs-devel "$lib/libibverbs.so
$lib/pkgconfig/libibverbs.pc
$(printf '/usr/include/infiniband/%s.h\n' arch driver kern-abi marshall opcode sa-kern-abi sa verbs)"
ok "libibverbs-devel has the example" example
ok "libibverbs-devel-static" holds libibverbs-devel-static "$lib/libibverbs.a"
ok "libibverbs-utils" holds libibverbs-utils "$(for tool in $tools; do
	echo "/usr/bin/ibv_$tool"; echo "/usr/share/man/man1/ibv_$tool.1"; done)"
ok "softhca" holds softhca "/usr/bin/softhca
/usr/bin/softhca-check-mpi
/usr/bin/softhca-rsh
$lib/softhca/libsofthca-shim.so
$lib/softhca/libsofthca-trace.so
/usr/share/bash-completion/completions/softhca
/usr/share/softhca/mpi_verify.c
/usr/share/softhca/softhca-show.schema.json
/usr/share/softhca/xrc.lua
/usr/share/zsh/site-functions/_softhca
$shell_pages"
ok "libmlx4" holds libmlx4 "$lib/libmlx4-rdmav2.so
$etc/libibverbs.d/mlx4.driver
/usr/share/man/man7/libmlx4.7"
ok "--without softhca needs and makes nothing of it" without_softhca
ok "libmlx4-devel" holds libmlx4-devel "$lib/libmlx4.a
$lib/pkgconfig/libmlx4.pc"
ok "librdmacm" holds librdmacm "$lib/librdmacm.so.1
$lib/librdmacm.so.1.0.0
$(rdmacm_preloads | sed "s|^|$lib/|")"
ok "librdmacm-devel" holds librdmacm-devel "$lib/librdmacm.so
$lib/librdmacm.a
$lib/pkgconfig/librdmacm.pc
$(rdmacm_headers | sed 's|^|/usr/include/|')
$(for section in 3 7; do rdmacm_pages "$section" | sed "s|^|/usr/share/man/man$section/|"; done)"
ok "librdmacm-utils" holds librdmacm-utils "$(rdmacm_tools | sed 's|^|/usr/bin/|')
$(rdmacm_pages 1 | sed 's|^|/usr/share/man/man1/|')"
if [ "$failures" -eq 0 ] && [ -n "${KEEP_PACKAGES:-}" ]; then
	mkdir -p "$KEEP_PACKAGES" && find "$top/RPMS" -name '*.rpm' ! -name '*-debug*' -exec cp {} "$KEEP_PACKAGES" \;
fi
finish
