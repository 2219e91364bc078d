#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the tutorial works as it stands. Its programs, built with its command line against
# the build tree or an installed prefix, run under `softhca run` without more, beside rdma-core's
# library. So does a program without a directory of its library, as programs linked on other systems
# are. Programs of rdma-core keep their own library.
. "$srcdir/lib.sh" || exit 1

if ! command -v pkg-config >/dev/null; then
	skip "the tutorial" "install pkg-config"
	finish
fi
top_srcdir=$srcdir/../..
build=${OURS%%:*}
build=${build%/libibverbs/.libs}
# The environment of this test's caller must not lead to a library.
unset LD_LIBRARY_PATH LD_RUN_PATH PKG_CONFIG_LIBDIR

# Extracts the programs of the document, in its order: 1.c, 2.c.
awk -v dir="$tmp" '/^```c$/ { n++; out = dir "/" n ".c"; next } /^```/ { out = "" } out { print > out }' \
	"$top_srcdir/docs/xrc.md"
mv "$tmp/1.c" "$tmp/one.c" && mv "$tmp/2.c" "$tmp/share.c" || exit 1
# The command line that builds them, as the document has it.
line=$(sed -n 's|^Save it as `one.c`, and build it with `\(.*\)` (.*|\1|p' "$top_srcdir/docs/xrc.md")

# Copies what make install would put into a prefix, and no more.
prefix=$tmp/prefix
mkdir -p "$prefix/lib/pkgconfig" "$prefix/lib/softhca" "$prefix/bin"
cp -P "$build"/libibverbs/.libs/libibverbs.so* "$build"/librdmacm/.libs/librdmacm.so* "$build/libmlx4/.libs/libmlx4-rdmav2.so" "$prefix/lib/"
cp "$build/softhca/shim/.libs/libsofthca-shim.so" "$prefix/lib/softhca/"
cp "$SOFTHCA" "$prefix/bin/softhca"
ln -s "$(cd "$top_srcdir" && pwd)/include" "$prefix/include"
sed -e "s|^prefix=.*|prefix=$prefix|" -e 's|^exec_prefix=.*|exec_prefix=${prefix}|' -e 's|^libdir=.*|libdir=${prefix}/lib|' \
	-e 's|^includedir=.*|includedir=${prefix}/include|' "$build/libibverbs/libibverbs.pc" >"$prefix/lib/pkgconfig/libibverbs.pc"

# built WHERE NAME: builds the program with the document's command line.
built() {
	cd "$tmp" || return 1
	export PKG_CONFIG_PATH=$1
	eval "$(echo "$line" | sed "s/\<cc\>/$CC/; s/\<one\>/$2/g")"
}
# runs SOFTHCA PROGRAM WORDS: the program runs on both faces and prints these words.
runs() {
	for face in ofed mainline; do
		timeout 50 "$1" run --kernel "$face" -- "$tmp/$2" >"$tmp/out" 2>"$tmp/err" && grep -q "$3" "$tmp/out" ||
			{ echo "$face:"; cat "$tmp/out" "$tmp/err"; return 1; }
	done
}
ok "the document has the line" test -n "$line"
for place in "the build tree:$build/libibverbs:$SOFTHCA" "an installed prefix:$prefix/lib/pkgconfig:$prefix/bin/softhca"; do
	IFS=: read -r where config softhca <<<"$place"
	ok "one.c is built against $where" built "$config" one
	ok "one.c runs" runs "$softhca" one "received: hello over XRC"
	ok "share.c is built against $where" built "$config" share
	ok "share.c runs" runs "$softhca" share "through the QP that receiver 0 made"
