/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The subnet administrator: records of nodes, ports, links and paths.
 */
#ifndef SOFTHCA_KERNEL_UMAD_SA_H
#define SOFTHCA_KERNEL_UMAD_SA_H

#include "fabric.h"

enum sa_at {
	AT_SM_KEY = 36,
	AT_OFFSET = 44, /* size of a record, in units of eight octets */
	AT_MASK = 48,
	AT_SA = 56,
};
#define SA_VERSION   2
#define SA_STATUS(n) ((n) << 8)
enum sa_status {
	SA_NO_RESOURCES = 1,
	SA_INVALID = 2,
	SA_NO_RECORDS = 3,
	SA_TOO_MANY = 4,
	SA_INVALID_GID = 5,
	SA_INSUFFICIENT = 6, /* components */
};

/* Is the administrator at that port, and is a MAD that has come there for it? */
bool sa_is_at(struct umad *u, const struct mad_node *n, const uint8_t *mad);
/*
 * Does a query with this SM_Key get no answer? The key 0 means none. The administrator trusts a
 * query with the right key, which is 1: in network order, or in the host's order, as programs of
 * OFED's time write it.
 */
bool sa_ignores(const uint8_t *mad);
/*
 * Makes the administrator's answer, in place; a table goes into *more, of *more_len bytes, which
 * the caller frees. Returns the status of the answer. -1: the administrator has no such method.
 */
int sa_answer(struct umad *u, const struct mad_way *w, const struct mad_node *n, uint8_t *mad,
	      uint8_t **more, size_t *more_len);

#endif
