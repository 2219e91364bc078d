#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: softhca trace. The verbs of unmodified programs, on our libibverbs and on Debian's, as
# lines with arguments by name, results and errno, and as a time line on which each completion has an
# arrow from its post; threads, children, and a program that is killed in the middle.
# shellcheck disable=SC2154 # lib.sh sets it
. "$srcdir/lib.sh" || exit 1

trace() { timeout 100 "$SOFTHCA" trace -o "$tmp/lines" -w "$tmp/json" "$@"; }
check() { python3 "$srcdir/trace_check.py" "$tmp/json" "$@" || return 1; }
# Each line is whole: a verb with its result and time, or one that never returned.
whole() {
	! grep -vE '^[0-9]+ [0-9:.]{15} [a-z]+_[a-z0-9_]+\(.*\)( = .* <[0-9]+\.[0-9]{9}>| <unfinished \.\.\.>)$' "$tmp/lines" | grep . &&
		[ -s "$tmp/lines" ] && [ "$(tail -c 1 "$tmp/lines" | od -An -tu1)" -eq 10 ]
}
has() { grep -qE -- "$1" "$tmp/lines" || { echo "no line: $1"; tail -n 20 "$tmp/lines"; return 1; }; }
# No file of the traced threads stays.
cleared() { [ -z "$(ls -d "$tmp"/softhca-trace.* 2>/dev/null)" ] || { ls -d "$tmp"/softhca-trace.*; return 1; }; }
export TMPDIR=$tmp

pair_lines() {
	has 'ibv_create_qp\(pd [0-9]+, \{IBV_QPT_RC, send_cq cq [0-9]+, .*\) = qp 0x[0-9a-f]{6}, cap \{send_wr ' &&
		has 'ibv_modify_qp\(qp 0x[0-9a-f]{6}, \{IBV_QPS_RTR, mtu 1024, \{dlid [0-9]+, .*\}, IBV_QP_STATE\|IBV_QP_AV\|.*\) = 0 <' &&
		has 'ibv_query_port\(mlx4_0, 1\) = 0 \{state 4, lid 1\}' &&
		has 'ibv_reg_mr\(pd [0-9]+, 0x[0-9a-f]+, [0-9]+, IBV_ACCESS_LOCAL_WRITE\) = mr 0x[0-9a-f]+, rkey' &&
		has 'ibv_post_send\(qp 0x[0-9a-f]{6}, \{wr_id 0x2, IBV_WR_SEND, IBV_SEND_SIGNALED, \[\{0x[0-9a-f]+, 4096, 0x[0-9a-f]+\}\]\}\) = 0 <' &&
		has 'ibv_poll_cq\(cq [0-9]+, [0-9]+\) = [12] \[.*\{wr_id 0x1, qp 0x[0-9a-f]{6}, IBV_WC_SUCCESS, IBV_WC_RECV, byte_len 4096\}' &&
		has 'ibv_get_cq_event\(channel fd [0-9]+\) = 0 cq [0-9]+' && has 'ibv_close_device\(mlx4_0\) = 0' && whole
}
ours_pingpong() {
	trace --libibverbs ours -- bash -c 'pingpong "$TOOLS/ibv_rc_pingpong" -n 50 -e' >/dev/null 2>"$tmp/err" && pair_lines &&
		check packets 100 100 && cleared
}
ok "a ping-pong on our libibverbs" ours_pingpong
if command -v /usr/bin/ibv_rc_pingpong >/dev/null; then
	of_system() {
		trace -- bash -c 'pingpong /usr/bin/ibv_rc_pingpong -n 50 -e' >/dev/null 2>"$tmp/err" && pair_lines && check packets 100 100
	}
	ok "a ping-pong on the system's libibverbs" of_system

	# Its calls of XRC are in front of the context.
	xsrq() {
		/usr/bin/ibv_xsrq_pingpong -p "$port" -c 1 -n 50 >"$tmp/server.out" 2>&1 &
		server=$!
		until_true timeout 20 /usr/bin/ibv_xsrq_pingpong -p "$port" -n 50 127.0.0.1 >"$tmp/client.out" 2>&1 && wait "$server"
	}
	export -f xsrq until_true
	xrc_of_system() {
		take_port
		export port tmp
		trace -- bash -c xsrq >"$tmp/out" 2>&1 || { cat "$tmp/out" "$tmp/server.out" "$tmp/client.out"; return 1; }
		has 'ibv_open_xrcd\(mlx4_0, \{fd [0-9]+, O_CREAT\}\) = xrcd 0x[0-9a-f]+ <' &&
			has 'ibv_create_srq_ex\(mlx4_0, \{max_wr 1, .*\}, IBV_SRQT_XRC, xrcd 0x[0-9a-f]+, cq [0-9]+\) = srq [0-9]+ <' &&
			has 'ibv_get_srq_num\(srq [0-9]+\) = 0 0x[0-9a-f]{6} <' &&
			has 'ibv_create_qp_ex\(mlx4_0, \{IBV_QPT_XRC_RECV, .*\) = qp 0x[0-9a-f]{6} <' &&
			has 'ibv_post_send\(qp 0x[0-9a-f]{6}, \{wr_id 0, IBV_WR_SEND, .*, to srq 0x[0-9a-f]{6}\}\) = 0 <' &&
			has 'ibv_close_xrcd\(xrcd 0x[0-9a-f]+\) = 0 <' && whole && check packets && cleared
	}
	ok "XRC on the system's libibverbs" xrc_of_system
