#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: if a program has no device, or does not run, because of softhca, a line says so and
# says what to do: the instance does not exist or has ended, its daemon is dead, SOFTHCA_MMIO is
# wrong, there is no /proc, the place is full or cannot be written. Programs that look for no device
# print none of this. A program that runs when its instance is stopped first gets a fatal event.
. "$srcdir/lib.sh" || exit 1

says() {
	grep -q -- "$1" "$tmp/err" || { echo "it does not say: $1"; cat "$tmp/err"; return 1; }
}
once() { [ "$(grep -c '^softhca: ' "$tmp/err")" -eq 1 ] || { cat "$tmp/err"; return 1; }; }
# devinfo NAME=VALUE...: runs ibv_devinfo in an environment changed like that. It has to fail,
# unless $may_work is set.
devinfo() {
	ours "$SOFTHCA" run -- env "$@" "$TOOLS/ibv_devinfo" >"$tmp/out" 2>"$tmp/err"
	got=$?
	[ "$got" -ne 0 ] || [ -n "${may_work:-}" ] || { echo "it found a device"; cat "$tmp/out"; return 1; }
}

wrong_instance() { devinfo SOFTHCA_INSTANCE=nowhere && says 'ibv_devinfo: there is no device: the instance .*/nowhere has ended or never existed' && once; }
ok "an instance that is not there" wrong_instance
no_name() { devinfo SOFTHCA_INSTANCE='a b' && says 'SOFTHCA_INSTANCE is "a b"' && once; }
ok "a SOFTHCA_INSTANCE that cannot be a name" no_name
ended() { devinfo SOFTHCA_INSTANCE="$tmp/gone" && says "the instance $tmp/gone has ended or never existed" && once; }
ok "an instance that has ended" ended
others_quiet() {
	"$SOFTHCA" run -- env SOFTHCA_INSTANCE=nowhere ls / >"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/err" ] || { cat "$tmp/err"; return 1; }
}
ok "a program that looks for no device says nothing" others_quiet
mmio() {
	may_work=yes devinfo SOFTHCA_MMIO=polling && grep -q PORT_ACTIVE "$tmp/out" &&
		says 'SOFTHCA_MMIO is "polling", which is neither kick nor trap' && once
}
ok "a SOFTHCA_MMIO that is neither kick nor trap" mmio
wrong_host() {
	for host in 1 -1 x 0x; do
		devinfo SOFTHCA_HOST="$host" && says "ibv_devinfo: there is no device: SOFTHCA_HOST is \"$host\", and the instance has 1 host" &&
			says 'set it to one of them, or unset it' && once || return 1
	done
	"$SOFTHCA" run -- env SOFTHCA_HOST=7 ls / >"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/err" ] || { cat "$tmp/err"; return 1; }
	SOFTHCA_HOST=7 status 125 "$SOFTHCA" run -- true 2>"$tmp/err" && says 'SOFTHCA_HOST is "7"' && once
}
ok "a SOFTHCA_HOST that names no host" wrong_host
dead_daemon() {
	ours "$SOFTHCA" run -- sh -c "$dead" x "$TOOLS/ibv_devinfo" >"$tmp/out" 2>"$tmp/err"
	says "ibv_devinfo: no device can be opened: the daemon of the instance $SOFTHCA_DIR/softhca/run-[0-9]* has ended" && once
}
ok "a daemon that was killed" dead_daemon

# ---- an instance that is not there, for each verb that wants one ----

# absent NAME WORDS: none runs, and WORDS say where it was looked for.
absent() {
	for verb in "show" "show --waits" "stop" "run --instance"; do
		command=()
		[ "$verb" != "run --instance" ] || command=(-- true)
		# shellcheck disable=SC2086 # words: $verb
		status 125 "$SOFTHCA" $verb "$1" "${command[@]}" >"$tmp/out" 2>"$tmp/err" && once && [ ! -s "$tmp/out" ] &&
			says "$2" && says 'softhca show lists those that run, softhca start makes one$' || { echo "for $verb"; return 1; }
	done
}
ok "no such instance: the directory of SOFTHCA_DIR is named" absent missing \
	"no instance \"missing\" of user $(id -u) runs; looked for it in $SOFTHCA_DIR/softhca, where SOFTHCA_DIR says;"
