#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the two commands of README.md on a Debian 12 that has nothing else. They pass for root below /root, where the first process
# collects no orphans, nobody has CAP_SYS_RESOURCE and devpts is not mounted, as in many containers; and for a user
# with sudo. Where packages cannot be installed they say why.
# Takes some 15 minutes. BARE_TEST names another command than scripts/test.
. "$top_srcdir/tests/packaging/bare.sh" || exit 1
needs git setpriv

# A fresh clone, in a directory of that owner's.
fresh() {
	git -C "$top_srcdir" rev-parse HEAD >/dev/null || return 1
	mkdir -p "$root$1" && git clone -q "$top_srcdir" "$root$1/tree" && chroot "$root" chown -R "$2" "$1/tree"
}

# The first process of a PID namespace ends with the command. It waits for that alone.
first='my $child = fork; exec @ARGV unless $child; waitpid $child, 0; exit($? ? 1 : 0)'

as_root() {
	(cd / && timeout 5400 unshare -p -f --mount-proc="$root/proc" setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource \
		chroot "$root" "${bare[@]}" HOME=/root sh -c 'cd /root/tree && exec perl -e "$0" "$@"' "$first" "$@")
}
as_user() {
	(cd / && timeout 5400 chroot --userspec=tester:tester "$root" "${bare[@]}" HOME=/home/tester USER=tester \
		sh -c 'cd /home/tester/tree && exec "$@"' as_user "$@")
}

make_users() {
	inside apt-get install -y -q --no-install-recommends sudo && inside useradd -m tester &&
	echo 'tester ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/tester" && chmod 440 "$root/etc/sudoers.d/tester" &&
	mkdir -p "$root/sys" && mount --rbind /sys "$root/sys" && cp /etc/hosts "$root/etc/hosts"
}

# fails_saying WORDS COMMAND...
fails_saying() {
	local words=$1
	shift
	if "$@" >"$work/said" 2>&1; then
		return 1
	fi
	cat "$work/said"
	grep -q "$words" "$work/said"
}
# In place of sudo: NAME, or nothing.
sudo_is() {
	[ -e "$root/usr/bin/sudo.real" ] || mv "$root/usr/bin/sudo" "$root/usr/bin/sudo.real"
	rm -f "$root/usr/bin/sudo"
	[ -z "$1" ] || ln -s "$1" "$root/usr/bin/sudo"
}
without_sudo() {
	sudo_is ''
	fails_saying 'only root or sudo can install them: .*autoconf' as_user scripts/quickstart
}
refused_sudo() {
	sudo_is /bin/false
	fails_saying 'sudo does not let this user install packages' as_user scripts/quickstart
}
without_mirror() {
	sudo_is sudo.real
	mv "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.away" &&
	echo 'deb http://localhost:1/ bookworm main' >"$root/etc/apt/sources.list"
	fails_saying 'apt-get could not \(update its lists\|install\)' as_user scripts/quickstart
	found=$?
	mv "$root/etc/apt/sources.list.away" "$root/etc/apt/sources.list"
	inside apt-get update -q
	return "$found"
}

# Without CAP_SYS_RESOURCE the limit of locked memory stays what it is: 8 MiB, mostly. Then tests that lock more are skipped. A
# user's sudo raises it where this process could.
limit="ulimit -l is"
few() { [ "$(ulimit -l)" != unlimited ] && [ "$(ulimit -l)" -lt 81920 ]; }
as_root_lacks= as_user_lacks=
! few || as_root_lacks="\|$limit"
(ulimit -l unlimited) 2>/dev/null || as_user_lacks=$as_root_lacks

# The kernel lets nobody make a user's namespace in a root that is no mount's, which this one is.
chroot="namespaces\|a /run of its own"

# ends BUT COMMAND...: the last line has no failure, and no skip but those whose reason is BUT.
ends() {
	local but=$1
	shift
	"$@" >"$work/said" 2>&1
	tail -n 40 "$work/said"
	# What scripts/quickstart configured, without cmocka, is no reason to leave them out.
	grep -q ': build/tests/unit/softhca_mr: ' "$work/said" || { echo "no unit tests"; return 1; }
	tail -n 1 "$work/said" | grep -q '^[1-9][0-9]* passed, 0 failed, [0-9]* skipped$' || return 1
	! sed -n '/^Skipped, with what is missing:$/,/^[^ S]/p' "$work/said" | grep '^  ' | grep -v -- "$but"
}

ok "a bare Debian 12" make_root
ok "a user with sudo" make_users
[ "$failures" -eq 0 ] || finish
ok "clones" eval 'fresh /root root:root && fresh /home/tester tester:tester'
ok "a user without sudo is told so" without_sudo
ok "a user whom sudo refuses is told so" refused_sudo
ok "no mirror answers" without_mirror
ok "scripts/quickstart, root" as_root scripts/quickstart
# shellcheck disable=SC2086 # words
ok "scripts/test, root below /root; no devpts, no CAP_SYS_RESOURCE, orphans stay" ends "devpts\|$chroot$as_root_lacks" as_root ${BARE_TEST:-scripts/test}
mkdir -p "$root/dev/pts" && mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts" && ln -sf pts/ptmx "$root/dev/ptmx"
ok "scripts/quickstart, a user with sudo" as_user scripts/quickstart
# shellcheck disable=SC2086 # words
ok "scripts/test, a user with sudo" ends "$chroot$as_user_lacks" as_user ${BARE_TEST:-scripts/test}
leave_root
finish
