/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The capture of an instance: one at a time, as long as its connection. The daemon switches it on
 * and off; the command that captures reads the packets by itself.
 */
#ifndef SOFTHCA_KERNEL_CAPTURE_H
#define SOFTHCA_KERNEL_CAPTURE_H

#include "softhca/protocol.h"

struct conn;
struct server;

void capture_change(struct server *s, struct conn *c, const struct sh_capture_msg *m,
		    struct sh_status *st);
/* Ends the capture of this connection, if it has one. */
void capture_end(struct server *s, const struct conn *c);

#endif