else
	skip "a ping-pong on the system's libibverbs" "install ibverbs-utils"
	skip "XRC on the system's libibverbs" "install ibverbs-utils"
fi

# Stores to a doorbell trap, and OFED's kernel.
every_opcode() {
	trace --libibverbs ours "$@" -- "$PROGRAMS/opcodes" >"$tmp/out" 2>&1 || { cat "$tmp/out"; return 1; }
	has 'ibv_open_xrc_domain\(mlx4_0, [0-9]+, O_CREAT\) = xrcd [0-9]+' &&
		has 'ibv_create_xrc_srq\(pd [0-9]+, xrcd [0-9]+, cq [0-9]+, \{max_wr .*\) = srq [0-9]+, number 0x' &&
		has 'ibv_create_xrc_rcv_qp\(\{xrcd [0-9]+\}\) = 0 qp 0x[0-9a-f]{6} ' &&
		has 'ibv_modify_xrc_rcv_qp\(xrcd [0-9]+, qp 0x[0-9a-f]{6}, \{IBV_QPS_RTR, ' &&
		has 'ibv_post_send\(qp 0x[0-9a-f]{6}, \{wr_id .*, IBV_WR_ATOMIC_CMP_AND_SWP, .*, remote \{0x[0-9a-f]+, 0x[0-9a-f]+\}, to srq 0x[0-9a-f]{6}\}' &&
		whole && check packets && cleared
}
ok "an XRC program that uses every opcode" every_opcode
[ "$(uname -m)" != x86_64 ] || ok "the same, where doorbells trap, on OFED's kernel" every_opcode --mmio trap --kernel ofed

failing() {
	trace --libibverbs ours -- "$PROGRAMS/traced" fail >"$tmp/out" && whole && check || return 1
	qp=$(cat "$tmp/out")
	has 'ibv_create_cq\(mlx4_0, 1073741824, NULL, 0\) = NULL EINVAL \(Invalid argument\) <' &&
		has "ibv_modify_qp\\($qp, \\{IBV_QPS_RTS\\}, IBV_QP_STATE\\) = 22 EINVAL \\(Invalid argument\\) <" &&
		has 'ibv_dealloc_pd\(pd [0-9]+\) = 16 EBUSY \(Device or resource busy\) <' &&
		has "ibv_post_send\\($qp, \\{wr_id 0x7, IBV_WR_SEND, 0, \\[(\\{0, 0, 0\\}, ){15}\\{0, 0, 0\\}, \\.\\.\\.\\]\\}\\) = -?[0-9]+ E" && whole
}
ok "verbs that fail, with their errno" failing

