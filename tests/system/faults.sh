#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: packets are lost, duplicated, damaged and delayed. RC and XRC still deliver
# everything once and in order. Counters show what was done to packets and what the transport did
# about it. When nothing gets through, retries end. Faults that name hosts or a QP hit the packets
# of these, and no others.
# shellcheck disable=SC2086 # words of a command: $on
. "$srcdir/lib.sh" || exit 1

if ! command -v jq >/dev/null; then
	skip "faults" "install jq"
	finish
fi

# What waits for a packet to be sent again sleeps (-e): in all but one test, since many such waits would keep the processors from other
# tests.
# Enough for every kind of fault to occur. More would take over a minute, because of the wait after
# each lost packet.
n=100

fault() { "$SOFTHCA" fault "$SOFTHCA_INSTANCE" "$@"; }
query() {
	"$SOFTHCA" show --json "$SOFTHCA_INSTANCE" >"$tmp/state"
	jq -e "$@" "$tmp/state" >/dev/null || { echo "not so: $*"; jq '.faults, .hosts[].hcas[].counters' "$tmp/state"; return 1; }
}
total='def total(f): [.hosts[].hcas[].counters | f] | add; def done(k): [.faults[] | select(.fault == k) | .done] | add // 0;'

bad_fabric() {
	# With the same seed a rate hits the same packets in every run, as far as the programs send
	# the same.
	fault seed 1 || return 1
	for kind in "$@"; do
		fault "$kind" 5% || return 1
	done
}
# Each kind of fault occurred, and the counters that must show it do.
at_work() {
	local filter=$total' true'
	for kind in "$@"; do
		filter="$filter and done(\"$kind\") > 0"
		case $kind in
		corrupt) filter="$filter and total(.drops_icrc) > 0" ;;
		drop) filter="$filter and total(.retries) > 0" ;;
		duplicate) filter="$filter and total(.duplicates) > 0" ;;
		esac
	done
	# At once: jq takes longer to begin than to look.
	query "$filter"
}
rc() {
	bad_fabric drop duplicate corrupt && pingpong "$TOOLS/ibv_rc_pingpong" --verify -n "$1" -s "$2" -m 256 &&
		at_work drop duplicate corrupt
}
late() { bad_fabric delay drop && pingpong "$TOOLS/ibv_rc_pingpong" -e --verify -n "$1" && at_work delay drop; }
srq() { bad_fabric drop duplicate corrupt && pingpong "$TOOLS/ibv_srq_pingpong" -e --verify -n "$1" -q 4 && at_work drop duplicate corrupt; }
xrc() { bad_fabric drop duplicate corrupt && xsrq 4 -e --verify -n "$1" && at_work drop duplicate corrupt; }
mesh() {
	bad_fabric drop duplicate corrupt || return 1
	take_port
	timeout 50 "$TOOLS/xrc_mesh" --procs 2 --port "$port" --node 1 --size 3000 --messages "$1" >"$tmp/node1.out" 2>&1 &
	other=$!
	timeout 50 "$TOOLS/xrc_mesh" --procs 2 --port "$port" --node 0 --size 3000 --messages "$1" >"$tmp/node0.out" 2>&1
	self=$?
	wait "$other" && [ "$self" -eq 0 ] || { cat "$tmp"/node?.out; return 1; }
	at_work drop duplicate corrupt
}
# Debian's server ends with its last message. If the acknowledgement of that message is lost, no
# process is left to send it again, and the client fails although everything has arrived. So faults
# hit the first packets, and not the last ones.
theirs() {
	for kind in drop duplicate corrupt; do
		fault "$kind" 4 || return 1
	done
	pingpong /usr/bin/ibv_rc_pingpong -e -c -n "$1" && at_work drop duplicate corrupt
}

