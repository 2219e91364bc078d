#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Description: the installed headers are the eight of OFED, each compiles alone, as C and as C++, they declare what the
# library exports and nothing else, a program made with them and -libverbs alone links, and path records are found both by
# programs that bring their own where a header has none and by path services, which rely on the header.

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C
status=0
inc=$tmp/include

fail()
{
	echo "$*"
	status=1
}

# As make install does it, into a root of our own. Under make, ours must not be taken for its sub-make.
if ! env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u DESTDIR "${MAKE:-make}" -C "$top_builddir" install-infinibandHEADERS \
	DESTDIR= infinibanddir="$inc/infiniband" >"$tmp/log" 2>&1; then
	cat "$tmp/log"
	exit 1
fi
headers=$(cd "$inc/infiniband" && echo *)
[ "$headers" = "arch.h driver.h kern-abi.h marshall.h opcode.h sa-kern-abi.h sa.h verbs.h" ] ||
	fail "installed headers: $headers"

# Of the compilers, the one that the library was built with is called with all its options, and its programs may take an
# emulator.
# shellcheck disable=SC2086 # words: $CC
set -- $CC
first=$1
whole()
{
	[ "$1" = "$first" ] && echo "$CC" || echo "$1"
}
run()
{
	if [ "$1" = "$first" ]; then
		shift
		${EMULATOR:-} "$@"
	else
		shift
		"$@"
	fi
}

compile()
{
	echo "#include <infiniband/$header>" >"$tmp/one.$suffix"
	"$@" -Wall -Wextra -Werror -I"$inc" -fsyntax-only "$tmp/one.$suffix" >"$tmp/log" 2>&1 ||
		{ cat "$tmp/log"; fail "$header: $* fails"; }
}

# In the quick tier those of one kind alone.
ccs= cxxs=
others="clang clang++"
[ "${TIER:-}" = full ] || others=
for c in ${CC%% *} gcc ${others% *}; do
	if command -v "$c" >/dev/null 2>&1; then
		case " $ccs " in *" $c "*) ;; *) ccs="$ccs $c" ;; esac
	fi
done
for c in ${CXX%% *} g++ ${others#* }; do
	if command -v "$c" >/dev/null 2>&1; then
		case " $cxxs " in *" $c "*) ;; *) cxxs="$cxxs $c" ;; esac
	fi
done

for header in $headers; do
	for c in $ccs; do
		suffix=c
		compile "$c" -std=gnu89
		compile "$c" -std=gnu99
		compile "$c" -std=c11 -pedantic-errors
	done
	for c in $cxxs; do
		suffix=cc
		compile "$c" -std=c++98 -Wno-long-long -Wno-variadic-macros
		compile "$c" -std=c++17 -pedantic-errors
	done
done

# What a configure script asks before it lets its program define path records itself.
cat >"$tmp/probe.c" <<'END'
#include <infiniband/sa.h>

int main(void)
{
	static struct ibv_path_record record;

	return record.service_id ? 1 : 0;
}
END
# Such a program: DEFINE_PATH_RECORD comes of the answer. Constants alone may be there twice.
cat >"$tmp/guarded.c" <<'END'
#include <infiniband/verbs.h>
#include <infiniband/sa.h>
#include <arpa/inet.h>
#include <string.h>

#define IBV_PATH_RECORD_REVERSIBLE 0x80
#define IBV_PATH_FLAG_GMP (1<<0)
#define IBV_PATH_FLAG_PRIMARY (1<<1)
#ifdef DEFINE_PATH_RECORD
struct ibv_path_record {
	uint64_t service_id;
	union ibv_gid dgid, sgid;
	uint16_t dlid, slid;
	uint32_t flowlabel_hoplimit;
	uint8_t tclass, reversible_numpath;
	uint16_t pkey, qosclass_sl;
	uint8_t mtu, rate, packetlifetime, preference, reserved[6];
};
#endif

int main(void)
{
	struct ibv_path_record path;

	memset(&path, 0, sizeof(path));
	path.dlid = htons(7);
	path.pkey = 0xffff;
	path.reversible_numpath = IBV_PATH_RECORD_REVERSIBLE | 1;
	return sizeof(path) != 64 || ntohs(path.dlid) != 7;
}
END
# A path service: a record of bytes as an SA sends it, taken apart by name and handed on with flags.
cat >"$tmp/service.c" <<'END'
#include <infiniband/sa.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static int resolve(struct ibv_path_data *out, const unsigned char sent[64])
{
	memset(out, 0, sizeof(*out));
	memcpy(&out->path, sent, sizeof(out->path));
	out->flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY;
	out->flags |= out->path.reversible_numpath & IBV_PATH_RECORD_REVERSIBLE ? IBV_PATH_FLAG_BIDIRECTIONAL
										: IBV_PATH_FLAG_OUTBOUND;
	return ntohs(out->path.dlid) ? 0 : -1;
}

