/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue memory goes back to the client's own pages.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_UNSHARE_H
#define SOFTHCA_DEVICE_QUEUES_UNSHARE_H

#include "softhca/device/memory/dev.h"

/*
 * A client could not map device memory over [uaddr, uaddr+len). If a buffer or a doorbell record of
 * the object is in there, it goes back to the client's own pages, with what the device has written
 * so far (unshare.c). 0, -EINPROGRESS, -EFAULT, or -EINVAL: there is no such object.
 */
int sh_cq_unshare(struct sh_dev *dev, uint32_t hca, uint32_t cqn, uint64_t uaddr, uint64_t len);
int sh_srq_unshare(struct sh_dev *dev, uint32_t hca, uint32_t srqn, uint64_t uaddr, uint64_t len);
int sh_qp_unshare(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint64_t uaddr, uint64_t len);

#endif
