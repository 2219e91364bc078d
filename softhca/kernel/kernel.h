/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The daemon of an instance, as the softhca command starts it: in a process of its own, forked before the caller
 * takes the lease of the instance (a mapping of it would be inherited).
 */
#ifndef SOFTHCA_KERNEL_KERNEL_H
#define SOFTHCA_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/device/device.h"

/*
 * Of the JSON that `softhca show --json` prints, which docs/softhca-show.schema.json describes: one more whenever a key goes,
 * or comes to mean something else. A new key leaves it as it is.
 */
#define SH_SHOW_VERSION 1

struct sh_kernel_config {
	const char *dir;		/* the instance directory, absolute; made by the daemon, removed when it ends */
	struct sh_config device;	/* hosts, hcas_per_host, ports, cqe_size (32, 64), driver_abi (2, 3, 4), face, trap */
	bool leased;			/* end when nobody holds the lease any more (`softhca run`) */
	bool copy_queues;		/* leave queue memory in the clients' own pages (for tests) */
};

/*
 * Runs until it is told to stop, the lease is free, or SIGTERM, SIGINT or SIGHUP comes. One struct sh_status
 * (wire.h) is written to ready_fd, which is then closed, when clients can connect or when it has failed.
 * Descriptors other than 0, 1, 2 and ready_fd are closed. Returns the exit status of the process.
 */
int sh_kernel_main(const struct sh_kernel_config *cfg, int ready_fd);

#endif
