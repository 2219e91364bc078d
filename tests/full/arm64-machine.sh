#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: softhca runs on arm64, in kick: the installed ping-pongs and the programs of tests/verbs, on both kernel faces,
# under Debian's kernel for arm64 in an emulated machine. Its processors order stores as this machine's do, so nothing here
# tests memory order.
# Environment: ARM64_PROGRAMS, which programs of tests/verbs to run, or "all" as scripts/test long sets it, instead of those that
# take least; ARM64_KEEP, a directory for the guest's tree and logs.
set -u
. "$top_srcdir/tests/full/foreign.sh" || exit 1
. "$top_srcdir/tests/kernel/machine.sh" || exit 1

dir=$top_builddir/full-arm64
parts=$top_builddir/foreign/arm64-machine
limit=${TEST_TIMEOUT:-1500}
# Each subject once, in two minutes of a processor.
programs="cq events fork inline locked_memory mr mr_iova query rc_operations shared_memory srq threads uc ud
	xrc_bidirectional xrc_domain xrc_rcv_qp xrc_rdma xrc_send_only xrc_share xrc_srq"
programs=${ARM64_PROGRAMS:-$programs}

foreign arm64
for need in qemu-system-aarch64:qemu-system-arm cpio:cpio; do
	command -v "${need%:*}" >/dev/null ||
		foreign_skip "no ${need%:*}: Debian package ${need#*:} (scripts/install-packages long installs it)"
done
[ -d "$parts" ] || foreign_skip "no kernel of arm64: scripts/foreign-libraries $top_builddir/foreign downloads it"

if [ -n "${ARM64_KEEP:-}" ]; then
	work=$ARM64_KEEP
	# Of a directory that this script has not made, nothing is removed.
	[ ! -e "$work" ] || [ -e "$work/made-by-arm64-machine" ] || { echo "Bail out! ARM64_KEEP=$work exists, and is not of this script"; exit 1; }
	rm -rf "${work:?}/root"
	mkdir -p "$work" && touch "$work/made-by-arm64-machine" || exit 1
else
	work=$(mktemp -d) || exit 1
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
fi
root=$work/root

# needed_by FILE: copies the libraries that it needs, and those that they need, the loader among them.
needed_by() {
	readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' | while read -r name; do
		[ ! -e "$root/lib/$name" ] && [ ! -e "$root/usr/lib/$name" ] || continue
		for from in "$machine_root/lib" "$libraries" ""; do
			[ ! -e "$from/$name" ] || break
		done
		cp -L "$from/$name" "$root/lib/$name" && needed_by "$root/lib/$name" || exit 1
	done
}

# The guest's file tree: what make install installs below /usr; the programs of tests/verbs in /programs; their sources, which say
# what each needs, and run-matrix in /source; busybox.
make_tree() {
	foreign_build "$dir" --enable-softhca && make -C "$dir/tests/verbs" check TESTS= || return 1
	mkdir -p "$root/bin" "$root/lib" "$root/programs" "$root/source/tests/verbs" "$root/build/libibverbs" "$root/build/libmlx4" \
		"$root/proc" "$root/sys" "$root/dev" "$root/tmp" || return 1
	make -C "$dir" install DESTDIR="$root" && rm -rf "${root:?}/usr/share" "$root/usr/include" || return 1
	ln -s /usr/lib "$root/build/libibverbs/.libs" && ln -s /usr/lib "$root/build/libmlx4/.libs" || return 1
	cp "$parts/bin/busybox" "$root/bin/" && cp "$top_srcdir/tests/full/arm64-guest.sh" "$root/init" && chmod 755 "$root/init" || return 1
	cp "$top_srcdir/tests/verbs/run-matrix" "$top_srcdir/tests/verbs/lib.sh" "$root/source/tests/verbs/" || return 1
	[ "$programs" != all ] || programs=$(make -s -C "$dir/tests/verbs" --no-print-directory \
		--eval 'print-programs: ; @echo $(PROGRAMS_C)' print-programs) || return 1
	for name in $programs; do
		program=$dir/tests/verbs/$name
		[ ! -e "$dir/tests/verbs/.libs/$name" ] || program=$dir/tests/verbs/.libs/$name
		cp "$program" "$root/programs/" && cp "$top_srcdir/tests/verbs/$name.c" "$root/source/tests/verbs/" || return 1
	done
	for file in "$root"/programs/* "$root"/usr/bin/* "$root"/usr/lib/*.so "$root"/usr/lib/softhca/*.so; do
		needed_by "$file" || return 1
	done
	pack_initramfs "$root" "$work/initramfs"
}

if ! (make_tree) >"$work/build.log" 2>&1; then
	tail -n 60 "$work/build.log" | sed 's/^/# /'
	echo "Bail out! the guest's file tree cannot be built"
	exit 1
fi
echo "# the guest's tree: $(du -sh "$root" | cut -f 1), $(find "$root/programs" -type f | wc -l) programs"

# The console is the kernel's log; the results come by a serial port on the PCI bus.
machine "$limit" qemu-system-aarch64 -M virt -accel tcg,thread=multi -cpu neoverse-n1 -smp 2 -m 2048 \
	-kernel "$parts"/boot/vmlinuz-* -initrd "$work/initramfs" \
	-append "console=ttyAMA0 panic=-1 oops=panic quiet loglevel=7 mitigations=off TIER=${TIER:-full}" \
	-serial "file:$work/console" -chardev "file,id=results,path=$work/results" -device pci-serial,chardev=results
