# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# Where tests have their instances. Sourced by the lib.sh of a folder.

# place DIRECTORY: makes a directory for instances and prints its path. It is in shared memory, which softhca takes by itself,
# too; where that is small (a container's has 64 MiB), it is in DIRECTORY. An instance with many ports has thousands of files:
# they cost seconds on a disk, and the memory of the device is written to it.
place() {
	local kind free
	read -r kind free < <(stat -f -c '%T %a %S' /dev/shm 2>/dev/null | awk '{ print $1, int($2 * $3 / 1048576) }')
	if [ "${kind:-}" = tmpfs ] && [ "$free" -ge 1024 ] && mktemp -d /dev/shm/softhca-test.XXXXXX 2>/dev/null; then
		return
	fi
	mkdir -m 700 "$1/instances" && echo "$1/instances"
}
