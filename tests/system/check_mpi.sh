#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: softhca-check-mpi passes an MPI library that uses the HCA. It fails one that bypasses
# the HCA, wholly or in part, that receives wrong contents, hangs, or does not use XRC where it
# should; each with the reason.
. "$srcdir/lib.sh" || exit 1

check=$srcdir/../../softhca/cli/softhca-check-mpi
unset LD_PRELOAD
if ! command -v jq >/dev/null; then
	skip "softhca-check-mpi" "install jq"
	finish
fi

# says STATUS WORDS ARGUMENT...: the check returns this status and prints these words.
says() {
	wanted=$1
	words=$2
	shift 2
	TMPDIR=$tmp "$check" "$@" >"$tmp/check.out" 2>&1
	got=$?
	[ "$got" -eq "$wanted" ] && grep -q -- "$words" "$tmp/check.out" ||
		{ echo "status $got, not $wanted with '$words':"; cat "$tmp/check.out"; return 1; }
}

ok "help" says 0 '--expect xrc|hca' --help
ok "an unknown option" says 2 "unknown argument '--rank'" --rank 2
ok "an option without its value" says 2 '--ranks needs a value' --ranks
ok "ranks that are no number" says 2 "--ranks takes numbers" --ranks 2,x
ok "a single rank, which has no peer" says 2 "--ranks takes numbers from 2 on" --ranks 1
ok "an unknown kernel" says 2 "takes ofed mainline" --kernel linux
ok "an MPI library that is not there" says 2 "there is no directory" --mpi /nonexistent
ok "inside of an instance" env SOFTHCA_INSTANCE=lab TMPDIR="$tmp" bash -c '"$0" 2>&1 | grep "outside of softhca run"' "$check"

mkdir "$tmp/bin"
rsh=$(dirname "$SOFTHCA")/softhca-rsh

# ---- the verdict about XRC: no distribution has an MPI library that uses it ----

