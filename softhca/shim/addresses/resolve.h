/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Which addresses the instance has. */
#ifndef SOFTHCA_SHIM_RESOLVE_H
#define SOFTHCA_SHIM_RESOLVE_H

#include <stdbool.h>
#include <sys/socket.h>

/* Does a port of that host, which exists, have address n? */
bool shim_has_address(unsigned int host, unsigned int n);
/* The host with that address, or -1. An IPv4 address may come in the form of IPv6. */
int shim_host_at(const void *address, socklen_t len, int family);

#endif
