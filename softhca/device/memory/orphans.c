// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Locks of threads that died in device code. A thread that wants such a lock takes it over when it
 * looks next. But while it sleeps it looks only every tenth of a second (lock.c). The daemon learns
 * of a process's end at once. It takes the lock, completes what the dead thread had committed, and
 * releases the lock, which wakes the sleepers. That also changes the word of the lock, so a thread
 * that is about to sleep does not.
 *
 * Holds one lock at a time, and waits for no living holder. Locks that it passes over are found by
 * their sleepers.
 */
#include "orphans.h"
#include "tables.h"

static void take_over(struct sh_dev *dev, struct sh_lock *lock)
{
	if (__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) && sh_lock_made(lock) &&
	    sh_trylock(dev, lock) == 0)
		sh_unlock(dev, lock);
}

bool sh_orphans_left(const struct sh_dev *dev, uint32_t seen)
{
	return __atomic_load_n(&dev->inst->died_inside, __ATOMIC_SEQ_CST) != seen;
}

bool sh_orphans(struct sh_dev *dev, uint32_t *seen)
{
	struct sh_instance *inst = dev->inst;
	uint32_t died = __atomic_load_n(&inst->died_inside, __ATOMIC_SEQ_CST);

	if (died == *seen)
		return false;
	/*
	 * A stopped thread may be in the middle of a recovery, and each lock would have to wait for
	 * that. The daemon comes back.
	 */
	if (sh_trylock(dev, &inst->recovery))
		return false;
	sh_unlock(dev, &inst->recovery);
	*seen = died;
	return true;
}

void sh_orphans_of_hca(struct sh_dev *dev, uint32_t hca)
{
	struct sh_hca *h = sh_hca(dev, hca);

	if (!h)
		return;
	for (unsigned int i = 0; i < SH_ATOMIC_LOCKS; i++)
		take_over(dev, &h->atomic_lock[i]);
	take_over(dev, &h->mcg_lock);
	take_over(dev, &h->port_lock);
}

void sh_orphans_of_qp(struct sh_dev *dev, uint32_t hca, uint32_t qpn)
{
	struct sh_qp *qp = sh_qp_get(dev, hca, qpn);

	if (!qp)
		return;
	take_over(dev, &qp->lock);
	take_over(dev, &qp->rlock);
}

void sh_orphans_of_srq(struct sh_dev *dev, uint32_t hca, uint32_t srqn)
{
	struct sh_srq *srq = sh_srq_get(dev, hca, srqn);

	if (srq)
		take_over(dev, &srq->lock);
}

void sh_orphans_of_cq(struct sh_dev *dev, uint32_t hca, uint32_t cqn)
{
	struct sh_cq *cq = sh_cq_get(dev, hca, cqn);

	if (cq)
		take_over(dev, &cq->lock);
}

void sh_orphans_of_evq(struct sh_dev *dev, uint32_t evq)
{
	struct sh_evq *q = sh_evq(dev, evq);

	if (q)
		take_over(dev, &q->lock);
}