# What the tools above have no use for.
others() {
	local qp lid
	trace --libibverbs ours -- "$PROGRAMS/traced" all >"$tmp/out" || return 1
	read -r qp lid <"$tmp/out"
	has 'ibv_query_device\(mlx4_0\) = 0 ' && has 'ibv_query_gid\(mlx4_0, 1, 0\) = 0 fe80:0:' && has 'ibv_query_pkey\(mlx4_0, 1, 0\) = 0 0xffff <' &&
		has 'ibv_resize_cq\(cq [0-9]+, 7\) = 0 <' &&
		has 'ibv_create_srq\(pd [0-9]+, \{max_wr 3, max_sge 1, srq_limit 0\}\) = srq [0-9]+ <' &&
		has 'ibv_modify_srq\(srq [0-9]+, \{max_wr 0, max_sge 0, srq_limit 1\}, IBV_SRQ_LIMIT\) = 0 <' &&
		has 'ibv_query_srq\(srq [0-9]+\) = 0 \{max_wr [0-9]+, max_sge [0-9]+, srq_limit 0\} <' &&
		has "ibv_query_qp\\(qp $qp, IBV_QP_QKEY\\) = 0 \\{IBV_QPS_RTS, qkey 5\\} <" &&
		has "ibv_attach_mcast\\(qp $qp, ff12:a01b:fe80:0:0:0:0:1, lid 0xc001\\) = 0 <" &&
		has "ibv_detach_mcast\\(qp $qp, ff12:a01b:fe80:0:0:0:0:1, lid 0xc001\\) = 0 <" &&
		has "ibv_create_ah\\(pd [0-9]+, \\{dlid $lid, sl 0, port 1, dgid fe80:.*, sgid_index 0, hop_limit 1\\}\\) = ah 0x" &&
		has "ibv_post_send\\(qp $qp, \\{wr_id 0x2, IBV_WR_SEND_WITH_IMM, .*, to qp $qp, imm 0\\}\\) = 0 <" &&
		has "ibv_create_ah_from_wc\\(pd [0-9]+, \\{slid $lid, src_qp $qp\\}, 1\\) = ah 0x" &&
		has 'ibv_get_async_event\(mlx4_0\) = 0 IBV_EVENT_SRQ_LIMIT_REACHED <' &&
		has 'ibv_ack_async_event\(IBV_EVENT_SRQ_LIMIT_REACHED\)' || return 1
	has 'ibv_query_xrc_rcv_qp\(xrcd [0-9]+, qp 0x[0-9a-f]{6}, IBV_QP_STATE\|IBV_QP_PORT\) = 0 \{IBV_QPS_INIT, port_num 1\} <' &&
		has 'ibv_reg_xrc_rcv_qp\(xrcd [0-9]+, qp 0x[0-9a-f]{6}\) = 0 <' &&
		has 'ibv_unreg_xrc_rcv_qp\(xrcd [0-9]+, qp 0x[0-9a-f]{6}\) = 0 <' &&
		has 'ibv_destroy_srq\(srq [0-9]+\) = 0 <' && has 'ibv_close_xrc_domain\(xrcd [0-9]+\) = 0 <' && whole && check packets && cleared
}
ok "groups, SRQs, address handles, events and XRC receive QPs" others
polled() { trace --libibverbs ours -- "$PROGRAMS/traced" polled >"$tmp/out" && whole && check packets 20 20 && cleared; }
ok "a thread that is in a poll when another one posts" polled

# so_often THREAD: what traced.c does in a thread.
so_often() {
	[ "$(grep -c "^$1 .*ibv_req_notify_cq(cq [0-9]*, 0) = 0 <" "$tmp/lines")" -eq 300 ] &&
		awk -v thread="$1" '$1 == thread && / ibv_poll_cq\(cq [0-9]+, 1\) = 0/ { lines++; n += match($0, /, [0-9]+ times/) ? substr($0, RSTART + 2) : 1 }
			END { print lines " lines, " n " polls"; exit n != 600 || lines != 300 }' "$tmp/lines" &&
		[ "$(grep "^$1 .*ibv_poll_cq" "$tmp/lines" | grep -o 'cq [0-9]*' | sort -u | wc -l)" -eq 1 ]
}
threads() {
	trace --libibverbs ours -- "$PROGRAMS/traced" threads >"$tmp/out" && [ "$(wc -l <"$tmp/out")" -eq 3 ] || return 1
	while read -r thread; do
		so_often "$thread" || { grep "^$thread " "$tmp/lines" | head; return 1; }
	done <"$tmp/out"
	whole && check && cleared
}
ok "threads and a child, each with its own verbs; polls that find nothing are one line" threads

