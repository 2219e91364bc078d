# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For the tests of tools that read the fabric from umad files. Sourced after lib.sh.

# tool HOST COMMAND...: within a bounded time.
tool() {
	where=$1
	shift
	on "$where" timeout 50 "$@"
}

# has PATTERN COMMAND...: what the command prints has this.
has() {
	pattern=$1
	shift
	"$@" >"$tmp/out" 2>&1
	grep -q -- "$pattern" "$tmp/out" || { echo "no \"$pattern\" in:"; cat "$tmp/out"; return 1; }
}
