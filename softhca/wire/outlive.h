/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The wire's engine after its daemon was killed. */
#ifndef SOFTHCA_WIRE_OUTLIVE_H
#define SOFTHCA_WIRE_OUTLIVE_H

#include "softhca/device/memory/dev.h"

/*
 * Ends this process when the programs of the instance have ended, which go on without a daemon. No
 * further program can join them. 0; or -errno: the caller has nothing to wait for.
 */
int sh_wire_outlive(struct sh_dev *dev);

#endif
