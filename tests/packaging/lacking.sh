#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: where the C library is too old, configure says so, and which version has what is missing; no compiler
# fails later on.
. "$top_srcdir/tests/packaging/lib.sh" || exit 1

# refuses TEXT ARGUMENT...: configure fails and prints that text.
refuses() {
	local text=$1 dir=$work/lacking
	shift
	rm -rf "$dir"
	mkdir -p "$dir"
	# What this machine has the build's configure knows, and what the arguments say comes first.
	"$top_srcdir/scripts/answers" --all "$top_builddir" >"$dir/config.cache" || return 1
	if (cd "$dir" && "$top_srcdir/configure" --config-cache "$@") >"$dir/out" 2>&1; then
		echo "configure has not failed"
		return 1
	fi
	grep -F -- "$text" "$dir/out" || { tail -n 3 "$dir/out"; return 1; }
}

# Those that configure asks for.
softhca_functions() { sed -n 's/^[[:space:]]*AC_CHECK_FUNCS(\[\(.*memfd_create.*\)\], \[\],$/\1/p' "$top_srcdir/configure.in"; }
found() { [ "$(softhca_functions | wc -w)" -eq 4 ] || { softhca_functions; return 1; }; }

ok "configure asks for four functions of the C library that softhca needs" found
ok "a glibc that is too old for the libraries" refuses "these libraries need Linux with glibc 2.17 or later" xv_cv_glibc=no
for function in $(softhca_functions); do
	ok "a glibc without $function(), for softhca" refuses \
		"softhca cannot be built: the C library has no $function, which glibc 2.28 has" --enable-softhca "ac_cv_func_$function=no"
done

finish
