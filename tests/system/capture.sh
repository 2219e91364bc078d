#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: softhca capture. Each opcode appears as a card would send it, on both kernel faces, in
# kick and in trap, with right checksums (computed by Python), PSNs in order and whole messages;
# tshark, which knows nothing of softhca, finds no malformed packet. Faults are named. Options
# choose and cut packets. Senders that are killed or stopped leave a capture that goes on, and no
# program waits for one. Each packet that was sent is in the capture or counted, however slowly its
# output is read.
# shellcheck disable=SC2086 # words of a command: $quiet
. "$srcdir/lib.sh" || exit 1

if ! command -v python3 >/dev/null; then
	skip "captures" "install python3"
	finish
fi
have_tshark=
command -v tshark >/dev/null && have_tshark=yes

export SOFTHCA_INSTANCE=lab
capturing=

# begin [OPTION...]: captures to $tmp/file. The daemon says when the capture is on.
begin() {
	rm -f "$tmp/file"
	"$SOFTHCA" capture lab -w "$tmp/file" "$@" 2>"$tmp/capture.err" &
	capturing=$!
	# The file begins when the capture is on.
	until_true test -s "$tmp/file"
}
end() {
	kill -INT $capturing 2>/dev/null
	wait $capturing || { echo "softhca capture failed:"; cat "$tmp/capture.err"; return 1; }
}
check() { python3 "$srcdir/capture_check.py" "$tmp/file" "$@"; }
opcodes() { timeout 60 "$SOFTHCA" run --instance lab --libibverbs ours "$@" -- "$PROGRAMS/opcodes"; }
start() { "$SOFTHCA" start "$@" lab; }
stop() { "$SOFTHCA" stop lab; }

# What other protocols make of payloads is none of our business: see docs/softhca.md.
quiet=$(printf -- '--disable-heuristic %s ' eth_over_ib rpcrdma_infiniband mellanox_eoib fc_infiniband nvme_rdma \
	smcr_infiniband lnet_ib iser_infiniband smb_direct_infiniband sdp_infiniband)
dissect() { tshark -r "$tmp/file" $quiet "$@" 2>"$tmp/tshark.err"; }
# tshark begins slowly, so it runs once for all that is asked of it. A line of $tmp/fields is a packet: what of it tshark knows, its
# opcode, its PSN, what is wrong with it, and how bad that is.
fields() { dissect -T fields -e infiniband.bth.opcode -e infiniband.bth.psn -e _ws.malformed -e _ws.expert.severity "$@" >"$tmp/fields"; }
# Warnings (6291456), and what is worse.
faultless() {
	[ -s "$tmp/fields" ] || { echo "tshark reads no packet"; cat "$tmp/tshark.err"; return 1; }
	awk -F '\t' '{ n = split($4, severity, ","); bad = $1 == "" || $3 != ""; for (i = 1; i <= n; i++) bad = bad || severity[i] >= 6291456 }
		bad { print "packet " NR ": " $0; found = 1 }
		END { exit found }' "$tmp/fields"
}
well_formed() { fields && faultless; }
# tshark has read the numbers that the checker reads.
same_numbers() {
	python3 - "$srcdir" "$tmp/file" "$tmp/fields" <<'EOF'
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import capture_check
packets, _ = capture_check.blocks(open(sys.argv[2], "rb").read())
mine = [(p.opcode, p.psn) for p in (capture_check.Packet(*p) for p in packets)]
theirs = [tuple(int(word, 0) for word in line.split("\t")[:2]) for line in open(sys.argv[3])]
sys.exit(0 if mine and mine == theirs else "tshark reads other numbers")
EOF
}

# The dissector shows the SRQ of each XRC request, and breaks nothing.
lua=$srcdir/../../softhca/cli/xrc.lua
with_xrc() {
	fields -X "lua_script:$lua" -e _ws.lua.error -e softhca_xrc.opcode -e softhca_xrc.msn -e softhca_xrc.srqn -e softhca_xrc.imm &&
		faultless && python3 - "$tmp/fields" <<'EOF'
import sys
every = shown = answers = requests = 0
errors, immediates = [], set()
for line in open(sys.argv[1]):
    opcode, _, _, _, error, operation, msn, srqn, imm = line.rstrip("\n").split("\t")
    every += int(opcode, 0) >= 0xa0
    shown += operation != ""
    answers += msn != "" or operation != "" and int(operation, 0) == 0xae
    requests += srqn != "" and int(srqn, 0) > 0
    errors += [error] if error else []
    immediates |= {imm} if imm else set()
if errors or immediates != {"01020304"} or every <= 100 or shown != every or answers + requests != every:
    sys.exit("%d XRC packets, %d shown, %d answers, %d requests; immediate data %s, errors %s" % (
        every, shown, answers, requests, immediates, errors))
EOF
}

