# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=dash
#
# TAP, for the scripts of the guest.

number=0

# result STATUS DESCRIPTION FILE...
result() {
	status=$1 description=$2
	shift 2
	number=$((number + 1))
	if [ "$status" -eq 0 ]; then
		echo "ok $number - $description"
	else
		cat "$@" | tail -n 150 | sed 's/^/# /'
		echo "not ok $number - $description"
	fi
}
