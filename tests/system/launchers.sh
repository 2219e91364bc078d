#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: launchers place ranks on hosts with softhca-rsh: Debian's MPICH with Hydra, which
# passes mpiexec's environment to every rank, and Debian's Open MPI. Each rank has the name, the id
# and the device of its host.
. "$srcdir/lib.sh" || exit 1

PATH=$(dirname "$SOFTHCA"):$PATH
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_orte_tmpdir_base=$tmp OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo
# Debian's MPICH is over UCX.
[ ${#ucx_settings[@]} -eq 0 ] || export "${ucx_settings[@]}"
export OMPI_MCA_pml=ob1 OMPI_MCA_btl_base_warn_component_unused=0

# placed "HOST..." WORD...: the ranks of the job run on these hosts, in that order.
placed() {
	rank=0
	for host in $1; do
		echo "rank $rank: $host, with its device"
		rank=$((rank + 1))
	done >"$tmp/wanted"
	shift
	timeout 100 "$SOFTHCA" run "${shape[@]}" -- "$@" >"$tmp/mpi.out" 2>"$tmp/mpi.err" &&
		grep '^rank' "$tmp/mpi.out" | diff "$tmp/wanted" - || { cat "$tmp/mpi.out" "$tmp/mpi.err"; return 1; }
}

if command -v mpiexec.hydra >/dev/null && command -v mpicc.mpich >/dev/null; then
	ok "the program is compiled with MPICH" mpicc.mpich -O2 -D_GNU_SOURCE -Wall -Wextra -Werror -o "$tmp/mpich_where" \
		"$srcdir/mpi_where.c" -ldl
	hydra="mpiexec.hydra -launcher ssh -launcher-exec softhca-rsh"
	shape=(--hosts 2)
	# shellcheck disable=SC2086 # words: $hydra
	ok "MPICH, four ranks on two hosts" placed "host0 host0 host1 host1" $hydra -hosts host0:2,host1:2 -n 4 "$tmp/mpich_where"
	ok "MPICH, as rsh" placed "host0 host1" mpiexec.hydra -launcher rsh -launcher-exec softhca-rsh -hosts host0,host1 -n 2 \
		"$tmp/mpich_where"
	shape=(--hosts 3 --host 2)
	# shellcheck disable=SC2086 # words: $hydra
	ok "MPICH, started on another host than the first" placed "host1 host0 host2" $hydra -hosts host1,host0,host2 -n 3 \
		"$tmp/mpich_where"
else
	skip "MPICH" "install mpich and libmpich-dev"
fi

if command -v mpirun.openmpi >/dev/null && command -v mpicc.openmpi >/dev/null; then
	ok "the program is compiled with Open MPI" mpicc.openmpi -O2 -D_GNU_SOURCE -Wall -Wextra -Werror -o "$tmp/openmpi_where" \
		"$srcdir/mpi_where.c" -ldl
	shape=(--hosts 2)
	ok "Open MPI, four ranks on two hosts" placed "host0 host0 host1 host1" mpirun.openmpi --oversubscribe \
		--mca plm_rsh_agent softhca-rsh --host host0:2,host1:2 -np 4 "$tmp/openmpi_where"
else
	skip "Open MPI" "install openmpi-bin and libopenmpi-dev"
fi
ok "nothing is left behind" until_true no_instance
finish
