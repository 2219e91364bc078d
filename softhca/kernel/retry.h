/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Requests that found a client's thread in their way, and what else has to be tried again.
 */
#ifndef SOFTHCA_KERNEL_RETRY_H
#define SOFTHCA_KERNEL_RETRY_H

#include <stddef.h>

struct conn;
struct server;

/*
 * Keeps the request that the server has received, to try it again soon. 0 or -EPROTO: it is too
 * long.
 */
int retry_keep(struct server *s, struct conn *c, size_t len);
/* The connection has no such request any more. */
void retry_forget(struct server *s, struct conn *c);
void retry_all(struct server *s); /* the timer has fired */
/* After each event: sets the timer if the event left something to come back to. */
void retry_begin(struct server *s);

#endif
