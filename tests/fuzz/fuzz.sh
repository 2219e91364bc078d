#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds the fuzz targets with clang's libFuzzer, ASan and UBSan in a tree of their own ($top_builddir/fuzz), and lets
# each look for inputs, starting from its corpus. Inputs that reach something new stay in fuzz/corpus/TARGET there, those
# that end a target in fuzz/found. Exits 1 when one does, with the input in base64 and the line that repeats it.
#
# Environment: top_srcdir, top_builddir (absolute; make fuzz sets them); FUZZ_SECONDS (60), of each target;
# FUZZ_TARGETS, names (all); FUZZ_OPTIONS, more options of libFuzzer;
# FUZZ_KEEP, where new inputs stay (fuzz/corpus). Run as "fuzz.sh one TARGET" it runs one that is built.
set -u
# Of a script of the full tier these name the jobs that its makes share (tests/full/jobs.sh).
[ -n "${FULL_JOBS:-}" ] || unset MAKEFLAGS MFLAGS MAKEOVERRIDES

seconds=${FUZZ_SECONDS:-60}
source=$top_srcdir/tests/fuzz
dir=$top_builddir/fuzz
bin=$dir/tests/fuzz
flags="-g1 -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"

fail() {
	echo "fuzz: $1" >&2
	exit 1
}

# What the target says, while it runs, is in fuzz/TARGET.log; what came of it in fuzz/TARGET.result.
one() {
	log=$dir/$1.log
	# Instances are directories of many small files. Their names leave room for 24 characters here.
	tmp=$(mktemp -d /dev/shm/fuzz.XXXXXX 2>/dev/null || mktemp -d /tmp/fuzz.XXXXXX) || exit 1
	kept=${FUZZ_KEEP:-$dir/corpus}/$1
	mkdir -p "$kept" "$dir/found"
	# shellcheck disable=SC2086 # words: ${FUZZ_OPTIONS:-}
	TMPDIR=$tmp timeout -k 10 $((seconds + 300)) "$bin/$1" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 \
		-max_len=2048 -print_final_stats=1 ${FUZZ_OPTIONS:-} -artifact_prefix="$dir/found/$1-" "$kept" \
		"$source/corpus/$1" \
		>"$log" 2>&1
	status=$?
	rm -rf "$tmp"
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	reached=$(sed -n 's/.*cov: \([0-9]*\) ft: \([0-9]*\).*/\1 edges, \2 features/p' "$log" | tail -n 1)
	new=$(sed -n 's/^stat::new_units_added: *//p' "$log")
	input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
	{
		if [ $status -eq 0 ] && [ "${runs:-0}" -gt 0 ]; then
			echo "ok $1: ${runs:-0} inputs, ${reached:-nothing reached}, ${new:-0} new inputs kept"
		else
			echo "not ok $1: ${runs:-?} inputs, ${reached:-nothing reached}, exit status $status"
			grep -v '^#[0-9]\|NEW_FUNC\|^INFO' "$log" | cut -c 1-200 | head -n 40
			if [ -n "$input" ]; then
				echo "The input, in base64: $(base64 -w 0 "$input")"
				echo "Repeat it: $bin/$1 $input"
				echo "or, from base64: echo ... | base64 -d >input; make -C tests/fuzz $1 && tests/fuzz/$1 input"
			fi
		fi
	} >"$dir/$1.result"
	cat "$dir/$1.result"
	[ $status -eq 0 ] && [ "${runs:-0}" -gt 0 ]
}

if [ "${1:-}" = one ]; then
	one "$2"
	exit
fi

command -v clang >/dev/null ||
	fail "clang is missing. Install it (Debian package clang; scripts/install-packages test installs all that is needed)."
mkdir -p "$dir" || exit 1
echo 'int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n) { return !p && n; }' >"$dir/try.c"
if ! clang -fsanitize=fuzzer,address,undefined "$dir/try.c" -o "$dir/try" >"$dir/try.log" 2>&1; then
	cat "$dir/try.log" >&2
	fail "clang cannot link a fuzzer. Install its runtime and the C++ library (Debian packages \
libclang-rt-$(clang -dumpversion | cut -d . -f 1)-dev and g++; scripts/install-packages test installs both)."
fi

log=$dir/build.out
# As scripts/build does: a shell, a compiler in place of libtool, and what the build tree's configure has found on this machine.
libtool="LIBTOOL=\$(SHELL) $top_srcdir/scripts/compile --archives \$(top_builddir)/libtool"
[ -n "${CONFIG_SHELL:-}" ] || ! [ -x /bin/dash ] || export CONFIG_SHELL=/bin/dash
make_it() {
	# shellcheck disable=SC2086 # none, where the jobs are shared
	make -C "$dir/$1" ${MAKE_JOBS--j$(nproc)} "$libtool" "$2" ${3:+"$3"} >>"$log" 2>&1 || {
		tail -n 40 "$log" >&2
		fail "$1 does not build; the whole log is $log"
	}
}
: >"$log"
echo "Building the targets, which the first time takes minutes: $log"
if [ ! -f "$dir/config.status" ]; then
	"$top_srcdir/scripts/answers" "$top_builddir" >"$dir/config.cache" || exit 1
	(cd "$dir" && "$top_srcdir/configure" --config-cache --disable-shared CC=clang CFLAGS="$flags" \
		LDFLAGS="-fsanitize=address,undefined") >>"$log" 2>&1 || { tail -n 40 "$log" >&2; fail "configure failed; the log is $log"; }
	rm -f "$dir/config.cache"
fi
# Only what targets are made of. The daemon's room is the last of them: softhca/Makefile.am names before it what it needs.
rooms=$(sed -n 's/^SUBDIRS = \(.*kernel\).*/\1/p' "$top_srcdir/softhca/Makefile.am")
[ -n "$rooms" ] || fail "softhca/Makefile.am does not name the rooms up to kernel in SUBDIRS, in the order in which they are built"
for room in $rooms; do
	make_it "softhca/$room" all
done
make_it libibverbs libibverbs.la
make_it libmlx4 libmlx4.a
make_it tests/fuzz fuzzers LDFLAGS="-fsanitize=fuzzer,address,undefined"

all=$(cd "$source" && for file in *.mk; do echo "${file%.mk}"; done)
targets=${FUZZ_TARGETS:-$all}
for target in $targets; do
	grep -qw "$target" "$bin/fuzzers" ||
		fail "there is no target $target. There are: $(cat "$bin/fuzzers"). Those on cmocka need libcmocka-dev."
	rm -f "$dir/$target.result"
done
at_once=$(nproc)
[ -z "${FULL_JOBS:-}" ] || at_once=1
# shellcheck disable=SC2086 # words: $targets
printf '%s\n' $targets | xargs -P "$at_once" -I '{}' sh "$0" one '{}' || exit 1
