#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: two machines on one wire, each of them a network namespace with an instance of its own: ping-pongs, a mesh of
# XRC ranks, and jobs of MPI libraries whose launchers start ranks on both.
# shellcheck disable=SC2154 # machines() sets $there
. "$srcdir/lib.sh" || exit 1
. "$srcdir/wire_apart.sh" || exit 1

machines_need "machines on a wire"
# ssh, as far as launchers know it, and the script of docs/hosts.md, whose softhca is the one that is tested.
mkdir "$tmp/bin"
printf '#!/bin/sh\nshift\nexec "$tmp/there" sh -c "$*"\n' >"$tmp/bin/ssh"
sed -n '/^#!\/bin\/bash$/,/^exec ssh/p' "$srcdir/../../docs/hosts.md" | sed "s|softhca run|$SOFTHCA run|" >"$tmp/rsh"
chmod +x "$tmp/rsh" "$tmp/bin/ssh"
export PATH=$tmp/bin:$PATH

# Joins two network namespaces by a cable, gives the machine of the other one a name and a place for
# instances, starts an instance on each, and calls a function. Nobody has to be root. The instances have the same name,
# since a launcher may give its own environment to ranks on other machines.
machines() {
	unshare -mnu sleep 1000 &
	export there=$!
	# What runs there, cleanup() of lib.sh cannot see.
	trap '"$tmp/there" "$SOFTHCA" stop lab >/dev/null 2>&1; kill "$there"' EXIT
	until_true elsewhere || return 1
	"$tmp/there" hostname there && "$tmp/there" mount -t tmpfs none "$SOFTHCA_DIR" || return 1
	cable || return 1
	if [ "$wire" = fd77::1 ]; then
		ip address add fd77::1/24 dev w0 nodad && "$tmp/there" ip address add fd77::2/24 dev w1 nodad || return 1
	fi
	"$SOFTHCA" start --wire "$wire/24" lab && "$tmp/there" "$SOFTHCA" start --wire "${wire%1}2/24" lab || return 1
	good=true
	"$@" || good=false
	# Both ends sent something, and nothing came damaged.
	"$SOFTHCA" show --json lab | jq -e '.wire | .mtu == 1024 and .sent > 100 and .received > 100 and .malformed + .bad_icrc == 0' || good=false
	$good || { "$SOFTHCA" show --json lab; "$tmp/there" "$SOFTHCA" show --json lab; } | jq -c .wire
	"$SOFTHCA" stop lab || good=false
	"$tmp/there" "$SOFTHCA" stop lab || good=false
	$good
}
here() { timeout 120 "$SOFTHCA" run --instance lab -- "$@"; }
over_there() { timeout 120 "$tmp/there" "$SOFTHCA" run --instance lab -- "$@"; }

pingpongs() {
	for tool in ibv_rc_pingpong "ibv_ud_pingpong -s 1024" ibv_uc_pingpong ibv_srq_pingpong; do
		take_port
		# shellcheck disable=SC2086 # words
		here "$TOOLS/"$tool -n 100 -p "$port" &
		server=$!
		until_true listening || return 1
		# shellcheck disable=SC2086
		over_there "$TOOLS/"$tool -n 100 -p "$port" 10.77.0.1 && wait "$server" || return 1
	done
}

# Linux keeps what is sent to addresses that do not answer, and charges it to the socket that the others share.
absent() {
	here "$PROGRAMS/absent" 15 50 51 52 53 >"$tmp/absent" &
	absent=$!
	until_true fails && "$SOFTHCA" graph lab >"$tmp/graph" && grep -q 'LID 51, QP 0x000048:\\non the wire' "$tmp/graph" &&
		! grep 'not there' "$tmp/graph" || return 1
	for _ in 1 2 3; do
		take_port
		here "$TOOLS/ibv_rc_pingpong" -n 2000 -p "$port" &
		server=$!
		until_true listening || return 1
		over_there "$TOOLS/ibv_rc_pingpong" -n 2000 -p "$port" 10.77.0.1 && wait "$server" || return 1
	done
	wait "$absent" && [ "$(cat "$tmp/absent")" -ge 4 ]
}
fails() { "$SOFTHCA" show --json lab | jq -e '.wire.sent >= 100' >/dev/null; }

