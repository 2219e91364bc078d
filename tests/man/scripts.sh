#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: scripts/test runs the tier that it is told, says what ends, what was skipped and what took long, builds as
# scripts/quickstart does, counts each test once, and fails where one failed, was skipped, or none ran;
# scripts/install-packages says what it will install, and how much that is, and what is missing where it cannot; autogen.sh
# names the tool that it lacks;
# scripts/build refuses a tree that is configured in place, says how to call it, and
# finishes what an interrupted one began. All on made-up trees and a made-up apt-get.
. "$srcdir/../system/lib.sh" || exit 1
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL TIER BUILD TESTS_ENVIRONMENT

tree=$tmp/tree
mkdir -p "$tree/scripts" "$tree/build/tests/one" "$tree/build/tests/two" "$tree/build/full-other/tests" "$tmp/bin"
cp "$top_srcdir"/scripts/{test,quickstart} "$tree/scripts/"
printf '#!/bin/sh\necho "$@" >>%s/installed\n' "$tmp" >"$tree/scripts/install-packages"
printf '#!/bin/sh\n[ "$1" != --install ] || shift\nprintf "%%s\\n" "$@" >%s/built\n' "$tmp" >"$tree/scripts/build"
printf '#!/bin/sh\necho "foreign $*" >>%s/installed\n' "$tmp" >"$tree/scripts/foreign-libraries"
chmod +x "$tree"/scripts/*
# As automake's: a program's results are in PROGRAM.trs, and the driver adds an ERROR to those that fail.
cat >"$tree/build/Makefile" <<'END'
check:
	@: >tier
	@for dir in $(DIRS); do $(MAKE) -C tests/$$dir check || exit 1; done
	@printf ':test-result: FAIL\n' >full-other/tests/inner.trs
check-packages:
	@echo packages >>tier
END
cat >"$tree/build/tests/one/Makefile" <<'END'
TESTS = good.sh $(MORE)
FULL_TESTS = full.sh
check: check-TESTS
	@[ -z "$(TESTS)" ] || echo $(TIER) >>../../tier
check-TESTS: $(TESTS:.sh=.run)
	@! grep -q ':test-result: [FE]' *.trs
result = printf ':global-test-result: x\n' >$*.trs; for word in $(1); do echo ":test-result: $$word" >>$*.trs; done
%.run:
	@log=$*.log; $(TESTS_ENVIRONMENT) echo "what $* says" >$$log; case $* in \
	good) sleep 1; n=0; while [ -n "$$SHOWN" ] && [ $$n -lt 100 ] && ! grep -q one/good "$$SHOWN"; do sleep 0.1; n=$$((n + 1)); done; \
		$(call result,PASS PASS XFAIL) ;; \
	bad) echo 'FAIL: bad.sh 2 - a thing' >>$$log; $(call result,PASS FAIL ERROR) ;; \
	waits) ps -o pgid= -p $$$$ | tr -d ' ' >group; echo waiting >>$$log; sleep 40 ;; \
	crash) $(call result,PASS ERROR ERROR) ;; \
	skip) echo 'SKIP: skip.sh 2 - a thing # SKIP install jq' >>$$log; $(call result,PASS SKIP) ;; esac
END
sed 's/good.sh/other.sh/; s/good)/other)/' "$tree/build/tests/one/Makefile" >"$tree/build/tests/two/Makefile"
# The one that builds anew, whatever TESTS is.
mkdir "$tree/build/tests/full"
cat >"$tree/build/tests/full/Makefile" <<'END'
TESTS =
check:
	@[ "$(TIER)" != full ] || cp ../../tier before
check-TESTS:
END
# The folders that have tests: those of DIRS.
folders() {
	for folder in one two; do
		case " $dirs " in
		*" $folder "*) [ -e "$tree/build/tests/$folder/Makefile" ] || mv "$tree/build/tests/$folder"/{none,Makefile} ;;
		*) [ -e "$tree/build/tests/$folder/none" ] || mv "$tree/build/tests/$folder"/{Makefile,none} ;;
		esac
	done
}
# What the long tier repeats: a program passes the first time, and the second as FAILS says.
mkdir "$tree/build/tests/verbs" "$tree/build/tests/system"
cat >"$tree/build/tests/verbs/Makefile" <<'END'
check:
	@for test in $(TESTS:.sh=); do echo "$$test SOAK_SECONDS=$$SOAK_SECONDS REPEAT=$$REPEAT RUNS=$$RUNS LOAD=$$LOAD STOPS=$$STOPS EXEC_ROUNDS=$$EXEC_ROUNDS" >>../../repeated; \
		result=PASS; [ "$$test" != "$(FAILS)" ] || result=FAIL; \
		echo "what $$test says" >$$test.log; echo ":test-result: $$result" >$$test.trs; done
END
cp "$tree/build/tests/verbs/Makefile" "$tree/build/tests/system/"

# tests STATUS LAST-LINE [ARGUMENT...], with DIRS and MORE; the output is in $tmp/out.
around=()
tests() {
	wanted=$1
	last=$2
	shift 2
	folders
	(cd / && env DIRS="$dirs" MORE="$more" timeout 50 "${around[@]}" "$tree/scripts/test" "$@") >"$tmp/out" 2>&1
	got=$?
	[ "$got" -eq "$wanted" ] && [ "$(tail -n 1 "$tmp/out")" = "$last" ] || { echo "status $got:"; cat "$tmp/out"; return 1; }
}
has() { grep -q -- "$1" "$tmp/out" || { echo "no $1 in:"; cat "$tmp/out"; return 1; }; }
tier() { [ "$(sort -u "$tree/build/tier" | tr '\n' ' ')" = "$1 " ] || { cat "$tree/build/tier"; return 1; }; }

dirs="one two" more=
all_pass() {
	tests 0 "6 passed, 0 failed, 0 skipped" quick && tier quick && has '^Testing, tier quick, 2 programs' &&
	has '^1 of 2, [0-9]* s: build/tests/one/good: 3 passed$' && has '^2 of 2, [0-9]* s: build/tests/two/other: 3 passed$' &&
	has '^The slowest, in seconds, with the seconds of processor time:$' && has '^  [1-9][0-9]* [0-9]* build/tests/one/good$' &&
	has '^All together used 0:[0-9][0-9] minutes of processor time$' && has '^The whole took 0:[0-9][0-9] after installation$' &&
	! grep 'The aim of' "$tmp/out"
}
ok "what passes, a line for each program as it ends, and its time" all_pass
# The quick tier has just called scripts/build. With other arguments that would build all again: but for -Werror, which it knows.
one_build() {
	sed 's/ -Werror$//' "$tmp/built" >"$tmp/built.test" && rm "$tmp/built"
	mkdir -p "$tree/build/prefix/bin" && printf '#!/bin/sh\n' >"$tree/build/prefix/bin/softhca" &&
		chmod +x "$tree/build/prefix/bin/softhca" && "$tree/scripts/quickstart" >"$tmp/out" 2>&1 || { cat "$tmp/out"; return 1; }
	sed 's/ -Werror$//' "$tmp/built" | diff - "$tmp/built.test" && grep '^CFLAGS=' "$tmp/built.test"
}
ok "what scripts/quickstart has built, the quick tier goes on with" one_build
# From the second time that it is asked, the clock of these is a number of seconds ahead.
mkdir "$tmp/late"
printf '#!/bin/sh\nnow=$(PATH=%s exec date "$@")\n[ ! -e %s/asked-date ] || now=$((now + LATE))\n: >%s/asked-date\necho "$now"\n' \
	"$PATH" "$tmp" "$tmp" >"$tmp/late/date"
chmod +x "$tmp/late/date"
late() {
	rm -f "$tmp/asked-date"
	LATE=$1 PATH=$tmp/late:$PATH tests 0 "6 passed, 0 failed, 0 skipped" "$2" || return 1
}
too_long() {
	late 400 quick && has '^The whole took [67]:[0-9][0-9] after' && has '^The aim of tier quick is 6 minutes' || return 1
	late 3000 full && has '^The whole took 50:[0-9][0-9] after' && has '^The aim of tier full is 45 minutes'
}
ok "it says how long the whole took, and where that was too long, without failing" too_long
later() {
	cp "$tree/build/tests/one/Makefile" "$tmp/kept"
	{ printf 'scripts = good.sh $(MORE)\nLATER = bad.sh\n'; cat "$tmp/kept"; } >"$tree/build/tests/one/Makefile"
	dirs=one more=bad.sh
	tests 0 "3 passed, 0 failed, 0 skipped" quick && has '^Testing, tier quick, 1 programs' && tests 1 "4 passed, 1 failed, 0 skipped" full
	ended=$?
	cp "$tmp/kept" "$tree/build/tests/one/Makefile"
	rm -f "$tree/build/tests/one/bad.trs"
	dirs="one two" more=
	return "$ended"
}
ok "what a Makefile says is for later, the quick tier leaves out and does not count" later
quick() {
	rm -f "$tmp/installed"
	tests 0 "6 passed, 0 failed, 0 skipped" && tier quick && [ "$(cat "$tmp/installed")" = test ]
}
ok "without an argument it is the quick tier" quick
full() {
	rm -f "$tmp/installed"
	tests 0 "6 passed, 0 failed, 0 skipped" full && tier full && has 'tier full, 4 programs' &&
		[ "$(tr '\n' ' ' <"$tmp/installed")" = "full foreign build/foreign " ] &&
		[ "$(cat "$tree/build/tests/full/before")" = "$(printf 'full\nfull')" ]
}
ok "the full tier has more programs, those that build come last, and it installs other compilers and libraries for other machines" full
by_variable() { TIER=full tests 0 "6 passed, 0 failed, 0 skipped" && tier full; }
ok "TIER says the same" by_variable
argument_first() { TIER=quick tests 0 "6 passed, 0 failed, 0 skipped" full && tier full; }
ok "an argument comes first" argument_first
long() {
	rm -f "$tmp/installed" "$tree/build/repeated"
	tests 0 "18 passed, 0 failed, 0 skipped" long || return 1
	[ "$(grep -c ' REPEAT=1000 RUNS= LOAD= STOPS= EXEC_ROUNDS=$' "$tree/build/repeated")" -eq 7 ] &&
		[ "$(grep -c '^stopped_.* STOPS=1000 EXEC_ROUNDS=$' "$tree/build/repeated")" -eq 2 ] &&
		grep -q 'hang_hunt .* REPEAT= RUNS=500 LOAD=20 ' "$tree/build/repeated" &&
		grep -q '^exec_memory .* STOPS= EXEC_ROUNDS=1000$' "$tree/build/repeated" &&
		grep -q 'wire_soak SOAK_SECONDS=3600 ' "$tree/build/repeated" ||
		{ cat "$tree/build/repeated"; return 1; }
	if [ "$(id -u)" -eq 0 ]; then
		tier "full packages" && grep -q packages "$tmp/installed"
	else
		tier full
	fi
}
ok "long is the full one with more, as root with the packages" long
long_fails() {
	FAILS=shared_memory_pins tests 1 "17 passed, 1 failed, 0 skipped" long && has '^what shared_memory_pins says$'
}
ok "what fails only in the long one has failed" long_fails
usage() { (cd / && "$tree/scripts/test" fast >"$tmp/out" 2>&1); [ $? -eq 2 ] && has 'usage: .*not "fast"'; }
ok "another word is refused" usage

# The limit of locked memory: ordinary users have 8 MiB, and some tests register more. Where sudo cannot raise it, either, it says before the
# tests what will be skipped, which is what asks may_lock().
mkdir "$tmp/user"
printf '#!/bin/sh\necho 1000\n' >"$tmp/user/id"
printf '#!/bin/sh\necho "$*" >>%s/asked\necho no, says sudo >&2\nexit 1\n' "$tmp" >"$tmp/user/sudo"
chmod +x "$tmp"/user/*
mkdir -p "$tree/tests/verbs" "$tree/tests/system"
echo 'if (may_lock(BIG, "much memory"))' >"$tree/tests/verbs/takes_much.c"
echo 'may_lock 32768 "many QPs" || continue' >"$tree/tests/system/many_qps.sh"
echo '# What may_lock() says is not asked here.' >"$tree/tests/system/takes_little.sh"
echo 'may_lock() {' >"$tree/tests/system/lib.sh"
# This test's own process may be root with CAP_SYS_RESOURCE (24), which no limit binds.
unlimited=()
[ $((0x$(awk '/^CapEff/ { print $2 }' /proc/self/status) >> 24 & 1)) -eq 0 ] ||
	unlimited=(setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource)
# limited KIB TIER: under that limit, which is the hard one, too.
limited() { (ulimit ${soft:+-H} -l "$1" && around=("${unlimited[@]}") && tests 0 "6 passed, 0 failed, 0 skipped" "$2"); }
hard=$(ulimit -H -l)
warned='^The limit of locked memory (ulimit -l) is'
locked() {
	# Not to be tried where nobody can have as much.
	if [ "$hard" = unlimited ] || [ "$hard" -ge 81920 ]; then
		(PATH=$tmp/user:$PATH limited 81920 quick) && [ ! -e "$tmp/asked" ] && ! has "$warned" >/dev/null || return 1
	fi
	(PATH=$tmp/user:$PATH limited 4096 quick) && grep -q '^prlimit .*--memlock=unlimited$' "$tmp/asked" &&
		has "$warned 4096 KiB and cannot be raised here (no, says sudo), .* part: many_qps takes_much\\. .* 81920 KiB, .*limits.d" &&
		sed -n '1,/^Testing/p' "$tmp/out" | grep -q "$warned" || return 1
	(PATH=$tmp/user:$PATH limited 8192 full) && has "$warned 8192 KiB"
}
ok "with less than 80 MiB of locked memory it asks for more, and says what will be skipped" locked
# Root without the privilege to raise it, which is what binds a program that gives up another one.
mkdir "$tmp/root"
printf '#!/bin/sh\necho 0\n' >"$tmp/root/id"
chmod +x "$tmp/root/id"
locked_root() {
	rm -f "$tmp/asked"
	(PATH=$tmp/root:$tmp/user:$PATH limited 8192 quick) && [ ! -e "$tmp/asked" ] && has "$warned 8192 KiB and cannot be raised here, .* part: locked_memory\\. "
}
ok "so does root, but for one test" locked_root
soft_raised() { (ulimit -S -l 1024 && PATH=$tmp/user:$PATH soft=yes limited 8192 quick) && has "$warned 8192 KiB"; }
ok "the soft limit it raises itself" soft_raised

dirs=one more="bad.sh"
fails() { tests 1 "4 passed, 1 failed, 0 skipped" quick && has '^--- build/tests/one/bad.log$' && has '^what bad says$' &&
	has 'bad: 1 passed, 1 failed: FAIL: bad.sh 2 - a thing$'; }
ok "a failure is counted once, and shown" fails
more="crash.sh"
crashes() { tests 1 "4 passed, 1 failed, 0 skipped" quick && has 'crash: 1 passed, 1 failed$'; }
ok "a program that ends early has failed once" crashes
more="skip.sh"
skips() { tests 1 "4 passed, 0 failed, 1 skipped" quick && has 'skip: 1 passed, 1 skipped$' && has 'a thing # SKIP install jq$'; }
ok "a skip is a skip, with what is missing, and no success" skips
dirs= more=
nothing() { tests 1 "0 passed, 1 failed, 0 skipped" quick && has '^--- build/check.out$'; }
ok "no tests are no success" nothing

# As Ctrl-C does: a signal to the whole process group, while a program runs.
dirs=one more="waits.sh"
interrupt() {
	folders
	mkdir "$tmp/states"
	cd / && DIRS=$dirs MORE=$more TMPDIR=$tmp/states setsid -w timeout --foreground 50 "$tree/scripts/test" quick >"$tmp/out" 2>&1 &
	front=$!
	until_true grep -qs waiting "$tree/build/tests/one/waits.log" && kill -INT -- "-$(cat "$tree/build/tests/one/group")"
	wait "$front"
	[ $? -eq 1 ] && has '^Interrupted; what has ended' && [ -z "$(ls "$tmp/states")" ] && ! has ' passed, ' >/dev/null &&
		until_true gone "$(cat "$tree/build/tests/one/group")"
}
# Not zombies: in some containers process 1 reaps nothing.
gone() { ps -eo pgid=,stat= | awk -v group="$1" '$1 == group && $2 !~ /^[ZX]/ { found = 1 } END { exit found }'; }
ok "interrupted, it says so, and leaves nothing behind" interrupt

# On a terminal one line tells where it is.
dirs="one two" more="bad.sh"
terminal() {
	folders
	SHOWN=$tmp/out DIRS=$dirs MORE=$more script -qefc "'$tree/scripts/test' quick" /dev/null >"$tmp/out" 2>&1 </dev/null
	tr '\r' '\n' <"$tmp/out" | grep -q "$(printf '\033')\[K[0-9] of 4, 0:[0-9][0-9]: build/tests/one/good" &&
		has 'build/tests/one/bad: 1 passed, 1 failed' && has '^The whole took [0-9]*:[0-9][0-9] after' && ! grep -q 'good: 3 passed' "$tmp/out" || { cat "$tmp/out"; return 1; }
}
if script -qefc true /dev/null >/dev/null 2>&1 </dev/null; then
	ok "on a terminal it says how many of how many, since when, and what runs" terminal
else
	skip "on a terminal" "script(1), or a terminal for it: install bsdutils, mount devpts at /dev/pts"
fi

# ---- install-packages ----
cat >"$tmp/bin/apt-get" <<'END'
#!/bin/sh
# As apt-get's lock: an ordinary user may not install, and not update either. A state of one's own has another lock.
case $* in *Dir::State=* | *--print-uris*) ;; *) [ "$(id -u)" -eq 0 ] || [ -n "$AS_ROOT" ] || exit 100 ;; esac
echo "$*" >>"$tmp/apt"
case $* in
*Architecture=*download*) [ ! -e "$tmp/no-network" ] || exit 100; echo >libsysfs2.deb; exit ;;
install*--print-uris*) echo "0 upgraded, 2 newly installed, 0 to remove"; echo "Need to get 3 MB of archives."
	echo "After this operation, 14 MB of additional disk space will be used."; echo "'http://mirror/jq.deb' jq.deb 3" ;;
# Also with --assume-no: apt-get asks only where more would be installed than it was told.
install*) echo installed >>"$tmp/out" ;;
esac
END
printf '#!/bin/sh\nAS_ROOT=yes exec "$@"\n' >"$tmp/bin/sudo"
printf '#!/bin/sh\necho 1000\n' >"$tmp/bin/id"
printf '#!/bin/sh\nfor word; do case $word in -* | *{* | jq) ;; *) echo "$word install ok installed" ;; esac; done\nexit 1\n' >"$tmp/bin/dpkg-query"
chmod +x "$tmp"/bin/*
# Without one of these the script under test would find the machine's own.
for fake in apt-get sudo id dpkg-query; do
	[ -s "$tmp/bin/$fake" ] || { echo "Bail out! $tmp/bin/$fake could not be written"; exit 1; }
done
announces() {
	: >"$tmp/out"
	PATH=$tmp/bin:$PATH "$top_srcdir/scripts/install-packages" test >>"$tmp/out" || return 1
	has '^Missing: jq$' && has 'After this operation, 14 MB' && has 'Need to get 3 MB' || return 1
	[ "$(sed -n 's/ .*//p' "$tmp/apt" | tr '\n' ' ')" = "update install install " ] && ! has mirror >/dev/null &&
		[ "$(tail -n 2 "$tmp/out" | tr '\n' ' ')" = "Installing ... installed " ] && [ "$(grep -c '^installed$' "$tmp/out")" -eq 1 ]
}
ok "what apt installs is said before, with its size, to a user with sudo" announces
# sudo(8) without a terminal to ask for the password on, or of a user whom it does not know.
refused() {
	mkdir "$tmp/refusing" && printf '#!/bin/sh\necho "sudo: a password is required" >&2\nexit 1\n' >"$tmp/refusing/sudo" &&
		chmod +x "$tmp/refusing/sudo" && rm "$tmp/apt" || return 1
	PATH=$tmp/refusing:$tmp/bin:$PATH status 1 "$top_srcdir/scripts/install-packages" test >"$tmp/out" 2>&1 || return 1
	has '^sudo: a password is required$' && has 'sudo does not let .* packages are missing.* jq$' && [ ! -e "$tmp/apt" ]
}
ok "where sudo refuses, it says so, and which packages are missing" refused

