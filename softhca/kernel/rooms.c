// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rooms of the daemon: the one place outside them that names them.
 */
#include "softhca/kernel/uverbs/room.h"
#include "room.h"

const struct room *const rooms[] = {&uverbs_room, NULL};
