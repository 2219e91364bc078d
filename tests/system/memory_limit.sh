#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the ping-pongs that scripts/quickstart shows, with their instance, do with the memory that docs/ci.md asks of a container:
# 256 MiB. As root they run in a memory cgroup of that size, without swap, where such a group can be made. In a container it cannot. So
# they run outside of one, too: then what a cgroup would charge is added up while they run, on every machine. With too little memory
# both ways fail. MIB=16 in the environment shows how.
. "$srcdir/lib.sh" || exit 1

: "${MIB:=256}"
# Too little for an instance with a device.
little=6

# Its commands, as they stand there.
shown=()
show() { shown+=("$1"); }
eval "$(sed -n "/^show \"softhca run -- sh -c '/,/'\"\$/p" "$srcdir/../../scripts/quickstart")"
# A server and its clients.
programs=(2 5)
ok "scripts/quickstart shows two ping-pongs" [ ${#shown[@]} -eq 2 ]

# pingpongs NUMBER OPTIONS: the command, with these options of softhca run, on a port of this test's.
pingpongs() {
	local command=${shown[$1]}
	take_port
	command=${command/#softhca run/\"\$SOFTHCA\" run $2}
	command=${command//_pingpong /_pingpong -p $port }
	PATH=$TOOLS:$PATH ours timeout -k 5 100 bash -c "$command"
}

# ---- in a cgroup ----

group=
leave_group() {
	[ -z "$group" ] || until_true rmdir "$group" >/dev/null 2>&1
	group=
}
trap 'cleanup; leave_group' EXIT

# make_group MIB: a group below this test's own (version 1), or below the root (version 2, where other groups have the controller, too). $group, and
# how to read it.
make_group() {
	local mount own
	[ "$(id -u)" -eq 0 ] || return 1
	mount=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
	if [ -n "$mount" ]; then
		own=$(sed -n 's/^[0-9]*:\([^:]*,\)\{0,1\}memory\(,[^:]*\)\{0,1\}://p' /proc/self/cgroup)
		group=$mount$own/softhca-$$
		mkdir "$group" 2>/dev/null || { group=; return 1; }
		peak=memory.max_usage_in_bytes kills=memory.oom_control
		echo $(($1 << 20)) >"$group/memory.limit_in_bytes" && echo 0 >"$group/memory.swappiness" || return 1
		# Not there where the kernel does not count swap.
		[ ! -e "$group/memory.memsw.limit_in_bytes" ] || echo $(($1 << 20)) >"$group/memory.memsw.limit_in_bytes"
		return
	fi
	mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	grep -qsw memory "$mount/cgroup.subtree_control" && group=$mount/softhca-$$ && mkdir "$group" 2>/dev/null || { group=; return 1; }
	peak=memory.peak kills=memory.events
	echo $(($1 << 20)) >"$group/memory.max" || return 1
	[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
}

# in_group MIB COMMAND...
in_group() {
	local status killed most
	make_group "$1" || { echo "no group"; leave_group; return 1; }
	shift
	(echo "$BASHPID" >"$group/cgroup.procs" && "$@")
	status=$?
	killed=$(awk '$1 == "oom_kill" { print $2 }' "$group/$kills")
	most=$(cat "$group/$peak" 2>/dev/null || echo 0)
	leave_group
	echo "peak $((most >> 20)) MiB, $killed killed"
	[ "$status" -eq 0 ] && [ "${killed:-0}" -eq 0 ]
}
too_small() {
	# What was killed leaves its peer to wait.
	! in_group "$@" || { echo "it did"; return 1; }
	grep -q "peak.* [1-9][0-9]* killed" "$tmp/ok.out"
}

# ---- without one ----

# Prints the KiB that a container would be charged for the processes of this test, this shell among them: private memory, page tables,
# memfds, and the files of instances. Cached files of a disk do not count: the kernel takes them back.
charged() {
	local of
	of=$(grep -lszFx "SOFTHCA_DIR=$SOFTHCA_DIR" /proc/[0-9]*/environ | sed 's,/environ$,,')
	# Each may end meanwhile.
	# shellcheck disable=SC2086 # words: $of
	{
		for process in $of; do
			cat "$process/smaps_rollup" "$process/status"
			find "$process/fd" -lname '/memfd:*' -exec stat -L -c 'memfd %d:%i %b' {} +
		done
		du -sk "$SOFTHCA_DIR" | sed 's/^/files /'
	} 2>/dev/null | awk '
		/^(Pss_Anon|VmPTE):/ { n += $2 }
		/^Pss_Shmem:/ { mapped += $2 }
		/^memfd / && !seen[$2]++ { memfds += $3 / 2 }
		/^files / { n += $2 }
		# Each has its file open; what is not so is still mapped.
		END { printf "%d\n", n + (mapped > memfds ? mapped : memfds) }'
}

# Each program stops before it gives back what it has.
cat >"$tmp/before.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
struct ibv_qp;
int ibv_destroy_qp(struct ibv_qp *qp)
{
	int (*real)(struct ibv_qp *) = (int (*)(struct ibv_qp *))dlsym(RTLD_NEXT, "ibv_destroy_qp");
	static int stopped;

	if (!stopped++)
		raise(SIGSTOP);
	return real(qp);
}
END
$CC -Wall -Wextra -shared -fPIC -o "$tmp/before.so" "$tmp/before.c" -ldl || exit 1

# Those that have stopped. $stopped
all_stopped() {
	local process
	stopped=
	for process in $(grep -lszFx "SOFTHCA_DIR=$SOFTHCA_DIR" /proc/[0-9]*/environ | sed 's,/environ$,,'); do
		! grep -qs '^State:[[:space:]]*T' "$process/status" || stopped="$stopped ${process#/proc/}"
	done
	# shellcheck disable=SC2086 # words: $stopped
	set -- "$1" $stopped
	[ $# -gt "$1" ]
}
# measured MIB PROGRAMS COMMAND...: so many programs have all that they need, and then it is not more than that.
measured() {
	local kib=$(($1 << 10)) count=$2 job
	now=0
	shift 2
	LD_PRELOAD=$tmp/before.so "$@" &
	job=$!
	until_true all_stopped "$count" && now=$(charged)
	# shellcheck disable=SC2086 # words: $stopped
	[ -z "$stopped" ] || kill -CONT $stopped
	wait "$job"
	status=$?
	echo "charged $((now >> 10)) MiB"
	# An instance alone has more than a MiB.
	[ "$status" -eq 0 ] && [ "$now" -gt 1024 ] && [ "$now" -le "$kib" ]
}
too_much() {
	local now status
	! measured "$@" || { echo "it was not seen"; return 1; }
	# The ping-pong itself is well.
	[ "$status" -eq 0 ] && [ "$now" -gt 1024 ]
}

make_group "$MIB"
grouped=$?
leave_group
most() { sed -n 's/^\(peak .* MiB\).*/# \1/p; s/^charged /# &/p' "$tmp/ok.out"; }
for face in mainline ofed; do
	for mmio in kick trap; do
		for i in "${!shown[@]}"; do
			tool=$(grep -o 'ibv_[a-z]*_pingpong' <<<"${shown[$i]}" | head -n 1)
			options="--kernel $face --mmio $mmio"
			if [ $grouped -eq 0 ]; then
				ok "$tool in a cgroup of $MIB MiB, $face, $mmio" in_group "$MIB" pingpongs "$i" "$options"
				most
			fi
			ok "$tool is charged $MIB MiB at most, $face, $mmio" measured "$MIB" "${programs[$i]}" pingpongs "$i" "$options"
			most
		done
	done
done
if [ $grouped -eq 0 ]; then
	ok "a cgroup of $little MiB is too small" too_small $little pingpongs 0 ""
fi
ok "$little MiB are too little for what is measured" too_much $little "${programs[0]}" pingpongs 0 ""
ok "nothing is left behind" until_true no_instance
finish
