/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * From an address to a port, and to a path. 0 or -errno; the result is an event.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_RESOLVE_H
#define SOFTHCA_KERNEL_RDMACM_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "rdmacm-abi.h"

struct cm_id;

int cm_bind(struct cm_id *id, const union cm_sockaddr *a, bool privileged);
/* src: of family 0 if none is given. */
int cm_resolve(struct cm_id *id, const union cm_sockaddr *src, const union cm_sockaddr *dst,
	       uint32_t timeout_ms, bool privileged);
int cm_resolve_route(struct cm_id *id, uint32_t timeout_ms);
int cm_set_path(struct cm_id *id, const struct cm_path_record *path);
void cm_resolve_due(struct cm_id *id);

#endif
