/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The file that programs open for management datagrams.
 */
#ifndef SOFTHCA_KERNEL_UMAD_ROOM_H
#define SOFTHCA_KERNEL_UMAD_ROOM_H

#include <stdbool.h>
#include <stddef.h>

#include "softhca/kernel/room.h"

extern const struct room umad_room;

int umad_serve(struct server *s, struct conn *c, const void *m, size_t len, bool late);

#endif
