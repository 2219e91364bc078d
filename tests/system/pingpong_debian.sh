#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: Debian's tools with their mlx4 provider, which this project did not write, on both
# faces of softhca, in trap and kick.
. "$srcdir/lib.sh" || exit 1

if [ ! -x /usr/bin/ibv_rc_pingpong ] || ! ls /usr/lib/*/libibverbs/libmlx4-rdmav*.so >/dev/null 2>&1; then
	skip "Debian's tools" "install ibverbs-utils and ibverbs-providers"
	finish
fi

devinfo() {
	"$SOFTHCA" run --kernel mainline -- /usr/bin/ibv_devinfo -v >"$tmp/devinfo" || return 1
	grep -q 'hca_id:.*mlx4_0' "$tmp/devinfo" && grep -q 'PORT_ACTIVE (4)' "$tmp/devinfo" && grep -q 'GID\[ *0\]' "$tmp/devinfo"
}
ok "ibv_devinfo -v" devinfo
no_ours() {
	"$SOFTHCA" run --kernel mainline -- sh -c 'LD_DEBUG=libs ibv_devinfo 2>&1' | grep "calling init" >"$tmp/libs"
	grep -q 'libmlx4-rdmav34' "$tmp/libs" && ! echo "$OURS" | tr : '\n' | grep -F -f - "$tmp/libs"
}
ok "none of our libraries is loaded" no_ours

for mmio in kick trap; do
	for face in mainline ofed; do
		for transport in rc uc ud srq; do
			ok "$transport, $face, $mmio" within --kernel $face --mmio $mmio -- \
				pingpong /usr/bin/ibv_${transport}_pingpong -n 100
			[ "$face $mmio" = "mainline kick" ] || long_rows || continue
			ok "$transport -e, $face, $mmio" within --kernel $face --mmio $mmio -- \
				pingpong /usr/bin/ibv_${transport}_pingpong -e -n 100
		done
		[ "$face $mmio" != "ofed trap" ] || long_rows || continue
		ok "rc -c, $face, $mmio" within --kernel $face --mmio $mmio -- \
			pingpong /usr/bin/ibv_rc_pingpong -c -s 65536 -n 100
	done
done
ok "nothing is left behind" no_instance
finish
