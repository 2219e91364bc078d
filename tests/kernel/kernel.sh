#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Finds Debian's stock kernel: sets $vmlinuz, $modules (the directory that holds lib/modules) and $release. It is never
# installed: the package is unpacked, once, below $1. What cannot be had ends the script with 77 and a line saying so.

kernel_skip() {
	rm -rf "${kernel_new:-}"
	echo "1..0 # SKIP $*"
	exit 77
}

# Of the kernels below directory $1 the last whose image can be read and that has the modules.
kernel_in() {
	for image in "$1"/boot/vmlinuz-*-amd64; do
		version=${image##*/vmlinuz-}
		if [ -r "$image" ] && ls "$1/lib/modules/$version/kernel/drivers/infiniband/sw/rxe/"rdma_rxe.ko*  \
			"$1/lib/modules/$version/kernel/drivers/net/"veth.ko* "$1/lib/modules/$version/kernel/fs/configfs/"configfs.ko* >/dev/null 2>&1
		then
			# shellcheck disable=SC2034 # initramfs.sh and the rest use them
			vmlinuz=$image modules=$1 release=$version
		fi
	done
	[ -n "$release" ]
}

# The package that the metapackage linux-image-amd64 depends on.
kernel_package() {
	apt-cache depends linux-image-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*-amd64\)$/\1/p' | head -n 1
}

kernel_update_lists() {
	if [ "$(id -u)" -eq 0 ]; then
		apt-get update -q
	elif command -v sudo >/dev/null; then
		sudo -n apt-get update -q
	fi >/dev/null 2>&1
}

# Downloads the package into the directory $1, with package lists as they are, or else with new ones.
kernel_download() (
	cd "$1" || exit 1
	for attempt in 1 2; do
		package=$(kernel_package)
		if [ -n "$package" ] && apt-get download -q "$package" >apt.log 2>&1; then
			exit 0
		fi
		[ "$attempt" -eq 2 ] || kernel_update_lists
	done
	exit 1
)

# Only what the guest needs, out of the package in directory $1, to there.
kernel_unpack() {
	dpkg-deb --fsys-tarfile "$1"/linux-image-*.deb | tar -x -C "$1" --wildcards './boot/vmlinuz-*' \
		'./lib/modules/*/modules.*' './lib/modules/*/kernel/drivers/infiniband' \
		'./lib/modules/*/kernel/drivers/net/dummy.ko*' './lib/modules/*/kernel/drivers/net/veth.ko*' './lib/modules/*/kernel/net' \
		'./lib/modules/*/kernel/crypto' './lib/modules/*/kernel/fs/configfs' './lib/modules/*/kernel/lib' './lib/modules/*/kernel/arch'
}

find_kernel() {
	release=
	kernel_in "$1" && return
	kernel_in "" && [ -r "/lib/modules/$release/modules.dep" ] && return

	command -v apt-get >/dev/null || kernel_skip "no kernel: this machine has no apt-get to download linux-image-amd64"
	command -v dpkg-deb >/dev/null || kernel_skip "no kernel: this machine has no dpkg-deb to unpack linux-image-amd64"

	# In place only when it is whole.
	kernel_new=$1.new
	rm -rf "$kernel_new"
	mkdir -p "$kernel_new"
	if ! kernel_download "$kernel_new"; then
		sed 's/^/# /' "$kernel_new/apt.log" 2>/dev/null
		kernel_skip "no kernel: linux-image-amd64 cannot be downloaded"
	fi
	kernel_unpack "$kernel_new" || kernel_skip "no kernel: the package linux-image-amd64 cannot be unpacked"
	rm -f "$kernel_new"/linux-image-*.deb "$kernel_new/apt.log"
	release=
	kernel_in "$kernel_new" || kernel_skip "no kernel: linux-image-amd64 has no rdma_rxe module"
	depmod -b "$kernel_new" "$release" || kernel_skip "no kernel: depmod does not understand linux-image-amd64"
	rm -rf "$1"
	mv "$kernel_new" "$1"
	kernel_in "$1"
}
