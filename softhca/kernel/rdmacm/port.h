/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Port numbers of each host and port space.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_PORT_H
#define SOFTHCA_KERNEL_RDMACM_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/kernel/lists.h"
#include "rdmacm.h"

struct cm_id;

struct cm_port {
	uint16_t number;
	enum cm_space space;
	struct cm_id *ids;
	UT_hash_handle hh; /* by number, of the host and space */
};

/*
 * Gives the id the port of its source address, or one of its own if that is 0. -EACCES: below 1024
 * and not privileged; -EADDRINUSE, -EADDRNOTAVAIL, -EPROTONOSUPPORT, -ENOMEM.
 */
int cm_port_join(struct cm_id *id, bool privileged);
/* An id that is going to listen, and shares its port. */
int cm_port_alone(struct cm_id *id);
void cm_port_leave(struct cm_id *id);
struct cm_port *cm_port_find(struct cm_host *h, enum cm_space space, uint16_t number);
/* -1: unknown. */
int cm_space_of(uint16_t ps);

#endif