in_each_place() {
	mkdir -m 700 "$tmp/runtime" "$tmp/tmp" || return 1
	: >"$tmp/tmp/softhca-$(id -u)"
	(unset SOFTHCA_DIR; export XDG_RUNTIME_DIR=$tmp/runtime TMPDIR=$tmp/tmp; absent missing \
		"looked for it in $tmp/runtime/softhca, /dev/shm/softhca-$(id -u).*, $tmp/tmp/softhca-$(id -u) (passed over: it is not a directory), /tmp/softhca-")
}
ok "without it, each place, and why one is passed over" in_each_place
killed() {
	"$SOFTHCA" start dead >/dev/null || return 1
	kill -KILL "$(cat "$SOFTHCA_DIR/softhca/dead/pid")"
	until_true flock -n "$SOFTHCA_DIR/softhca/dead/lock" true || return 1
	"$SOFTHCA" show >"$tmp/out" 2>"$tmp/err" && grep -q '^No instance runs' "$tmp/out" && once &&
		says "^softhca: $SOFTHCA_DIR/softhca/dead is left of the instance \"dead\", whose daemon, process [0-9]*, was killed: softhca start dead starts it again; any softhca run or start removes" || return 1
	absent dead "no instance \"dead\" runs: that in $SOFTHCA_DIR/softhca/dead has ended (" &&
		absent "$SOFTHCA_DIR/softhca/dead" "that in $SOFTHCA_DIR/softhca/dead has ended (" && "$SOFTHCA" run -- true &&
		"$SOFTHCA" show >"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/err" ] || { cat "$tmp/err"; return 1; }
}
ok "one whose daemon was killed has ended" killed
no_path() { absent "$tmp/nowhere" "no instance runs in $tmp/nowhere (No such file or directory)" && absent "$tmp" "no instance runs in $tmp ("; }
ok "a directory that is no instance's" no_path

# ---- programs that the loader does not put the preloaded library into ----

printf '%s\n' 'int main(void) { return 0; }' >"$tmp/idle.c"
printf '%s\n' '#include <fcntl.h>' 'int main(void) { return open("/dev/infiniband/uverbs0", O_RDWR) >= 0; }' >"$tmp/opens.c"
# unreached PROGRAM WORDS: it sees no device, and one line says why. It runs all the same.
unreached() {
	"$SOFTHCA" run -- "$1" >"$tmp/out" 2>"$tmp/err"
	says "^softhca: $1 sees no device: $2.*What it starts sees one$" && [ "$(grep -c 'sees no device' "$tmp/err")" -eq 1 ]
}
quiet() { "$SOFTHCA" run -- "$1" >"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/err" ] || { cat "$tmp/err"; return 1; }; }
# shellcheck disable=SC2086 # words: $CC
if $CC -static -o "$tmp/static" "$tmp/opens.c" 2>/dev/null && $CC -static -o "$tmp/idle" "$tmp/idle.c"; then
	ok "a static program that looks for a device" unreached "$tmp/static" 'it is linked statically, so no loader runs that could put .*: link it dynamically'
	ok "one that looks for none says nothing" quiet "$tmp/idle"
else
	skip "static programs" "install libc6-dev: the compiler makes none"
fi
dynamic() { $CC -o "$tmp/dynamic" "$tmp/opens.c" && ! "$SOFTHCA" run -- "$tmp/dynamic" >"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/err" ]; }
ok "nor does a dynamic one" dynamic
# It need not run here: only its file is looked at.
thirty_two() {
	printf '%s\n' 'void _start(void) { __asm__ volatile("int $0x80" : : "a"(1), "b"(0)); }' >"$tmp/32.c"
	# shellcheck disable=SC2086 # words: $CC
	$CC -m32 -fno-pic -nostdlib -static -o "$tmp/32" "$tmp/32.c" || return 1
	unreached "$tmp/32" 'it is a program of 32 bits, into which the loader cannot put .*: build it for 64 bits'
}
case $(uname -m) in
x86_64)	ok "a program of 32 bits" thirty_two ;;
*)	skip "a program of 32 bits" "only for x86-64" ;;
esac

