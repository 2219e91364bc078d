/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The daemon of an instance, as the softhca command starts it: in a process of its own. The caller
 * forks it before it takes the lease of the instance, because a child would inherit the lease's
 * mapping.
 */
#ifndef SOFTHCA_KERNEL_KERNEL_H
#define SOFTHCA_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/device/memory/instance.h"

/*
 * Of the JSON that `softhca show --json` prints, which docs/softhca-show.schema.json describes: one
 * more whenever a key goes, or comes to mean something else. A new key leaves it as it is.
 */
#define SH_SHOW_VERSION 1

#define SH_CM_TIMEOUT_NS (UINT64_C(4096) << 20) /* as kernels wait */

struct sh_kernel_config {
	/* The instance directory, absolute. The daemon makes it, and removes it when it ends. */
	const char *dir;
	/* hosts, hcas_per_host, ports, cqe_size (32, 64), driver_abi (2, 3, 4), face, trap. */
	struct sh_config device;
	/* End when no process holds the lease any more (`softhca run`). */
	bool leased;
	/*
	 * How long a CM message waits for its answer before it is sent again; 0: SH_CM_TIMEOUT_NS.
	 */
	uint64_t cm_timeout_ns;
	/* Leave queue memory in the clients' own pages (for tests). */
	bool copy_queues;
};

/*
 * Runs until it is told to stop, the lease is free, or SIGTERM, SIGINT or SIGHUP comes. Writes one
 * struct sh_status (protocol.h) to ready_fd when clients can connect, or when it has failed, and
 * then closes ready_fd. Leaves the caller's session, terminal and directory: 0, 1 and 2 lead to
 * /dev/null, and all other descriptors are closed. Returns the exit status of the process.
 */
int sh_kernel_main(const struct sh_kernel_config *cfg, int ready_fd);

#endif
