#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds the guest's file tree: busybox, the modules in the order of their loading, our library, plug-in, tools and
# tests with every shared library that they need.

# The program itself, not the script that libtool may have put in its place.
real_file() {
	if [ -f "$(dirname "$1")/.libs/$(basename "$1")" ]; then
		echo "$(dirname "$1")/.libs/$(basename "$1")"
	else
		echo "$1"
	fi
}

# install_needed FILE: the libraries that the loader will look for.
install_needed() {
	LD_LIBRARY_PATH=$top_builddir/libibverbs/.libs ldd "$1" |
		sed -n 's/^.*=> \(\/[^ ]*\) (.*$/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*$/\1/p' |
		while read -r library; do
			case $library in
			*/ld-linux*) target=$root$library ;;
			*) target=$root/lib/$(basename "$library") ;;
			esac
			mkdir -p "$(dirname "$target")"
			[ -e "$target" ] || cp -L "$library" "$target" || exit 1
		done
}

# install_binary FILE DIRECTORY NAME: a program or library, and what it needs.
install_binary() {
	cp -L "$1" "$root/$2/$3" && install_needed "$1"
}

# install_foreign FILE DIRECTORY NAME: the same of a program or library for i386, which has its libraries in a directory of
# its own: that of its loader.
install_foreign() {
	cp -L "$1" "$root/$2/$3" || return 1
	LD_LIBRARY_PATH=$i386/libibverbs/.libs $i386_emulator "$i386_lib/ld-linux.so.2" --list "$1" >"$work/needs" || return 1
	sed -n 's/^.*=> \(\/[^ ]*\) (.*$/\1/p' "$work/needs" | while read -r library; do
		cp -L "$library" "$root$i386_lib/" || exit 1
	done
}

# install_i386: the 32-bit tools, for a machine with a 64-bit kernel. Where they cannot be built, the file i386.missing
# says why.
install_i386() {
	i386=$top_builddir/full-i386
	if ! (
		. "$top_srcdir/tests/full/foreign.sh"
		foreign i386
		# The full tier has built them before.
		[ -e "$i386/examples/.libs/ibv_rc_pingpong" ] || foreign_build "$i386" || exit 1
		make -C "$i386/tests/kernel" librxe-rdmav2.la paths >&2 || exit 1
		echo "i386_lib='$machine_root/lib' i386_emulator='$emulator'"
	) >"$work/i386"; then
		sed -n 's/^1\.\.0 # SKIP //p' "$work/i386" >"$root/i386.missing"
		[ -s "$root/i386.missing" ]
		return
	fi
	# shellcheck source=/dev/null
	. "$work/i386"
	# shellcheck source=/dev/null
	. "$i386/tests/kernel/paths"
	mkdir -p "$root/i386" "$root$i386_lib" "$root$sysconfdir/libibverbs.d" || return 1
	echo "driver rxe" >"$root$sysconfdir/libibverbs.d/rxe.driver"
	cp -L "$i386_lib/ld-linux.so.2" "$root$i386_lib/" || return 1
	for tool in ibv_devinfo ibv_rc_pingpong ibv_ud_pingpong ibv_srq_pingpong; do
		install_foreign "$i386/examples/.libs/$tool" i386 "$tool" || return 1
	done
	install_foreign "$i386/tests/kernel/.libs/librxe-rdmav2.so" "$i386_lib" librxe-rdmav2.so
}

# install_modules NAME...: the modules and what they depend on, uncompressed, numbered in the order of loading.
install_modules() {
	number=100
	for module in "$@"; do
		modprobe -d "${modules:-/}" -S "$release" --show-depends "$module" >"$work/depends" || return 1
		while read -r verb file rest; do
			[ "$verb" = insmod ] || continue
			name=$(basename "$file" | sed 's/\.ko.*$//')
			ls "$root/modules/"*"-$name.ko" >/dev/null 2>&1 && continue
			number=$((number + 1))
			target=$root/modules/$number-$name.ko
			case $file in
			*.xz) xz -dc "$file" >"$target" ;;
			*.zst) zstd -qdc "$file" >"$target" ;;
			*.gz) gzip -dc "$file" >"$target" ;;
			*) cp "$file" "$target" ;;
			esac || return 1
		done <"$work/depends"
	done
}

