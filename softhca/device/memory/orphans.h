/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Locks of the dead. The daemon alone calls these.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_ORPHANS_H
#define SOFTHCA_DEVICE_MEMORY_ORPHANS_H

#include "dev.h"

/*
 * Locks that the dead held become free, so that nobody sleeps for them until it looks again: orphans.c. Daemon.
 * Whether any thread has died in device code since *seen, which is moved on; then each object that exists is named.
 */
bool sh_orphans(struct sh_dev *dev, uint32_t *seen);
void sh_orphans_of_hca(struct sh_dev *dev, uint32_t hca);
void sh_orphans_of_qp(struct sh_dev *dev, uint32_t hca, uint32_t qpn);
void sh_orphans_of_srq(struct sh_dev *dev, uint32_t hca, uint32_t srqn);
void sh_orphans_of_cq(struct sh_dev *dev, uint32_t hca, uint32_t cqn);
void sh_orphans_of_evq(struct sh_dev *dev, uint32_t evq);

#endif
