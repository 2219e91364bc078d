# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2154 # who sources this sets $there
#
# Two machines on one cable, each of them a network namespace: what the tests of these share. Sourced after lib.sh. $there, exported, is
# a process of the other machine.

# Sets $apart, the command that begins a script in a network namespace of its own. Ends the script, skipped, where something is
# missing: machines_need WHAT
machines_need() {
	# Root needs no user namespace, in which its memory would be limited.
	for apart in "unshare -nu" "unshare -Urnu" none; do
		[ "$apart" = none ] || ! $apart ip link add w0 type veth peer name w1 2>/dev/null || break
	done
	if [ "$apart" = none ]; then
		skip "$1" "this machine permits no network namespaces, or has no ip command (package iproute2)"
		finish
	fi
	if ! command -v jq >/dev/null; then
		skip "$1" "install jq"
		finish
	fi
	printf '#!/bin/sh\nexec nsenter -t "$there" -m -n -u "$@"\n' >"$tmp/there"
	chmod +x "$tmp/there"
}

elsewhere() { [ "$(readlink "/proc/$there/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }

# 10.77.0.1 here, 10.77.0.2 there
cable() {
	ip link set lo up && ip link add w0 type veth peer name w1 netns "$there" &&
		ip address add 10.77.0.1/24 dev w0 && ip link set w0 up && "$tmp/there" ip link set lo up &&
		"$tmp/there" ip address add 10.77.0.2/24 dev w1 && "$tmp/there" ip link set w1 up
}
