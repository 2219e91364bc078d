#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Description: the library against a real kernel's uverbs, with Soft-RoCE, in an emulated machine.
exec "$top_srcdir/tests/kernel/check-kernel.sh"