# A sender that is faster than its interface waits for it, also where the peer never says a word: its messages all come.
slow() {
	tc qdisc add dev w0 root tbf rate 50mbit burst 20k limit 4m || return 1
	take_port
	over_there ib_send_bw -c UC -s 65536 -n 200 -m 1024 -F -x 1 -p "$port" &
	server=$!
	until_true listening_somewhere || return 1
	# The client may find that the server has ended before it could say good-bye.
	here ib_send_bw -c UC -s 65536 -n 200 -m 1024 -F -x 1 -p "$port" 10.77.0.2
	wait "$server" && tc qdisc del dev w0 root && "$SOFTHCA" show --json lab | jq -e '.wire.sent >= 12800 and .wire.unsent == 0' &&
		ours pingpongs
}

# mesh [OPTION]
mesh() {
	take_port
	here "$TOOLS/xrc_mesh" "$@" --procs 4 --port "$port" --node 0 --messages 100 --server 10.77.0.1 &
	first=$!
	over_there "$TOOLS/xrc_mesh" "$@" --procs 4 --port "$port" --node 1 --messages 100 --server 10.77.0.1 && wait "$first"
}

# What UCX needs where little memory may be locked, as words for both launchers. $1: UCX_TLS=...
settings="${ucx_settings[*]}"
# The capture of this end has what passes the network, whichever operations and faults there are.
captured() {
	coproc { exec python3 "$srcdir/capture_wire.py" w0 "$tmp/file" "$wire" 2>"$tmp/sniffed.err"; }
	sniffer=$COPROC_PID
	exec 7<&"${COPROC[0]}" 8>&"${COPROC[1]}"
	eval "exec ${COPROC[1]}>&-"
	read -r ready <&7 && [ "$ready" = ready ] || { cat "$tmp/sniffed.err"; return 1; }
	"$SOFTHCA" capture lab -w "$tmp/file" 7<&- 8>&- &
	capture=$!
	# While a capture looks at what a machine sends, each packet leaves it by itself, and the network has packets and no merged datagrams.
	"$tmp/there" "$SOFTHCA" capture lab -w - >"$tmp/other" 7<&- 8>&- &
	other_capture=$!
	until_true test -s "$tmp/file" && until_true test -s "$tmp/other" && "$SOFTHCA" fault lab duplicate 5% && "$SOFTHCA" fault lab corrupt 5% || return 1
	# Both ends send requests, and answer some.
	for ends in "here over_there 10.77.0.1" "over_there here 10.77.0.2"; do
		read -r one other address <<<"$ends"
		take_port
		"$one" "$PROGRAMS/wire_peers" lossy -p "$port" 7<&- 8>&- &
		server=$!
		until_true listening_somewhere &&
			"$other" "$PROGRAMS/wire_peers" lossy -p "$port" "$address" 7<&- 8>&- && wait "$server" || return 1
	done
	kill -INT "$capture" "$other_capture" && wait "$capture" && wait "$other_capture"
	exec 8>&-
	read -r packets <&7 && wait "$sniffer" && echo "$packets packets" && [ "$packets" -gt 600 ] ||
		{ cat "$tmp/sniffed.err"; echo "$packets"; cat <&7; return 1; }
	well_formed
}
listening_somewhere() { listening || "$tmp/there" cat /proc/net/tcp /proc/net/tcp6 | grep -qi ":$(printf %04X "$port") [0-9A-F]*:0000 0A "; }
quiet=$(printf -- '--disable-heuristic %s ' eth_over_ib rpcrdma_infiniband mellanox_eoib fc_infiniband nvme_rdma \
	smcr_infiniband lnet_ib iser_infiniband smb_direct_infiniband sdp_infiniband)
