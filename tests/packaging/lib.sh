# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For the packaging tests. Each works in work/NAME below its build directory ($work), made anew, and prints TAP.
# Environment, from make: top_srcdir, top_builddir (absolute), VERSION, MAKE, CC.

set -u
number=0
failures=0
export LC_ALL=C
# configure prefers bash, and libtool then starts bash for each file.
[ -n "${CONFIG_SHELL:-}" ] || ! [ -x /bin/dash ] || export CONFIG_SHELL=/bin/dash
work=$top_builddir/tests/packaging/scratch/$(basename "$0" .sh)
rm -rf "$work"
mkdir -p "$work" || exit 1
# shellcheck disable=SC2034 # for who sources this
jobs=-j$(nproc)

# ok DESCRIPTION COMMAND...: one test, whose last lines of output are shown when it fails.
ok() {
	number=$((number + 1))
	description=$1
	shift
	if "$@" >"$work/$number.out" 2>&1; then
		echo "ok $number - $description"
	else
		failures=$((failures + 1))
		tail -n 60 "$work/$number.out" | sed 's/^/# /'
		echo "not ok $number - $description"
	fi
}

finish() {
	echo "1..$number"
	[ "$failures" -eq 0 ] && rm -rf "$work"
	[ "$failures" -eq 0 ]
	exit
}

# needs COMMAND...: without one of them nothing can be said.
needs() {
	for command in "$@"; do
		command -v "$command" >/dev/null || { echo "1..0 # SKIP $command is missing"; exit 0; }
	done
}

# Does this build have archives? Its configure may have been told --disable-static, as all tiers but long do.
has_archives() {
	"$top_builddir/libtool" --config | grep -qx 'build_old_libs=yes'
}

# The tarball of the whole tree, or of libmlx4 or librdmacm alone, as $work/NAME.tar.gz.
tarball() {
	case $1 in
	libibverbs) dir=$top_builddir ;;
	libmlx4 | librdmacm) dir=$top_builddir/$1 ;;
	esac
	# In a directory of this test's: others make the same tarball.
	flock "$top_builddir/tests/packaging/scratch" "$MAKE" -C "$dir" dist-gzip && mv "$dir/$1"-*.tar.gz "$work/"
}

# same GOLDEN-TEXT FILE-LIST: both sorted, or the difference.
same() {
	printf '%s\n' "$1" | sed '/^$/d' | sort >"$work/wanted"
	sort "$2" >"$work/found"
	diff -u "$work/wanted" "$work/found"
}

# What librdmacm is to install, as its sources tell: each program of tools/, each header, each page, and the library that
# programs are started with, below the directory of libraries.
rdmacm_tools() { (cd "$top_srcdir/librdmacm/tools" && grep -l '^int main(' -- *.c | sed 's/\.c$//'); }
rdmacm_headers() { (cd "$top_srcdir/librdmacm/include" && echo */*.h | tr ' ' '\n'); }
# rdmacm_pages SECTION
rdmacm_pages() { (cd "$top_srcdir/librdmacm/man" && ls -- *."$1"); }
rdmacm_preloads() { printf 'rsocket/librspreload.%s\n' so so.1 so.1.0.0; }
