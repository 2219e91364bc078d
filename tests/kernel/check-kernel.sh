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
limit=300	# seconds for the guest; it takes a tenth of that on a machine that is not busy

. "$top_srcdir/tests/kernel/kernel.sh"
. "$top_srcdir/tests/kernel/initramfs.sh"

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
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
fi
root=$work/root

if ! build_initramfs "$work/initramfs" >"$work/build.log" 2>&1; then
	sed 's/^/# /' "$work/build.log"
	echo "Bail out! the guest's file tree cannot be built"
	exit 1
fi

# The console is the kernel's log, the second serial port carries the results. A kernel that panics ends qemu.
timeout --foreground -k 10 "$limit" qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 512 -display none -no-reboot \
	-nodefaults -kernel "$vmlinuz" -initrd "$work/initramfs" \
	-append "console=ttyS0 panic=-1 oops=panic quiet loglevel=7 mitigations=off" \
	-serial "file:$work/console" -serial "file:$work/results" </dev/null >"$work/qemu.log" 2>&1
status=$?

# The programs of the guest count for themselves: their tests get one numbering, and their plans are added up.
touch "$work/console" "$work/results"
tr -d '\r' <"$work/results" | awk '
/^(not )?ok [0-9]+/ { sub(/ok [0-9]+/, "ok " ++number) ; print; if (/^not/) ++failed; next }
/^1\.\.[0-9]+$/ { planned += substr($0, 4); next }
/^# the end$/ { ended = 1 }
{ if (!/^#/) sub(/^/, "# "); print }
END {
	print (ended && planned == number && number ? "" : "not ") "ok " ++number " - the guest ran all its tests and ended"
	exit failed || !ended || planned != number - 1
}' >"$work/tap"
result=$?
cat "$work/tap"

number=$(($(grep -c '^\(not \)\?ok' "$work/tap") + 1))
if grep -n 'WARNING:\|BUG:\|Oops\|Kernel panic\|Call Trace\|general protection\|UBSAN\|refcount_t:\|possible memory leak' \
	"$work/console" >"$work/complaints"; then
	sed 's/^/# /' "$work/complaints"
	echo "not ok $number - the kernel had nothing to complain about"
	result=1
else
	echo "ok $number - the kernel had nothing to complain about"
fi
echo "1..$number"

if [ "$result" -ne 0 ]; then
	[ "$status" -ne 124 ] || echo "# the guest did not end within $limit seconds"
	sed 's/^/# qemu: /' "$work/qemu.log"
	tail -n 60 "$work/console" | tr -d '\r' | sed 's/^/# console: /'
fi
exit "$result"
