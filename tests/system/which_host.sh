#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: which of several hosts a process is on: SOFTHCA_HOST set by hand decides inside one `softhca run`; an
# environment that a launcher carried over does not move a process off the host that its remote shell chose.
# shellcheck disable=SC2086 # words of a command: $two
. "$srcdir/lib.sh" || exit 1

# Prints the host's name, and the host that the device belongs to: "host1 softhca-host1".
cat >"$tmp/where" <<'EOF'
#!/bin/sh
read -r device _ </sys/class/infiniband/mlx4_0/node_desc
echo "$(uname -n) $device"
EOF
chmod +x "$tmp/where"
at() {
	wanted="host$1 softhca-host$1"
	shift
	got=$("$@") || { echo "status $? of $*"; return 1; }
	[ "$got" = "$wanted" ] || { echo "$got, not $wanted: $*"; return 1; }
}
on() {
	host=$1
	shift
	"$SOFTHCA" run --instance "$SOFTHCA_INSTANCE" --host "$host" -- "$@"
}
by_hand() {
	at 0 "$tmp/where" && SOFTHCA_HOST=1 at 1 "$tmp/where" && at 1 env SOFTHCA_HOST=1 "$tmp/where" || return 1
	SOFTHCA_HOST=1 "$tmp/where" >"$tmp/one" &
	SOFTHCA_HOST=0 "$tmp/where" >"$tmp/zero" &
	wait
	at 1 cat "$tmp/one" && at 0 cat "$tmp/zero" || return 1
	# Children are on the same host, and may be moved again.
	SOFTHCA_HOST=1 at 1 sh -c 'sh -c "$tmp/where; :"' && SOFTHCA_HOST=1 at 0 sh -c 'SOFTHCA_HOST=0 "$tmp/where"; :' &&
		on 1 bash -c 'at 1 "$tmp/where" && SOFTHCA_HOST=0 at 0 "$tmp/where" && at 1 setsid -w "$tmp/where"'
}
# Starts a rank as Hydra's proxy does: with the environment that mpiexec had, and nothing else.
carry() {
	mapfile -d '' carried < <(env -0)
	on "$1" env -i "${carried[@]}" "${@:2}"
}
carried_over() {
	at 1 carry 1 "$tmp/where" && at 0 carry 0 "$tmp/where" || return 1
	at 1 carry 1 sh -c 'sh -c "$tmp/where; :"' && at 1 carry 1 setsid -w sh -c '"$tmp/where"; :' || return 1
	# From another host, and by a launcher that a launcher has started.
	on 1 bash -c 'at 0 carry 0 "$tmp/where" && at 1 carry 1 "$tmp/where"' || return 1
	at 0 carry 1 bash -c 'carry 0 "$tmp/where"' && at 1 carry 0 bash -c 'carry 1 "$tmp/where"' || return 1
	# A remote shell below these ranks starts at the host that it names.
	at 1 carry 0 "$SOFTHCA" run --instance "$SOFTHCA_INSTANCE" --host 1 -- "$tmp/where"
}
# The environment that is carried over may lack the tag, or the host.
carried_in_part() {
	at 1 on 1 env -i "LD_PRELOAD=$LD_PRELOAD" "SOFTHCA_INSTANCE=$SOFTHCA_INSTANCE" SOFTHCA_HOST=0 "$tmp/where" || return 1
	at 1 on 1 env -u SOFTHCA_HOST "$tmp/where" && at 1 on 1 env -u SOFTHCA_RUN "$tmp/where" &&
		at 1 on 1 env -u SOFTHCA_HOST -u SOFTHCA_RUN "$tmp/where" && at 1 on 1 env SOFTHCA_HOST= "$tmp/where" &&
		at 1 on 1 env SOFTHCA_RUN=/../../x SOFTHCA_HOST=0 "$tmp/where"
}
# The host that is carried over need not even exist.
carried_wrong() { SOFTHCA_HOST=7 at 1 carry 1 "$tmp/where"; }