# Kills the program when it calls verbs, and the other thread is in one, as its file says. That has no end.
killed() {
	trace --libibverbs ours -- bash -c '"$PROGRAMS/traced" killed >"$tmp/out" & pid=$!
		until [ "$(grep -c ibv_req_notify_cq "$tmp/lines")" -gt 1000 ] && grep -qsa "ibv_get_cq_event(" "$tmp"/softhca-trace.*/*; do sleep 0.01; done
		kill -KILL $pid; wait $pid; [ $? -eq 137 ]' || return 1
	has "ibv_get_cq_event\\($(cat "$tmp/out")\\) <unfinished \\.\\.\\.>" && whole && check && cleared &&
		[ "$(grep -c ' <unfinished' "$tmp/lines")" -le 2 ]
}
ok "a program that is killed, and has closed what is not its own" killed

# A trace that is killed leaves its files to the next one. That leaves those of a trace that lives.
left() {
	"$SOFTHCA" trace -o "$tmp/lines" -- sleep 60 &
	living=$!
	until_true places 1 || return 1
	lives=$(ls -d "$tmp"/softhca-trace.*)
	"$SOFTHCA" trace -o "$tmp/other" -- sleep 60 &
	traced=$!
	until_true places 2 || return 1
	kill -KILL "$traced"
	wait "$traced" 2>/dev/null
	places 2 || return 1
	until_true gone "$traced"
	"$SOFTHCA" trace -o "$tmp/other" -- true && [ "$(ls -d "$tmp"/softhca-trace.*)" = "$lives" ] || return 1
	kill "$living"
	wait "$living"
	cleared
}
places() { [ "$(find "$tmp" -maxdepth 1 -name 'softhca-trace.*' | wc -l)" -eq "$1" ]; }
ok "what a killed trace has left goes with the next one" left

summary() {
	timeout 100 "$SOFTHCA" trace --summary --libibverbs ours -- "$PROGRAMS/traced" fail >"$tmp/out" 2>"$tmp/table" || return 1
	awk '$6 == "ibv_dealloc_pd" && $4 == 1 && $5 == 1 { busy = 1 } $6 == "ibv_create_cq" && $4 == 2 && $5 == 1 { cq = 1 }
		END { exit !(busy && cq) }' "$tmp/table" && ! grep -q 'pd [0-9]' "$tmp/table" || { cat "$tmp/table"; return 1; }
}
ok "a table of verbs" summary

# A program that may write no files. It does as it does without a trace, and the command says what the trace lacks.
no_files() {
	timeout 100 "$SOFTHCA" trace -o "$tmp/lines" --libibverbs ours -- sh -c 'ulimit -f 0; exec "$0" fail 2>&1' "$PROGRAMS/traced" 2>"$tmp/err" | cat >"$tmp/out"
	grep -q '^qp 0x' "$tmp/out" && [ ! -s "$tmp/lines" ] && grep -qE '^softhca: [0-9]+ verbs are not in the trace: ' "$tmp/err" || { cat "$tmp/err"; return 1; }
}
ok "a program whose threads have no room for their files" no_files

# A command that cannot be run has said so itself.
no_verb() {
	status 0 "$SOFTHCA" trace -- true 2>"$tmp/err" && grep -q '^softhca: no verb was traced: ' "$tmp/err" &&
		status 127 "$SOFTHCA" trace -- "$tmp/no-such" 2>"$tmp/err" && ! grep -q 'no verb' "$tmp/err" || { cat "$tmp/err"; return 1; }
}
ok "a command without verbs" no_verb

# What the command is and does stays as with softhca run.
passes() {
	status 7 "$SOFTHCA" trace -o "$tmp/lines" -- sh -c 'exit 7' && [ ! -s "$tmp/lines" ] &&
		status 127 "$SOFTHCA" trace -- "$tmp/no-such" 2>/dev/null && status 125 "$SOFTHCA" trace -o "$tmp/no/such" -- true 2>"$tmp/err" &&
		grep -q "cannot write $tmp/no/such" "$tmp/err" && status 125 "$SOFTHCA" run -o "$tmp/lines" -- true 2>/dev/null && cleared
}
ok "exit statuses, and an output that cannot be written" passes
no_instances() { until_true no_instance; }
ok "nothing is left behind" no_instances
finish
