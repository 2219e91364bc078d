# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=sh
#
# Boots an emulated machine whose first process runs tests, and turns what it says into TAP of one numbering. Knows no kernel
# and no file tree; needs $work, a directory.

# machine SECONDS QEMU ARGUMENT...: the arguments send the kernel's log to the file $work/console and what the tests print to
# $work/results. The guest ends that with the line "# the end" and powers off. Returns 0 when it did so, all tests passed and the
# kernel had nothing to complain about.
machine() {
	limit=$1
	shift
	# A kernel that panics ends qemu.
	timeout --foreground -k 10 "$limit" "$@" -display none -no-reboot -nodefaults </dev/null >"$work/qemu.log" 2>&1
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
	if grep -n 'WARNING:\|BUG:\|Oops\|Kernel panic\|Call [Tt]race\|general protection\|UBSAN\|refcount_t:\|possible memory leak' \
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
	return "$result"
}

# pack_initramfs DIRECTORY OUTPUT: the names of init and of the node the kernel itself opens come with devtmpfs and the archive.
pack_initramfs() {
	(cd "$1" && find . | LC_ALL=C sort | cpio -o -H newc --quiet -R 0:0) | gzip -1 >"$2"
}
