# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=sh
#
# Builds of the libraries and tools for another machine, with a cross compiler and the libraries that
# scripts/foreign-libraries unpacked. Needs top_srcdir and top_builddir; foreign_check needs lib.sh.

# foreign MACHINE: sets compiler, triplet, machine_root (its C library) and emulator, which runs its programs and is empty where
# the system does; or ends the shell with 77, saying what is missing.
foreign() {
	case $1 in
	i386)	triplet=i686-linux-gnu qemu=qemu-i386 libraries=$top_builddir/foreign/i386/usr/lib/i386-linux-gnu ;;
	arm64)	triplet=aarch64-linux-gnu qemu=qemu-aarch64 libraries=$top_builddir/foreign/arm64/usr/lib/aarch64-linux-gnu ;;
	esac
	emulator=
	for need in "$triplet-gcc:gcc-$triplet" "$qemu:qemu-user"; do
		command -v "${need%:*}" >/dev/null ||
			foreign_skip "no ${need%:*}: Debian package ${need#*:} (scripts/install-packages full installs it)"
	done
	[ -d "$libraries" ] ||
		foreign_skip "no libraries of $1: scripts/foreign-libraries $top_builddir/foreign downloads them"
	machine_root=/usr/$triplet
	case $1 in
	# A kernel for x86-64 runs these programs itself, as a rule. The loader is not where it would be on such a machine.
	i386)	compiler="$triplet-gcc -Wl,--dynamic-linker=$machine_root/lib/ld-linux.so.2 -Wl,-rpath,$machine_root/lib:$libraries"
		"$machine_root/lib/ld-linux.so.2" --version >/dev/null 2>&1 || emulator="$qemu -L $machine_root" ;;
	arm64)	compiler="$triplet-gcc -Wl,-rpath,$libraries"
		emulator="$qemu -L $machine_root" ;;
	esac
}

foreign_skip() {
	echo "1..0 # SKIP $*"
	exit 77
}

# foreign_build DIRECTORY CONFIGURE-ARGUMENT.... FOREIGN_ANSWERS names an earlier one for the same machine.
foreign_build() {
	build=$1
	shift
	ANSWERS=${FOREIGN_ANSWERS:-} "$top_srcdir/scripts/build" "$build" --disable-static --host="$triplet" --prefix=/usr CC="$compiler" CFLAGS="-g1 -O2 -Werror" \
		LDFLAGS="-L$libraries" "$@"
}

# foreign_check DIRECTORY: unit and ABI tests of the libraries and tools, each a test of ours.
foreign_check() {
	# The device's tests are not these libraries'.
	# shellcheck disable=SC2016 # make expands it
	unit='$(libibverbs_tests) $(examples_tests)'
	# shellcheck disable=SC2034 # check() reads it
	TEST_CFLAGS="-g1 -O0 -Werror"
	check "$1/libmlx4" EMULATOR="$emulator"
	check "$1/librdmacm" EMULATOR="$emulator"
	check "$1/tests/unit" EMULATOR="$emulator" check_PROGRAMS="$unit" check_LTLIBRARIES= TESTS="$unit"
	check "$1/tests/abi" EMULATOR="$emulator"
}
