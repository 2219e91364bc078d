#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: compilers and flags that distributions and developers build with: everything compiles free of warnings, and
# the unit and ABI tests pass. BUILDS="gcc-12-lto clang-19-O0" makes those of them that it names.
. "$top_srcdir/tests/full/lib.sh" || exit 1
# The long ones ran in the ordinary build.
export TIER=quick

dir=$top_builddir/full-builds
BUILDS=${BUILDS:-all}
rm -rf "$dir"

# made_with COMPILER FLAGS DIRECTORY: the library says so itself, where it can.
made_with() {
	library=$3/libibverbs/.libs/libibverbs.so
	case $1 in
	gcc-*) producer="GNU .* ${1#gcc-}\." ;;
	clang-*) producer="clang version ${1#clang-}\." ;;
	esac
	readelf --debug-dump=info "$library" | grep "DW_AT_producer.*$producer" >/dev/null || return
	case $2 in
	*_FORTIFY_SOURCE*) nm -u "$library" | grep '[a-z]_chk@' | grep -v stack_chk ;;
	*-flto*) readelf -SW "$3/libibverbs/.libs/verbs.o" | grep 'gnu\.lto' >/dev/null ;;
	esac
}

# build NAME COMPILER FLAGS CONFIGURE-ARGUMENT...
build() {
	label=$1 compiler=$2 flags=$3
	shift 3
	case " $BUILDS " in
	*" all "* | *" $label "*) ;;
	*)	return ;;
	esac
	ok "$label: everything compiles, warnings being errors" \
		"$top_srcdir/scripts/build" "$dir/$label" --disable-static CC="$compiler" CFLAGS="-g1 $flags -Werror" "$@"
	ok "$label: it was made with this compiler and these flags" made_with "$compiler" "$flags" "$dir/$label"
	for tests in libmlx4 librdmacm tests/unit tests/abi; do
		check "$dir/$label/$tests"
	done
	# What failed is looked into here.
	[ "$failures" -ne 0 ] || rm -rf "${dir:?}/$label"
}

# Of gcc-12-lto, the compiler; of all, each that is used.
demanded() {
	for word in $BUILDS; do
		case $word in
		all) echo gcc-11 gcc-12 clang-13 clang-19 ;;
		*)	echo "${word%-*}" ;;
		esac
	done
}
for compiler in $(demanded); do
	if ! command -v "$compiler" >/dev/null; then
		echo "1..0 # SKIP no $compiler: Debian package $compiler (scripts/install-packages long installs it)"
		exit 77
	fi
done

fortify="-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3"
for compiler in gcc-11 gcc-12 clang-13 clang-19; do
	build "$compiler-O0" "$compiler" "-O0"
	build "$compiler-O3" "$compiler" "-O3"
done
build gcc-12-fortify gcc-12 "$fortify"
build clang-19-fortify clang-19 "$fortify"
build gcc-11-lto gcc-11 "-O2 -flto=auto"
build gcc-12-lto gcc-12 "-O2 -flto=auto"
finish