done
# As the document says: what is not registered, ends. The receiver that waits for the second letter ends, too, and with it the instance.
# The daemon hears of the end of the first receiver a moment later than its parent does, and longer on a busy machine. The second letter may
# arrive before that, so this is tried some times.
unregistered() {
	sed '/ibv_reg_xrc_rcv_qp/d; /ibv_unreg_xrc_rcv_qp/d' "$tmp/share.c" >"$tmp/lost.c" && built "$build/libibverbs" lost || return 1
	for try in 1 2 3 4 5; do
		echo "try $try"
		status 1 timeout 50 "$SOFTHCA" run -- "$tmp/lost" >"$tmp/out" 2>"$tmp/err" && grep -q 'transport retry counter exceeded' "$tmp/err" &&
			return 0
		cat "$tmp/out" "$tmp/err"
	done
	return 1
}
ok "share.c without its registration fails" unregistered
ok "nothing of it is left behind" until_true no_instance
# The example that is installed as a source: by the same command line. softhca looks at what it starts itself, here a shell, and this prefix
# has no .driver file: so the library is named.
mesh() {
	cp "$top_srcdir/examples/xrc_mesh.c" "$tmp/" &&
		grep -qF "${line//one/xrc_mesh}" "$top_srcdir/docs/hosts.md" && built "$prefix/lib/pkgconfig" xrc_mesh &&
		take_port && timeout 50 "$prefix/bin/softhca" run --libibverbs ours --hosts 2 -- sh -c '
			timeout 40 "$0" run --instance "$SOFTHCA_INSTANCE" --host 1 -- "$1" --procs 2 --port "$2" --node 1 &
			timeout 40 "$1" --procs 2 --port "$2" --node 0 && wait $!' "$prefix/bin/softhca" "$tmp/xrc_mesh" "$port" >"$tmp/out" 2>&1 ||
		{ cat "$tmp/out"; return 1; }
}
ok "xrc_mesh.c is built against an installed prefix, and runs" mesh

# quickstart's prefix lies in the build tree, two directories below which the tree's own libraries are. A prefix is complete:
# programs get its library, not the one that is to be built anew.
inner=$tmp/made/prefix
mkdir -p "$tmp/made/libibverbs" "$tmp/made/libmlx4" "$tmp/made/librdmacm"
ln -s "$build/libibverbs/.libs" "$tmp/made/libibverbs/.libs"
ln -s "$build/libmlx4/.libs" "$tmp/made/libmlx4/.libs"
ln -s "$build/librdmacm/.libs" "$tmp/made/librdmacm/.libs"
tree=$build/libibverbs/.libs:$build/libmlx4/.libs:$build/librdmacm/.libs
cp -a "$prefix" "$inner"
own_library() {
	LD_LIBRARY_PATH='' "$1" run --libibverbs ours -- env >"$tmp/env" || return 1
	grep -qx "LD_LIBRARY_PATH=$2" "$tmp/env" || { grep LD_LIBRARY_PATH "$tmp/env"; return 1; }
	"$1" doctor >"$tmp/doctor"
	! grep -q '; for those linked with' "$tmp/doctor" || grep -q "softhca has $3\$" "$tmp/doctor" || { cat "$tmp/doctor"; return 1; }
}
ok "a prefix in a build tree has a library of its own" own_library "$inner/bin/softhca" "$inner/lib" "$inner/lib/libibverbs.so.1"
ok "and the build tree has its" own_library "$SOFTHCA" "$tree" "$build/libibverbs/.libs/libibverbs.so.1"

# A program that was linked where the loader found its library anyway, as on an OFED system.
elsewhere() {
	# shellcheck disable=SC2086
	$CC -o "$tmp/elsewhere" "$tmp/one.c" -I"$prefix/include" -L"$prefix/lib" -libverbs &&
		! "$tmp/elsewhere" >/dev/null 2>&1
}
ok "a program without a directory of its library is built" elsewhere
for softhca in "$SOFTHCA" "$prefix/bin/softhca"; do
	ok "that program runs, softhca of ${softhca#"$tmp"}" runs "$softhca" elsewhere "received: hello over XRC"
	by_path() { cd / && PATH=$tmp:$PATH timeout 50 "$softhca" run -- elsewhere | grep -q "received: hello"; }
	ok "that program runs if it is found in PATH, too" by_path
	in_script() { timeout 50 "$softhca" run --libibverbs ours -- sh -c '"$0"' "$tmp/elsewhere" | grep -q "received: hello"; }
	ok "that program runs in a script with --libibverbs ours" in_script
	not_ours() { ! timeout 50 "$softhca" run --libibverbs system -- "$tmp/elsewhere" >"$tmp/out" 2>&1; }
	ok "that program does not run with --libibverbs system" not_ours
done

# Programs by address, linked elsewhere too: one that needs OFED's XRC gets both libraries from softhca. One that rdma-core's serve
# keeps those, unless it is told not to.
cat >"$tmp/address.c" <<'END'
#include <stdio.h>
#include <string.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

int main(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];

	if (!channel || !maps)
		return 1;
#ifdef XRC
	static int (*volatile call)(struct ibv_xrc_domain *) = ibv_close_xrc_domain;

	if (!call)
		return 1;
