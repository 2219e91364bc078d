/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What each request of the control connection does.
 */
#ifndef SOFTHCA_KERNEL_DISPATCH_H
#define SOFTHCA_KERNEL_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>

struct conn;
struct server;

/*
 * Serves a request and replies. -EINPROGRESS: a client's thread is in the way; there is no reply,
 * and the request is to be tried again. Never if late. Any other error: the connection cannot go
 * on.
 */
int dispatch(struct server *s, struct conn *c, const void *m, size_t len, bool late);

#endif
