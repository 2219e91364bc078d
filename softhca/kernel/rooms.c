// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rooms of the daemon: the one place outside them that names them.
 */
#include "softhca/kernel/rdmacm/room.h"
#include "softhca/kernel/umad/room.h"
#include "softhca/kernel/uverbs/room.h"
#include "room.h"

const struct room *const rooms[] = {&uverbs_room, &rdmacm_room, &umad_room, NULL};

_Static_assert(sizeof(rooms) / sizeof(rooms[0]) <= ROOMS_MAX + 1, "too many rooms");
