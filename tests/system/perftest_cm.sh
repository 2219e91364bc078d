#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: Debian's perftest connects by rdma_cm, between two hosts, on both kernels: each of its tools with -R, with UD, with several
# QPs, with events; and with -z, where only the exchange of addresses goes by rdma_cm.
# The raw_ethernet tools need Ethernet ports, which InfiniBand's are not. perftest 4.5 has no --bind_source_ip.
# shellcheck disable=SC2086 # words of a command
. "$srcdir/lib.sh" || exit 1

for program in ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_atomic_bw ib_atomic_lat; do
	if [ ! -x /usr/bin/$program ]; then
		skip "Debian's perftest" "install perftest: there is no $program"
		finish
	fi
done

. "$srcdir/cm_pairs.sh" || exit 1

# The last line of a tool has as many numbers as its heading has columns, so the tool has measured something.
measures() { # measures COMMAND
	perftest_pair 1 "$listens" "timeout 30 $1" "$1 host0" && grep -q '^ *[0-9]\+ \+[0-9]\+ \+[0-9.]\+' "$tmp/client.out" && return 0
	cat "$tmp/client.out"
	return 1
}

for face in mainline ofed; do
	if ! "$SOFTHCA" start --hosts 2 --kernel "$face" cm >"$tmp/start.out" 2>&1; then
		ok "$face: an instance" cat "$tmp/start.out"
		continue
	fi
	# The quick tier runs what differs in the connection, on one face, and a service of each kind on the other; the full tier each tool with each.
	while read -r line; do
		case $face-${line%%:*} in
		*-both | mainline-one) ;;
		*) all_rows || continue ;;
		esac
		command=${line#*:}
		ok "$command, $face" measures "$command -F -n 100"
	done <<-END
		both:ib_send_bw -R
		one:ib_send_lat -R
		one:ib_write_bw -R
		full:ib_write_lat -R
		full:ib_read_bw -R
		one:ib_read_lat -R
		one:ib_atomic_bw -R
		full:ib_atomic_lat -R
		both:ib_send_bw -R -c UD
		full:ib_send_lat -R -c UD
		one:ib_send_bw -R -q 4
		full:ib_write_bw -R -q 4
		full:ib_read_bw -R -q 4
		full:ib_atomic_bw -R -q 4
		full:ib_send_bw -R -c UD -q 4
		full:ib_send_bw -R -e
		full:ib_send_bw -R -b
		full:ib_send_bw -R -T 8
		one:ib_send_bw -z
		full:ib_write_lat -z
		full:ib_send_lat -z -c UD
		full:ib_send_bw -z -q 4
	END
	"$SOFTHCA" stop cm >/dev/null
done
finish