# A program of a stopped instance gets the event before its calls fail.
fatal() {
	"$SOFTHCA" start lab >/dev/null || return 1
	ours "$SOFTHCA" run --instance lab -- ${stdbuf:+stdbuf -oL} "$TOOLS/ibv_asyncwatch" >"$tmp/events" 2>"$tmp/err" &
	watch=$!
	until_true grep -qs mlx4_0 "$tmp/events" || return 1
	"$SOFTHCA" stop lab && wait "$watch"
	grep -q 'DEVICE_FATAL' "$tmp/events" || { echo "no fatal event:"; cat "$tmp/events" "$tmp/err"; return 1; }
}
stdbuf=$(command -v stdbuf)
ok "a fatal event comes when the instance is stopped" fatal

# doctor reports what the machine lacks before a program fails because of it.
doctor() {
	"$SOFTHCA" doctor >"$tmp/err"
	got=$?
	says '^softhca can' && [ "$(tail -n 1 "$tmp/err")" = "softhca can$([ "$got" -eq 0 ] || echo not) work here." ]
}
ok "doctor's last line agrees with its exit status" doctor
healthy() { "$SOFTHCA" doctor >"$tmp/err" && says '^good *place *'"$SOFTHCA_DIR/softhca"'$' && says '^good *processes'; }
ok "doctor finds what this machine has" healthy
no_place() {
	mkdir -p "$tmp/open" && chmod 777 "$tmp/open" || return 1
	status 1 env SOFTHCA_DIR="$tmp/open" "$SOFTHCA" doctor >"$tmp/err" && says '^BAD *place *no directory can be used' &&
		says "(tried in turn: $tmp/open/softhca: the directory above it can be written by other users (mode 0777): chmod go-w $tmp/open): mend" && says 'set SOFTHCA_DIR' &&
		says '^softhca cannot work here'
}
ok "doctor finds a place that cannot be used" no_place
no_addresses() { (ulimit -v 300000; status 1 "$SOFTHCA" doctor) >"$tmp/err" && says '^BAD *device memory.*ulimit -v unlimited'; }
ok "doctor finds a limit of addresses" no_addresses
no_files() { (ulimit -f 0; status 1 "$SOFTHCA" doctor) 2>&1 | cat >"$tmp/err"; says '^BAD *device memory.*ulimit -f unlimited'; }
ok "doctor finds a limit of file sizes" no_files
ok "doctor takes no argument" status 2 "$SOFTHCA" doctor lab
# doctor_says LINE LIMITS...: with the limits that ulimit sets.
doctor_says() {
	words=$1
	shift
	("${@}" && exec "${as[@]}" "$SOFTHCA" doctor) >"$tmp/err"
	says "$words"
}
as=()
# Without CAP_IPC_LOCK the limit of locked memory counts.
as_user=()
[ "$(id -u)" -ne 0 ] || as_user=(setpriv "--bounding-set=-ipc_lock" "--inh-caps=-ipc_lock")
locked_soft() { as=("${as_user[@]}"); doctor_says '^poor *locked memory *is limited to 64 KiB, .*: a line in /etc/security/limits.d' ulimit -l 64; }
ok "a limit of locked memory is named, and how to raise it" locked_soft
capable() { grep -q '^CapEff:.*[4-7c-f][0-9a-f][0-9a-f][0-9a-f]$' /proc/self/status && [ "$(stat -L -c %i /proc/self/ns/user)" = 4026531837 ]; }
locked_root() { as=(); doctor_says '^good *locked memory *is limited to 64 KiB, but not for this process, which has CAP_IPC_LOCK$' ulimit -S -l 64; }
! capable || ok "one that does not count is not said not to be there" locked_root
as=()
ok "few descriptors" doctor_says '^poor *descriptors *are limited to 100, .*: ulimit -n 1024$' ulimit -S -n 100
ok "few descriptors, for good" doctor_says '^poor *descriptors *are limited to 100, .* allows 200 at most: a line in /etc/security/limits.d' \
	eval "ulimit -n 200 && ulimit -S -n 100"
too_few_descriptors() {
	status 1 doctor_status ulimit -S -n 16 && says '^BAD *descriptors *are limited to 16, which is too few for an instance: ulimit -n 1024$' &&
		status 1 doctor_status ulimit -n 31 && says '^BAD *descriptors *.* allows 31 at most: a line in /etc/security/limits.d' &&
		says '^softhca cannot work here'
}
doctor_status() { ("$@" && exec "$SOFTHCA" doctor) >"$tmp/err"; }
ok "too few descriptors for an instance" too_few_descriptors

