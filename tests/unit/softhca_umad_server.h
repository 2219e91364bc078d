/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A client on host 0 and a server on host 1, agents of a vendor's class, in which long messages go
 * both ways.
 */
#ifndef TESTS_UNIT_SOFTHCA_UMAD_SERVER_H
#define TESTS_UNIT_SOFTHCA_UMAD_SERVER_H

#include "softhca_umad_rig.h"

enum { VENDOR = 0x30, TO_SERVER = 3, LONG = 500, VENDOR_DATA = 40, VENDOR_PIECE = 216 };

static uint32_t server, client;

static inline void up_to_serve(struct rig *r, uint8_t rmpp)
{
	begin_hosts(r, 1, 4);
	assert_int_equal(reg(r, 1, 1, VENDOR, 1, 0, 0x1405, 1 << METHOD_SET, &server), 0);
	assert_int_equal(reg(r, 0, 1, VENDOR, 1, rmpp, 0x1405, 0, &client), 0);
}

static inline void nothing_for(struct rig *r, int i)
{
	assert_int_equal(get(r, i, 320), -EAGAIN);
}

#endif
