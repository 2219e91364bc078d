// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The fake device, compiled here again because an object file belongs to one directory of the
 * build.
 */
#include "fake_provider.c"