# ---- command lines ----

# wrong STATUS WORDS ARGUMENT...: one line says what is wrong, and is the first.
wrong() {
	wanted=$1
	words=$2
	shift 2
	status "$wanted" "$SOFTHCA" "$@" >"$tmp/out" 2>"$tmp/err" && head -n 1 "$tmp/err" | grep -q -- "^softhca: $words" && once && [ ! -s "$tmp/out" ] ||
		{ cat "$tmp/out" "$tmp/err"; return 1; }
}
ok "an option that is not there" wrong 125 'option --hsots is unknown; softhca run --help' run --hsots 2 -- true
ok "an option of one letter that is not there" wrong 125 'option -n is unknown: .*softhca run -- mpirun -n 4' run -n 2 -- true
ok "an option without its value" wrong 2 'option --hosts needs a value behind it; softhca start --help' start --hosts
ok "an option with a value that it does not take" wrong 125 'option --stats takes no value: leave "=yes" out' run --stats=yes -- true
ok "an option that could be several" wrong 125 'option --ho can be any of 2: write more of it' run --ho 2 -- true
ok "an option of run alone" wrong 2 '--libibverbs is an option of softhca run; leave it out' start --libibverbs ours lab
ok "the host of a command is no option of start" wrong 2 '--host is an option of softhca run; leave it out' start --host 0 lab
ok "an option in front of the verb" wrong 2 'the verb stands in front of its options: softhca VERB --json' --json show lab
ok "an option of port that is not there" wrong 2 'softhca port takes the option --host, not "-n"' port lab -n mlx4_0:1 down
ok "port with too much" wrong 2 'leave "7" out' port lab mlx4_0:1 pkey 1 2 7
ok "a host that is none" wrong 125 '--host must be a number from 0 to 255, not "host"' run --host host -- true
# A wire: none of these starts, and the line says what would do.
ok "a wire without its prefix" wrong 125 "--wire: the first address, and no other, needs the length of its network's prefix, 8 to 30: 10.1.2.3/24" \
	start --wire 10.1.2.3 lab
ok "a prefix that is too short" wrong 125 "--wire: .* prefix, 8 to 30" start --wire 10.1.2.3/7 lab
ok "a wire's address whose LID would be too large" wrong 125 '--wire: 10.1.7.3 does not give a LID: it has to be the network, 10.1.0.0, plus 1 to 1022;' \
	start --wire 10.1.7.3/16 lab
ok "the broadcast address of a wire" wrong 125 '--wire: 10.1.2.255 does not give a LID: .* plus 1 to 254; choose another' start --wire 10.1.2.255/24 lab
ok "a wire's address of another machine" wrong 125 'cannot start an instance in .*: 192.0.2.7 is no address of this machine: choose one that ip address lists' \
	start --wire 192.0.2.7/24 lab
ok "a peer in the wire's network" wrong 125 '--peer: 10.1.2.9 is in the wire.s network, and has LID 9 without being named: leave it out' \
	start --wire 10.1.2.3/24 --peer 9=10.1.2.9 lab
ok "a peer without its LID" wrong 125 '--peer: "192.0.2.9" does not begin with a LID of 1 to 1022: write it as 0x200=192.0.2.9' start --wire 10.1.2.3/24 --peer 192.0.2.9 lab
ok "a peer without a wire" wrong 125 "--peer is about a wire, and the instance has none: name its own address, too, with --wire" start --peer 9=192.0.2.9 lab
ok "a LID for an address that has another one" wrong 125 '--lid: 10.1.2.3 has LID 3, .* name that one, or leave --lid out' start --wire 10.1.2.3/24 --lid 5 lab
ok "a wire's second address on another network" wrong 125 '--wire: 10.1.3.4 .*; choose another address or prefix' start --ports 2 --wire 10.1.2.3/24,10.1.3.4 lab
ok "fewer ports than addresses" wrong 2 '--wire names 2 addresses, and the instance has 1 port: name one for each port' \
	start --wire 10.1.2.3/24,10.1.2.4 lab
