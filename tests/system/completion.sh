#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: bash and zsh complete the softhca command: every verb, option and value that --help
# names, and the names of running instances.
. "$srcdir/lib.sh" || exit 1

completions=$srcdir/../../softhca/cli/completions

# shellcheck source=/dev/null
. "$completions/softhca"
# completed WORD...: prints what bash offers for the last word, a line for each offer.
completed() (
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
	_softhca
	printf '%s\n' "${COMPREPLY[@]}"
)
# offers WANTED WORD...
offers() {
	wanted=$1
	shift
	completed "$@" >"$tmp/offered" && grep -qx -e "$wanted" "$tmp/offered" || { echo "for \"$*\" no $wanted, but"; cat "$tmp/offered"; return 1; }
}
offers_not() { ! offers "$@" >/dev/null || { echo "it offers $*"; return 1; }; }
offers_nothing() { [ -z "$(completed "$@")" ] || { echo "for \"$*\":"; completed "$@"; return 1; }; }

verbs=$("$SOFTHCA" --help | sed -n 's/^  \([a-z][a-z]*\)  *[a-z].*/\1/p')
options() { "$SOFTHCA" "$1" --help | grep -oE -- '--[a-z][a-z-]+' | sort -u; }
# Prints the words that come before an option of a verb.
before() {
	case $1 in port|fault) echo "$1 lab" ;; *) echo "$1" ;; esac
}