# install_softhca: what make install installs, for a machine whose other device is softhca; and a pair of programs that do
# all operations. Where there is no softhca, the file softhca.missing says why.
install_softhca() {
	if [ ! -e "$top_builddir/softhca/cli/softhca" ]; then
		echo "softhca is not built" >"$root/softhca.missing"
		return
	fi
	for need in ip:iproute2 tc:iproute2; do
		if ! command -v "${need%:*}" >/dev/null; then
			echo "no ${need%:*}: Debian package ${need#*:}" >"$root/softhca.missing"
			return
		fi
		install_binary "$(command -v "${need%:*}")" bin "iproute2-${need%:*}" || return 1
	done
	for directory in libibverbs libmlx4 librdmacm softhca; do
		make -C "$top_builddir/$directory" install DESTDIR="$root" >&2 || return 1
	done
	# shellcheck source=/dev/null
	. "$top_builddir/tests/kernel/paths"
	# In front of one that this machine has.
	cp -L "$root$libdir/librdmacm.so.1" "$root/lib/" || return 1
	for file in "$bindir/softhca" "$libdir/libmlx4-rdmav2.so" "$libdir/softhca/libsofthca-shim.so" \
		"$bindir/rping" "$bindir/ucmatose" "$bindir/udaddy" "$bindir/mckey"; do
		install_needed "$root$file" || return 1
	done
	for program in wire_peers wire_groups; do
		make -C "$top_builddir/tests/system" $program >&2 &&
			install_binary "$(real_file "$top_builddir/tests/system/$program")" bin $program || return 1
	done
}

# install_theirs FILE DIRECTORY: a program or library of Debian's, with its libraries in a directory of their own, since
# libibverbs.so.1 and librdmacm.so.1 are also the names of ours.
install_theirs() {
	mkdir -p "$root$2" && cp -L "$1" "$root$2/" || return 1
	env -u LD_LIBRARY_PATH ldd "$1" | sed -n 's/^.*=> \(\/[^ ]*\) (.*$/\1/p' | while read -r library; do
		[ -e "$root/debian/lib/$(basename "$library")" ] || cp -L "$library" "$root/debian/lib/" || exit 1
	done
}

# install_debian: Debian's own tools with its own libraries and providers, which are where its libibverbs looks for them. Where
# a package is missing, the file debian.missing says so.
install_debian() {
	for need in ib_send_bw:perftest ibv_rc_pingpong:ibverbs-utils mckey:rdmacm-utils; do
		if [ ! -x "/usr/bin/${need%:*}" ]; then
			echo "no /usr/bin/${need%:*}: Debian package ${need#*:}" >"$root/debian.missing"
			return
		fi
	done
	mkdir -p "$root/debian/lib" "$root/etc/libibverbs.d" || return 1
	for tool in ib_send_bw ib_send_lat ib_write_bw ib_read_bw ib_atomic_bw ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong \
		ibv_srq_pingpong mckey; do
		install_theirs "/usr/bin/$tool" /debian/bin || return 1
	done
	providers=$(dirname "$(env -u LD_LIBRARY_PATH ldd /usr/bin/ibv_rc_pingpong | sed -n 's/^.*=> \(.*libibverbs[^ ]*\) (.*$/\1/p')")
	providers=$(realpath "$providers")/libibverbs
	for provider in rxe mlx4; do
		if ! ls "$providers/lib$provider-rdmav"*.so >/dev/null 2>&1; then
			echo "no provider $provider in $providers: Debian package ibverbs-providers" >"$root/debian.missing"
			return
		fi
		install_theirs "$(ls "$providers/lib$provider-rdmav"*.so)" "$providers" || return 1
		echo "driver $provider"
	done >"$root/etc/libibverbs.d/debian.driver"
}

# build_initramfs OUTPUT; $root is the tree, $work a directory for what comes between.
build_initramfs() {
	here=$top_srcdir/tests/kernel
	built=$top_builddir/tests/kernel
	make -C "$built" for-guest || return 1
	# shellcheck source=/dev/null
	. "$built/paths"

	mkdir -p "$root/bin" "$root/lib" "$root/modules" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" \
		"$root$sysconfdir/libibverbs.d" || return 1
	cp "$(command -v busybox)" "$root/bin/busybox" || return 1
	cp "$built/paths" "$here/guest/tools.sh" "$here/guest/result.sh" "$here/guest/link.sh" "$here/guest/wire.sh" "$here/guest/perftest.sh" \
		"$here/guest/groups.sh" "$root/" && cp "$here/guest/init" "$root/init" || return 1
	chmod 755 "$root/init" "$root/tools.sh" "$root/wire.sh" "$root/perftest.sh" "$root/groups.sh"
	echo "driver rxe" >"$root$sysconfdir/libibverbs.d/rxe.driver"

	install_modules ib_core ib_uverbs udp_tunnel ip6_udp_tunnel crc32_generic rdma_rxe rdma_ucm dummy veth sch_netem || return 1

	for program in guest_tests rxe_link; do
		install_binary "$(real_file "$built/$program")" bin "$program" || return 1
	done
	for tool in ibv_devices ibv_devinfo ibv_asyncwatch ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong
	do
		install_binary "$(real_file "$top_builddir/examples/$tool")" bin "$tool" || return 1
	done
	install_binary "$built/.libs/librxe-rdmav2.so" lib librxe-rdmav2.so || return 1
	install_i386 || return 1
	install_softhca || return 1
	install_debian || return 1

	pack_initramfs "$root" "$1"
}