ok "port without anything" wrong 2 'which instance?' port
ok "port of an instance" wrong 2 'which port of the instance?' port lab
ok "port of a host" wrong 2 'which port of the instance?' port lab --host 0
ok "port of no host" wrong 2 '--host needs the number' port lab --host
ok "port without a change" wrong 2 'what is to happen to the port?' port lab mlx4_0:1
ok "the same on a host" wrong 2 'what is to happen to the port?' port lab --host 0 mlx4_0:1
ok "a change without its value" wrong 2 'the change pkey takes 2 values, not 1' port lab mlx4_0:1 pkey 1
ok "fault without anything" wrong 2 'which instance? Its name is the first word: softhca fault NAME drop 5%; softhca show lists' fault
ok "fault without the name" wrong 2 'which instance? Its name stands in front of "drop": softhca fault NAME drop ...; softhca show lists' fault drop 5%
ok "off without it" wrong 2 'which instance? Its name stands in front of "off"' fault off
ok "a kind with options, without it" wrong 2 'which instance? Its name stands in front of "delay"' fault --from host0 delay 1% 2ms
ok "an instance that has the name of a kind" wrong 125 'no instance "drop" of user' fault drop drop 5%
ok "fault without a kind" wrong 2 'what is to happen to packets?' fault lab
ok "fault without a rate" wrong 2 'how many packets?' fault lab drop
ok "the question stays on the screen" [ "$(wc -l <"$tmp/err")" -le 10 ]
ok "fault of no kind" wrong 2 'unknown fault "lose"' fault lab lose
ok "a number of packets that is none" wrong 2 \
	'cannot set drop on instance "lab": "abc" is neither a rate (5%, 0.05) nor a count (3, the next three packets) nor off' fault lab drop abc
ok "a count that is too large" wrong 2 'cannot set drop on instance "lab": a count is from 1 to 4294967295' fault lab drop 4294967296
ok "a rate that is too large" wrong 2 'cannot set corrupt on instance "lab": a rate is from 0% to 100%, .*, not "101%"' fault lab corrupt 101%
ok "a seed without its number" wrong 2 'seed needs a number' fault lab seed
ok "a length where there is none" wrong 2 'leave "2ms" out: only delay, jitter, reorder and rate have a length' fault lab drop 1% 2ms
ok "a limit without its unit" wrong 2 'rate must be from 1kbit .* not "10"' fault lab rate 10
ok "a limit of nothing" wrong 2 'how much\?' fault lab rate
ok "a partition that is neither" wrong 2 'partition is on or off, not "5%"' fault lab partition 5%
ok "off with too much" wrong 2 'leave "5%" out' fault lab off 5%
ok "an option of fault that is not there" wrong 2 'softhca fault takes the options .* not "--form"' fault lab drop 1% --form
ok "an option of fault without its value" wrong 2 'option --from needs a value behind it' fault lab drop 1% --from
ok "stop without a name" wrong 2 'softhca stop takes one name' stop
ok "stop with an option" wrong 2 'softhca stop has no option --all: name the instance' stop --all
ok "stop of what does not run" wrong 125 'no instance "lab" of user' stop lab
# Options stand anywhere behind the verb, with their value behind them or behind =, and a host has a name, too.
anywhere() {
	"$SOFTHCA" start --hosts 2 lab >/dev/null || return 1
	"$SOFTHCA" port lab mlx4_0:1 down --host 1 && "$SOFTHCA" port --host=host1 lab mlx4_0:1 up && "$SOFTHCA" port lab --host host1 mlx4_0:1 lid 7 &&
		"$SOFTHCA" run --instance lab --host host1 -- sh -c '[ "$SOFTHCA_HOST" = 1 ]' && "$SOFTHCA" fault --from host0 lab drop 5% &&
		"$SOFTHCA" fault lab --to=host1 drop 3 && "$SOFTHCA" fault lab delay --seed=7 1% 2ms &&
		"$SOFTHCA" show --json lab | jq -e '.hosts[1].hcas[0].ports[0].lid == 7 and ([.faults[] | [.fault, .from, .to]] | sort) ==
			([["delay", null, null], ["drop", "host0", null], ["drop", null, "host1"]] | sort)'
	got=$?
	"$SOFTHCA" stop lab
	return "$got"
}
ok "options of port and fault stand anywhere" anywhere
# What ends no fault says so, and is no failure: scripts call off in the end, whatever has been set.
ends_nothing() {
	words=$1
	shift
	"$SOFTHCA" fault lab "$@" >"$tmp/out" 2>"$tmp/err" && grep -q "^softhca: nothing was ended: $words" "$tmp/err" && once &&
		[ ! -s "$tmp/out" ] || { cat "$tmp/out" "$tmp/err"; return 1; }
}
off() {
	"$SOFTHCA" start --hosts 2 lab >/dev/null || return 1
	ends_nothing 'no fault is set' off && "$SOFTHCA" fault lab drop 5% --from host1 &&
		ends_nothing 'no drop is set with exactly these --from, --to and --qp; softhca show' drop off --from host0 &&
		ends_nothing 'no drop is set without --from, --to and --qp; softhca show' drop 0% &&
		"$SOFTHCA" fault lab drop off --from host1 2>"$tmp/err" && [ ! -s "$tmp/err" ] && ends_nothing 'no fault is set' clear
	got=$?
	"$SOFTHCA" stop lab
	return "$got"
}
ok "what ends no fault says so" off
# range FIRST LAST BEFORE [AFTER]: the daemon takes both, and the command names them for what lies outside.
range() {
	for value in "$1" "$2"; do
		# shellcheck disable=SC2086 # words: $3
		"$SOFTHCA" port lab mlx4_0:1 $3 "$value" ${4:+"$4"} || return 1
	done
	# shellcheck disable=SC2086 # words: $3
	wrong 2 ".* must be a number from $1 to $2, not \"$(($2 + 1))\"" port lab mlx4_0:1 $3 $(($2 + 1)) ${4:+"$4"}
}
ranges() {
	"$SOFTHCA" start lab >/dev/null || return 1
	wrong 125 'there is no port mlx4_1:1 on host 0: the instance has 1 host with 1 HCA of 1 port; hosts' port lab mlx4_1:1 up && range 1 1022 lid && range 1 49151 sm && range 0 127 pkey 0x8123 && range 0 65535 "pkey 5"
	got=$?
	"$SOFTHCA" stop lab
	return "$got"
}
ok "a value out of range, with the range that the daemon has" ranges