# A script that looks like a launcher with its job: it runs xrc_mesh on two hosts and then says that
# all is verified.
cat >"$tmp/bin/mesh-launcher" <<'END'
#!/bin/bash
# Each in a process group of its own, with the ranks that it forks.
set -m
held=${!#}
"$SOFTHCA" run --instance "$SOFTHCA_INSTANCE" --host 1 -- "$TOOLS/xrc_mesh" --procs 2 --port $MESH_PORT --node 1 \
	--messages 100000000 $MESH &
"$TOOLS/xrc_mesh" --procs 2 --port $MESH_PORT --node 0 --messages 100000000 $MESH &
for _ in $(seq 600); do
	"$SOFTHCA" show --json "$SOFTHCA_INSTANCE" |
		jq -e '[.hosts[].hcas[0].qps[] | select(.messages_sent > 100)] | length >= 4' >/dev/null && break
	sleep 0.05
done
printf '2 ranks on 2 hosts: %s\npayload %s bytes, 0 of them between hosts\n' "$VERDICT" "$PAYLOAD" >"$held.new"
mv "$held.new" "$held"
for _ in $(seq 600); do
	[ ! -f "$held.seen" ] || break
	sleep 0.05
done
for group in $(jobs -p); do
	kill -- -"$group"
done
wait
exit $STATUS
END
chmod +x "$tmp/bin/mesh-launcher"
printf '#!/bin/sh\n:\n' >"$tmp/bin/no-compiler"
chmod +x "$tmp/bin/no-compiler"

# mesh STATUS WORDS OPTION...: runs the check on that launcher; the environment describes the job.
mesh() {
	wanted=$1
	words=$2
	shift 2
	take_port
	export MESH_PORT=$port
	ours says "$wanted" "$words" --rsh "$rsh" --mpirun "$tmp/bin/mesh-launcher" --mpicc "$tmp/bin/no-compiler" --ranks 2 --hosts 2 \
		--timeout 50 "$@"
}
export MESH='' VERDICT='every byte verified' PAYLOAD=1000 STATUS=0
faces=ofed
[ "${TIER:-}" != full ] || faces="ofed mainline"
for face in $faces; do
	ok "what goes over XRC passes, $face" mesh 0 "^$face .* ok .* 2 \+4 \+[0-9]\+ \+4 \+[1-9][0-9]* \+0 " --kernel "$face"
done
PAYLOAD=100000000000000 ok "what goes only in part over the HCA fails: part of the payload went elsewhere" mesh 1 'of 100000000000000 bytes went over the HCA' --kernel ofed
VERDICT=wrong ok "not if contents are wrong" mesh 1 'wrong contents' --kernel ofed
[ "${TIER:-}" != full ] || STATUS=3 ok "not if the launcher fails at its end" mesh 1 "exit status is 3" --kernel ofed
MESH=--rc ok "what goes over RC is not XRC" mesh 1 'no XRC domain is open; libibverbs of the ranks: /' --kernel ofed
MESH=--rc ok "but over the HCA" mesh 0 '^1 of 1 job passed' --kernel ofed --expect hca
# A launcher that never ends, and starts nothing.
printf '#!/bin/sh\nexec sleep 300\n' >"$tmp/bin/sleeper"
chmod +x "$tmp/bin/sleeper"
endless() {
	says 1 'did not end within 2 s' --rsh "$rsh" --mpirun "$tmp/bin/sleeper" --mpicc "$tmp/bin/no-compiler" --kernel ofed --ranks 2 --hosts 2 --timeout 2
}
ok "not if the launcher never ends" endless

# ---- Debian's Open MPI ----

if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null; then
	skip "Open MPI" "install openmpi-bin and libopenmpi-dev"
	finish
fi
small=()
for setting in "${ucx_settings[@]}"; do
	small+=(--env "$setting")
done
ucx=(--mca pml ucx --mca osc ucx --mca pml_ucx_tls any --mca pml_ucx_devices any)
past=(--mca pml ob1 --mca osc '^ucx' --mca btl_tcp_if_include lo)
job() {
	wanted=$1
	words=$2
	shift 2
	says "$wanted" "$words" --rsh "$rsh" --kernel mainline --ranks 2 --expect hca --timeout 50 "${small[@]}" "$@"
}
two_hosts() { job 0 '^1 of 1 job passed' --hosts 2 --env UCX_TLS=rc_v,self -- "${ucx[@]}"; }
ok "over UCX's rc_v it passes, on two hosts" two_hosts
not_xrc() { job 1 'no XRC domain is open' --hosts 1 --expect xrc --env UCX_TLS=rc_v,self -- "${ucx[@]}"; }
[ "${TIER:-}" != full ] || ok "UCX's rc_v does not pass as XRC" not_xrc
tcp() { job 1 'no rank has the HCA open' --hosts 2 -- "${past[@]}" --mca btl tcp,self; }
[ "${TIER:-}" != full ] || ok "over TCP it fails" tcp
memory() { job 1 'no rank has the HCA open' --hosts 1 -- "${past[@]}" --mca btl vader,self; }
[ "${TIER:-}" != full ] || ok "over shared memory it fails" memory
told_nothing() { says 1 'The launcher was .*docs/mpi.md says what each is to be told' --rsh "$rsh" --kernel mainline --ranks 2 --hosts 1 --timeout 50; }
[ "${TIER:-}" != full ] || ok "a library that was told nothing: where it says what to tell" told_nothing
in_part() { job 1 'bytes went over the HCA' --hosts 1 --env UCX_TLS=rc_v,sm,self -- "${ucx[@]}"; }
[ "${TIER:-}" != full ] || ok "over shared memory with the HCA open it fails" in_part
allowed() {
	job 0 '^1 of 1 job passed' --hosts 2 --ranks 4 --shared-memory --env UCX_TLS=rc_v,sm,self -- "${ucx[@]}" &&
		job 1 'bytes went over the HCA' --hosts 2 --ranks 4 --env UCX_TLS=rc_v,sm,self -- "${ucx[@]}"
}
[ "${TIER:-}" != full ] || ok "over shared memory it passes if that was allowed" allowed

# An MPI library with a fault: one of its calls takes precedence over the real one.
cat >"$tmp/wrong.c" <<'END'
#include <mpi.h>
int MPI_Sendrecv(const void *out, int n, MPI_Datatype t, int to, int tag, void *in, int len, MPI_Datatype u, int from, int utag,
		 MPI_Comm comm, MPI_Status *status)
{
	int err = PMPI_Sendrecv(out, n, t, to, tag, in, len, u, from, utag, comm, status);

	if (len == 4096)
		((char *)in)[4095] ^= 1;
	return err;
}
END
cat >"$tmp/hang.c" <<'END'
#include <mpi.h>
#include <unistd.h>
int MPI_Alltoall(const void *out, int n, MPI_Datatype t, void *in, int len, MPI_Datatype u, MPI_Comm comm)
{
	for (;;)
		pause();
}
END
# This one does nothing, and the ranks still agree on the result.
cat >"$tmp/sum.c" <<'END'
#include <mpi.h>
int MPI_Allreduce(const void *out, void *in, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm)
{
	return MPI_SUCCESS;
}
END
for fault in wrong hang sum; do
	printf '#!/bin/sh\nexec mpicc "$@" "%s"\n' "$tmp/$fault.c" >"$tmp/bin/$fault-mpicc"
	chmod +x "$tmp/bin/$fault-mpicc"
done
wrong() {
	job 1 'wrong contents' --mpicc "$tmp/bin/wrong-mpicc" --hosts 1 --env UCX_TLS=rc_v,self -- "${ucx[@]}" &&
		grep -q 'ring of 4096 bytes .* byte 4095 differs' "$tmp/check.out" || { cat "$tmp/check.out"; return 1; }
}
ok "wrong contents fail, and are shown" wrong
sum() { job 1 'wrong contents' --mpicc "$tmp/bin/sum-mpicc" --hosts 1 --env UCX_TLS=rc_v,self -- "${ucx[@]}"; }
[ "${TIER:-}" != full ] || ok "wrong contents fail even if the ranks cannot agree on the result" sum
# A remote shell that stays on its own host.
printf '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nshift\nexec sh -c "$*"\n' >"$tmp/bin/here"
chmod +x "$tmp/bin/here"
same_host() {
	job 1 'the ranks are on 1 host, and should be on 2' --rsh "$tmp/bin/here" --hosts 2 --env UCX_TLS=rc_v,self -- "${ucx[@]}"
}
[ "${TIER:-}" != full ] || ok "ranks that are all on one host fail, and are shown" same_host
gone() { ! pgrep -f "^$tmp/softhca-check-mpi[^ ]*/mpi_verify" >/dev/null; }
hang() {
	job 1 'did not end within 8 s' --mpicc "$tmp/bin/hang-mpicc" --timeout 8 --hosts 2 --env UCX_TLS=rc_v,self -- "${ucx[@]}" &&
		until_true gone
}
[ "${TIER:-}" != full ] || ok "a job that hangs is ended, on all hosts" hang
interrupted() {
	TMPDIR=$tmp "$check" --rsh "$rsh" --kernel mainline --ranks 2 --hosts 2 --expect hca --mpicc "$tmp/bin/hang-mpicc" \
		--env UCX_TLS=rc_v,self -- "${ucx[@]}" >"$tmp/check.out" 2>&1 &
	checker=$!
	until_true pgrep -f "^$tmp/softhca-check-mpi[^ ]*/mpi_verify" >/dev/null || return 1
	kill -TERM "$checker"
	wait "$checker"
	[ $? -eq 143 ] && until_true gone
}
ok "a job whose check is interrupted is ended" interrupted
clean() { [ -z "$(ls -d "$tmp"/softhca-check-mpi.* 2>/dev/null)" ]; }
ok "no temporary files are left" clean
ok "nothing is left behind" until_true no_instance
finish
