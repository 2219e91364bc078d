#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: on a Debian 12 that has nothing else, the packages install, devices and ping-pongs run on softhca, a program is
# built against the library, and after a purge the file tree is what it was; the same again beside rdma-core's packages.
. "$top_srcdir/tests/packaging/bare.sh" || exit 1
needs dpkg-buildpackage dh
# Those that deb.sh kept, if it did.
build_debs() {
	if [ -n "${KEEP_PACKAGES:-}" ] && ls "$KEEP_PACKAGES"/*.deb >/dev/null 2>&1; then
		cp "$KEEP_PACKAGES"/*.deb "$root/debs/"
		return
	fi
	tarball libibverbs && cd "$work" && tar -xzf libibverbs-"$VERSION".tar.gz && cd libibverbs-"$VERSION" &&
	DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" timeout 2400 dpkg-buildpackage -us -uc -b && rm -f ../*-dbgsym_* &&
	cp ../*.deb "$root/debs/"
}

# Every file with its kind, mode and owner; of /etc also what is in it. Left out: what apt and dpkg remember, and what
# the tools for users and libraries write anew each time.
snapshot() {
	(cd "$root" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./sys -o -path ./run -o -path ./tmp -o -path ./debs -o -path ./root \
			-o -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log \) -prune \
			-o -printf '%y %m %u %g %p\n' | grep -v ' ./etc/[a-z]*-$\| ./etc/ld.so.cache$' | sort
		find ./etc -type f ! -name '*-' ! -name ld.so.cache -exec sha256sum {} + | sort -k 2
		chroot . dpkg-query -W -f '${Package} ${Status}\n' | sort) >"$1"
}

install_ours() {
	snapshot "$work/before" && inside sh -c 'apt-get install -y -q --no-install-recommends /debs/*.deb'
}

run_devinfo() {
	inside xrc-verbs-run softhca run "$@" -- ibv_devinfo | tee "$work/said" && grep -q 'PORT_ACTIVE (4)' "$work/said" &&
	grep -q '^hca_id:.mlx4_0$' "$work/said"
}

# The other way about, and the tool by its path: it knows its library.
run_direct() {
	inside softhca run -- /usr/lib/xrc-verbs/bin/ibv_devinfo -l | tee "$work/said" && grep -q 'mlx4_0' "$work/said" &&
	inside softhca run -- xrc-verbs-run ibv_devices | tee "$work/said" && grep -q 'mlx4_0' "$work/said"
}

# A TCP port that nobody listens on: $port. The network is that of the machine.
take_port() {
	port=$((10240 + (RANDOM * 32768 + RANDOM) % 22000))
	while grep -qi ":$(printf '%04X' "$port") 0* *[0:]* 0A " /proc/net/tcp /proc/net/tcp6; do
		port=$((port + 1))
	done
}

# pingpong KERNEL SCRIPT: server and client, both must succeed. The root has no /etc/hosts.
pingpong() {
	take_port
	bound=60 inside xrc-verbs-run softhca run --kernel "$1" -- sh -c "$2" pingpong "$port"
}

rc='ibv_rc_pingpong -p $1 --chk & server=$!
	ibv_rc_pingpong -p $1 --chk --timeout 20 127.0.0.1 && wait $server'
xsrq='ibv_xsrq_pingpong -p $1 --clients 2 & server=$!
	ibv_xsrq_pingpong -p $1 --timeout 20 127.0.0.1 & first=$!
	ibv_xsrq_pingpong -p $1 --timeout 20 127.0.0.1 && wait $first && wait $server'

# by_address SERVER CLIENT [COMMAND...]: both in an instance of its own, on kernel $face, with what COMMAND puts before them. The
# client repeats until the server listens.
by_address() {
	server=$1
	client=$2
	shift 2
	# shellcheck disable=SC2016 # the shell in there expands it
	bound=120 inside "$@" softhca run --kernel "$face" --require-traffic -- sh -c '$1 & server=$!
		n=0
		until $2; do
			n=$((n + 1))
			[ $n -lt 100 ] && kill -0 $server || { kill $server; exit 1; }
			sleep 0.1
		done
		wait $server' by_address "$server" "$client"
}
rping() {
	by_address "rping -s -C 20 -V" "rping -c -a 127.0.0.1 -C 20 -V" "$@"
}
by_xrc() {
	by_address "rdma_xserver -c x" "rdma_xclient -c x" xrc-verbs-run
}

run_all() {
	ok "ibv_devinfo, $1" run_devinfo
	ok "ibv_devinfo on the OFED face, $1" run_devinfo --kernel ofed
	ok "the tools without the wrapper in front, $1" run_direct
	for face in ofed mainline; do
		ok "ibv_rc_pingpong, $face, $1" pingpong $face "$rc"
		ok "ibv_xsrq_pingpong, $face, $1" pingpong $face "$xsrq"
		ok "rping, $face, $1" rping xrc-verbs-run
		ok "rdma_xclient by XRC, $face, $1" by_xrc
	done
}

group() {
	inside getent group rdma
}

# It names what OFED's headers have and rdma-core's do not.
channel_program() {
	cat <<-'END'
	#include <rdma/rdma_cma.h>

	int main(void)
	{
		struct rdma_event_channel *channel = rdma_create_event_channel();
		struct ibv_xrc_domain *domain = NULL;
		struct rdma_cm_id *id;

		if (!channel || domain || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) || rdma_destroy_id(id))
			return 1;
		rdma_destroy_event_channel(channel);
		return 0;
	}
	END
}

# As docs/packages.md has it.
build_program() {
	inside apt-get install -y -q --no-install-recommends gcc libc6-dev pkg-config &&
	cp "$top_srcdir/tests/packaging/static.c" "$root/debs/program.c" && channel_program >"$root/debs/channel.c" &&
	inside sh -ec 'cd /debs; gcc -o program program.c $(pkg-config --cflags --libs libibverbs-xrc); softhca run -- ./program
		gcc -o channel channel.c $(pkg-config --cflags --libs librdmacm-xrc); softhca run -- ./channel
		ldd channel | grep "librdmacm.so.1 => .*/xrc-verbs/"' &&
	inside sh -ec "cd /debs; PKG_CONFIG_PATH=/$(cd "$root" && echo usr/lib/*-linux-gnu*/xrc-verbs)/pkgconfig
		export PKG_CONFIG_PATH
		gcc -o program \$(pkg-config --cflags libibverbs) program.c \$(pkg-config --libs libibverbs)
		xrc-verbs-run softhca run -- ./program
		gcc -o program program.c \$(pkg-config --cflags --libs libmlx4) -Wl,-Bstatic -libverbs -lsysfs -Wl,-Bdynamic
		softhca run -- ./program"
}