#endif
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "/librdmacm.so") || strstr(line, "/libibverbs.so"))
			fputs(strchr(line, '/'), stdout);
	rdma_destroy_event_channel(channel);
	return 0;
}
END
by_address() { # by_address NAME FLAGS...
	name=$1
	shift
	$CC "$@" -o "$tmp/$name" "$tmp/address.c" -I"$prefix/include" -I"$top_srcdir/librdmacm/include" -L"$prefix/lib" -lrdmacm -libverbs
}
ok "programs by address are built" by_address with_xrc -DXRC
ok "without XRC, too" by_address without_xrc
# has SOFTHCA PROGRAM DIRECTORY-OF-LIBRDMACM DIRECTORY-OF-LIBIBVERBS [OPTION...]: it runs with these, and with no others.
has() {
	softhca=$1 program=$2 cm=$(realpath "$3") verbs=$(realpath "$4")
	shift 4
	timeout 50 "$softhca" run "$@" -- "$tmp/$program" >"$tmp/out" 2>"$tmp/err" && grep -q "^$cm/librdmacm.so" "$tmp/out" &&
		grep -q "^$verbs/libibverbs.so" "$tmp/out" && ! grep -v "^$cm/librdmacm.so\|^$verbs/libibverbs.so" "$tmp/out" && return 0
	cat "$tmp/out" "$tmp/err"
	return 1
}
for place in "$SOFTHCA:$build/librdmacm/.libs:$build/libibverbs/.libs" "$prefix/bin/softhca:$prefix/lib:$prefix/lib"; do
	IFS=: read -r softhca cm verbs <<<"$place"
	ok "one with XRC has both libraries of ${softhca#"$tmp"}" has "$softhca" with_xrc "$cm" "$verbs"
	ok "with --libibverbs ours one without XRC has them, too" has "$softhca" without_xrc "$cm" "$verbs" --libibverbs ours
	theirs=/usr/lib/$($CC -print-multiarch)
	if [ -e "$theirs/librdmacm.so.1" ]; then
		ok "else it keeps rdma-core's" has "$softhca" without_xrc "$theirs" "$theirs"
	else
		skip "else it keeps rdma-core's" "install librdmacm1"
	fi
done

# A program at a fixed address exports nothing as a rule: its table of hashes is empty.
for how in gnu sysv; do
	fixed() {
		# shellcheck disable=SC2086
		$CC -fno-pie -no-pie -Wl,--hash-style=$how -o "$tmp/fixed" "$tmp/one.c" -I"$prefix/include" -L"$prefix/lib" -libverbs
	}
	ok "a program at a fixed address, with a table of hashes as for $how" fixed
	ok "runs" runs "$SOFTHCA" fixed "received: hello over XRC"
done

# The user has chosen a library that has all the functions: by a directory in LD_LIBRARY_PATH, or by
# one in the program.
mkdir "$tmp/chosen"
cp -P "$prefix"/lib/libibverbs.so* "$tmp/chosen/"
# This program prints what `softhca run` has set.
cat >"$tmp/path.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <infiniband/verbs.h>
int main(void)
{
	const char *path = getenv("LD_LIBRARY_PATH");
	void *volatile needed = (void *)ibv_open_xrc_domain;

	printf("%s\n", path ? path : "none");
	return needed == NULL;
}
END
path_of() {
	# shellcheck disable=SC2086
	$CC -o "$tmp/path" "$tmp/path.c" -I"$prefix/include" -L"$prefix/lib" -libverbs $1 || return 1
	got=$(env ${3:+LD_LIBRARY_PATH="$3"} "$SOFTHCA" run -- "$tmp/path")
	[ "$got" = "$2" ] || { echo "$got, not $2"; return 1; }
}
ok "where the user's library serves the program nothing is added" path_of "" "$tmp/chosen" "$tmp/chosen"
ok "nothing is added where the program's own directory (DT_RUNPATH) has a library" path_of "-Wl,-rpath,$tmp/chosen -Wl,--enable-new-dtags" none ""
ok "nothing is added where the program's own directory (DT_RPATH) has a library" path_of "-Wl,-rpath,$tmp/chosen -Wl,--disable-new-dtags" none ""
relative() {
	mkdir -p "$tmp/lib" && cp -P "$prefix"/lib/libibverbs.so* "$tmp/lib/" &&
		path_of '-Wl,-rpath,$ORIGIN/lib' none ""
}
ok "a directory beside the program counts" relative
ok "a library that lacks what the program needs does not count" path_of "" "$tree:$tmp" "$tmp"