# ---- autogen.sh ----
# Of its tools only those that are not autoconf's.
autogen() {
	mkdir -p "$tmp/few" "$tmp/fresh/libmlx4" && cp "$top_srcdir/autogen.sh" "$tmp/fresh/" || return 1
	for tool in sh dirname mkdir; do ln -sf "$(command -v "$tool")" "$tmp/few/$tool"; done
	(PATH=$tmp/few status 1 "$tmp/fresh/autogen.sh") >"$tmp/out" 2>&1 && has 'autoreconf.*autoconf' && [ ! -e "$tmp/fresh/config" ] || return 1
	printf '#!/bin/sh\n' | tee "$tmp/few/autoreconf" >"$tmp/few/automake"
	chmod +x "$tmp/few"/auto*
	(PATH=$tmp/few status 1 "$tmp/fresh/autogen.sh") >"$tmp/out" 2>&1 && has 'libtoolize.*libtool' && [ ! -e "$tmp/fresh/config" ]
}
ok "autogen.sh names the tool that is missing and its package" autogen

# ---- foreign-libraries ----
printf '#!/bin/sh\ncd "$tmp/unpacked" && tar -c .\n' >"$tmp/bin/dpkg-deb"
printf '#!/bin/sh\necho "$*" >>"$tmp/apt"; echo "  Depends: linux-image-6-arm64"\n' >"$tmp/bin/apt-cache"
chmod +x "$tmp/bin/dpkg-deb" "$tmp/bin/apt-cache"
mkdir -p "$tmp/unpacked/lib/modules" && echo unpacked | tee "$tmp/unpacked/file" >"$tmp/unpacked/lib/modules/many"
foreign() { MACHINES=${machines-arm64} PATH=$tmp/bin:$PATH "$top_srcdir/scripts/foreign-libraries" "$tmp/foreign" >"$tmp/out" 2>&1; }
whole() { [ "$(cd "$tmp/foreign" && echo *)" = "$1" ]; }
downloads() {
	: >"$tmp/no-network"
	! foreign && whole '*' && has 'could not download for i386' || return 1
	rm "$tmp/no-network" "$tmp/apt"
	foreign && whole 'arm64 arm64-machine i386' && has 'for arm64: .*libsysfs-dev.* MB' && [ -s "$tmp/foreign/arm64/file" ] || return 1
	# The kernel that the metapackage of the day depends on, without its modules.
	has 'for arm64: .*linux-image-arm64: 61 MB' && grep -q ' download busybox-static linux-image-6-arm64$' "$tmp/apt" &&
		[ -s "$tmp/foreign/arm64-machine/file" ] && [ ! -e "$tmp/foreign/arm64-machine/lib/modules" ] || return 1
	# Nothing of the system's own state is used, or written.
	! grep -v 'Dir::State=/.* -o Dir::State::status=/dev/null -o Dir::Cache=/' "$tmp/apt" || return 1
	rm "$tmp/apt"
	foreign && whole 'arm64 arm64-machine i386' && [ ! -e "$tmp/apt" ] || return 1
	rm -r "$tmp/foreign"
	machines='' foreign && whole 'arm64 i386'
}
ok "libraries and a kernel for other machines are downloaded once, whole or not at all, with their size said" downloads

