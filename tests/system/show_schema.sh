#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the instance has something of everything. What `softhca show --json` prints of it is
# what the schema says, key by key, and the schema has no key that does not occur. The same as text
# fits 100 columns.
. "$srcdir/lib.sh" || exit 1

# The system's Python has Debian's modules, but another Python may come first in $PATH.
python=
for candidate in python3 /usr/bin/python3; do
	[ -n "$python" ] || ! "$candidate" -c 'import jsonschema; jsonschema.Draft202012Validator' 2>/dev/null || python=$candidate
done
if [ -z "$python" ]; then
	skip "the schema of softhca show --json" "install python3-jsonschema"
	finish
fi
schema() { "$python" -B "$srcdir/show_schema.py" "$srcdir/../../docs/softhca-show.schema.json" "$@"; }

# start HOST PROCESSES: starts them in the background, until fd 7 is closed. $pid, $last, $qpn
start() {
	mkfifo "$tmp/hold$1"
	# What an earlier one has written is not taken for this one's.
	rm -f "$tmp/numbers$1"
	ours "$SOFTHCA" run --instance lab --host "$1" -- "$PROGRAMS/everything" "$tmp/domain$1" "$2" \
		<"$tmp/hold$1" >"$tmp/numbers$1" 2>"$tmp/err$1" &
	eval "exec $((7 + $1))>\"\$tmp/hold$1\""
	until_true grep -qs qpn= "$tmp/numbers$1" || { cat "$tmp/err$1"; exit 1; }
	eval "$(tr ' ' '\n' <"$tmp/numbers$1")"
}
narrow() {
	awk 'length > 100 { print length ": " $0; bad = 1 } END { exit bad }' "$@"
}

ok "each key has a description, each number a unit" schema described

# Keys that this test cannot make occur, with the reason.
cat >"$tmp/unseen" <<'END'
waits.locks[].pid		a lock that is held for half a second takes a thread that stops between two stores
waits.locks[].tid		the same
waits.locks[].waited_for	the same
waits.locks[].text		the same
END

seen=
for face in ofed mainline; do
	"$SOFTHCA" start --kernel $face --hosts 3 --hcas 2 --ports 2 lab >/dev/null || exit 1
	"$SOFTHCA" show --json lab >"$tmp/empty-$face"
	start 0 6
	killed=$last
	first=$pid
	start 1 3
	# A process whose memory is gone, while its objects may still be there; later its objects
	# count as left.
	kill -KILL "$killed"
	"$SOFTHCA" show --json lab >"$tmp/dying-$face"
	for fault in "drop 1%" "delay 5 7ms --from host0" "corrupt 2% --from host1 --to host0" "duplicate 3 --qp $qpn" "jitter 5% 1ms --to host1" "rate 10gbit" \
		"partition on --from host2 --to host1"; do
		# shellcheck disable=SC2086
		"$SOFTHCA" fault lab $fault || exit 1
	done
	"$SOFTHCA" port lab mlx4_0:2 pkey 5 0x8123
	"$SOFTHCA" port lab --host 2 mlx4_1:1 fatal
	dead() { "$SOFTHCA" show --json lab >"$tmp/full-$face" && ! grep -q "\"pid\": $killed\$\|\"pid\": $killed," "$tmp/full-$face"; }
	ok "a process that was killed goes, $face" until_true dead
	has() {
		grep -q "\"type\": \"$1\"" "$tmp/full-$face" || { echo "no $1"; return 1; }
	}
	kinds() {
		for kind in RC UC UD $([ "$face" = ofed ] && echo XRC || echo XRC_INI XRC_TGT); do
			has "$kind" || return 1
		done
		grep -q '"inode": null' "$tmp/full-$face" && grep -q '"left_qps": [1-9]' "$tmp/full-$face"
	}
	ok "everything is there, $face" kinds
	"$SOFTHCA" show --json >"$tmp/list-$face"
	# Beside that, something that waits.
	rm -f "$tmp/rnr"
	ours "$SOFTHCA" run --instance lab --host 2 -- "$PROGRAMS/waits" rnr >"$tmp/rnr" 2>"$tmp/err" &
	waits=$!
	until_true grep -qs peer= "$tmp/rnr" || { cat "$tmp/err"; exit 1; }
	eval "$(tr ' ' '\n' <"$tmp/rnr")"
	under_way() { "$SOFTHCA" show --waits --json lab >"$tmp/waits-$face" && grep -q '"kind": "rnr"' "$tmp/waits-$face"; }
	ok "what is under way, $face" until_true under_way
	ok "all that is as the schema says, $face" schema valid instance "$tmp/empty-$face" "$tmp/dying-$face" "$tmp/full-$face" -- \
		valid instances "$tmp/list-$face" -- valid waits "$tmp/waits-$face"
	ok "the schema refuses other keys, $face" schema strict instance "$tmp/full-$face" -- strict instances "$tmp/list-$face" -- \
		strict waits "$tmp/waits-$face"
	kill -KILL "$pid" "$peer"
	wait $waits 2>/dev/null
	text() { "$SOFTHCA" show lab >"$tmp/text" && grep -q "$first" "$tmp/text" && narrow "$tmp/text"; }
	ok "as text within 100 columns, $face" text
	seen="$seen instance $tmp/full-$face instances $tmp/list-$face waits $tmp/waits-$face"
	exec 7>&- 8>&-
	"$SOFTHCA" stop lab
	rm -f "$tmp"/hold?
