#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: softhca works in a container as Docker makes it by default: with the system calls
# that its seccomp profile allows, without ptrace() and userfaultfd(), and as root with the
# capabilities of a container. Where a profile forbids what softhca cannot do without, softhca says
# so.
. "$srcdir/lib.sh" || exit 1

# As root, with the capabilities of a container's root.
in_container() {
	if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
		set -- setpriv --inh-caps=-all --bounding-set="-all,$(printf '+%s,' chown dac_override fowner fsetid kill setgid setuid \
			setpcap net_bind_service net_raw sys_chroot mknod audit_write)+setfcap" "$@"
	fi
	timeout 100 "$@"
}
confined() { in_container "$PROGRAMS/confined" "$@"; }
"$PROGRAMS/confined" true
if [ $? -eq 77 ]; then
	skip "a container's system calls" "this kernel or container lets no program add a seccomp filter"
	finish
fi

ok "the filter refuses what Docker's refuses" confined "$PROGRAMS/confined" --try
ok "softhca doctor finds all that is needed" confined "$SOFTHCA" doctor

# Without userfaultfd() memory can be shared in one way fewer. It is still shared.
shares() {
	take_port
	"$TOOLS/ibv_rc_pingpong" --timeout 50 -p "$port" >"$tmp/server.out" 2>&1 &
	server=$!
	shared() { "$SOFTHCA" show --json "$SOFTHCA_INSTANCE" >"$tmp/state" && jq -e '.daemon.regions_shared > 0' "$tmp/state" >/dev/null; }
	for _ in $(seq 50); do shared && break; kill -0 "$server" || break; sleep 0.1; done
	shared
	found=$?
	kill "$server"
	[ "$found" -eq 0 ] || { cat "$tmp/server.out"; jq -c .daemon "$tmp/state"; }
	return "$found"
}
export -f shares
run() { confined "$SOFTHCA" run "${@:2}" -- bash -c '"$@"' x "$1"; }
rc() { pingpong "$TOOLS/ibv_rc_pingpong" -n 100 --verify; }
ud() { pingpong "$TOOLS/ibv_ud_pingpong" -n 100 --verify; }
xrc() { xsrq 2 --verify; }
export -f rc ud xrc
for face in mainline ofed; do
	for mmio in kick trap; do
		each_once $face $mmio || continue
		for tool in rc ud xrc; do
			ok "$tool, $face, $mmio" ours run $tool --kernel $face --mmio $mmio
		done
	done
done
if command -v jq >/dev/null; then
	ok "registered memory is shared" ours run shares
else
	skip "registered memory is shared" "install jq"
fi
if [ -x /usr/bin/ibv_rc_pingpong ]; then
	theirs() { pingpong /usr/bin/ibv_rc_pingpong -n 100; }
	export -f theirs
	ok "Debian's tools" run theirs
else
	skip "Debian's tools" "install ibverbs-utils"
fi

mesh() {
	take_port
	"$(dirname "$SOFTHCA")/softhca-rsh" host1 "exec '$TOOLS/xrc_mesh' --procs 2 --port $port --node 1" &
	other=$!
	"$TOOLS/xrc_mesh" --procs 2 --port "$port" --node 0 && wait "$other"
}
export -f mesh
ok "processes with threads and children, on two hosts" ours run mesh --hosts 2
ok "programs that are killed and stopped" ours confined "$SOFTHCA" run -- "$PROGRAMS/soak" --processes 6 --seconds "$(all_rows && echo 3 || echo 1)" --seed 1

# These commands use an instance that stays.
commands() {
	confined "$SOFTHCA" start --hosts 2 lab >/dev/null && confined "$SOFTHCA" fault lab drop 1% && confined "$SOFTHCA" port lab mlx4_0:1 down &&
		confined "$SOFTHCA" port lab mlx4_0:1 up && confined "$SOFTHCA" show lab >"$tmp/show" && grep -q mlx4_0 "$tmp/show" &&
		confined "$SOFTHCA" show --waits lab && confined "$SOFTHCA" stop lab
}
ok "start, fault, port, show and stop" commands

# Without the calls that reach another process's memory there is no device, and a message says why.
too_little() {
	ours confined --old "$SOFTHCA" run -- "$TOOLS/ibv_devinfo" >"$tmp/out" 2>&1 && { cat "$tmp/out"; return 1; }
	grep -q 'may not reach the memory of this process (process_vm_readv)' "$tmp/out" || { cat "$tmp/out"; return 1; }
	confined --old "$SOFTHCA" doctor >"$tmp/out" 2>&1 && { cat "$tmp/out"; return 1; }
	grep -q 'seccomp' "$tmp/out" || { cat "$tmp/out"; return 1; }
}
ok "a profile that forbids process_vm_readv() is named" too_little
ok "nothing is left behind" until_true no_instance
finish