# One packet is lost: there is one retry, and no later packet is hit.
one() {
	fault "$1" 1 && pingpong "$TOOLS/ibv_rc_pingpong" -e --verify -n 20 && query --arg kind "$1" "$total"' done($kind) == 1 and '"$2"
}
# Nothing gets through: the retry count is used up, which has a status of its own.
nothing() {
	fault drop 100% || return 1
	pingpong "$TOOLS/ibv_rc_pingpong" -e -n 10 --timeout 4 >"$tmp/failed" 2>&1 && { echo "it went through"; return 1; }
	grep -qi 'transport retry counter exceeded' "$tmp/failed" || { cat "$tmp/failed"; return 1; }
	query "$total"' total(.retries) >= 7 and total(.rcv_packets) == 0' || return 1
	# Without faults new connections work.
	fault clear && query '[.faults[] | select(.rate_per_million > 0 or .count > 0)] == []' &&
		pingpong "$TOOLS/ibv_rc_pingpong" -e --verify -n 10
}
# UC promises nothing and does not send again.
unreliable() {
	fault drop 100% || return 1
	take_port
	timeout 20 "$TOOLS/ibv_uc_pingpong" -p "$port" -n 1 -s 100 >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || return 1
	timeout 20 "$TOOLS/ibv_uc_pingpong" -p "$port" -n 1 -s 100 127.0.0.1 >"$tmp/client.out" 2>&1 &
	client=$!
	until_true query "$total"' done("drop") == 1'
	lost=$?
	kill "$client" "$server"
	wait "$client" "$server"
	[ "$lost" -eq 0 ] && query "$total"' total(.retries) == 0'
}
ends() {
	fault drop 5% && fault corrupt 0.05 && fault duplicate 0.5% && query '(.faults | map([.fault, .rate_per_million])) ==
		[["drop", 50000], ["duplicate", 5000], ["corrupt", 50000]]' && fault drop 0% &&
		query 'all(.faults[]; .fault != "drop" or .rate_per_million == 0)' && fault clear &&
		query 'all(.faults[]; .rate_per_million == 0 and .count == 0)'
}
# A seed and a delay stay until there is another one. Nonsense changes nothing.
settings() {
	fault seed 4711 && fault delay 5% 2.5ms && query '.fault_seed == 4711 and .fault_delay_us == 2500' || return 1
	for wrong in "delay 5% 3" "delay 5% 2h" "delay 5% -1ms" "delay 5% 61s" "drop 5% 1ms" "seed x" "seed -1" "seed"; do
		# shellcheck disable=SC2086
		fault $wrong 2>"$tmp/err" && { echo "taken: $wrong"; return 1; }
		[ -s "$tmp/err" ] || { echo "without a word: $wrong"; return 1; }
	done
	fault delay 7 && query '.fault_seed == 4711 and .fault_delay_us == 2500 and .faults[0].count == 7'
}
# across [ARGUMENT...]: runs a server on host 0 and a client on host 1; both must succeed.
across() {
	take_port
	SOFTHCA_HOST=0 timeout 50 "$TOOLS/ibv_rc_pingpong" -e -p "$port" --verify "$@" >"$tmp/server.out" 2>&1 &
	server=$!
	until_true listening || { cat "$tmp/server.out"; return 1; }
	[ -z "${before:-}" ] || "$before" || { kill "$server"; return 1; }
	SOFTHCA_HOST=1 timeout 50 "$TOOLS/ibv_rc_pingpong" -e -p "$port" --verify "$@" 127.0.0.1 >"$tmp/client.out" 2>&1
	client=$?
	wait "$server" && [ "$client" -eq 0 ] || { cat "$tmp/server.out" "$tmp/client.out"; return 1; }
}
losses='def lost(h): [.hosts[h].hcas[].counters | .drops_fault] | add; def again(h): [.hosts[h].hcas[].counters | .retries] | add;'
# The fault hits packets from one host to the other, but not those on the way back and not those of
# other hosts.
link() {
	fault drop 20% --from host1 --to host0 --seed 3 && fault corrupt 100% --from 2 --to 0 || return 1
	across -n "$1" && query "$losses"' lost(0) > 0 and lost(1) == 0 and again(0) + again(1) > 0' &&
		SOFTHCA_HOST=2 pingpong "$TOOLS/ibv_rc_pingpong" -e --verify -n "$1" &&
		query "$losses"' lost(2) == 0 and again(2) == 0 and .hosts[0].hcas[0].counters.drops_icrc == 0' &&
		query '.faults | map(select(.fault == "drop")) | .[0] | .from == "host1" and .to == "host0" and
			.qp == null and .rate_per_million == 200000 and .seed == 3 and .done > 0 and .delay_us == null'
}
# A fault for all that a host sends, its answers included; and one for all that is sent to it.
host() {
	fault "$1" 5 "$2" host1 && SOFTHCA_HOST=0 pingpong "$TOOLS/ibv_rc_pingpong" -e --verify -n 10 &&
		query "$total"' total(.retries) == 0 and done("drop") == 0' && across -n 20 &&
		query "$total"' total(.drops_fault) == 5 and done("drop") == 5 and total(.retries) > 0'
}
# A fault for one QP of two: the server's, which waits for its client.
qp() {
	name_it() {
		query '[.hosts[0].hcas[].qps[]] | length == 1' || return 1
		number=$(jq '.hosts[0].hcas[0].qps[0].qpn' "$tmp/state")
		fault drop 3 --qp "$(printf '0x%x' "$number")" && fault drop 3 --from host0 --qp "$number" &&
			fault drop 0.0 --qp "$number" --from host0
		fault drop 100% --qp $((number + 77)) 2>"$tmp/err" && { echo "a QP that is not there was taken"; return 1; }
		grep -q "there are $(printf 0x%06x "$number")" "$tmp/err" || { cat "$tmp/err"; return 1; }
		# Other QPs of the HCA lose nothing. (QPs of another HCA may have the same number.)
		SOFTHCA_HOST=0 pingpong_beside && query "$total"' total(.drops_fault) == 0 and total(.retries) == 0'
	}
	# In a subshell, because this pair takes another port.
	pingpong_beside() { (pingpong "$TOOLS/ibv_rc_pingpong" -e --verify -n 10); }
	before=name_it across -n 20 && query --argjson qp "$number" "$total"' total(.drops_fault) == 3 and
		([.faults[] | select(.done > 0)] | length == 1 and .[0].qp == $qp and .[0].from == null and .[0].done == 3)'
}
# Rules with a scope are set, replaced, shown and ended one by one.
scopes() {
	set_are() { query --argjson are "$1" '[.faults[] | select(.rate_per_million > 0) | [.fault, .from, .to, .rate_per_million]] == $are'; }
	fault drop 1% && fault --from host0 drop 2% && fault delay 3% 7ms --to host1 --from host0 && fault drop --from host1 4% &&
		set_are '[["drop",null,null,10000],["drop","host0",null,20000],["delay","host0","host1",30000],["drop","host1",null,40000]]' &&
		query '.fault_delay_us == 100 and ([.faults[] | .delay_us] == [null, null, 7000, null])' || return 1
	"$SOFTHCA" show "$SOFTHCA_INSTANCE" >"$tmp/text" && grep -Eq '^ +delay +host0 +host1 +- +30000 ' "$tmp/text" ||
		{ cat "$tmp/text"; return 1; }
	fault drop 5% --from host0 && fault delay off --from host0 --to host1 && fault drop 0% &&
		set_are '[["drop","host0",null,50000],["drop","host1",null,40000]]' && fault off --from host1 &&
		set_are '[["drop","host0",null,50000]]' && fault off --to host0 && set_are '[["drop","host0",null,50000]]' || return 1
	for wrong in "drop 1% --from" "drop 1% --from host" "drop 1% --from hosta" "drop 1% --from host1x" "drop 1% --from -1" \
		"drop 1% --to host2" "drop 1% --from host7 --to host0" "drop 1% --qp" "drop 1% --qp 0" "drop 1% --qp -3" \
		"drop 1% --qp 0x1000000" "drop 1% --qp 0x77" "drop 1% --qp 000077" "drop 1% --seed x" "drop 1% --bogus 1" "drop --from host0" \
		"drop 1% 2% --from host0" "off --from host9" "off --seed 3" "seed 3 --from host0" "off 1%" "--from host0"; do
		# shellcheck disable=SC2086
		fault $wrong 2>"$tmp/err" && { echo "taken: $wrong"; return 1; }
		[ -s "$tmp/err" ] || { echo "without a word: $wrong"; return 1; }
		set_are '[["drop","host0",null,50000]]' || { echo "after: $wrong"; return 1; }
	done
	fault drop 1% --from host7 2>"$tmp/err"
	grep -q 'no host7: the instance has host0 to host1' "$tmp/err" || { cat "$tmp/err"; return 1; }
	fault drop 1% --qp 5 2>"$tmp/err"
	grep -q 'no QP 0x000005' "$tmp/err" || { cat "$tmp/err"; return 1; }
	# Hexadecimal without 0x, as a tool may print it: neither decimal nor octal.
	fault drop 1% --qp 000048 2>"$tmp/err"
	grep -q 'not "000048": if that is hexadecimal, write 0x000048' "$tmp/err" || { cat "$tmp/err"; return 1; }
	fault off && set_are '[]'
}
# A packet that is delayed by a second arrives after everything else. It outlives the program that
# sent it, which a sanitizer takes for a leak.
long_delay() {
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	fault delay 1 1s && pingpong "$TOOLS/ibv_rc_pingpong" -e --verify -n 5 &&
		query "$total"' done("delay") == 1 and total(.retries) >= 1'
}
# A link with a limit, and one with a constant delay, keep packets in order: UC loses nothing, and no packet of RC comes out of
# sequence. $1: the service, the rest: the fault.
in_order() {
	tool="$TOOLS/ibv_$1_pingpong"
	kind=$2
	shift
	fault "$@" && pingpong "$tool" -e --verify -n 100 -s 65536 -r 60 -m 4096 &&
		query --arg kind "$kind" "$total"' done($kind) > 0 and total(.out_of_sequence) == 0 and total(.drops_fault) == 0'
}
export -f fault query bad_fabric at_work rc late srq xrc mesh theirs one nothing unreliable ends settings \
	long_delay across link host qp scopes in_order
