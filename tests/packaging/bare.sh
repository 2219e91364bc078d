# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# A Debian 12 that has nothing else, in $root, for tests that source this. Takes root and the Debian mirror that apt is configured
# with. Mounts are seen by the test alone and go with it, however it ends.
. "$top_srcdir/tests/packaging/lib.sh" || exit 1
needs debootstrap unshare
[ "$(id -u)" -eq 0 ] || { echo "1..0 # SKIP takes root"; exit 0; }

if [ -z "${BARE_ROOT_MOUNTS:-}" ]; then
	unshare -m true 2>/dev/null || { echo "1..0 # SKIP no mount namespaces here"; exit 0; }
	BARE_ROOT_MOUNTS=own exec unshare -m --propagation private "$0" "$@"
fi

root=$work/root
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Codename: bookworm' | sort -u | head -n 1)
[ -n "$mirror" ] || { echo "1..0 # SKIP apt has no mirror of Debian 12"; exit 0; }
leave_root() { umount -R "$root"/proc "$root"/sys "$root"/dev/shm "$root"/dev/pts 2>/dev/null; }
trap leave_root EXIT

# The environment that a login has, and no other.
bare=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C)
inside() {
	timeout "${bound:-900}" chroot "$root" "${bare[@]}" HOME=/root "$@"
}

make_root() {
	timeout 1800 debootstrap --variant=minbase bookworm "$root" "$mirror" &&
	mount -t proc proc "$root/proc" && mkdir -p "$root/dev/shm" && mount -t tmpfs tmpfs "$root/dev/shm" &&
	# What apt itself keeps is not what packages leave.
	inside apt-get update -q
}
