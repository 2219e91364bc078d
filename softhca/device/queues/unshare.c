// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Undoes the sharing of queue memory: if a client could not map device memory over its pages, they
 * stay the client's own. The daemon writes what the device has there so far into the client's
 * pages. From then on the device reaches them through the host interface.
 */
#include <errno.h>

#include "softhca/device/memory/tables.h"
#include "softhca/device/memory/umem.h"
#include "qp_halves.h"
#include "unshare.h"

static bool within(const struct sh_umem *m, uint64_t uaddr, uint64_t len)
{
	return m->shm_off && m->uaddr >= uaddr && m->len <= len && m->uaddr - uaddr <= len - m->len;
}

static int give_back(struct sh_dev *dev, struct sh_umem *m, uint64_t uaddr, uint64_t len)
{
	struct sh_umem own = *m;
	void *at;
	int err;

	if (!within(m, uaddr, len))
		return 0;
	at = sh_umem_at(dev, m, 0, m->len);
	if (!at)
		return -EFAULT;
	own.shm_off = 0;
	err = sh_umem_write(dev, &own, 0, at, own.len);
	if (err)
		return err;
	m->shm_off = 0;
	return 0;
}

int sh_cq_unshare(struct sh_dev *dev, uint32_t hca, uint32_t cqn, uint64_t uaddr, uint64_t len)
{
	struct sh_cq *cq = sh_cq_get(dev, hca, cqn);
	int err;

	if (!cq)
		return -EINVAL;
	err = sh_lock_soon(dev, &cq->lock);
	if (err)
		return err;
	err = give_back(dev, &cq->buf, uaddr, len);
	if (!err)
		err = give_back(dev, &cq->db, uaddr, len);
	sh_unlock(dev, &cq->lock);
	return err;
}

int sh_srq_unshare(struct sh_dev *dev, uint32_t hca, uint32_t srqn, uint64_t uaddr, uint64_t len)
{
	struct sh_srq *srq = sh_srq_get(dev, hca, srqn);
	int err;

	if (!srq)
		return -EINVAL;
	err = sh_lock_soon(dev, &srq->lock);
	if (err)
		return err;
	err = give_back(dev, &srq->buf, uaddr, len);
	if (!err)
		err = give_back(dev, &srq->db, uaddr, len);
	sh_unlock(dev, &srq->lock);
	return err;
}

int sh_qp_unshare(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint64_t uaddr, uint64_t len)
{
	struct sh_qp *qp = sh_qp_get(dev, hca, qpn);
	int err;

	if (!qp)
		return -EINVAL;
	err = sh_qp_lock_both(dev, qp);
	if (err)
		return err;
	err = give_back(dev, &qp->buf, uaddr, len);
	if (!err)
		err = give_back(dev, &qp->rq_db, uaddr, len);
	sh_qp_unlock_both(dev, qp);
	return err;
}
