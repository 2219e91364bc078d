#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: docs/faq.md quotes messages as programs print them. This test provokes each message
# that needs no card and no MPI library, and compares it with the page's, but for numbers and paths.
# What it cannot provoke of ours has to be in the sources. In the end no heading, and no row of a
# table of messages, may be left that nothing was compared with.
. "$srcdir/lib.sh" || exit 1

page=$srcdir/../../docs/faq.md
root=$srcdir/../..
: >"$tmp/compared"

# Numbers, names and paths, which the page says may be others.
same() { sed -E "s|\"[^\"]*\"|\"\"|g; s|0x[0-9a-f.]+|N|g; s|(^\|[ '=(])/[^ ,;:')]*|\1P|g; s/(P, )+P/P/g; s/[0-9]+/N/g"; }

# The page's texts between backquotes, one a line: all of them, or those of headings and tables of messages.
# shellcheck disable=SC2016 # awk
spans() {
	awk -v all="$1" '/^```/ { code = !code; next } code { next }
		/^\| text \|/ { table = 1 }
		!/^\|/ { table = 0 }
		{
			line = $0
			if (!all && table)
				line = substr(line, 1, index(line, "` | ") ? index(line, "` | ") : 0)
			if (!all && !table && !/^### `|^### ``/)
				next
			while (match(line, /``[^`].*[^`]``|`[^`]+`/)) {
				text = substr(line, RSTART, RLENGTH)
				gsub(/^`+|`+$/, "", text)
				print text
				line = substr(line, RSTART + RLENGTH)
			}
		}' "$page" | same
}
spans all >"$tmp/spans"

# quoted TEXT: the page has the text, and no more of it, between backquotes.
quoted() {
	same <<<"$1" >"$tmp/text"
	cat "$tmp/text" >>"$tmp/compared"
	grep -qxF -- "$(cat "$tmp/text")" "$tmp/spans" || { echo "docs/faq.md does not have: $1"; return 1; }
}
# said TEXT COMMAND...: the command prints the text, and the page quotes it.
said() {
	text=$1
	shift
	timeout 30 "$@" >"$tmp/said" 2>&1
	same <"$tmp/said" | grep -qF -- "$(same <<<"$text")" || { echo "it does not say: $text"; cat "$tmp/said"; return 1; }
	quoted "$text"
}
# partly TEXT COMMAND...: the same for a part of a message whose beginning or end is another system's.
partly() {
	timeout 30 "${@:2}" >"$tmp/said" 2>&1
	grep -qF -- "$1" "$tmp/said" || { echo "it does not say: $1"; cat "$tmp/said"; return 1; }
	grep -qF -- "$1" "$page" || { echo "docs/faq.md does not have: $1"; return 1; }
}
# The strings of our programs and libraries, each as a whole.
cat "$root"/{softhca,libibverbs,libmlx4,librdmacm,examples}/{*.c,*/*.c,*/*/*.c} 2>/dev/null |
	awk '{ sub(/^[ \t]+/, ""); printf "%s", $0 } END { print "" }' | sed 's/""//g' >"$tmp/strings"
# printed TEXT FORMAT: the page quotes the text, and a string of the sources has the format.
printed() {
	grep -qF -- "$2" "$tmp/strings" || { echo "no string has: $2"; return 1; }
	quoted "$1"
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
cm=${OURS%%:*}
cm=${cm%/libibverbs/.libs}/librdmacm
cm_tool() {
	if [ -x "$cm/.libs/$1" ]; then echo "$cm/.libs/$1"; else echo "$cm/$1"; fi
}
cm_our=(env LD_LIBRARY_PATH="$OURS:$cm/.libs" RDMAV_DRIVERS=mlx4)
our=(env LD_LIBRARY_PATH="$OURS" RDMAV_DRIVERS=mlx4)
bare_library
no_driver=(env -u RDMAV_DRIVERS LD_LIBRARY_PATH="$tmp/bare")

# ---- our libraries and tools ----

faq "libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs0 (mlx4_0)" \
	"${no_driver[@]}" "$devinfo"
faq "couldn't load driver 'nothing': libnothing-rdmav2.so: cannot open shared object file: No such file or directory (named in 'RDMAV_DRIVERS')" \
	"${no_driver[@]}" RDMAV_DRIVERS=nothing "$devinfo"
faq "No IB devices found" "${no_driver[@]}" "$devinfo"
faq "Failed to get IB devices list: Function not implemented" env -i LD_LIBRARY_PATH="$OURS" "$devinfo"
faq 'ibv_devinfo: there is no device: SOFTHCA_HOST is "7", and the instance has 1 host, counted from 0' \
	"${our[@]}" SOFTHCA_HOST=7 "$devinfo"
faq "ibv_devinfo: there is no device: the instance /dev/shm/softhca-0/softhca/x has ended or never existed" \
	"${our[@]}" SOFTHCA_INSTANCE=/dev/shm/softhca-0/softhca/x "$devinfo"
faq "no device can be opened: the daemon of the instance /dev/shm/softhca-0/softhca/x has ended" \
	"${our[@]}" sh -c "$dead" x "$devinfo"
faq "No such device or address" "${our[@]}" sh -c "$dead" x "$devinfo"
faq "softhca: cannot run ibstat: No such file or directory" env PATH=/nowhere "$SOFTHCA" run -- ibstat
ok "no such instance" said 'no instance "lab" of user 1000 runs; looked for it in /dev/shm/softhca-1000, /tmp/softhca-1000' "$SOFTHCA" show lab
"$SOFTHCA" start lab >/dev/null || exit 1
ok "no such host of an instance" said 'instance "lab" has 1 host, counted from 0: there is no host 1' \
	"$SOFTHCA" run --instance lab --host 1 -- true
"$SOFTHCA" stop lab || exit 1
ok "no such host" said "there is no host 1: the instance is to have 1 host, counted from 0" "$SOFTHCA" run --host 1 -- true
ok "the instance of softhca run has ended" said 'no instance "x" runs: that in /dev/shm/softhca-0/x has ended (Connection refused)' \
	"$SOFTHCA" run -- sh -c "$dead" x sh -c '"$0" run --instance "$SOFTHCA_INSTANCE" -- true' "$SOFTHCA"
ok "no server" said "Couldn't connect to localhost:18515: Connection refused" \
	"$SOFTHCA" run -- "${our[@]}" "$(tool ibv_rc_pingpong)" -p 1 localhost
ok "no such name" said "Name or service not known for host1:18515" "$SOFTHCA" run -- "${our[@]}" "$(tool ibv_rc_pingpong)" host1
# A server and, later, another one.
taken='"$0" -p "$1" --timeout 30 & until cat /proc/net/tcp* | grep -qi ":$2 [0:]* 0A"; do sleep 0.05; done; "$0" -p "$1"; kill $!'
take_port
faq "Couldn't listen to port 18515: Address already in use" "${our[@]}" sh -c "$taken" "$(tool ibv_rc_pingpong)" "$port" "$(printf '%04X' "$port")"
lost='"$SOFTHCA" fault "$SOFTHCA_INSTANCE" drop 100% && { "$0" -p "$1" --timeout 20 & "$0" -p "$1" --timeout 20 127.0.0.1; wait; }'
take_port
faq "Failed status transport retry counter exceeded (12)" "${our[@]}" sh -c "$lost" "$(tool ibv_rc_pingpong)" "$port"
# Root is not told, and other users may not be able to use the build tree.
if [ "$(id -u)" -ne 0 ]; then
	faq "libibverbs: Warning: RLIMIT_MEMLOCK is 32768 bytes, which leaves little memory to register." \
		"${our[@]}" sh -c 'ulimit -l 32; "$1"' x "$devinfo"
	faq "Couldn't register MR of 2000256 bytes: Cannot allocate memory" \
		"${our[@]}" sh -c 'ulimit -l 1024; "$1" -s 1000000' x "$(tool ibv_rc_pingpong)"
else
	ok "little locked memory" printed "libibverbs: Warning: RLIMIT_MEMLOCK is 32768 bytes, which leaves little memory to register." \
		'"RLIMIT_MEMLOCK is %llu bytes, which leaves little memory to register. '
	ok "no locked memory" printed "Couldn't register MR of 2000256 bytes: Cannot allocate memory" '"Couldn'"'"'t register MR of %zu bytes"'
fi
ok "an HCA that was not used" said "softhca: nothing went over an HCA: no process sent a packet." \
	"$SOFTHCA" run --require-traffic -- true
ok "a trace without verbs" said "softhca: no verb was traced: the command called none" "$SOFTHCA" trace -- true

# ---- programs of one's own ----

awk '/^```c$/ { n++; next } /^```$/ { if (n) exit } n' "$srcdir/../../docs/xrc.md" >"$tmp/one.c"
ok "PKG_CONFIG_PATH was forgotten" said "Package libibverbs was not found in the pkg-config search path." \
	env LC_ALL=C PKG_CONFIG_PATH= PKG_CONFIG_LIBDIR=/nowhere pkg-config --cflags libibverbs
other="fatal error: infiniband/verbs.h: No such file or directory"
if echo '#include <infiniband/verbs.h>' | $CC -E - >/dev/null 2>&1; then
	other="error: 'struct ibv_qp_init_attr' has no member named 'xrc_domain'"
	# shellcheck disable=SC2086 # words: $CC
	ok "the header is rdma-core's, in its warning" partly "implicit declaration of function 'ibv_open_xrc_domain'" \
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
	ok "an event channel outside of softhca run" said "failed to create RDMA CM event channel: No such device" "${cm_our[@]}" "$(cm_tool ucmatose)"
	ok "an address outside of softhca run" said "rdma_getaddrinfo: No such device" "${cm_our[@]}" "$(cm_tool rping)" -s
	ok "rsockets outside of softhca run" said "getaddrinfo: No such device (0.0.0.0, port 7471)" "${cm_our[@]}" "$(cm_tool rstream)"
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
	ok "no rdma_cm, for an event channel" said "failed to create RDMA CM event channel: No such file or directory" \
		"${cm_our[@]}" SYSFS_PATH="$tmp/sys" "$(cm_tool ucmatose)"
	ok "no rdma_cm, for an id" said "rdma_create_id: No such file or directory" "${cm_our[@]}" SYSFS_PATH="$tmp/sys" "$(cm_tool rping)" -s
fi
# Nobody listens; an address of the block of hosts that no host has; one that is no host's.
faq "rdma_connect: Connection refused" "${cm_our[@]}" "$(cm_tool rdma_client)" -s 127.0.0.1
faq "event: RDMA_CM_EVENT_REJECTED, error: 8" "${cm_our[@]}" "$(cm_tool ucmatose)" -s 127.0.0.1
faq "RDMA_CM_EVENT_UNREACHABLE, error: 1" "${cm_our[@]}" "$(cm_tool udaddy)" -s 127.0.0.1
faq "RDMA_CM_EVENT_ADDR_ERROR, error: -110" "${cm_our[@]}" "$(cm_tool ucmatose)" -s 127.128.99.1
faq "rdma_resolve_addr: Connection timed out" "${cm_our[@]}" "$(cm_tool rping)" -c -a 127.128.99.1
faq "rdma_resolve_addr: No such device" "${cm_our[@]}" "$(cm_tool rping)" -c -a 192.0.2.1
faq "rdma_create_ep: No such device" "${cm_our[@]}" "$(cm_tool rdma_client)" -s 192.0.2.1
ok "no answer to a request" printed "RDMA_CM_EVENT_UNREACHABLE, error: -110" '"%s: event: %s, error: %d'
# A server, and another one at its port.
second='"$0" "$@" & for _ in $(seq 100); do timeout 1 "$0" "$@" 2>&1 | grep ": Cannot assign" && break; done; kill $!'
faq "rdma_create_ep: Cannot assign requested address" "${cm_our[@]}" sh -c "$second" "$(cm_tool rdma_server)"
faq "rdma_bind_addr: Cannot assign requested address" "${cm_our[@]}" sh -c "$second" "$(cm_tool rping)" -s
faq "bind address failed: Cannot assign requested address" "${cm_our[@]}" sh -c "$second" "$(cm_tool ucmatose)"
# Root has all ports, unless it gives up the capability for them.
user=()
if [ "$(id -u)" -eq 0 ]; then
	user=(setpriv --bounding-set=-net_bind_service --inh-caps=-net_bind_service)
fi
faq "rdma_create_ep: Permission denied" "${user[@]}" "${cm_our[@]}" "$(cm_tool rdma_server)" -p 80
faq "rdma_bind_addr: Permission denied" "${user[@]}" "${cm_our[@]}" "$(cm_tool rping)" -s -p 80
faq "bind address failed: Permission denied" "${user[@]}" "${cm_our[@]}" "$(cm_tool ucmatose)" -p 80
# A server whose instance ends.
# shellcheck disable=SC2016 # sh
ended='"$0" "$@" & until "$SOFTHCA" show "$SOFTHCA_INSTANCE" | grep -q state=listening; do sleep 0.05; done; "$SOFTHCA" stop "$SOFTHCA_INSTANCE"; wait'
faq "rdma_get_request: Input/output error" "${cm_our[@]}" sh -c "$ended" "$(cm_tool rping)" -s
faq "failure in rdma_get_cm_event: Input/output error" "${cm_our[@]}" sh -c "$ended" "$(cm_tool ucmatose)"
if command -v rping >/dev/null; then
	faq "cma event RDMA_CM_EVENT_REJECTED, error 8" rping -c -a 127.0.0.1
	if [ -e /sys/class/infiniband_verbs ]; then
		ok "the words of gai_strerror(), where there is a device" quoted "rdma_getaddrinfo: Bad value for ai_flags"
	else
		ok "the words of gai_strerror() for another error" said "rdma_getaddrinfo: Bad value for ai_flags" rdma_server
	fi
else
	skip "Debian's tools by address" "install rdmacm-utils"
fi
if echo '#include <rdma/rdma_cma.h>' | $CC -E - >/dev/null 2>&1; then
	ok "the header of librdmacm, where there is one" quoted "fatal error: rdma/rdma_cma.h: No such file or directory"
else
	# shellcheck disable=SC2086 # words: $CC
	ok "the header of librdmacm is missing" said "fatal error: rdma/rdma_cma.h: No such file or directory" \
		sh -c "echo '#include <rdma/rdma_cma.h>' | LC_ALL=C $CC -E -"
fi
epoll='import asyncio
async def serve():
	await asyncio.start_server(lambda r, w: None, "127.0.0.1", 7000)
asyncio.run(serve())'
if command -v python3 >/dev/null; then
	faq "PermissionError: [Errno 1] Operation not permitted" "${cm_our[@]}" sh -c 'LD_PRELOAD=$1:$LD_PRELOAD exec python3 -c "$2"' - \
		"$cm/.libs/librspreload.so" "$epoll"
else
	skip "epoll of rsockets" "install python3"
fi
faq "rdma_getaddrinfo: Name or service not known" "${cm_our[@]}" "$(cm_tool rping)" -c -a nowhere.invalid
ok "the device is another user's" printed "Failed to open device mlx4_0: Permission denied" '"Failed to open device %s"'
ok "no XRC" printed "Couldn't open the XRC domain: Function not implemented" '"Couldn'"'"'t open the XRC domain"'
ok "two QPs that only send" printed \
	"libmlx4: Warning: XRC QP 0x... of mlx4_0 is connected to QP 0x..., which is not an XRC receive QP of a device of this kind." \
	'"libmlx4: Warning: XRC QP 0x%06x of %s is connected to QP 0x%06x, which is not an XRC receive QP of a device of this kind. '
ok "no provider's name" printed "no driver is configured in '/usr/local/etc/libibverbs.d'" "no driver is configured in '%s'"
ok "no directory of names" printed \
	"libibverbs: Warning: couldn't open config directory '/usr/local/etc/libibverbs.d': No such file or directory" \
	"\"couldn't open config directory '%s': %s. "
no_proc="there is no /proc, through which"
ok "no /proc, for the daemon" printed "$no_proc the device reaches the memory and the files of programs" \
	"$no_proc the device reaches the memory and the files of programs"
ok "no /proc, for the command" printed "$no_proc softhca reaches instances" "$no_proc softhca reaches instances"

# A process that the daemon may not read. Root may read all files.
cp "$devinfo" "$tmp/hidden"
chmod 0111 "$tmp/hidden"
closed="no device can be opened: the daemon of the instance may not reach the memory of this process (process_vm_readv)"
if [ -r "$tmp/hidden" ]; then
	ok "a process that is closed" printed "$closed" "$closed"
	ok "a process that is closed, in the tool's words" printed "Failed to open device mlx4_0: Operation not permitted" '"Failed to open device %s"'
else
	faq "$closed" "${our[@]}" "$tmp/hidden"
	faq "Failed to open device mlx4_0: Operation not permitted" "${our[@]}" "$tmp/hidden"
	no_group() { ! grep -q 'members of the group' "$tmp/said"; }
	ok "and no group is the reason" no_group
fi

# ---- messages of rdma-core, if it is installed ----

of_debian() {
	command -v ibv_devinfo >/dev/null && ldd "$(command -v ibv_devinfo)" | grep -q 'libibverbs.so.1 => /'
}
if of_debian; then
	# Linked without an rpath.
	ok "rdma-core's library for a program of ours" partly "undefined symbol: ibv_open_xrc_domain, version IBVERBS_1.1" \
		"$SOFTHCA" run -- env -u LD_LIBRARY_PATH "$tmp/one"
	ok "our library for a program of rdma-core" partly "IBVERBS_PRIVATE_34' not found (required by" \
		"$SOFTHCA" run -- env LD_LIBRARY_PATH="$OURS" "$(command -v ibv_devinfo)"
	ok "rdma-core on an OFED kernel" said "Failed to query device props" "$SOFTHCA" run --kernel ofed -- ibv_devinfo
else
	skip "rdma-core's library and tools" "install ibverbs-utils"
fi

# ---- the rest of the page ----

# Messages of others: compilers, MPI libraries and tools that may not be here.
others() {
	grep -vxFf <(same <<'EOF'
UCX  WARN  transport 'rc' is not available
UCX  WARN  network device 'mlx4_9:1' is not available
PML ucx cannot be selected
WARNING: There was an error initializing an OpenFabrics device.
WARNING: The Open MPI build was compiled without XRC support, but XRC
At least one pair of MPI processes are unable to reach each other for MPI communications.
Failed to open NETLINK_RDMA socket
rdma link
ibstat
ibstatus
No RDMA devices were detected
can't read ABI version from /sys/class/infiniband_mad/abi_version (No such file or directory): is ib_umad module loaded?
fatal error: infiniband/verbs.h: No such file or directory
error: 'struct ibv_qp_init_attr' has no member named 'xrc_domain'
symbol lookup error: ./program: undefined symbol: ibv_open_xrc_domain, version IBVERBS_1.1
libibverbs.so.1: version `IBVERBS_PRIVATE_34' not found (required by ibv_devinfo)
libibverbs: Warning: couldn't load driver 'libnothing-rdmav34.so': libnothing-rdmav34.so: cannot open shared object file: No such file or directory
Failed to query device props
rdma_getaddrinfo: Success
rdma_getaddrinfo
rdma_get_devices
EOF
	)
}
compared() {
	spans "" | sort -u | grep -vxFf "$tmp/compared" >"$tmp/left"
	others <"$tmp/left" | grep . && { echo "nothing was compared with these"; return 1; }
	[ "$(sort -u "$tmp/compared" | wc -l)" -ge 30 ]
}
ok "each message of ours was compared" compared
finish
