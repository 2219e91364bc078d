#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=dash
#
# The first process of the arm64 guest: runs ping-pongs and the programs of tests/verbs on softhca, prints TAP to the second
# serial port and powers off. The console is the kernel's.

/bin/busybox --install -s /bin
export PATH=/usr/bin:/bin HOME=/
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
ip link set lo up
ulimit -l unlimited

stty -F /dev/ttyS0 raw -echo
exec >/dev/ttyS0 2>&1 </dev/null
echo "# Linux $(uname -r), $(uname -m), $(nproc) processors"

number=0
# shows DESCRIPTION SCRIPT: what scripts/quickstart shows, in `softhca run` on each face.
shows() {
	for face in ofed mainline; do
		number=$((number + 1))
		if timeout -k 5 120 softhca run --kernel $face --mmio kick -- sh -c "$2" >/tmp/said 2>&1; then
			echo "ok $number - $1, $face"
		else
			echo "# exit status $?"
			sed 's/^/# /' /tmp/said
			echo "not ok $number - $1, $face"
		fi
	done
}
shows "ibv_devinfo" 'ibv_devinfo | tee /dev/stderr | grep -q "PORT_ACTIVE (4)"'
for tool in rc uc ud srq; do
	shows "ibv_${tool}_pingpong, contents verified" "ibv_${tool}_pingpong --chk --timeout 60 & server=\$!
		ibv_${tool}_pingpong --chk --timeout 60 127.0.0.1 && wait \$server"
done
shows "ibv_rc_pingpong with events" 'ibv_rc_pingpong -e --chk --timeout 60 & server=$!
	ibv_rc_pingpong -e --chk --timeout 60 127.0.0.1 && wait $server'
shows "ibv_xsrq_pingpong, four clients" 'clients=
	for client in 1 2 3 4; do ibv_xsrq_pingpong --timeout 60 127.0.0.1 & clients="$clients $!"; done
	ibv_xsrq_pingpong --clients 4 --timeout 60 && for client in $clients; do wait $client || exit; done'
echo "1..$number"

# An emulated processor is slow: each run has more time. TIER comes from the kernel's command line.
export TIER TEST_TIMEOUT=300 TEST_SECONDS=280 top_srcdir=/source top_builddir=/build SOFTHCA=/usr/bin/softhca
cd /tmp || exit
for program in /programs/*; do
	begun=$(cut -d . -f 1 /proc/uptime)
	sh /source/tests/verbs/run-matrix "$program"
	echo "# ${program##*/}: $(($(cut -d . -f 1 /proc/uptime) - begun)) s"
done
echo "# the end"
sync
poweroff -f
