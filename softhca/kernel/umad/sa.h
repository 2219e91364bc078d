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

/* Is the administrator at that port, and a MAD that has come there for it? */
bool sa_is_at(struct kernel *k, const struct mad_node *n, const uint8_t *mad);
/*
 * Is the key of the subnet manager in a question one that gets no answer? 0 is no key. Who has the right one
 * is trusted: 1, also as programs of OFED's time write it, in their own byte order.
 */
bool sa_ignores(const uint8_t *mad);
/*
 * The status of the answer of the administrator: in place, or if it is a table in *more, of *more_len
 * bytes, which the caller frees. -1: it has no such method.
 */
int sa_answer(struct kernel *k, const struct mad_way *w, const struct mad_node *n, uint8_t *mad,
	      uint8_t **more, size_t *more_len);

#endif