# A capture waits for no processor, and says what it has lost: on a busy machine, once more.
unlost() {
	for _ in 1 2 3; do
		"$@" && return 0
		grep -q 'captured, [1-9][0-9]* lost' "$tmp/capture.err" || break
	done
	return 1
}
everything() {
	begin && opcodes && end && check opcodes order whole good "lost" none
}
for face in ofed mainline; do
	for way in kick trap; do
		case $way in
		trap) [ "$(uname -m)" = x86_64 ] || continue ;;
		esac
		# Each face and each way once.
		[ $face-$way = ofed-kick ] || [ $face-$way = mainline-trap ] || all_rows || continue
		ok "$face, $way: an instance starts" start --kernel $face --mmio $way
		ok "$face, $way: every opcode is there, with right checksums, in order" unlost everything
		if [ $face-$way = ofed-trap ] || [ $face-$way = mainline-kick ]; then
			: # the same packets again
		elif [ -n "$have_tshark" ]; then
			ok "$face, $way: tshark finds no malformed packet" well_formed
			ok "$face, $way: tshark reads the same numbers" same_numbers
		else
			skip "$face, $way: what tshark finds" "install tshark"
		fi
		if [ $face-$way = ofed-kick ]; then
			if tshark -v 2>/dev/null | grep -q 'with Lua'; then
				ok "the dissector for XRC shows XRC packets" with_xrc
			else
				skip "the dissector for XRC" "install a tshark with Lua"
			fi
		fi
		ok "$face, $way: it stops" stop
	done
done

ok "an instance with two hosts starts" start --hosts 2
cut_short() { begin --snap 96 && opcodes && end && check opcodes cut 96; }
ok "--snap cuts packets, and the file stays readable" cut_short
[ -z "$have_tshark" ] || ok "tshark reads cut packets" well_formed

counted() { begin --count 7 && opcodes && wait $capturing && check packets 7 "lost" none; }
ok "--count ends the capture" counted

of_host() { begin --host 1 && opcodes --host 0 && opcodes --host 1 && end && check opcodes order host 2 whole; }
ok "--host chooses the packets of a host" of_host
no_host() { status 125 "$SOFTHCA" capture lab --host 7; }
ok "a host that does not exist is refused" no_host

other_qp() { begin --qp 0xffff && opcodes && end && check packets 0; }
ok "--qp leaves packets of other QPs out" other_qp

busy() {
	begin && status 125 "$SOFTHCA" capture lab && status 0 opcodes && end && check opcodes order
}
ok "a second capture is refused, and the first goes on" busy

pingpong() {
	take_port
	timeout 60 "$SOFTHCA" run --instance lab --libibverbs ours -- "$TOOLS/ibv_rc_pingpong" -p "$port" "$@" >"$tmp/server" 2>&1 &
	server=$!
	until_true listening &&
		timeout 60 "$SOFTHCA" run --instance lab --libibverbs ours -- "$TOOLS/ibv_rc_pingpong" -p "$port" "$@" localhost && wait $server
}
faults() {
	begin && "$SOFTHCA" fault lab seed 3 || return 1
	for kind in drop corrupt duplicate "delay"; do
		"$SOFTHCA" fault lab $kind 5% || return 1
	done
	pingpong -n 200 && "$SOFTHCA" fault lab off && end && check whole dropped corrupted duplicated late
}
ok "packets that faults hit have a comment and the wrong bit" faults
[ -z "$have_tshark" ] || ok "tshark reads these, too" well_formed
# The comment says what becomes of the packet, whichever fault it is. named COMMENT FAULT...
named() {
	begin && "$SOFTHCA" fault lab seed 3 && "$SOFTHCA" fault lab "${@:2}" && pingpong -n 100 && "$SOFTHCA" fault lab off && end && check whole "$1"
}
ok "jitter: how late a packet arrives" named late jitter 30% 300us
ok "a rate: how late a packet arrives" named late rate 100mbit
ok "reordering: a packet that another one passes" named reordered reorder 20%
parted() {
	begin && "$SOFTHCA" fault lab partition on --from host0 --to host1 || return 1
	take_port
	timeout 60 "$SOFTHCA" run --instance lab --libibverbs ours -- "$TOOLS/ibv_rc_pingpong" -p "$port" --timeout 4 >"$tmp/server" 2>&1 &
	server=$!
	until_true listening || return 1
	timeout 60 "$SOFTHCA" run --instance lab --host 1 --libibverbs ours -- "$TOOLS/ibv_rc_pingpong" -p "$port" --timeout 4 localhost &&
		{ echo "it went through"; return 1; }
	kill $server 2>/dev/null
	wait $server
	"$SOFTHCA" fault lab off && end && check whole dropped
}
ok "a partition: what is dropped" parted