rdma_core() {
	inside apt-get install -y -q --no-install-recommends ibverbs-utils ibverbs-providers rdma-core libibverbs-dev librdmacm-dev \
		rdmacm-utils
}

# What is theirs is still theirs, and runs on the software HCA.
theirs_intact() {
	inside sh -ec 'for package in ibverbs-utils ibverbs-providers libibverbs1 librdmacm1 librdmacm-dev rdmacm-utils; do dpkg -V $package; done
		softhca run --kernel mainline -- ibv_devinfo | tee /dev/stderr | grep -q PORT_ACTIVE
		[ "$(command -v ibv_devinfo)" = /usr/bin/ibv_devinfo ]
		[ "$(command -v rping)" = /usr/bin/rping ]' &&
	face=mainline rping env
}

purge_ours() {
	inside sh -c 'cd /debs && apt-get purge -y -q $(for deb in *.deb; do echo ${deb%%_*}; done) &&
		apt-get autoremove --purge -y -q' && snapshot "$work/after" && diff "$work/before" "$work/after"
}

ok "a bare Debian 12" make_root
mkdir -p "$root/debs"
ok "the packages" build_debs
[ "$failures" -eq 0 ] || finish
ok "they install" install_ours
ok "group rdma is there" group
run_all "alone"
ok "purged, nothing is left" purge_ours
ok "rdma-core's packages" rdma_core
ok "ours install beside them" install_ours
run_all "beside rdma-core's"
ok "rdma-core's files and tools are as they were" theirs_intact
ok "purged, rdma-core's are as they were" purge_ours
ok "ours install again" install_ours
ok "a program is built with ours, with rdma-core's headers there" build_program
leave_root
finish