# These tests run in namespaces of their own.
if unshare -rUm sh -c 'mount -t tmpfs -o size=64k,nr_inodes=40 none "$1"' x "$tmp" 2>/dev/null; then
	small() {
		unshare -rUm sh -c 'mount -t tmpfs -o size=4k none "$1" && export SOFTHCA_DIR=$1 && exec "$2" run -- true' x "$tmp/small" "$SOFTHCA" \
			>"$tmp/out" 2>"$tmp/err"
		[ $? -eq 125 ] && says 'No space left on device' && says 'set SOFTHCA_DIR to a directory of yours that has some'
	}
	mkdir "$tmp/small"
	ok "a place that is full" small
	inodes() {
		unshare -rUm sh -c 'mount -t tmpfs -o nr_inodes=40 none "$1" && export SOFTHCA_DIR=$1 && exec "$2" run -- true' x "$tmp/small" "$SOFTHCA" \
			>"$tmp/out" 2>"$tmp/err"
		[ $? -eq 125 ] && says 'No space left on device' && says 'set SOFTHCA_DIR'
	}
	ok "a place that has room for few files" inodes
	read_only() {
		unshare -rUm sh -c 'mount -t tmpfs -o ro none "$1" && export SOFTHCA_DIR=$1 && exec "$2" run -- true' x "$tmp/small" "$SOFTHCA" \
			>"$tmp/out" 2>"$tmp/err"
		[ $? -eq 125 ] && says 'Read-only file system' && says 'set it to a directory of yours that only you can write to'
	}
	ok "a place that is read-only" read_only
	no_proc() {
		unshare -rUm sh -c 'mount -t tmpfs none /proc && exec "$1" run -- true' x "$SOFTHCA" >"$tmp/out" 2>"$tmp/err"
		[ $? -eq 125 ] && says 'there is no /proc' && says 'mount -t proc' || return 1
		unshare -rUm sh -c 'mount -t tmpfs none /proc && exec "$1" doctor' x "$SOFTHCA" >"$tmp/err" && return 1
		says '^BAD */proc .*mount -t proc'
	}
	ok "no /proc" no_proc
	# /proc disappears while the instance runs: the message must not say that the instance is
	# missing.
	no_proc_then() {
		"$SOFTHCA" start lab >/dev/null || return 1
		for words in "show" "show lab" "show --waits lab" "stop lab" "port lab mlx4_0:1 down" "run --instance lab -- true"; do
			# shellcheck disable=SC2086
			unshare -rUm sh -c 'mount -t tmpfs none /proc && exec "$@"' x "$SOFTHCA" $words >"$tmp/out" 2>"$tmp/err"
			[ $? -eq 125 ] && [ ! -s "$tmp/out" ] && says 'there is no /proc, through which softhca reaches instances: mount it' && once ||
				{ echo "for $words"; return 1; }
		done
		"$SOFTHCA" stop lab
		ours unshare -rUm "$SOFTHCA" run -- sh -c 'mount -t tmpfs none /proc; "$1"; got=$?; umount /proc; exit $got' x "$TOOLS/.libs/ibv_devinfo" \
			>"$tmp/out" 2>"$tmp/err" && return 1
		says 'ibv_devinfo: no device can be opened: there is no /proc, through which softhca reaches the instance: mount it' && once || return 1
		unshare -rUm sh -c 'mount -t tmpfs none /proc && exec "$1" doctor' x "$SOFTHCA" >"$tmp/err"
		says '^poor *preload *cannot be found without /proc'
	}
	if [ -x "$TOOLS/.libs/ibv_devinfo" ]; then
		ok "no /proc in an instance that runs" no_proc_then
	else
		skip "no /proc in an instance that runs" "the tools are not libtool's"
	fi
	# The place has become full since the instance was started.
	filled() {
		ours unshare -rUm sh -c 'mount -t tmpfs -o nr_inodes=700 none "$1" && export SOFTHCA_DIR=$1 && "$2" start lab >/dev/null || exit
			i=0; while touch "$1/$i" 2>/dev/null; do i=$((i + 1)); done
			"$2" run --instance lab -- "$3"; got=$?; rm -f "$1"/[0-9]*; "$2" stop lab; exit $got' \
			x "$tmp/small" "$SOFTHCA" "$TOOLS/ibv_devinfo" >"$tmp/out" 2>"$tmp/err" && return 1
		says 'ibv_devinfo: no device can be opened: the file system of the instance .*/lab is full: free some space there' && once
	}
	ok "a place that fills when the instance runs" filled