export total losses

for face in mainline ofed; do
	for mmio in kick trap; do
		# Packets do not know how a doorbell came: each face and each way of MMIO once.
		case "$face $mmio" in
		"mainline kick") ;;
		"ofed trap") all_rows || continue ;;
		*) long_rows || continue ;;
		esac
		on="--kernel $face --mmio $mmio"
		ok "RC, one packet a message, $face, $mmio" ours within $on -- rc $n 200
		ok "RC, sixteen packets a message, $face, $mmio" ours within $on -- rc $((n / 5)) 4096
		ok "RC, delayed and lost, $face, $mmio" ours within $on -- late $n
		ok "SRQ, $face, $mmio" ours within $on -- srq $n
		ok "XRC, one server and four clients, $face, $mmio" ours within $on -- xrc $((n / 5))
		ok "XRC as MPI lays it out, $face, $mmio" ours within $on -- mesh $((n / 4))
		if [ -x /usr/bin/ibv_rc_pingpong ]; then
			ok "RC, Debian's provider, $face, $mmio" within $on -- theirs $n
		else
			skip "RC, Debian's provider, $face, $mmio" "install ibverbs-utils"
		fi
		ok "one packet dropped is one retry, $face, $mmio" ours within $on -- one drop 'total(.retries) == 1'
		ok "one packet damaged is one retry, $face, $mmio" ours within $on -- \
			one corrupt 'total(.retries) == 1 and total(.drops_icrc) == 1'
		ok "one packet duplicated causes no retry, $face, $mmio" ours within $on -- \
			one duplicate 'total(.retries) == 0'
		ok "nothing arrives while all packets are dropped, $face, $mmio" ours within $on -- nothing
		ok "UC sends nothing again, $face, $mmio" ours within $on -- unreliable
	done
done
ok "rates are set, changed, shown and cleared" within -- ends
ok "seed and delay are set and shown" within -- settings
ok "a long delay is a retry" ours within -- long_delay
for service in uc rc; do
	ok "a limit keeps the order of $service" ours within -- in_order "$service" rate 250mbit 2s
	ok "a constant delay keeps the order of $service" ours within -- in_order "$service" delay 100% 1ms
done
ok "scopes are set, replaced, shown and ended" within --hosts 2 -- scopes
ok "faults from one host to another" ours within --hosts 3 -- link $((n / 2))
ok "faults of what a host sends" ours within --hosts 2 -- host drop --from
ok "faults of what a host is sent" ours within --hosts 2 -- host drop --to
ok "faults of a QP" ours within --hosts 2 -- qp
ok "nothing is left behind" until_true no_instance
finish
