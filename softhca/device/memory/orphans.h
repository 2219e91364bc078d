/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Locks of the dead. The daemon alone calls these.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_ORPHANS_H
#define SOFTHCA_DEVICE_MEMORY_ORPHANS_H

#include "dev.h"

/*
 * The daemon frees locks that dead threads held. Otherwise a thread that sleeps for such a lock
 * would sleep until it looks again: orphans.c.
 *
 * sh_orphans_left(): has any thread died in device code since seen?
 *
 * sh_orphans(): the same, and can locks be freed now? If so, it moves *seen on, and the daemon
 * calls one of the other functions for each object that exists. If not, the daemon asks again
 * later.
 */
bool sh_orphans_left(const struct sh_dev *dev, uint32_t seen);
bool sh_orphans(struct sh_dev *dev, uint32_t *seen);
void sh_orphans_of_hca(struct sh_dev *dev, uint32_t hca);
void sh_orphans_of_qp(struct sh_dev *dev, uint32_t hca, uint32_t qpn);
void sh_orphans_of_srq(struct sh_dev *dev, uint32_t hca, uint32_t srqn);
void sh_orphans_of_cq(struct sh_dev *dev, uint32_t hca, uint32_t cqn);
void sh_orphans_of_evq(struct sh_dev *dev, uint32_t evq);

#endif