# ---- build ----
in_place() {
	mkdir -p "$tmp/configured/scripts" && cp "$top_srcdir/scripts/build" "$tmp/configured/scripts/" && : >"$tmp/configured/config.status" &&
		status 1 "$tmp/configured/scripts/build" "$tmp/configured/build" >"$tmp/out" 2>&1 && has 'make -C .*/configured distclean'
}
ok "a tree that is configured in place is not built elsewhere, and it says what to do" in_place
build_usage() {
	for words in "" "--help" "--prefix=/opt/xrc-verbs build"; do
		# shellcheck disable=SC2086 # words: $words
		(cd "$tmp" && status "$([ "$words" = --help ] && echo 0 || echo 2)" "$tmp/configured/scripts/build" $words >"$tmp/out" 2>&1) &&
			has '^Usage: scripts/build \[--install\] DIRECTORY ' && [ ! -e "$tmp/--help" ] || return 1
	done
}
ok "without a directory it prints its usage" build_usage

# compiled DIRECTORY COMMAND...: the command does it as make would call it.
compiled() {
	# shellcheck disable=SC2086 # words: $CC
	(cd "$tmp/objects/$1" && shift && "$@" --silent --tag=CC --mode=compile $CC -DVALUE='"a b"' -MD -MP -MF one.d -c -o part/one.lo ../one.c)
}
objects() {
	mkdir -p "$tmp"/objects/{theirs,ours}/part && printf 'const char *one(void);\nconst char *one(void) { return VALUE; }\n' >"$tmp/objects/one.c" || return 1
	compiled theirs "$top_builddir/libtool" && compiled ours "$top_srcdir/scripts/compile" "$top_builddir/libtool" &&
		cmp "$tmp"/objects/{theirs,ours}/part/.libs/one.o && [ ! -e "$tmp/objects/ours/part/one.o" ] && [ -s "$tmp/objects/ours/one.d" ] || return 1
	# libtool takes it for its own, and does what is something else.
	# shellcheck disable=SC2086 # words: $CC
	(cd "$tmp/objects/ours" && "$top_srcdir/scripts/compile" "$top_builddir/libtool" --silent --tag=CC --mode=link $CC -shared -o libone.la -rpath /nowhere \
		part/one.lo && nm -D .libs/libone.so | grep ' T one$') || return 1
	cp "$tmp/objects/one.c" "$tmp/objects/kept"
	echo wrong >"$tmp/objects/one.c"
	status 1 compiled ours "$top_srcdir/scripts/compile" "$top_builddir/libtool"
	ended=$?
	mv "$tmp/objects/kept" "$tmp/objects/one.c"
	return "$ended"
}
ok "scripts/compile makes the objects that libtool makes" objects
archived() {
	mkdir -p "$tmp"/objects/{a-theirs,a-ours}/part && sed 's/^build_libtool_libs=.*/build_libtool_libs=no/; s/^build_old_libs=.*/build_old_libs=yes/' \
		"$top_builddir/libtool" >"$tmp/objects/libtool" && chmod +x "$tmp/objects/libtool" || return 1
	compiled a-theirs "$tmp/objects/libtool" && compiled a-ours "$top_srcdir/scripts/compile" --archives "$tmp/objects/libtool" &&
		cmp "$tmp"/objects/{a-theirs,a-ours}/part/one.o && [ ! -e "$tmp/objects/a-ours/part/.libs/one.o" ] || return 1
	# shellcheck disable=SC2086 # words: $CC
	(cd "$tmp/objects/a-ours" && "$top_srcdir/scripts/compile" --archives "$tmp/objects/libtool" --silent --tag=CC --mode=link $CC -o libone.la part/one.lo &&
		nm .libs/libone.a | grep ' T one$')
}
ok "and with --archives those of archives" archived
started() {
	cd "$tmp/objects/ours" || return 1
	printf '#include <stdio.h>\nconst char *one(void);\nint main(int argc, char **argv) { return puts(argc > 1 ? argv[1] : one()) < 0; }\n' >said.c
	# shellcheck disable=SC2086 # words: $CC
	$CC -c said.c && "$top_srcdir/scripts/compile" "$top_builddir/libtool" --silent --tag=CC --mode=link $CC -o said said.o libone.la || return 1
	# libtool's own script needs sed and others.
	[ "$(PATH=/nowhere ./said)" = "a b" ] && [ "$(PATH=/nowhere LD_LIBRARY_PATH=/other ./said "c  d")" = "c  d" ] || return 1
	# What libtool does with the script it does as before.
	[ "$("$top_builddir/libtool" --silent --mode=execute ./said)" = "a b" ] && mkdir to && "$top_builddir/libtool" --silent --mode=install cp said "$PWD/to/said" &&
		cmp .libs/said to/said
}
ok "a program that it links starts in the build tree by no other process" started
# What a configure has found is taken by another one, but what is named to that comes first, and nothing of the compiler.
answers() {
	"$top_srcdir/scripts/answers" "$top_builddir" >"$tmp/answers" && ! grep 'ac_cv_env\|compiler\|_cc_\|_CC=' "$tmp/answers" &&
		[ "$(ac_cv_func_statx=no sh -c '. "$1"; echo "$ac_cv_func_statx $ac_cv_func_secure_getenv"' x "$tmp/answers")" = "no yes" ] &&
		"$top_srcdir/scripts/answers" --all "$top_builddir" >"$tmp/answers" && ! grep ac_cv_env "$tmp/answers" && grep -q ac_cv_c_compiler_gnu "$tmp/answers" &&
		sh -eu -c '. "$1"' x "$tmp/answers" && status 2 "$top_srcdir/scripts/answers"
}
ok "scripts/answers says what configure found on this machine" answers

