/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The wire without a wire: what device/transport/loop.h asks for. */
#ifndef SOFTHCA_WIRE_LOOPBACK_H
#define SOFTHCA_WIRE_LOOPBACK_H

#include "softhca/device/memory/dev.h"

/* Each process that has attached to an instance calls this before it carries a packet. */
void sh_loopback_begin(struct sh_dev *dev);

#endif