# librdmacm is chosen as libibverbs is, and with it: the program prints where each of them is.
cat >"$tmp/cm.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
static void tell(void *function)
{
	Dl_info info;

	printf("%s\n", dladdr(function, &info) ? info.dli_fname : "nowhere");
}
int main(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

#ifdef XRC
	void *volatile needed = (void *)ibv_open_xrc_domain;
	tell(needed);
#endif
	tell((void *)rdma_create_event_channel);
	return channel == NULL;
}
END
# built_cm FLAG LIBRARY...: with the headers and libraries of this tree, as those of an OFED system
built_cm() {
	# shellcheck disable=SC2086
	$CC "$1" -fPIC -o "$tmp/cm" "$tmp/cm.c" -I"$prefix/include" -I"$(cd "$top_srcdir" && pwd)/librdmacm/include" \
		-L"$prefix/lib" -Wl,-rpath-link,"$prefix/lib" -Wl,--no-as-needed "${@:2}"
}
# libraries SOFTHCA DIRECTORY...: those of the directories serve the program.
libraries() {
	timeout 50 "$1" run -- "$tmp/cm" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/out" "$tmp/err"; return 1; }
	mapfile -t files <"$tmp/out"
	for file in "${files[@]}"; do
		[ "$(realpath "${file%/*}")" = "$(realpath "$2")" ] || { cat "$tmp/out"; return 1; }
		shift
	done
}
ok "a program that needs XRC and librdmacm is built" built_cm -DXRC -lrdmacm -libverbs
ok "it gets both libraries of the build tree" libraries "$SOFTHCA" "$build/libibverbs/.libs" "$build/librdmacm/.libs"
ok "it gets both libraries of the prefix" libraries "$prefix/bin/softhca" "$prefix/lib" "$prefix/lib"
# As a system would be that has rdma-core, but not its librdmacm: a library of that name that lacks all.
mkdir "$tmp/poor"
poor() { echo 'int nothing;' | $CC -shared -Wl,-soname,librdmacm.so.1 -fPIC -x c - -o "$tmp/poor/librdmacm.so.1"; }
ok "a librdmacm that has nothing" poor
ok "a program that needs librdmacm alone is built" built_cm -DCM -lrdmacm
lacking() { LD_LIBRARY_PATH=$tmp/poor libraries "$@"; }
ok "it gets the one of the build tree" lacking "$SOFTHCA" "$build/librdmacm/.libs"
ok "it gets the one of the prefix" lacking "$prefix/bin/softhca" "$prefix/lib"
debian=$(dirname "$(ldconfig -p | sed -n 's/.*librdmacm.so.1 .*=> //p' | head -1)")
if [ -e "$debian/librdmacm.so.1" ]; then
	ok "it gets the system's where that has all it needs" libraries "$SOFTHCA" "$debian"
else
	skip "the system's librdmacm" "install librdmacm1"
fi

# Programs of rdma-core use rdma-core's library.
if command -v ibv_devinfo >/dev/null; then
	theirs() { "$SOFTHCA" run -- "$(command -v ibv_devinfo)" | grep -q PORT_ACTIVE; }
	ok "Debian's tools run on their own library" theirs
	same_environment() {
		"$SOFTHCA" run -- env >"$tmp/theirs"
		! grep -q '^LD_LIBRARY_PATH=\|^RDMAV_DRIVERS=' "$tmp/theirs"
	}
	ok "nothing is added to the environment of other programs" same_environment
else
	skip "Debian's tools" "install ibverbs-utils"
fi

# A file that is not a program of this machine runs, or is refused, as without softhca.
damaged() {
	for size in 7 64 1000 3000 9000; do
		head -c "$size" "$tmp/elsewhere" >"$tmp/cut$size"
		chmod +x "$tmp/cut$size"
		env "$tmp/cut$size" >/dev/null 2>&1
		without=$?
		"$SOFTHCA" run -- "$tmp/cut$size" >/dev/null 2>&1
		got=$?
		[ "$got" -eq "$without" ] || { echo "$size bytes: status $got, and $without without softhca"; return 1; }
	done
}
ok "a program that is cut off fails as without softhca" damaged
ok "nothing is left behind" until_true no_instance
finish