# Each step writes half of what it makes, is interrupted there if STOP names it, and then writes the other half.
again=$tmp/again
mkdir -p "$again/scripts" "$again/libmlx4" "$again/librdmacm" "$tmp/steps"
cp "$top_srcdir/scripts/build" "$again/scripts/"
cp "$top_srcdir/autogen.sh" "$again/"
cat >"$tmp/steps/stop" <<'END'
#!/bin/sh
echo "$*" >>"$AGAIN/../ran"
[ "${STOP:-}" != "$1" ] || { kill -"$SIGNAL" 0; sleep 60; }
END
cat >"$tmp/steps/autoreconf" <<'END'
#!/bin/sh
[ ! -e autom4te.cache ] || exit 1
mkdir autom4te.cache
printf '#!/bin/sh\nexit 1\n' >configure
chmod +x configure
stop "autogen of ${PWD##*/}"
printf '#!/bin/sh\n. %s/configure\n' "$AGAIN/../steps" >configure
END
cat >"$tmp/steps/configure" <<'END'
echo made >config.status
printf 'all clean:\n\texit 1\n' >Makefile
stop configure "$@"
cp "$AGAIN/../steps/Makefile" .
END
cat >"$tmp/steps/Makefile" <<'END'
all: object
object:
	printf ha >object; stop make; printf lf >>object
