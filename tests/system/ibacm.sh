#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: Debian's ibacm, unmodified, on two hosts: it joins a group by the subnet administrator, finds the other one
# through that group by name, and asks for paths. Its socket has one place in /run, so each runs where /run is its own.
. "$srcdir/lib.sh" || exit 1

PATH=$PATH:/usr/sbin
needs "Debian's ibacm" "ibacm, infiniband-diags and jq" ibacm ib_acme saquery jq
unshare -m mount -t tmpfs none /run 2>/dev/null || {
	skip "Debian's ibacm" "run it as root: this user cannot have a /run of its own"
	finish
}

# service HOST: ibacm of a host.
service() {
	mkdir -p "$tmp/$1"
	printf '%s\n' "log_file $tmp/$1/log" "log_level 2" "lock_file $tmp/$1/lock" "server_mode unix" "addr_prot acm" \
		"route_prot sa" "timeout 2000" "retries 5" >"$tmp/$1/opts"
	printf 'acm-%s mlx4_0 1 default\n' "$1" >"$tmp/$1/addresses"
	# shellcheck disable=SC2016 # the inner shell expands it
	unshare -m bash -c 'mount -t tmpfs none /run && echo $$ >"$1/shell" && shift && exec "$@"' x "$tmp/$1" \
		"$SOFTHCA" run --instance "$SOFTHCA_INSTANCE" --host "$1" -- timeout 100 \
		ibacm -P -A "$tmp/$1/addresses" -O "$tmp/$1/opts" >"$tmp/$1/out" 2>&1 &
	services="$services $!"
	until_true grep -qs 'listen active' "$tmp/$1/log" && until_true grep -q 'join successful' "$tmp/$1/log" ||
		{ cat "$tmp/$1/log" "$tmp/$1/out"; return 1; }
}
# asks OPTION...: a client where the service of host 0 is.
asks() {
	nsenter -t "$(cat "$tmp/0/shell")" -m "$SOFTHCA" run --instance "$SOFTHCA_INSTANCE" --host 0 -- \
		timeout 50 ib_acme -v "$@" >"$tmp/acme" 2>&1
	grep -q 'SA verification: success' "$tmp/acme" && grep -q '^ *dlid: 2$' "$tmp/acme" || { cat "$tmp/acme"; return 1; }
}
members() { on 0 timeout 50 saquery --smkey 1 -m 2>/dev/null | grep -c 'dump:$'; }
both() { [ "$(members)" -eq 2 ]; }
no_files() { "$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq -e '.umad_files == []' >/dev/null; }

for face in $(faces mainline ofed); do
	SOFTHCA_INSTANCE=ibacm-$face
	export SOFTHCA_INSTANCE
	services=
	"$SOFTHCA" start --kernel "$face" --hosts 2 "$SOFTHCA_INSTANCE" >/dev/null || exit 1
	ok "ibacm of host 0, $face" service 0
	ok "ibacm of host 1, $face" service 1
	ok "both are in one group, $face" until_true both
	ok "by name, $face" asks -f n -s acm-0 -d acm-1
	ok "by LID, $face" asks -f l -s 1 -d 2
	for pid in $("$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | jq -r '.umad_files[].pid'); do
		kill "$pid"
	done
	# shellcheck disable=SC2086 # numbers
	wait $services
	ok "no file is left open, $face" until_true no_files
	"$SOFTHCA" port "$SOFTHCA_INSTANCE" --host 1 mlx4_0:1 down >/dev/null
	ok "a port that goes down is in no group, $face" test "$(members)" -eq 1
	"$SOFTHCA" stop "$SOFTHCA_INSTANCE" >/dev/null
	ok "nothing is left, $face" no_instance
done
finish
