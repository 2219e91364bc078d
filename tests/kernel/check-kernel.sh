#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Boots Debian's stock kernel in qemu and runs the tests of guest/ there. Prints TAP; exits with 0, with 1 when a test
# failed, with 77 when there is no qemu or no kernel.
#
# Environment: top_srcdir, top_builddir (absolute). Options: --keep leaves the guest's tree and logs in
# tests/kernel/guest.tmp of the build directory.
set -u

: "${top_srcdir:?}" "${top_builddir:?}"
PATH=$PATH:/usr/sbin:/sbin
limit=1500	# seconds for the guest; it takes a fraction of that on a machine that is not busy

. "$top_srcdir/tests/kernel/kernel.sh" || exit 1
. "$top_srcdir/tests/kernel/initramfs.sh" || exit 1
. "$top_srcdir/tests/kernel/machine.sh" || exit 1

for need in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio depmod:kmod timeout:coreutils; do
	command -v "${need%:*}" >/dev/null ||
		kernel_skip "no ${need%:*}: Debian package ${need#*:} (scripts/install-packages test installs it)"
done

find_kernel "$top_builddir/tests/kernel/linux"

if [ "${1:-}" = --keep ]; then
	work=$top_builddir/tests/kernel/guest.tmp
	rm -rf "$work"
	mkdir -p "$work"
else
	work=$(mktemp -d) || exit 1
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
fi
root=$work/root

if ! build_initramfs "$work/initramfs" >"$work/build.log" 2>&1; then
	sed 's/^/# /' "$work/build.log"
	echo "Bail out! the guest's file tree cannot be built"
	exit 1
fi

# The console is the kernel's log, the second serial port carries the results.
machine "$limit" qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 512 -kernel "$vmlinuz" -initrd "$work/initramfs" \
	-append "console=ttyS0 panic=-1 oops=panic quiet loglevel=7 mitigations=off" \
	-serial "file:$work/console" -serial "file:$work/results"