clean:
	rm -f object
install:
	mv object moved; stop install; mv moved object; cp object installed
END
chmod +x "$tmp"/steps/stop "$tmp"/steps/autoreconf
# build [ARGUMENT...]: in a process group of its own, which STOP and SIGNAL interrupt.
build() {
	env AGAIN="$again" PATH="$tmp/steps:$PATH" setsid -w timeout --foreground 50 \
		"$again/scripts/build" --install "$again/build" "$@" >"$tmp/out" 2>&1
}
whole_build() {
	build "$@" && [ "$(cat "$again/build/object")" = half ] && [ "$(cat "$again/build/installed")" = half ] &&
		[ ! -e "$again/build/build.unfinished" ] || { cat "$tmp/out"; return 1; }
}
interrupted() {
	for signal in KILL INT; do
		for step in "autogen of again" "autogen of libmlx4" "autogen of librdmacm" configure make install; do
			rm -rf "$again/build" "$again/configure" "$again"/lib*/configure
			! STOP=$step SIGNAL=$signal build CC=gcc || { echo "not stopped: $step"; return 1; }
			whole_build CC=gcc || { echo "after $step and SIG$signal"; return 1; }
		done
	done
}
ok "whatever interrupted it, and where, it builds when it is called again" interrupted
once() {
	: >"$tmp/ran"
	whole_build CC=gcc && ! grep -v '^install' "$tmp/ran"
}
ok "what is built is not configured and built again" once
other_arguments() {
	: >"$tmp/ran"
	whole_build CC=clang && has 'build was configured otherwise' && grep -q '^configure .*CC=clang$' "$tmp/ran" && grep -q '^make$' "$tmp/ran"
}
ok "with other arguments all is configured and built anew" other_arguments
werror() {
	whole_build CFLAGS=-g && : >"$tmp/ran" && whole_build "CFLAGS=-g -Werror" && ! grep configure "$tmp/ran"
}
ok "-Werror changes nothing that is built" werror
finish
