#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the files of devices are opened with the flags that programs say.
. "$srcdir/lib.sh" || exit 1

SOFTHCA_INSTANCE=device-files
export SOFTHCA_INSTANCE
"$SOFTHCA" start --hcas 2 "$SOFTHCA_INSTANCE" >/dev/null || exit 1

ok "the flags of open()" on 0 "$PROGRAMS/device_files" flags
"$SOFTHCA" stop "$SOFTHCA_INSTANCE" >/dev/null
finish
