/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Path migration.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_MIGRATE_H
#define SOFTHCA_DEVICE_QUEUES_MIGRATE_H

#include "softhca/device/memory/qp_context.h"

/*
 * Moves the QP to its alternate path, and raises the event. The path must be loaded. The caller
 * holds both locks of the QP.
 */
void sh_migrate(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);

#endif
