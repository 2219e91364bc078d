#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the recipes of docs/ci.md, the Containerfile and the workflow of this tree have the form of their kind, and their shell
# lines parse. With BUILDS=all, as in the long tier, the lines run, on a clone of this tree and a program of docs/xrc.md; apt-get does nothing there.
. "$srcdir/../system/lib.sh" || exit 1
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL TESTS_ENVIRONMENT

if ! python3 -c 'import yaml' 2>/dev/null; then
	skip "the recipes of docs/ci.md" "install python3-yaml"
	finish
fi
mkdir "$tmp/recipes"
workflows=$(ls "$top_srcdir"/.github/workflows/*.yml 2>/dev/null)
# shellcheck disable=SC2086 # words: $workflows
ok "each has the form of its kind" python3 "$srcdir/recipes.py" "$top_srcdir/docs/ci.md" "$top_srcdir/Containerfile" "$tmp/recipes" $workflows
parse() {
	[ -s "$tmp/recipes/container.sh" ] || return 1
	for file in "$tmp"/recipes/*.sh; do
		bash -n "$file" || { cat "$file"; return 1; }
	done
}
ok "their shell lines parse" parse
# What a recipe calls of this tree is there.
called() {
	for file in $(grep -ohE '(scripts/|\.ci/)[a-z-]+|\./autogen.sh' "$tmp"/recipes/*.sh | sort -u); do
		[ -x "$top_srcdir/$file" ] || { echo "$file is not there"; return 1; }
	done
	"$SOFTHCA" run --help >"$tmp/help"
	for option in $(grep -ohE 'softhca run [^"|&]*-- ' "$tmp"/recipes/*.sh | grep -oE -- '--[a-z]+' | sort -u); do
		grep -q -- "$option" "$tmp/help" || { echo "softhca run has no $option"; return 1; }
	done
}
ok "the scripts and options that they name are there" called

# What a change may break is tried before anything is published: the tests, the packages, and what is installed of them.
tries() {
	for what in '^\.ci/run$' 'make -C build check-packages$' 'debian/tests/control' 'docker build'; do
		grep -q -- "$what" "$tmp"/recipes/workflow-*.sh || { echo "no step has $what"; return 1; }
	done
}
# Tarballs have no workflow.
if [ -n "$workflows" ]; then
	ok "the workflow runs the tests, those of the packages too" tries
fi

# The recipes' own library is for the program alone: in the environment of a step it would be for all.
alone() { ! grep -n '^[^#]*LD_LIBRARY_PATH=' "$tmp/recipes/github.sh" "$tmp/recipes/gitlab.sh"; }
ok "no step sets LD_LIBRARY_PATH for all that it runs" alone

# Three whole builds: in the long tier.
[ "${BUILDS:-few}" = all ] || finish
if ! git -C "$top_srcdir" rev-parse >/dev/null 2>&1; then
	skip "the recipes run" "this is not a clone"
	finish
fi
# Three whole builds, which need not be fast programs. The limit in lib.sh is shorter; its shell ends without its sleep.
pkill -P $watchdog
(sleep 2400 && kill -TERM $$) >/dev/null 2>&1 &
watchdog=$!
git clone -q --bare "$top_srcdir" "$tmp/repository.git" && git -C "$tmp/repository.git" tag -f recipe HEAD >/dev/null 2>&1
mkdir "$tmp/bin"
printf '#!/bin/sh\n' >"$tmp/bin/apt-get"
chmod +x "$tmp/bin/apt-get"
# A project of somebody else's.
project() {
	mkdir -p "$1" && awk '/^```c$/ { n++ } /^```/ { out = /^```c$/ && n == 1; next } out' "$top_srcdir/docs/xrc.md" >"$1/one.c" &&
		printf 'my-tests: one.c\n\t$(CC) -o $@ one.c $$(pkg-config --cflags --libs libibverbs)\n' >"$1/Makefile"
}
# recipe NAME: in a directory of its own, which stands for /.
recipe() {
	root=$tmp/$1
	project "$root/project" || return 1
	sed -e "s|/opt/xrc-verbs|$root/opt|g; s|/tmp/verbs|$root/verbs|g; s|/verbs/configure|$root/verbs/configure|; s|cd /|cd $root/|" \
		-e "s|mkdir /build|mkdir $root/build|" "$tmp/recipes/$1.sh" | sed "s|$root$root|$root|g" >"$root/script"
	[ "$1" != container ] || git clone -q "$tmp/repository.git" "$root/verbs" || return 1
	(cd "$root/project" && PATH=$tmp/bin:$PATH CFLAGS=-O0 VERBS_REPOSITORY=$tmp/repository.git VERBS_VERSION=recipe CI_PROJECT_DIR=$PWD \
		timeout 720 bash -ec ". '$root/script'") >"$root/out" 2>&1 || { tail -n 30 "$root/out"; return 1; }
}
ran() { recipe "$1" && grep -q 'received: hello over XRC' "$tmp/$1/out" || { tail -n 5 "$tmp/$1/out"; return 1; }; }
ok "GitHub's recipe" ran github
ok "GitLab's recipe" ran gitlab
image() {
	recipe container && PATH=$tmp/container/opt/bin:$PATH LD_LIBRARY_PATH=$tmp/container/opt/lib softhca run -- ibv_devinfo | grep -q PORT_ACTIVE
}
ok "the Containerfile's build" image
ok "nothing is left behind" until_true no_instance
finish