int main(void)
{
	unsigned char sent[64];
	struct ibv_path_data data;
	uint64_t *service = &data.path.service_id;
	unsigned int i;

	for (i = 0; i < sizeof(sent); i++)
		sent[i] = (unsigned char)(i | 0x80);
	if (resolve(&data, sent))
		return 1;
	printf("%02x %02x %02x %04x %04x %08x %02x %02x %04x %04x %02x %02x %02x %02x %02x flags %u\n",
	       *(unsigned char *)service, data.path.dgid.raw[0], data.path.sgid.raw[0], ntohs(data.path.dlid),
	       ntohs(data.path.slid), (unsigned int)ntohl(data.path.flowlabel_hoplimit), data.path.tclass,
	       data.path.reversible_numpath, ntohs(data.path.pkey), ntohs(data.path.qosclass_sl), data.path.mtu,
	       data.path.rate, data.path.packetlifetime, data.path.preference, data.path.reserved[0], data.flags);
	return 0;
}
END
golden="80 88 98 a8a9 aaab acadaeaf b0 b1 b2b3 b4b5 b6 b7 b8 b9 ba flags 43"
paths()
{
	suffix=${1#*,} compiler=${1%,*}
	shift
	for program in probe guarded service; do
		cp "$tmp/$program.c" "$tmp/$program-.$suffix"
		if ! $(whole "$compiler") "$@" -Wall -Wextra -Werror -I"$inc" -o "$tmp/$program" "$tmp/$program-.$suffix" \
			>"$tmp/log" 2>&1; then
			cat "$tmp/log"
			fail "path records: $program.$suffix does not compile with $compiler $*"
			return
		fi
	done
	run "$compiler" "$tmp/guarded" || fail "path records: the guarded program of $compiler $* finds another layout"
	output=$(run "$compiler" "$tmp/service")
	[ "$output" = "$golden" ] || fail "path records: of $compiler $*: $output"
}
for c in $ccs; do
	paths "$c,c" -std=gnu89
	paths "$c,c" -std=c11
done
for c in $cxxs; do
	paths "$c,cc" -std=c++98 -Wno-long-long -Wno-variadic-macros
	paths "$c,cc" -std=c++17
done

# Every function that the headers declare without a body, and that is not one of the C library.
for header in $headers; do
	echo "#include <infiniband/$header>"
done >"$tmp/all.c"
# shellcheck disable=SC2086 # words: $ccs
set -- $ccs
"$1" -I"$inc" -E "$tmp/all.c" |
	awk '/^# [0-9]/ { ours = $3 ~ /\/infiniband\// } ours' | tr '\n' ' ' |
	sed 's/{[^{}]*}/;/g; s/{[^{}]*}/;/g; s/{[^{}]*}/;/g; s/{[^{}]*}/;/g' | tr ';' '\n' |
	sed -n 's/^\([^()]*[ *]\)\([a-z_][a-z0-9_]*\) *(.*) *$/\1\2/p' |
	grep -v '^ *\(static\|typedef\)\| static ' | sed 's/.*[ *]//' | sort -u >"$tmp/declared"
sed -n 's/^\([a-z0-9_]*\)@.*/\1/p' "$srcdir/libibverbs.symbols" | sort -u >"$tmp/exported"
diff -u "$tmp/exported" "$tmp/declared" || fail "declared (+) and exported (-) functions differ"

cat >"$tmp/use.c" <<'END'
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list)
		ibv_free_device_list(list);
	puts(ibv_wc_status_str(IBV_WC_SUCCESS));
	return 0;
}
END
libs=$top_builddir/libibverbs/.libs
machine()
{
	readelf -h "$1" | grep 'Class:\|Data:\|Machine:'
}
for c in $ccs; do
	cc=$(whole "$c")
	# The library may be for a machine that this compiler does not build for.
	echo 'int object;' >"$tmp/object.c"
	$cc -c -fno-lto -o "$tmp/object.o" "$tmp/object.c" &&
		[ "$(machine "$tmp/object.o")" = "$(machine "$libs/libibverbs.so")" ] || continue
	linked=yes
	# The library may be instrumented; only the compiler that did it knows how to link it.
	if [ "$c" != "$first" ] && readelf -Ws --dyn-syms "$libs/libibverbs.so" | grep -q ' __\(a\|ub\)san_'; then
		continue
	fi
	# shellcheck disable=SC2086 # words: ${CFLAGS:-} ${LDFLAGS:-}
	if ! $cc ${CFLAGS:-} -Wall -Wextra -Werror -I"$inc" -o "$tmp/use" "$tmp/use.c" -L"$libs" -libverbs ${LDFLAGS:-} \
		>"$tmp/log" 2>&1; then
		cat "$tmp/log"
		fail "$c does not link with -libverbs"
		continue
	fi
	if ! [ "$(export LD_LIBRARY_PATH="$libs"; run "$c" "$tmp/use" 2>/dev/null)" = success ]; then
		fail "the program made by $c does not run"
	fi
done
[ -n "${linked:-}" ] || fail "no compiler builds for the machine of the library"
exit $status