lines() {
	"$SOFTHCA" capture lab --count 2000 >"$tmp/lines" 2>"$tmp/lines.err" &
	capturing=$!
	until_true eval "opcodes >/dev/null 2>&1; ! kill -0 $capturing 2>/dev/null" || return 1
	wait $capturing && [ "$(wc -l <"$tmp/lines")" = 2000 ] &&
		grep -Eq '^[0-9:.]{15} [0-9]+ > [0-9]+ RC SEND Only QP 0x[0-9a-f]{6} PSN [0-9]+ len [0-9]+$' "$tmp/lines" &&
		grep -q 'RNR NAK' "$tmp/lines" && grep -q 'NAK remote access' "$tmp/lines" &&
		[ "$(awk 'length($0) > 100' "$tmp/lines" | wc -l)" = 0 ] && grep -q '2000 packets captured' "$tmp/lines.err"
}
ok "without -w there is a line for each packet, of at most 100 columns" lines

live() {
	"$SOFTHCA" capture lab -w - --count 300 2>"$tmp/capture.err" | tshark -l -r - $quiet >"$tmp/live" 2>"$tmp/tshark.err" &
	until_true eval 'opcodes >/dev/null 2>&1; grep -q "300 packets" "$tmp/capture.err"' && wait $! &&
		[ "$(wc -l <"$tmp/live")" = 300 ] && ! grep -qi malformed "$tmp/live"
}
[ -z "$have_tshark" ] || ok "tshark reads a capture while it runs" live

# Traffic that ends in the middle of anything. The capture has what came before and after.
killed() {
	begin || return 1
	for n in $(seq -w 4 3 25); do
		"$SOFTHCA" run --instance lab --libibverbs ours -- timeout -s KILL 0.$n "$PROGRAMS/opcodes" >/dev/null 2>&1
	done
	opcodes && end && check opcodes
}
ok "senders that are killed leave a capture that others can use" killed

# The reader stands still, so the ring fills. Programs go on, and the capture says what it has lost.
slow_reader() {
	begin && kill -STOP $capturing || return 1
	pingpong -n 2000 -s 8192 -m 4096 || return 1
	# Two packets and an acknowledgement for each message.
	kill -CONT $capturing && end && check sent 12000 "lost" some whole && grep -Eq '[1-9][0-9]* lost' "$tmp/capture.err"
}
ok "no program waits for a capture that stands still, and what is lost is counted" slow_reader

# A pipe that takes some of the packets only, so the capture stands in the middle of writing one.
into_pipe() {
	rm -f "$tmp/pipe" && mkfifo "$tmp/pipe" || return 1
	"$SOFTHCA" capture lab -w - >"$tmp/pipe" 2>"$tmp/capture.err" &
	capturing=$!
	# The capture is on when its output begins.
	exec 9<"$tmp/pipe" && dd bs=1 count=1 <&9 >"$tmp/file" 2>/dev/null && pingpong -n 200 -s 8192 -m 4096
}
slowly() {
	while dd bs=65536 count=1 <&9 2>/dev/null >"$tmp/piece" && [ -s "$tmp/piece" ]; do
		cat "$tmp/piece" >>"$tmp/file"
		sleep 0.02
	done
	exec 9<&-
}
slow_pipe() {
	into_pipe && kill -"$1" $capturing || return 1
	slowly
	wait $capturing || { cat "$tmp/capture.err"; return 1; }
	check sent 1200 "lost" none whole && grep -q '1200 packets captured, 0 lost' "$tmp/capture.err"
}
ok "Ctrl-C leaves all packets to a slow reader of the pipe" slow_pipe INT
ok "SIGTERM does, too" slow_pipe TERM

again() { kill -TERM $capturing 2>/dev/null; gone $capturing; }
no_reader() {
	into_pipe && kill -TERM $capturing && until_true again && status 143 wait $capturing && exec 9<&-
}
ok "a second signal ends a capture whose output nobody reads" no_reader

# Programs of an instance can write to its memory, and a record of a packet there may be anything.
damaged() {
	begin && kill -STOP $capturing && pingpong -n 10 -s 8192 -m 4096 &&
		python3 "$srcdir/capture_damage.py" $capturing "$("$SOFTHCA" show --json lab | python3 -c 'import json, sys
print(json.load(sys.stdin)["pid"])')" &&
		kill -CONT $capturing && end && check packets 58 sent 60 whole && cat "$tmp/capture.err" &&
		grep -q '58 packets captured, 0 lost' "$tmp/capture.err" && grep -q '2 more were damaged' "$tmp/capture.err"
}
ok "damaged records are no packets, and are counted" damaged

after_kill() { begin && kill -KILL $capturing; wait $capturing; begin && opcodes && end && check opcodes order "lost" none; }
ok "after a capture was killed, another one begins" after_kill

off() { begin && stop && wait $capturing && check packets 0; }
ok "a capture ends with its instance" off
finish
