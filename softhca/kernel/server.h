/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The daemon's loop. It returns when the instance ends.
 */
#ifndef SOFTHCA_KERNEL_SERVER_H
#define SOFTHCA_KERNEL_SERVER_H

#include "softhca/protocol.h"

struct kernel;

int server_run(struct kernel *k, int ready_fd, struct sh_status *st);

#endif