# A process that is left behind and later executes another program stays on its host, whatever its
# parents are by then.
left_behind() {
	rm -f "$tmp/go" "$tmp/left"
	on 1 sh -c '(setsid sh -c "until [ -e $tmp/go ]; do sleep 0.05; done; exec sh -c \"\$tmp/where >\$tmp/left\"" &) </dev/null'
	: >"$tmp/go"
	until_true test -s "$tmp/left" && at 1 cat "$tmp/left"
}
run_killed() {
	rm -f "$tmp/go" "$tmp/left" "$tmp/ready"
	"$SOFTHCA" run --instance "$SOFTHCA_INSTANCE" --host 1 -- sh -c '(setsid sh -c ": >$tmp/ready
		until [ -e $tmp/go ]; do sleep 0.05; done; exec sh -c \"\$tmp/where >\$tmp/left\"" &) </dev/null; until [ -e $tmp/go ]; do sleep 0.05; done' &
	run=$!
	until_true test -e "$tmp/ready" || return 1
	kill -9 "$run"
	wait "$run" 2>/dev/null
	: >"$tmp/go"
	until_true test -s "$tmp/left" && at 1 cat "$tmp/left"
}
# A daemon that outlives its run, and starts processes with an environment that was carried to it:
# one daemon that has a run among its parents, and one that belongs to process 1 or to another
# process.
daemon_left() {
	rm -f "$tmp/go" "$tmp/left" "$tmp/second"
	on 0 bash -c 'env -0' >"$tmp/environment"
	on 1 bash -c '(setsid bash -c "mapfile -d \"\" carried <$tmp/environment; until [ -e $tmp/go ]; do sleep 0.05; done
		env -i \"\${carried[@]}\" $tmp/where >$tmp/left; env -i \"\${carried[@]}\" sh -c \"sh -c $tmp/where\" >$tmp/second" &) </dev/null >/dev/null 2>&1'
	: >"$tmp/go"
	until_true test -s "$tmp/second" && at 1 cat "$tmp/left" && at 1 cat "$tmp/second"
}
daemon_alone() {
	"$SOFTHCA" start --hosts 2 "$1" >/dev/null || return 1
	SOFTHCA_INSTANCE=$1 daemon_left
	got=$?
	"$SOFTHCA" stop "$1"
	return "$got"
}
# An environment from an older run that is over, with a process left behind, counts as carried over.
carried_from_the_dead() {
	rm -f "$tmp/go"
	on 0 bash -c 'env -0 >"$tmp/environment"; (setsid sh -c "until [ -e $tmp/go ]; do sleep 0.05; done" &)'
	mapfile -d '' carried <"$tmp/environment"
	at 1 on 1 env -i "${carried[@]}" "$tmp/where"
	got=$?
	: >"$tmp/go"
	return "$got"
}
# A process number that belonged to an earlier run.
reused_number() {
	on 1 bash -c 'echo 0 >"$SOFTHCA_INSTANCE/runs/$$.1"; at 1 env SOFTHCA_RUN=1.1 SOFTHCA_HOST=0 "$tmp/where"'
}
records() {
	before=$(ls "$SOFTHCA_INSTANCE/runs")
	[ "$before" = "$SOFTHCA_RUN" ] || { echo "records: $before; run: $SOFTHCA_RUN"; return 1; }
	on 1 true
	on 1 sh -c 'kill -TERM $$'
	on 1 /nonexistent 2>/dev/null
	[ "$(ls "$SOFTHCA_INSTANCE/runs")" = "$before" ] || { ls "$SOFTHCA_INSTANCE/runs"; return 1; }
}
other_instance() {
	SOFTHCA_HOST=1 at 1 "$SOFTHCA" run --hosts 3 --host 1 -- "$tmp/where" || return 1
	at 0 "$SOFTHCA" run --hosts 3 --host 2 -- sh -c 'SOFTHCA_HOST=0 "$tmp/where"' || return 1
	# Inside a new instance the variables of the outer one say nothing.
	on 1 env RUN="$SOFTHCA" sh -c '[ "$("$RUN" run -- env | grep -c "SOFTHCA_HOST=0\|SOFTHCA_RUN=")" -eq 1 ]'
}
wrong() {
	for value in 2 77777777777777777777 one 1x -1; do
		SOFTHCA_HOST=$value ls /sys/class/infiniband/mlx4_0 >/dev/null 2>"$tmp/err" && { echo "$value: a device"; return 1; }
		grep -q "SOFTHCA_HOST is \"$value\", and the instance has 2 hosts, counted from 0" "$tmp/err" ||
			{ cat "$tmp/err"; return 1; }
		SOFTHCA_HOST=$value status 125 "$SOFTHCA" run --instance "$SOFTHCA_INSTANCE" -- true 2>"$tmp/err" || return 1
		grep -q "^softhca: SOFTHCA_HOST is \"$value\", and the instance has 2 hosts, counted from 0: set it" "$tmp/err" ||
			{ cat "$tmp/err"; return 1; }
	done
}
outside() {
	SOFTHCA_HOST=1 at 1 "$SOFTHCA" run --hosts 2 -- "$tmp/where" && SOFTHCA_HOST=1 at 0 "$SOFTHCA" run --hosts 2 --host 0 -- \
		"$tmp/where" && at 0 "$SOFTHCA" run --hosts 2 -- "$tmp/where" || return 1
	SOFTHCA_HOST=2 status 125 "$SOFTHCA" run --hosts 2 -- true 2>"$tmp/err" || return 1
	grep -q 'SOFTHCA_HOST is "2", and the instance has 2 hosts' "$tmp/err" || { cat "$tmp/err"; return 1; }
	SOFTHCA_HOST=1 status 125 "$SOFTHCA" run -- true 2>"$tmp/err" && grep -q 'has 1 host,' "$tmp/err"
}
export -f status at on by_hand carry carried_over carried_in_part carried_wrong left_behind run_killed daemon_left daemon_alone carried_from_the_dead \
	reused_number records other_instance wrong

two="--hosts 2"
ok "SOFTHCA_HOST, set by hand, decides" within $two -- by_hand
ok "a carried environment does not: the remote shell's host does" within $two -- carried_over
ok "nor does one carried without the tag or the host" within $two -- carried_in_part
ok "nor does one carried with a wrong host" within $two -- carried_wrong
ok "a process left in the background stays on its host" within $two -- left_behind
ok "it stays when the run was killed" within $two -- run_killed
ok "a daemon that outlives its run keeps its host, whatever is carried to it" within $two -- daemon_left
ok "so does a daemon with no run above it" daemon_alone "left-$$"
ok "an environment carried from a run that is over does not decide" within $two -- carried_from_the_dead
ok "a process number that comes again is not that run" within $two -- reused_number
ok "a run records itself as long as it is needed" within $two -- records
ok "runs of other instances do not count" within $two -- other_instance
ok "a SOFTHCA_HOST that names no host is an error that says so" within $two -- wrong
ok "outside of an instance the variable is the default of --host" outside
ok "nothing is left behind" until_true no_instance
finish
