#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: docs/faq.md quotes messages as programs print them. This test provokes each message
# that needs no card, no other user and no MPI library, and looks for it in the page.
. "$srcdir/lib.sh" || exit 1

page=$srcdir/../../docs/faq.md

# said TEXT COMMAND...: the command prints the text, and the page has the text.
said() {
	text=$1
	shift
	timeout 30 "$@" >"$tmp/said" 2>&1
	grep -qF -- "$text" "$tmp/said" || { echo "it does not say: $text"; cat "$tmp/said"; return 1; }
	grep -qF -- "$text" "$page" || { echo "docs/faq.md does not have: $text"; return 1; }
}
# faq TEXT COMMAND...: the same for a command in an instance.
faq() {
	ok "$1" said "$1" "$SOFTHCA" run -- "${@:2}"
}
# Runs the tool itself, because libtool's script would set LD_LIBRARY_PATH.
tool() {
	if [ -x "$TOOLS/.libs/$1" ]; then echo "$TOOLS/.libs/$1"; else echo "$TOOLS/$1"; fi
}
devinfo=$(tool ibv_devinfo)
our=(env LD_LIBRARY_PATH="$OURS" RDMAV_DRIVERS=mlx4)
bare_library
no_driver=(env -u RDMAV_DRIVERS LD_LIBRARY_PATH="$tmp/bare")

# ---- our libraries and tools ----

faq "no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs0 (mlx4_0)" \
	"${no_driver[@]}" "$devinfo"
faq "couldn't load driver 'nothing': libnothing-rdmav2.so: cannot open shared object file: No such file or directory" \
	"${no_driver[@]}" RDMAV_DRIVERS=nothing "$devinfo"
faq "(named in 'RDMAV_DRIVERS')" "${no_driver[@]}" RDMAV_DRIVERS=nothing "$devinfo"
faq "No IB devices found" "${no_driver[@]}" "$devinfo"
faq "Failed to get IB devices list: Function not implemented" env -i LD_LIBRARY_PATH="$OURS" "$devinfo"
faq 'ibv_devinfo: there is no device: SOFTHCA_HOST is "7", and the instance has 1 host, counted from 0' \
	"${our[@]}" SOFTHCA_HOST=7 "$devinfo"
faq "has ended or never existed" "${our[@]}" SOFTHCA_INSTANCE=x "$devinfo"
faq "no device can be opened: the daemon of the instance" "${our[@]}" sh -c "$dead" x "$devinfo"
faq "No such device or address" "${our[@]}" sh -c "$dead" x "$devinfo"
faq "softhca: cannot run ibstat: No such file or directory" env PATH=/nowhere "$SOFTHCA" run -- ibstat
faq "has 1 host, counted from 0: there is no host 1" "$(dirname "$SOFTHCA")/softhca-rsh" host1 true
ok "no such instance" said "looked for it in" "$SOFTHCA" show missing
ok "no server" said "Connection refused" "$SOFTHCA" run -- "${our[@]}" "$TOOLS/ibv_rc_pingpong" -p 1 127.0.0.1
# A server and, later, another one.
taken='"$0" -p "$1" --timeout 30 & until cat /proc/net/tcp* | grep -qi ":$2 [0:]* 0A"; do sleep 0.05; done; "$0" -p "$1"; kill $!'
take_port
faq "Address already in use" "${our[@]}" sh -c "$taken" "$(tool ibv_rc_pingpong)" "$port" "$(printf '%04X' "$port")"
lost='"$SOFTHCA" fault "$SOFTHCA_INSTANCE" drop 100% && { "$0" -p "$1" --timeout 20 & "$0" -p "$1" --timeout 20 127.0.0.1; wait; }'
take_port
faq "Failed status transport retry counter exceeded (12)" "${our[@]}" sh -c "$lost" "$(tool ibv_rc_pingpong)" "$port"
ok "an HCA that was not used" said "softhca: nothing went over an HCA: no process sent a packet." \
	"$SOFTHCA" run --require-traffic -- true

# ---- programs of one's own ----

awk '/^```c$/ { n++; next } /^```$/ { if (n) exit } n' "$srcdir/../../docs/xrc.md" >"$tmp/one.c"
ok "PKG_CONFIG_PATH was forgotten" said "Package libibverbs was not found in the pkg-config search path." \
	env LC_ALL=C PKG_CONFIG_PATH= PKG_CONFIG_LIBDIR=/nowhere pkg-config --cflags libibverbs
other="fatal error: infiniband/verbs.h: No such file or directory"
if echo '#include <infiniband/verbs.h>' | $CC -E - >/dev/null 2>&1; then
	other="error: 'struct ibv_qp_init_attr' has no member named 'xrc_domain'"
	# shellcheck disable=SC2086 # words: $CC
	ok "the header is rdma-core's, in its warning" said "implicit declaration of function 'ibv_open_xrc_domain'" \
		env LC_ALL=C $CC -c -o "$tmp/one.o" "$tmp/one.c"
fi
# shellcheck disable=SC2086 # words: $CC
ok "the header is not ours" said "$other" env LC_ALL=C $CC -c -o "$tmp/one.o" "$tmp/one.c"
one() {
	$CC -I"$srcdir/../../include" -o "$tmp/one" "$tmp/one.c" -L"${OURS%%:*}" -libverbs &&
		said "open device: Function not implemented" "${our[@]}" "$tmp/one"
}
if [ -e /sys/class/infiniband_verbs ]; then
	skip "a program outside of softhca run" "this machine has an RDMA device"
else
	ok "a program outside of softhca run" one
fi

# A card whose device file is missing.
card=$tmp/sys/class
mkdir -p "$card/infiniband_verbs/uverbs0/device" "$card/infiniband/mlx4_0"
echo 6 >"$card/infiniband_verbs/abi_version"
echo 4 >"$card/infiniband_verbs/uverbs0/abi_version"
echo mlx4_0 >"$card/infiniband_verbs/uverbs0/ibdev"
echo 0x15b3 >"$card/infiniband_verbs/uverbs0/device/vendor"
echo 0x1003 >"$card/infiniband_verbs/uverbs0/device/device"
echo "1: CA" >"$card/infiniband/mlx4_0/node_type"
if [ -e /dev/infiniband/uverbs0 ]; then
	skip "a device file that is not there" "this machine has one"
else
	ok "a device file that is not there" said "Failed to open device mlx4_0: No such file or directory" \
		"${our[@]}" SYSFS_PATH="$tmp/sys" "$devinfo"
fi

# ---- messages of rdma-core, if it is installed ----

of_debian() {
	command -v ibv_devinfo >/dev/null && ldd "$(command -v ibv_devinfo)" | grep -q 'libibverbs.so.1 => /'
}
if of_debian; then
	# Linked without an rpath.
	faq "undefined symbol: ibv_open_xrc_domain, version IBVERBS_1.1" env -u LD_LIBRARY_PATH "$tmp/one"
	faq "IBVERBS_PRIVATE_34' not found (required by" env LD_LIBRARY_PATH="$OURS" "$(command -v ibv_devinfo)"
	ok "rdma-core on an OFED kernel" said "Failed to query device props" "$SOFTHCA" run --kernel ofed -- ibv_devinfo
	cp "$(command -v ibv_devinfo)" "$tmp/hidden"
	chmod 0111 "$tmp/hidden"
	# Root may read all files.
	[ -r "$tmp/hidden" ] || faq "may not reach the memory of this process (process_vm_readv)" "$tmp/hidden"
else
	skip "rdma-core's library and tools" "install ibverbs-utils"
fi
finish