all_verbs() {
	[ "$(echo "$verbs" | wc -l)" -ge 7 ] || { echo "verbs: $verbs"; return 1; }
	for word in $verbs --help --version; do
		offers "$word" softhca "" && offers "$word" softhca "${word:0:3}" || return 1
	done
	offers_not run softhca s
}
ok "every verb of --help" all_verbs
all_options() {
	for verb in $verbs; do
		# shellcheck disable=SC2046
		for option in $(options "$verb") --help; do
			offers "$option" softhca $(before "$verb") "${option:0:4}" || return 1
		done
	done
}
ok "every option of each verb's --help" all_options
# No offer is invented: --help names it, or the command takes it.
no_others() {
	for verb in $verbs; do
		# shellcheck disable=SC2046
		for option in $(completed softhca $(before "$verb") -- | grep -v '^--$'); do
			[ "$option" = --help ] || options "$verb" | grep -qx -e "$option" || { echo "$verb has no $option"; return 1; }
		done
	done
}
ok "no option that --help does not name" no_others
# Takes the values from lines such as "  --kernel ofed|mainline   whose ...".
values() { "$SOFTHCA" "$1" --help | grep -oE -- '--[a-z][a-z-]+ [a-z0-9]+(\|[a-z0-9]+)+' | sort -u; }
all_values() {
	[ "$(values run | wc -l)" -ge 6 ] || { values run; return 1; }
	for verb in run start; do
		values "$verb" >"$tmp/values"
		while read -r option list; do
			for value in ${list//|/ }; do
				offers "$value" softhca "$verb" "$option" "" && offers "$value" softhca "$verb" "$option" = "$value" || return 1
			done
		done <"$tmp/values"
	done
}
ok "every value that --help lists" all_values
# An option's value is not the command. The command begins with the first word that is neither an
# option nor a value.
the_command() {
	"$SOFTHCA" run --help | grep -oE -- '^  --[a-z][a-z-]+ ([A-Z]|[a-z0-9]+\|)' | awk '{ print $1 }' >"$tmp/valued"
	[ "$(wc -l <"$tmp/valued")" -ge 9 ] || { cat "$tmp/valued"; return 1; }
	while read -r option; do
		offers --hosts softhca run "$option" 2 --ho && offers --hosts softhca run "$option" = 2 --ho || return 1
	done <"$tmp/valued"
	offers echo softhca run ech && offers echo softhca run --stats --hosts 2 ech && offers echo softhca run -- ech &&
		offers_not --hosts softhca run echo --ho && offers_not --hosts softhca run -- --ho
}
ok "the command that is to be run" the_command
files() {
	touch "$tmp/some-file" && offers "$tmp/some-file" softhca run -- cat "$tmp/some-f"
}
ok "files, as arguments of the command that is to be run" files

"$SOFTHCA" start lab >/dev/null && "$SOFTHCA" start lab.2 >/dev/null && "$SOFTHCA" start --hosts 2 --hcas 2 --ports 2 other >/dev/null && "$SOFTHCA" start dead >/dev/null || exit 1
kill -KILL "$(cat "$SOFTHCA_DIR/softhca/dead/pid")"
instances() {
	for words in "show" "show --json" "stop" "port" "fault" "run --instance" "run --hosts 2 --instance"; do
		# shellcheck disable=SC2086
		offers lab softhca $words la && offers lab.2 softhca $words la && offers_not other softhca $words la &&
			offers_not lock softhca $words "" && offers other softhca $words "" || return 1
	done
	offers_nothing softhca stop lab ot && offers_nothing softhca show nothing-such
}
ok "instances that run" instances
dead() { until_true offers_not dead softhca show ""; }
ok "no instance whose daemon has died" dead
stopped() {
	kill -STOP "$(cat "$SOFTHCA_DIR/softhca/lab/pid")"
	offers lab softhca stop l
	got=$?
	kill -CONT "$(cat "$SOFTHCA_DIR/softhca/lab/pid")"
	return "$got"
}
ok "an instance whose daemon does not answer" stopped
elsewhere() {
	mkdir -m 700 "$tmp/runtime"
	(unset SOFTHCA_DIR; export XDG_RUNTIME_DIR=$tmp/runtime; "$SOFTHCA" start away >/dev/null && offers away softhca show aw
	got=$?; "$SOFTHCA" stop away && exit "$got")
}
ok "instances in the user's runtime directory" elsewhere
# bash gives DEVICE:PORT as three words, and wants what stands behind the colon.
ports() {
	offers mlx4_0:1 softhca port lab "" && offers mlx4_0:1 softhca port lab mlx && offers mlx4_1:2 softhca port other mlx4_1 &&
		offers mlx4_1:1 softhca port --host 1 other m && offers mlx4_0:1 softhca port lab --host = 0 m &&
		offers 1 softhca port lab mlx4_0 : && offers 2 softhca port other mlx4_0 : 2 && offers_not 2 softhca port lab mlx4_0 : "" &&
		offers down softhca port lab mlx4_0 : 1 "do" && offers_not mlx4_0:1 softhca port lab mlx4_0 : 1 "" &&
		offers_not mlx4_1:1 softhca port lab "" && offers_nothing softhca port nothing-such mlx
}
ok "the ports of an instance" ports
words() {
	for word in up down lid pkey sm fatal; do
		offers "$word" softhca port lab mlx4_0:1 "${word:0:1}" || return 1
	done
	for word in drop delay duplicate corrupt off seed; do
		offers "$word" softhca fault lab "${word:0:1}" || return 1
	done
}
ok "what happens to a port, and to packets" words
help_of() {
	for word in $verbs; do
		offers "$word" softhca help "${word:0:2}" || return 1
	done
	offers_nothing softhca help run st
}
ok "the verbs that help can tell about" help_of

zsh_names() {
	for verb in $verbs; do
		grep -q "'$verb:" "$completions/_softhca" || { echo "no $verb"; return 1; }
		for option in $(options "$verb"); do
			grep -q -- "$option\[" "$completions/_softhca" || { echo "no $option"; return 1; }
		done
	done
}
ok "zsh: verbs and options" zsh_names
if ! zsh -fc 'zmodload zsh/zpty && zpty try true' 2>/dev/null; then
	skip "zsh at work" "install zsh, mount devpts at /dev/pts"
else
	# zsh_offers WANTED LINE: completes the line at a terminal, as a user does. A key that comes
	# before the prompt completes nothing.
	cat >"$tmp/offer.zsh" <<'END'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1='now> '; stty columns 90 rows 200; unsetopt zle_bracketed_paste; fpath=(${(q)1} \$fpath)
autoload -Uz compinit; compinit -u -d ${(q)2}; zstyle ':completion:*' list-prompt ''; setopt auto_list; LISTMAX=0; echo re''ady"
zpty -r -m shell heard '*ready*now> *'
zpty -w -n shell "$3"$'\t\t\C-u\n'"echo do''ne"$'\n'
zpty -r -m shell heard '*done*'
print -r -- $heard
zpty -d shell
END
	zsh_offers() {
		timeout 50 zsh -f "$tmp/offer.zsh" "$completions" "$tmp/zcompdump" "$2" >"$tmp/offered"
		grep -q -- "$1" "$tmp/offered" || { echo "for \"$2\" no $1, but"; cat "$tmp/offered"; return 1; }
	}
	ok "zsh: options" zsh_offers '--require-traffic' 'softhca run --'
	ok "zsh: values" zsh_offers 'mainline' 'softhca start --kernel '
	ok "zsh: instances" zsh_offers 'lab\.2' 'softhca show '
	ok "zsh: instances to run in" zsh_offers 'other' 'softhca run --instance '
	ok "zsh: ports" zsh_offers 'mlx4_1:2' 'softhca port other '
	ok "zsh: faults" zsh_offers 'duplicate' 'softhca fault lab '
fi

for name in lab lab.2 other; do
	"$SOFTHCA" stop $name
done
# This run clears away what the killed daemon left.
"$SOFTHCA" run -- true
ok "nothing is left behind" until_true no_instance
finish
