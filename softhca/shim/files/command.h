/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Commands, as a program writes them to a device file.
 */
#ifndef SOFTHCA_SHIM_COMMAND_H
#define SOFTHCA_SHIM_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct shim_ctx;

long shim_command(struct shim_ctx *ctx, const void *buf, size_t len);
/* Does the thread have CAP_... cap outside of any user namespace? */
bool shim_has_cap(unsigned int cap);

#endif
