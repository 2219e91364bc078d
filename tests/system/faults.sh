#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: packets that are lost, doubled, damaged and late. RC and XRC deliver everything once and in order; what was
# done to packets and what the transport did about it shows in the counters; when nothing comes through, retries end.
TEST_TIMEOUT=${TEST_TIMEOUT:-900}
. "$srcdir/lib.sh"

if ! command -v jq >/dev/null; then
	skip "faults" "install jq"
	finish
fi

# Enough for every kind of fault to happen, and not more than what the wait after a lost packet lets pass in a minute.
n=100

fault() { "$SOFTHCA" fault "$SOFTHCA_INSTANCE" "$@"; }
query() {
	"$SOFTHCA" show --json "$SOFTHCA_INSTANCE" >"$tmp/state"
	jq -e "$@" "$tmp/state" >/dev/null || { echo "not so: $*"; jq '.faults, .hosts[].hcas[].counters' "$tmp/state"; return 1; }
}
total='def total(f): [.hosts[].hcas[].counters | f] | add; def done(k): [.faults[] | select(.fault == k) | .done] | add // 0;'

bad_fabric() {
	# What a rate hits is the same in every run, as far as the programs send the same.
	fault seed 1 || return 1
	for kind in "$@"; do
		fault $kind 5% || return 1
	done
}
# Each kind was at work, and was seen by those who must see it.
at_work() {
	for kind in "$@"; do
		query --arg kind "$kind" "$total"' done($kind) > 0' || return 1
	done
	case " $* " in *" corrupt "*) query "$total"' total(.drops_icrc) > 0' || return 1 ;; esac
	case " $* " in *" drop "*) query "$total"' total(.retries) > 0' || return 1 ;; esac
	case " $* " in *" duplicate "*) query "$total"' total(.duplicates) > 0' || return 1 ;; esac
}
rc() {
	bad_fabric drop duplicate corrupt && pingpong "$TOOLS/ibv_rc_pingpong" --verify -n "$1" -s "$2" -m 256 &&
		at_work drop duplicate corrupt
}
late() { bad_fabric delay drop && pingpong "$TOOLS/ibv_rc_pingpong" --verify -n "$1" && at_work delay drop; }
srq() { bad_fabric drop duplicate corrupt && pingpong "$TOOLS/ibv_srq_pingpong" --verify -n "$1" -q 4 && at_work drop duplicate corrupt; }
xrc() { bad_fabric drop duplicate corrupt && xsrq 4 --verify -n "$1" && at_work drop duplicate corrupt; }
mesh() {
	bad_fabric drop duplicate corrupt || return 1
	take_port
	timeout 50 "$TOOLS/xrc_mesh" --procs 2 --port "$port" --node 1 --size 3000 --messages "$1" >"$tmp/node1.out" 2>&1 &
	other=$!
	timeout 50 "$TOOLS/xrc_mesh" --procs 2 --port "$port" --node 0 --size 3000 --messages "$1" >"$tmp/node0.out" 2>&1
	self=$?
	wait $other && [ $self -eq 0 ] || { cat "$tmp"/node?.out; return 1; }
	at_work drop duplicate corrupt
}
# Their server ends with its last message: when the acknowledgement of that one is lost nobody is left to repeat it, and
# the client fails although everything has arrived. So the first packets meet their fate, and the last ones none.
theirs() {
	for kind in drop duplicate corrupt; do
		fault $kind 4 || return 1
	done
	pingpong /usr/bin/ibv_rc_pingpong -c -n "$1" && at_work drop duplicate corrupt
}

# One packet is lost: one retry, and no more packet after that one is touched.
one() {
	fault "$1" 1 && pingpong "$TOOLS/ibv_rc_pingpong" --verify -n 20 && query --arg kind "$1" "$total"' done($kind) == 1 and '"$2"
}
# Nothing comes through: the retry count is used up, which has a status of its own.
nothing() {
	fault drop 100% || return 1
	pingpong "$TOOLS/ibv_rc_pingpong" -n 10 --timeout 4 >"$tmp/failed" 2>&1 && { echo "it went through"; return 1; }
	grep -qi 'transport retry counter exceeded' "$tmp/failed" || { cat "$tmp/failed"; return 1; }
	query "$total"' total(.retries) >= 7 and total(.rcv_packets) == 0' || return 1
	# The fabric is good again: new connections work.
	fault clear && query '[.faults[] | select(.rate_per_million > 0 or .count > 0)] == []' &&
		pingpong "$TOOLS/ibv_rc_pingpong" --verify -n 10
}
# UC promises nothing, and does not ask again.
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
	kill $client $server
	wait $client $server
	[ $lost -eq 0 ] && query "$total"' total(.retries) == 0'
}
ends() {
	fault drop 5% && fault corrupt 0.05 && fault duplicate 0.5% && query '(.faults | map([.fault, .rate_per_million])) ==
		[["drop", 50000], ["duplicate", 5000], ["corrupt", 50000]]' && fault drop 0% &&
		query 'all(.faults[]; .fault != "drop" or .rate_per_million == 0)' && fault clear &&
		query 'all(.faults[]; .rate_per_million == 0 and .count == 0)'
}
# A seed and a length are kept until there is another, and nonsense changes nothing.
settings() {
	fault seed 4711 && fault delay 5% 2.5ms && query '.fault_seed == 4711 and .fault_delay_us == 2500' || return 1
	for wrong in "delay 5% 3" "delay 5% 2h" "delay 5% -1ms" "delay 5% 61s" "drop 5% 1ms" "seed x" "seed -1" "seed"; do
		# shellcheck disable=SC2086
		fault $wrong 2>"$tmp/err" && { echo "taken: $wrong"; return 1; }
		[ -s "$tmp/err" ] || { echo "without a word: $wrong"; return 1; }
	done
	fault delay 7 && query '.fault_seed == 4711 and .fault_delay_us == 2500 and .faults[0].count == 7'
}
# What is delayed by a second takes as long: it is not there when everything else is.
# The packet outlives the program that sent it, which a sanitizer takes for a leak.
long_delay() {
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	fault delay 1 1s && pingpong "$TOOLS/ibv_rc_pingpong" --verify -n 5 &&
		query "$total"' done("delay") == 1 and total(.retries) >= 1'
}
export -f fault query bad_fabric at_work rc late srq xrc mesh theirs one nothing unreliable ends settings long_delay
export total

for face in mainline ofed; do
	for mmio in kick trap; do
		[ "${TIER:-}" = full ] || [ "$face $mmio" = "mainline kick" ] || continue
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
		ok "one packet doubled is none, $face, $mmio" ours within $on -- \
			one duplicate 'total(.retries) == 0'
		ok "nothing comes through, $face, $mmio" ours within $on -- nothing
		ok "UC does not ask again, $face, $mmio" ours within $on -- unreliable
	done
done
ok "rates are set, changed, shown and cleared" within -- ends
ok "seed and delay are set and shown" within -- settings
ok "a long delay is a retry" ours within -- long_delay
ok "nothing is left behind" until_true no_instance
finish