done

# At an address that nobody else has.
wired() {
	for _ in $(seq 50); do
		"$SOFTHCA" start --wire "127.$((1 + RANDOM % 120)).$((RANDOM % 256)).1/24" --peer 0x200=192.0.2.9 lab && break
	done
	"$SOFTHCA" show --json lab >"$tmp/wired" && "$SOFTHCA" show lab >"$tmp/text" && "$SOFTHCA" stop lab &&
		narrow "$tmp/text" && schema valid instance "$tmp/wired" -- strict instance "$tmp/wired"
}
ok "an instance with a wire" wired
seen="$seen instance $tmp/wired"
looped() {
	"$SOFTHCA" start --wire-loopback lab && "$SOFTHCA" show --json lab >"$tmp/looped" && "$SOFTHCA" stop lab &&
		schema valid instance "$tmp/looped" -- strict instance "$tmp/looped"
}
ok "an instance whose packets are bytes" looped
seen="$seen instance $tmp/looped"
# shellcheck disable=SC2086
ok "each key of the schema was seen, or has a reason" schema seen "$tmp/unseen" $seen

# Many processes, and the longest name that an instance can have.
name=$(printf 'n%.0s' $(seq 64))
crowd() {
	"$SOFTHCA" start --ports 2 "$name" >/dev/null || return 1
	mkfifo "$tmp/hold"
	ours "$SOFTHCA" run --instance "$name" -- "$PROGRAMS/everything" "$tmp/domain" 64 <"$tmp/hold" >"$tmp/numbers" 2>"$tmp/err" &
	exec 7>"$tmp/hold"
	for _ in 1 2 3; do
		until_true grep -qs qpn= "$tmp/numbers" && break
	done
	eval "$(tr ' ' '\n' <"$tmp/numbers")"
	# Each, or every ninth: the last one is among these, too.
	for index in $(seq 1 "$(all_rows && echo 1 || echo 9)" 127); do
		"$SOFTHCA" port "$name" mlx4_0:2 pkey "$index" $((0x8000 + index)) || break
	done
	"$SOFTHCA" show "$name" >"$tmp/text" && "$SOFTHCA" show >"$tmp/list" && "$SOFTHCA" show --waits "$name" >"$tmp/waits"
	exec 7>&-
	cat "$tmp/err"
	narrow "$tmp/text" "$tmp/list" "$tmp/waits" && grep -q "index=127 pkey=0x807f" "$tmp/text" && grep -q "pid=${pid:?}" "$tmp/text" &&
		grep -q "$name" "$tmp/list" && [ "$(grep -c '^ *context=[0-9]* pid=\|  context=[0-9]* pid=' "$tmp/text")" -ge 32 ]
}
ok "64 processes with all that: 100 columns" crowd
"$SOFTHCA" stop "$name"
ok "nothing is left behind" until_true no_instance
finish