# shellcheck disable=SC2086 # words
well_formed() {
	! command -v tshark >/dev/null ||
		[ "$(tshark -r "$tmp/file" $quiet -Y '!infiniband || _ws.malformed || _ws.expert.severity >= 6291456' 2>/dev/null | wc -l)" -eq 0 ]
}

# job LAUNCHER [OPTION...]: four ranks, two on each machine
job() {
	here "$@" "$tmp/alltoall" 10 >"$tmp/job" 2>&1 && grep -q '4 ranks: every byte verified' "$tmp/job" || { cat "$tmp/job"; return 1; }
}
openmpi() {
	options=()
	for setting in $settings "$1"; do options+=(-x "$setting"); done
	job mpirun.openmpi --oversubscribe --host 10.77.0.1:2,10.77.0.2:2 --mca plm_rsh_agent "$tmp/rsh" \
		--mca oob_tcp_if_include 10.77.0.0/24 --mca pml ucx --mca osc ucx --mca pml_ucx_tls any --mca pml_ucx_devices any "${options[@]}"
}
hydra() {
	options=()
	for setting in $settings "$1"; do options+=(-genv "${setting%%=*}" "${setting#*=}"); done
	job mpiexec.hydra -launcher ssh -launcher-exec "$tmp/rsh" -iface w0 -hosts 10.77.0.1:2,10.77.0.2:2 -n 4 "${options[@]}"
}
export -f ours absent fails slow captured listening_somewhere well_formed machines cable elsewhere here over_there pingpongs mesh job openmpi hydra tcp take_port listening until_true
export tmp srcdir settings quiet OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_orte_tmpdir_base=$tmp
on_machines() { $apart bash -c 'machines "$@"' - "$@"; }
# The instances' addresses: this one, and the one after it. Whatever else the machines say to each other goes over IPv4.
export wire=10.77.0.1
ipv6() { wire=fd77::1 "$@"; }

ok "ping-pongs" ours on_machines pingpongs
ok "ping-pongs beside requests to machines that are not there" ours on_machines absent
if command -v ib_send_bw >/dev/null && $apart sh -c 'ip link add w0 type veth peer name w1 && tc qdisc add dev w0 root tbf rate 50mbit burst 20k limit 4m' 2>/dev/null; then
	ok "messages of UC through a slow interface" on_machines slow
else
	skip "messages of UC through a slow interface" "install perftest; and the kernel must have the module sch_tbf"
fi
if command -v python3 >/dev/null; then
	ok "a capture has what passes the network" ours on_machines captured
else
	skip "a capture has what passes the network" "install python3"
fi
if ! all_rows; then
	:
elif command -v python3 >/dev/null; then
	ok "a capture has what passes the network, IPv6" ours ipv6 on_machines captured
else
	skip "a capture has what passes the network, IPv6" "install python3"
fi
ok "a mesh of eight XRC ranks" ours on_machines mesh
[ "${TIER:-}" != full ] || ok "the same over RC" ours on_machines mesh --rc
if command -v mpirun.openmpi >/dev/null && command -v mpicc.openmpi >/dev/null; then
	mpicc.openmpi -O2 -o "$tmp/alltoall" "$srcdir/mpi_alltoall.c" || exit 1
	ok "Open MPI, RC" on_machines openmpi UCX_TLS=rc_v,self
	[ "${TIER:-}" != full ] || ok "Open MPI, datagrams" on_machines openmpi UCX_TLS=ud_v,self
else
	skip "Open MPI" "install openmpi-bin and libopenmpi-dev"
fi
if ! all_rows; then
	: # launchers.sh runs MPICH
elif command -v mpiexec.hydra >/dev/null && command -v mpicc.mpich >/dev/null; then
	mpicc.mpich -O2 -o "$tmp/alltoall" "$srcdir/mpi_alltoall.c" || exit 1
	ok "MPICH" on_machines hydra UCX_TLS=rc_v,self
else
	skip "MPICH" "install mpich and libmpich-dev"
fi
ok "nothing is left behind" until_true no_instance
finish
