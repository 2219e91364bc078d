#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: softhca removes what it has made and what no process uses, and leaves everything else
# as it is. And where softhca finds a place for instances.
. "$srcdir/lib.sh" || exit 1

place=$SOFTHCA_DIR/softhca
old='2 hours ago'

# Prints all that is below a directory, with types, links and contents. It must be the same before
# and after.
picture() { (cd "$1" && find . -printf '%p %y %l %m %U\n' | sort && find . -type f ! -path './softhca/lock' | sort | xargs -r -d '\n' cksum); }

# Leaves the instance of a killed daemon in the place.
dead() {
	"$SOFTHCA" start "$@" || return 1
	shift $(($# - 1))
	kill -KILL "$(cat "$place/$1/pid")" && until_true lock_free "$place/$1"
}
lock_free() { flock -n "$1/lock" true; }

# ---- the user's own directory ----

populated() {
	mkdir -p "$tmp/mine/precious/deep/deeper" "$tmp/mine/run-17" "$tmp/mine/lab/files" "$tmp/mine/empty" "$tmp/mine/.new-0123456789abcdef" || return 1
	echo thesis >"$tmp/mine/precious/deep/deeper/thesis"
	echo c >"$tmp/mine/lab/files/c1.1"
	echo 4711 >"$tmp/mine/lab/pid"
	: >"$tmp/mine/lab/lock"
	ln -s precious "$tmp/mine/link"
	mkfifo "$tmp/mine/fifo"
	find "$tmp/mine" -exec touch -h -d "$old" {} +
	picture "$tmp/mine" >"$tmp/before"
	SOFTHCA_DIR=$tmp/mine "$SOFTHCA" run -- true || return 1
	SOFTHCA_DIR=$tmp/mine "$SOFTHCA" start lab || return 1
	SOFTHCA_DIR=$tmp/mine "$SOFTHCA" stop lab || return 1
	rm -r "$tmp/mine/softhca"
	picture "$tmp/mine" >"$tmp/after"
	diff "$tmp/before" "$tmp/after"
}
ok "a SOFTHCA_DIR keeps the files that are in it" populated

# ---- neighbours in the place ----

neighbours() {
	"$SOFTHCA" run -- true || return 1
	mkdir -p "$place/notes/deep" "$place/empty" "$place/copied/files" "$place/.new-0123456789abcdef/files" \
		"$place/.new-fedcba9876543210" "$place/forged" "$place/linked" || return 1
	echo x >"$place/notes/deep/file"
	echo x >"$place/run-18"
	: >"$place/.new-fedcba9876543210.lock"
	echo "softhca instance, inode 1" >"$place/forged/lock"
	echo "softhca instance, inode 1" >"$place/.new-aaaaaaaaaaaaaaaa.lock"
	mkdir "$place/.new-aaaaaaaaaaaaaaaa"
	# A copy of a dead instance belongs to the user.
	dead original || return 1
	rm -r "$place/copied"
	cp -a "$place/original" "$place/copied"
	# A link to another instance's lock.
	ln -s "../original/lock" "$place/linked/lock"
	mkdir "$place/fifo" && mkfifo "$place/fifo/lock"
	mkdir "$tmp/elsewhere" && echo x >"$tmp/elsewhere/file"
	ln -s "$tmp/elsewhere" "$place/elsewhere"
	find "$place" -exec touch -h -d "$old" {} +
	# Only the dead instance may go.
	picture "$SOFTHCA_DIR" | grep -v ' \?\./softhca/original[/ ]' >"$tmp/before"
	timeout 30 "$SOFTHCA" run -- true 2>"$tmp/err" || return 1
	[ -s "$tmp/err" ] && { cat "$tmp/err"; return 1; }
	[ ! -e "$place/original" ] || { echo "the dead instance is still there"; return 1; }
	picture "$SOFTHCA_DIR" >"$tmp/after"
	diff "$tmp/before" "$tmp/after" && [ -f "$tmp/elsewhere/file" ]
}
ok "directories beside an instance stay, without a message" neighbours

taken() {
	for name in notes empty copied forged linked fifo elsewhere run-18; do
		picture "$SOFTHCA_DIR" >"$tmp/before"
		timeout 30 "$SOFTHCA" start "$name" 2>"$tmp/err" && { echo "$name started"; return 1; }
		grep -q "$place/$name.*softhca did not make" "$tmp/err" || { cat "$tmp/err"; return 1; }
		picture "$SOFTHCA_DIR" >"$tmp/after"
		diff "$tmp/before" "$tmp/after" || return 1
	done
}
ok "a name that another file has is refused, with what to do" taken
rm -rf "$place"

# ---- foreign things in a dead instance ----

foreign() {
	mkdir -p "$tmp/precious/deep" && echo x >"$tmp/precious/deep/file" || return 1
	dead guest || return 1
	echo x >"$place/guest/notes.txt"
	echo x >"$place/guest/files/notes.txt"
	mkdir "$place/guest/files/c7.1" && echo x >"$place/guest/files/c7.1/file"
	mkdir -p "$place/guest/files/backup/deep" && echo x >"$place/guest/files/backup/deep/file"
	ln -s "$tmp/precious" "$place/guest/files/c8.1"
	echo x >"$place/guest/events/1.1"
	ln -s "$tmp/precious" "$place/guest/events/2.1"
	ln -s "$tmp/precious" "$place/guest/host1"
	mkdir "$place/guest/host0/dev/infiniband/uverbs7"
	ln -s "$tmp/precious" "$place/guest/host0/sys/class/infiniband/mlx4_0x"
	echo x >"$place/guest/host0/sys/class/infiniband/mlx4_9"
	find "$place/guest" -exec touch -h -d "$old" {} +
	(cd "$place/guest" && find notes.txt files/notes.txt files/c7.1 files/backup files/c8.1 events/1.1 events/2.1 host1 \
		host0/dev/infiniband/uverbs7 host0/sys/class/infiniband/mlx4_0x host0/sys/class/infiniband/mlx4_9 lock | sort) >"$tmp/foreign"
	"$SOFTHCA" run -- true 2>"$tmp/err" || return 1
	grep -q "$place/guest/.* is left alone" "$tmp/err" || { cat "$tmp/err"; return 1; }
	# All of this is still there. Of the instance, only the directories above it and the marker
	# are left.
	(cd "$place/guest" && while read -r path; do [ -e "$path" ] || [ -L "$path" ] || echo "$path is gone"; done <"$tmp/foreign") >"$tmp/gone"
	[ ! -s "$tmp/gone" ] || { cat "$tmp/gone"; return 1; }
	[ -f "$tmp/precious/deep/file" ] && [ ! -e "$place/guest/pid" ] && [ ! -e "$place/guest/control" ] || return 1
	"$SOFTHCA" start guest 2>"$tmp/err" && return 1
	grep -q "softhca did not make it" "$tmp/err" || { cat "$tmp/err"; return 1; }
	# When the user has moved the files away, the rest of the instance goes.
	grep -v '^lock$' "$tmp/foreign" | (cd "$place/guest" && xargs rm -rf)
	"$SOFTHCA" run -- true 2>"$tmp/err" && [ ! -s "$tmp/err" ] && [ ! -e "$place/guest" ]
}
ok "in a dead instance, files that the list lacks or has with another type stay, and are named" foreign

# softhca accepts a link whose name and type are on its list. The link goes; what it leads to stays.
listed_link() {
	dead guest || return 1
	rm "$place/guest/host0/sys/class/infiniband/mlx4_0" && ln -s "$tmp/precious" "$place/guest/host0/sys/class/infiniband/mlx4_0" || return 1
	"$SOFTHCA" run -- true && [ ! -e "$place/guest" ] && [ -f "$tmp/precious/deep/file" ]
}
ok "a link is removed, not followed" listed_link

linked_dirs() {
	for dir in files events host0 host0/sys host0/sys/devices host0/sys/class/infiniband host0/dev/infiniband; do
		dead guest || return 1
		mkdir -p "$tmp/there" && mv "$place/guest/$dir" "$tmp/there/moved" && ln -s "$tmp/there/moved" "$place/guest/$dir" || return 1
		picture "$tmp/there" >"$tmp/before"
		"$SOFTHCA" run -- true 2>"$tmp/err" || return 1
		grep -q "$place/guest/$dir is left alone" "$tmp/err" || { cat "$tmp/err"; return 1; }
		picture "$tmp/there" | diff "$tmp/before" - || return 1
		rm -r "$tmp/there" "$place/guest/$dir"
		"$SOFTHCA" run -- true || return 1
		[ ! -e "$place/guest" ] || return 1
	done
}
ok "a directory that was replaced by a link is left, and so is its target" linked_dirs

# A call that fails for want of descriptors does not make softhca's own files the user's.
own_files() {
	dead guest || return 1
	for limit in 7 8 9 10 11 12 13 14 15 16; do
		(ulimit -n "$limit"; "$SOFTHCA" run -- true) 2>>"$tmp/limited"
	done
	grep -q "cannot remove $place/guest/.*: Too many open files; raise the limit .*tries again" "$tmp/limited" &&
		! grep 'left alone' "$tmp/limited" || { cat "$tmp/limited"; return 1; }
	"$SOFTHCA" run -- true && [ ! -e "$place/guest" ]
}
ok "what could not be removed for want of descriptors is not called the user's, and goes later" own_files

at_stop() {
	"$SOFTHCA" start guest && echo x >"$place/guest/notes" || return 1
	status 125 "$SOFTHCA" stop guest 2>"$tmp/err" || return 1
	grep -q "$place/guest/notes is left alone" "$tmp/err" && [ -f "$place/guest/notes" ] || { cat "$tmp/err"; return 1; }
	rm "$place/guest/notes"
	status 3 "$SOFTHCA" run -- sh -c 'echo x >"$SOFTHCA_INSTANCE/notes"; exit 3' 2>"$tmp/err" || return 1
	grep -q "/notes is left alone" "$tmp/err" && rm "$place"/run-*/notes && "$SOFTHCA" run -- true && no_instance
}
ok "foreign files are left when an instance ends in order, too" at_stop

clients() {
	"$SOFTHCA" start used || return 1
	mkfifo "$tmp/hold"
	"$SOFTHCA" run --instance used -- sh -c 'read x <"$0"; ls /sys/class/infiniband' "$tmp/hold" >"$tmp/ls" &
	client=$!
	exec 7>"$tmp/hold"
	kill -KILL "$(cat "$place/used/pid")" && until_true lock_free "$place/used" || return 1
	find "$place" -exec touch -h -d "$old" {} +
	"$SOFTHCA" run -- true || return 1
	"$SOFTHCA" start used 2>"$tmp/err" && return 1
	grep -q "programs that use it" "$tmp/err" || { cat "$tmp/err"; return 1; }
	exec 7>&-
	wait "$client" || return 1
	grep -q mlx4_0 "$tmp/ls" || { echo "the program lost its files"; return 1; }
	"$SOFTHCA" start used && "$SOFTHCA" stop used && no_instance
}
ok "an instance that a program still uses stays, though its daemon is dead" clients

# ---- two at once ----

two() {
	for i in $(seq "$(all_rows && echo 12 || echo 6)"); do
		pids=
		[ $((i % 3)) -ne 0 ] || dead twin || return 1
		for j in 1 2 3 4; do
			"$SOFTHCA" start twin >"$tmp/out$j" 2>"$tmp/err$j" & pids="$pids $!"
		done
		started=0
		for pid in $pids; do wait "$pid" && started=$((started + 1)); done
		[ "$started" -eq 1 ] || { echo "round $i: $started started"; cat "$tmp"/err?; return 1; }
		[ "$(cat "$tmp"/err[1-4] | grep -c "runs already")" -eq 3 ] && [ "$(cat "$tmp"/err[1-4] | wc -l)" -eq 3 ] ||
			{ echo "round $i:"; cat "$tmp"/err?; return 1; }
		"$SOFTHCA" run --instance twin -- true && "$SOFTHCA" stop twin || return 1
		no_instance || { ls -A "$place"; return 1; }
	done
}
ok "of four starts of one name one succeeds, and the others say why not" two

gone_at_stop() {
	for i in $(seq 5); do
		"$SOFTHCA" start --hosts 4 brief && "$SOFTHCA" stop brief || return 1
		no_instance || { echo "round $i:"; ls -A "$place"; return 1; }
	done
}
ok "stop returns when the directory is gone" gone_at_stop

# ---- places ----

relative() {
	mkdir -p "$tmp/cwd/elsewhere" && cd "$tmp/cwd" || return 1
	SOFTHCA_DIR=rel "$SOFTHCA" start near || return 1
	[ -S "$tmp/cwd/rel/softhca/near/control" ] || return 1
	SOFTHCA_DIR=rel "$SOFTHCA" run --instance near -- sh -c 'cd elsewhere && "$SOFTHCA" show near >/dev/null &&
		"$SOFTHCA" run --instance near -- sh -c "cd / && ls /sys/class/infiniband && \"\$SOFTHCA\" show | grep -q near"' || return 1
	(cd elsewhere && SOFTHCA_DIR=../rel "$SOFTHCA" stop near) || return 1
	[ -z "$(find "$tmp/cwd" -name near)" ] && [ ! -e "$tmp/cwd/elsewhere/rel" ]
}
ok "a relative SOFTHCA_DIR is the caller's, and its children's" relative
cd "$tmp" || exit 1

through_link() {
	mkdir -p "$tmp/real" && ln -s real "$tmp/alias" || return 1
	SOFTHCA_DIR=$tmp/alias "$SOFTHCA" run --mmio trap -- sh -c '[ "${SOFTHCA_INSTANCE#"$tmp/real/softhca/"}" != "$SOFTHCA_INSTANCE" ]'
}
ok "SOFTHCA_DIR may be a link: the instance is where it leads" through_link

# refused_dir WHAT REASON: SOFTHCA_DIR, as the caller has made it, is refused.
refused_dir() {
	picture "$tmp/named" >"$tmp/before" 2>&1
	for verb in "run -- true" "start name" "run --instance name -- true" "show name"; do
		# shellcheck disable=SC2086
		status 125 env SOFTHCA_DIR="$tmp/named" "$SOFTHCA" $verb >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/out"; return 1; }
		grep -q "SOFTHCA_DIR cannot be used.*$1" "$tmp/err" || { echo "$verb:"; cat "$tmp/err"; return 1; }
	done
	picture "$tmp/named" 2>&1 | diff "$tmp/before" -
}
: >"$tmp/named"
ok "SOFTHCA_DIR is a file" refused_dir "ot a directory\|is a file"
rm "$tmp/named"; mkdir "$tmp/named"; : >"$tmp/named/softhca"
ok "a file where the place is to be" refused_dir "not a directory"
rm "$tmp/named/softhca"; mkdir "$tmp/named/real"; ln -s real "$tmp/named/softhca"
ok "a link where the place is to be" refused_dir "symbolic link"
rm "$tmp/named/softhca"; mkdir -m 777 "$tmp/named/softhca"; chmod 777 "$tmp/named/softhca"
ok "a place that others can write to" refused_dir "other users"
rm -r "$tmp/named/softhca"; chmod 777 "$tmp/named"
ok "a directory that others can write to" refused_dir "other users"
chmod 775 "$tmp/named"
ok "one that its group can write to, as a umask of 002 makes it" refused_dir "its group (mode 0775): chmod g-w $tmp/named)"
chmod 755 "$tmp/named"; mkdir "$tmp/named/softhca"; chmod 770 "$tmp/named/softhca"
ok "a place that its group can write to" refused_dir "its group (mode 0770): chmod g-w $tmp/named/softhca)"
rm -rf "$tmp/named"

# unprivileged UID COMMAND...: runs the command as another user.
unprivileged() {
	uid=$1
	shift
	(cd / && env -u SOFTHCA_DIR "${vars[@]}" setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@")
}
if [ "$(id -u)" -eq 0 ] && setpriv --reuid 65533 --clear-groups true 2>/dev/null && for_others &&
	setpriv --reuid 65533 --clear-groups test -x "$SOFTHCA"; then
	chmod 755 "$tmp"
	mkdir -m 1777 "$tmp/shared"
	chmod 1777 "$tmp/shared"
	vars=(TMPDIR="$tmp/shared")
	# Others may be using these places, so this takes a user number of its own.
	uid=$((60000 + $$ % 5000))
	next_place() {
		mkdir "/dev/shm/softhca-$uid" || return 1
		unprivileged "$uid" "$SOFTHCA" run -- sh -c 'echo $SOFTHCA_INSTANCE' >"$tmp/out"; got=$?
		unprivileged "$uid" "$SOFTHCA" start there && unprivileged "$uid" "$SOFTHCA" show | grep -q there &&
			unprivileged "$uid" "$SOFTHCA" stop there; same=$?
		rmdir "/dev/shm/softhca-$uid" || return 1
		cat "$tmp/out"
		[ "$got" -eq 0 ] && [ "$same" -eq 0 ] && grep -q "^$tmp/shared/softhca-$uid/run" "$tmp/out"
	}
	ok "if a place belongs to another user, the next one is taken" next_place
	rm -rf "$tmp/shared/softhca-$uid"
	# There it is root, and root's place is that of a user whom the namespace does not know.
	in_namespace() {
		# shellcheck disable=SC2016 # the shells in there expand it
		unshare -m sh -c 'mount -t tmpfs -o mode=1777 none /dev/shm && mkdir -m 700 /dev/shm/softhca-0 && exec "$@"' x \
			env -u SOFTHCA_DIR "${vars[@]}" setpriv --reuid "$uid" --regid "$uid" --clear-groups \
			unshare -rUmpf --mount-proc sh -c 'cd / && "$SOFTHCA" run -- sh -c "echo \$SOFTHCA_INSTANCE" && "$SOFTHCA" start there &&
			"$SOFTHCA" show && "$SOFTHCA" stop there' >"$tmp/out" || { cat "$tmp/out"; return 1; }
		grep -q "^$tmp/shared/softhca-0/run" "$tmp/out" && grep -q '^ *there' "$tmp/out" || { cat "$tmp/out"; return 1; }
	}
	if unshare -m true 2>/dev/null && unprivileged "$uid" unshare -rUmpf --mount-proc true 2>/dev/null; then
		ok "in a user's namespace root's place is passed over" in_namespace
		rm -rf "$tmp/shared/softhca-0"
	else
		skip "a user's namespace" "let ordinary users make namespaces"
	fi
	no_place() {
		: >"/dev/shm/softhca-$uid"
		ln -s /nowhere "$tmp/shared/softhca-$uid"
		mkdir "/tmp/softhca-$uid"
		unprivileged "$uid" "$SOFTHCA" run -- true 2>"$tmp/err"; got=$?
		rm "/dev/shm/softhca-$uid" "$tmp/shared/softhca-$uid" && rmdir "/tmp/softhca-$uid" || return 1
		cat "$tmp/err"
		[ "$got" -eq 125 ] && grep -q "/dev/shm/softhca-$uid: it is not a directory" "$tmp/err" && grep -q "shared/softhca-$uid: it is a symbolic link" "$tmp/err" &&
			grep -q "/tmp/softhca-$uid: it belongs to another user" "$tmp/err" && grep -q "set SOFTHCA_DIR" "$tmp/err"
	}
	ok "where there is none, each is named with the reason" no_place
	# The instance of another user, by its path.
	foreign_instance() {
		"$SOFTHCA" start mine >/dev/null && chmod 711 "$SOFTHCA_DIR" && chmod 700 "$place" || return 1
		for command in "run --instance $place/mine -- true" "show $place/mine" "show --waits $place/mine" "stop $place/mine"; do
			# shellcheck disable=SC2086 # words: $command
			unprivileged "$uid" "$SOFTHCA" $command 2>"$tmp/err"; got=$?
			[ "$got" -eq 125 ] && grep -q "^softhca: $place belongs to user 0, and only that user can use the instance" "$tmp/err" ||
				{ cat "$tmp/err"; return 1; }
		done
		unprivileged "$uid" env LD_PRELOAD="$(dirname "$SOFTHCA")/../shim/.libs/libsofthca-shim.so" SOFTHCA_INSTANCE="$place/mine" \
			"$tmp/tree/tools/ibv_devices" 2>"$tmp/err"
		grep -q "there is no device: the instance $place/mine belongs to another user" "$tmp/err" || { cat "$tmp/err"; return 1; }
		"$SOFTHCA" stop mine
	}
	ok "the instance of another user" foreign_instance
	# What was tried there: each step that fails has words of its own.
	steps() {
		: >"/dev/shm/softhca-$uid"
		mkdir "/tmp/softhca-$uid" || return 1
		for dir in "nowhere:cannot look at the directory above it: No such file or directory" "closed:cannot make it: Permission denied" \
			"unwritable:cannot read, write and enter it: Permission denied"; do
			unprivileged "$uid" env TMPDIR="$tmp/steps/${dir%%:*}" "$SOFTHCA" run -- true 2>"$tmp/err"; got=$?
			[ "$got" -eq 125 ] && grep -qF "there is no place for an instance (tried in turn: /dev/shm/softhca-$uid: it is not a directory; $tmp/steps/${dir%%:*}/softhca-$uid: ${dir#*:}; /tmp/softhca-$uid: it belongs to another user): mend one of these, or set SOFTHCA_DIR" "$tmp/err" ||
				{ echo "$dir, status $got"; cat "$tmp/err"; return 1; }
		done
	}
	mkdir -p "$tmp/steps/closed" "$tmp/steps/unwritable/softhca-$uid"
	chown "$uid" "$tmp/steps/unwritable/softhca-$uid" && chmod 500 "$tmp/steps/unwritable/softhca-$uid"
	ok "and with what was tried there" steps
	rm -rf "/dev/shm/softhca-$uid" "/tmp/softhca-$uid"
	other_env() {
		mkdir "$tmp/session" && chown "$uid" "$tmp/session" || return 1
		unprivileged "$uid" env XDG_RUNTIME_DIR="$tmp/session" "$SOFTHCA" start here || return 1
		unprivileged "$uid" "$SOFTHCA" start away || return 1
		unprivileged "$uid" env XDG_RUNTIME_DIR="$tmp/session" sh -c '"$SOFTHCA" show | grep -q away && "$SOFTHCA" run --instance away -- true &&
			! "$SOFTHCA" start away && "$SOFTHCA" stop away && "$SOFTHCA" stop here' && rmdir "/dev/shm/softhca-$uid"
	}
	ok "a name is looked for in every place" other_env
	rm -rf "$tmp/session" "/dev/shm/softhca-$uid"
	others() {
		dead mine || return 1
		mkdir "$place/theirs" && chown "$uid" "$place/theirs" || return 1
		cp -a "$place/mine/lease" "$place/theirs/lease"
		chown "$uid" "$place/mine/files"
		"$SOFTHCA" run -- true 2>"$tmp/err" || return 1
		grep -q "mine/files is left alone: it belongs to another user" "$tmp/err" && [ -d "$place/mine/files" ] && [ -f "$place/theirs/lease" ] || { cat "$tmp/err"; return 1; }
		chown 0 "$place/mine/files" && rm -r "$place/theirs" && "$SOFTHCA" run -- true && no_instance
	}
	ok "what another user has in an instance is left" others
elif [ "$(id -u)" -ne 0 ] && unshare -rUm true 2>/dev/null; then
	# In namespaces of its own this user is root, and what is root's there belongs to nobody whom the namespace knows.
	next_place() {
		mkdir -p "$tmp/shared" || return 1
		unshare -rUm sh -c 'unset SOFTHCA_DIR; mount -t tmpfs -o mode=1777 none /dev/shm && mkdir /dev/shm/softhca-0 &&
			mount --bind /usr /dev/shm/softhca-0 && export TMPDIR=$tmp/shared && "$SOFTHCA" run -- sh -c "echo \$SOFTHCA_INSTANCE" &&
			"$SOFTHCA" start there && "$SOFTHCA" show && "$SOFTHCA" stop there' >"$tmp/out" || { cat "$tmp/out"; return 1; }
		grep -q "^$tmp/shared/softhca-0/run" "$tmp/out" && grep -q '^ *there' "$tmp/out" || { cat "$tmp/out"; return 1; }
	}
	ok "where a place is another user's the next one is taken" next_place
	rm -rf "$tmp/shared"
else
	skip "places and files of other users" "let this user make namespaces; or run as root, with TMPDIR where other users may look and execute files"
fi

file_limit() {
	for verb in "run -- true" "start limited"; do
		# shellcheck disable=SC2086
		(ulimit -f 1000 && status 125 "$SOFTHCA" $verb) 2>"$tmp/err" && grep -q "File too large.*ulimit -f" "$tmp/err" ||
			{ echo "$verb:"; cat "$tmp/err"; return 1; }
	done
}
ok "a limit on the size of files is named, with what to do" file_limit

# In containers /tmp is as a rule on overlayfs, where a mapping is of another file below. overlaid MORE...: in a directory of
# an overlay, which goes with the namespace.
if [ "$(id -u)" -eq 0 ]; then spaces=-m; else spaces=-rUm; fi
overlaid() {
	mkdir -p "$tmp/overlay" || return 1
	unshare "$spaces" --propagation private bash -c 'mount -t tmpfs none "$tmp/overlay" && cd "$tmp/overlay" && mkdir lower upper work all &&
		mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none all && cd / && export SOFTHCA_DIR=$tmp/overlay/all && exec "$@"' x "$@"
}
if overlaid true 2>/dev/null; then
	# The daemon hears that the server is killed, while the client waits for it.
	missed() {
		take_port
		"$TOOLS/ibv_rc_pingpong" -p "$port" -n 100000000 >/dev/null 2>&1 &
		server=$!
		until_true listening || return 1
		"$TOOLS/ibv_rc_pingpong" -p "$port" -n 100000000 127.0.0.1 >/dev/null 2>&1 &
		client=$!
		two() { [ "$("$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | grep -o '"RTS"' | wc -l)" -eq 2 ]; }
		one() { [ "$("$SOFTHCA" show --json "$SOFTHCA_INSTANCE" | grep -o '"RTS"' | wc -l)" -eq 1 ]; }
		until_true two && kill -KILL "$server" && until_true one
		found=$?
		kill -KILL "$client"
		return "$found"
	}
	export -f missed
	on_overlay() {
		for mmio in kick trap; do
			ours overlaid "$SOFTHCA" run --mmio "$mmio" -- bash -c 'pingpong "$TOOLS/ibv_rc_pingpong" --verify' || return 1
			ours overlaid "$SOFTHCA" run --mmio "$mmio" -- bash -c missed || return 1
		done
	}
	ok "on overlayfs programs run, and are missed when they are killed" on_overlay
	kept() {
		"$SOFTHCA" start used >/dev/null && daemon=$(cat "$SOFTHCA_DIR/softhca/used/pid") || return 1
		"$SOFTHCA" run --instance used -- bash -c 'echo here; exec sleep 30' >"$tmp/kept" &
		program=$!
		until_true grep -q here "$tmp/kept" && kill -KILL "$daemon" && until_true gone "$daemon" &&
			! "$SOFTHCA" start used 2>"$tmp/kept.err" && cat "$tmp/kept.err" && grep -q 'in use\|programs' "$tmp/kept.err"
		found=$?
		kill "$program"
		wait "$program"
		return "$found"
	}
	export -f kept
	ok "on overlayfs an instance in use is not taken over" overlaid bash -c kept
else
	skip "an overlay file system" "run as root, or where this user may make namespaces and mount overlayfs"
fi
rmdir "$tmp/overlay" 2>/dev/null

if unshare -rUmpf --mount-proc true 2>/dev/null; then
	no_proc() {
		unshare -rUmpf sh -c 'mount -t tmpfs none /proc && "$SOFTHCA" run -- true' 2>"$tmp/err" && return 1
		grep -q "no /proc.*mount -t proc" "$tmp/err" || { cat "$tmp/err"; return 1; }
	}
	ok "without /proc the message says so" no_proc
	full() {
		mkdir "$tmp/small"
		for room in "1 1" "8 1" "60 1" "8 3" "60 3"; do
			# shellcheck disable=SC2086
			set -- $room
			unshare -rUmpf --mount-proc sh -c 'mount -t tmpfs -o size='$(($1 * 4))'k none "$tmp/small" &&
				SOFTHCA_DIR=$tmp/small "$SOFTHCA" run --hosts '"$2"' -- true 2>"$tmp/err"; got=$?
				ls -A "$tmp/small/softhca" >"$tmp/left"; exit $got' && return 1
			grep -q "No space left on device.*free some room" "$tmp/err" || { echo "$1 pages, $2 hosts:"; cat "$tmp/err"; return 1; }
			[ "$(cat "$tmp/left")" = lock ] || { cat "$tmp/left"; return 1; }
		done
	}
	ok "a full file system is named, and nothing is left there" full
	read_only() {
		unshare -rUmpf --mount-proc sh -c 'mkdir -p "$tmp/ro" && mount -t tmpfs -o ro none "$tmp/ro" && SOFTHCA_DIR=$tmp/ro "$SOFTHCA" run -- true' 2>"$tmp/err" && return 1
		grep -q "Read-only file system.*directory of yours" "$tmp/err" || { cat "$tmp/err"; return 1; }
	}
	ok "a read-only file system is named" read_only
	# mounted DIRECTORY: a dead instance has the user's files in it, under names that softhca would remove.
	mounted() {
		dead mine || return 1
		port=$(ls -d "$place"/mine/host0/sys/devices/pci*/*/infiniband/mlx4_0/ports/1) && cp -r "$port" "$1/precious" &&
			find "$1/precious" | sort >"$tmp/before" || return 1
		PRECIOUS=$1/precious PORT=$port unshare -rm sh -c 'mount --bind "$PRECIOUS" "$PORT" && "$SOFTHCA" run -- true' 2>"$tmp/err" ||
			{ cat "$tmp/err"; return 1; }
		grep -q "ports/1 is left alone: something is mounted there" "$tmp/err" || { cat "$tmp/err"; return 1; }
		find "$1/precious" | sort | cmp - "$tmp/before" && rm -r "$1/precious" && "$SOFTHCA" run -- true && no_instance
	}
	# A bind mount of the same file system has its device number.
	ok "a mount in a dead instance is left, from the same file system" mounted "$SOFTHCA_DIR"
	ok "a mount in a dead instance is left, from another file system, if instances are in shared memory" mounted "$tmp"
else
	skip "without /proc, full and read-only file systems" "no user namespaces here"
fi
ok "nothing is left behind" until_true no_instance
finish
