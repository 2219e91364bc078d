# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For tests of man pages: scripts source this file after lib.sh.

# page_tree PAGE...: $tmp/tree has them as man(1) wants them, so that links are followed.
page_tree() {
	for page in "$@"; do
		mkdir -p "$tmp/tree/man${page##*.}"
		cp "$page" "$tmp/tree/man${page##*.}/"
	done
}

lint() {
	cd "$tmp/tree" || return 1
	for page in man?/*; do
		# Links are what every package has, whatever mandoc thinks of them.
		mandoc -T lint -W warning "$page" 2>&1 | grep -v 'WARNING: \.so is fragile'
	done >"$tmp/lint"
	cat "$tmp/lint"
	! [ -s "$tmp/lint" ]
}

lint_pages() { # one test, of the tree
	if command -v mandoc >/dev/null; then
		ok "mandoc finds nothing to warn of" lint
	else
		skip "mandoc finds nothing to warn of" "install mandoc"
	fi
}

# tools_of MAKEFILE: the programs that it installs.
tools_of() {
	sed -n '/^bin_PROGRAMS/{:a; /\\$/{N; ba}; s/^[^=]*=//; s/\\\n/ /g; p}' "$1"
}