else
	skip "places that are full, small or read-only, and no /proc" "this kernel lets no user make a mount namespace"
fi
# The daemon's own limit is not that of the program which asks. only N: the daemon has no more than that many descriptors left.
only() {
	limit=0
	left=$1
	while [ "$left" -gt 0 ]; do
		[ -e "/proc/$daemon/fd/$limit" ] || left=$((left - 1))
		limit=$((limit + 1))
	done
	prlimit --pid "$daemon" --nofile="$limit:"
}
no_descriptor() { grep -q "^softhca: .* has no descriptor left.* under a higher limit.* (ulimit -n)" "$tmp/err" || { cat "$tmp/err"; return 1; }; }
if command -v prlimit >/dev/null; then
	"$SOFTHCA" start lab >/dev/null || exit 1
	daemon=$(cat "$SOFTHCA_DIR/softhca/lab/pid")
	only 1
	ok "show, of a daemon that has no descriptor left" eval 'status 125 "$SOFTHCA" show lab 2>"$tmp/err" && no_descriptor'
	only 3
	ok "a program, of a daemon that has no descriptor left for its files" \
		eval '! ours "$SOFTHCA" run --instance lab -- "$TOOLS/ibv_devinfo" >"$tmp/out" 2>"$tmp/err" && no_descriptor && grep -q "Too many open files in system" "$tmp/err"'
	"$SOFTHCA" stop lab >/dev/null || { prlimit --pid "$daemon" --nofile=1000:; "$SOFTHCA" stop lab; }
else
	skip "a daemon without descriptors" "install prlimit (util-linux)"
fi
ok "nothing is left behind" until_true no_instance
finish
