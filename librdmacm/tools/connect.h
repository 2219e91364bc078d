// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The way of ucmatose and udaddy from addresses to connections. */
#ifndef CONNECT_H
#define CONNECT_H

#include "talk.h"

/* The steps of a connection, for talk->event. */
int connect_event(struct talk *talk, struct talker *talker, struct rdma_cm_event *event);

/* The client's part: says what it does, and returns when all connections stand. 0, or -1. */
int connect_all(struct talk *talk);

/* The server's part, which ends when all connections stand. Its listener, also after a failure, is
 * *listener: destroy it last. 0, or -1. */
int connect_listen(struct talk *talk, struct rdma_cm_id **listener);

/* The whole tool: the two above, what the tool does with the connections, and the end. Returns
 * what the tool exits with. */
int connect_run(struct talk *talk, int (*client)(struct talk *), int (*server)(struct talk *));

#endif
