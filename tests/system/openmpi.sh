#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: an MPI job as users start it: Debian's Open MPI over UCX's verbs transports on the
# mainline face, four ranks on one and on two emulated hosts, with the contents verified. The remote
# shell is softhca-rsh.
. "$srcdir/lib.sh" || exit 1

ok "the remote shell that the jobs use is there" test -x "$(dirname "$SOFTHCA")/softhca-rsh"
# The jobs take minutes.
[ "${TIER:-}" = full ] || finish

if ! command -v mpirun.openmpi >/dev/null || ! command -v mpicc.openmpi >/dev/null; then
	skip "Open MPI" "install openmpi-bin and libopenmpi-dev"
	finish
fi
if ! mpicc.openmpi -O2 -Wall -Wextra -o "$tmp/mpi_verify" "$srcdir/../../softhca/cli/mpi_verify.c" 2>"$tmp/mpicc.err"; then
	ok "mpi_verify is compiled" cat "$tmp/mpicc.err"
	finish
fi

PATH=$(dirname "$SOFTHCA"):$PATH
export PATH
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Session directories are removed with the test's.
export OMPI_MCA_orte_tmpdir_base=$tmp OMPI_MCA_oob_tcp_if_include=lo

job() {
	timeout 90 "$SOFTHCA" run --kernel mainline "${run_options[@]}" -- mpirun.openmpi --oversubscribe -np 4 "${mpi_options[@]}" \
		--mca pml ucx --mca osc ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x "UCX_TLS=$tls" \
		"$tmp/mpi_verify" hosts "$hosts" >"$tmp/mpi.out" 2>&1 &&
		grep -q "4 ranks on $hosts hosts*: every byte verified" "$tmp/mpi.out" || { cat "$tmp/mpi.out"; return 1; }
}

for mmio in kick trap; do
	for tls in rc_v,self ud_verbs,self; do
		hosts=1
		run_options=(--mmio "$mmio")
		mpi_options=()
		ok "$tls, one host, $mmio" job
		hosts=2
		run_options=(--mmio "$mmio" --hosts 2)
		# shellcheck disable=SC2054 # an option of mpirun with a comma
		mpi_options=(--host host0:2,host1:2 --mca plm_rsh_agent softhca-rsh)
		ok "$tls, two hosts, $mmio" job
	done
done
ok "nothing is left behind" until_true no_instance
finish
