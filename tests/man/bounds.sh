#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: no code takes a bound from the header of device memory, which every process of an
# instance can write to: the file that makes the header and checks it keeps the bounds in struct
# sh_dev, and all others look there.
. "$srcdir/../system/lib.sh" || exit 1

export LC_ALL=C.UTF-8
cd "$top_srcdir" || exit 1
sets_up=softhca/device/memory/instance.c
field='(->|\.)inst *(->|\.) *|\<(inst|instance|header) *-> *'
name='size|hosts|hcas|hcas_per_host|ports|cqe_size|hca_span|pool_size|shared_size|[a-z]+_off'
bound="($field)($name)\\>"

uses() {
	grep -rnE --include='*.[ch]' "$bound" softhca
}

# The pattern finds what it is meant to find.
finds() {
	uses | grep -q "^$sets_up:" ||
		{ echo "nothing in $sets_up: did the header get another name?"; return 1; }
	for text in 'shim_dev.inst->size' 'dev->inst->hcas' 'k->dev.inst->shared_off' \
		'inst->ctx_off'; do
		printf '%s\n' "$text" | grep -qE "$bound" ||
			{ echo "passes over $text"; return 1; }
	done
}

elsewhere() {
	! uses | grep -v "^$sets_up:"
}

ok "the pattern finds bounds in the header" finds
ok "bounds are read where they are checked" elsewhere
finish
