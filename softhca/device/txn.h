/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Locks that survive their holder, and transitions that do.
 *
 * A client can be killed between any two of its stores into device memory. So a transition (a receive WQE
 * taken, a CQE written, a PSN advanced: words of a QP, an SRQ and a CQ that must change together) is first
 * written down in a struct sh_txn, then committed by one store (log->commit), then carried out, then cleared.
 * Who finds a lock's holder dead carries the transition out again if it was committed (its stores are
 * absolute values, so twice is once) or has nothing to undo if it was not.
 *
 * Why no stale value is ever applied again:
 *  - recoveries happen one at a time (inst.recovery), before the lock's new owner touches anything;
 *  - as long as log->commit is set, every lock that joined is still the dead holder's, or waits for its own
 *    recovery: nobody can have changed a covered word in between;
 *  - the first recoverer clears log->commit. It may then use the same log again while other locks of the dead
 *    holder still point to it: their words carry the old seq, the log has a new one, and nothing is done.
 *    A new transaction changes seq before commit; a recoverer reads commit before seq.
 *  - a holder clears the log, then the lock's word, then releases the lock.
 * A lock word that names a log also tells the next owner when a recoverer had to give up (the daemon waits for
 * other recoverers with a bound): it tries again.
 *
 * Events are raised before the log is cleared: a death there raises them twice, never not at all.
 * Values written through a transaction are not visible to plain reads before sh_txn_commit().
 */
#ifndef SOFTHCA_DEVICE_TXN_H
#define SOFTHCA_DEVICE_TXN_H

#include "device.h"

/* Once in the life of device memory: a lock that was made stays as it is. 0 or -ENOMEM. */
int sh_lock_init(struct sh_lock *lock);
static inline bool sh_lock_made(const struct sh_lock *lock)
{
	return __atomic_load_n(&lock->txn, __ATOMIC_RELAXED) & SH_LOCK_MADE;
}
/* Takes the lock, recovering after a dead holder. Never fails (waits without bound: clients). */
void sh_lock(struct sh_dev *dev, struct sh_lock *lock);
/* The daemon's way: -EBUSY after SH_LOCK_WAIT_MS. */
int sh_lock_bounded(struct sh_dev *dev, struct sh_lock *lock);
/* Not at all: -EBUSY when it is held. */
int sh_trylock(struct sh_dev *dev, struct sh_lock *lock);
void sh_unlock(struct sh_dev *dev, struct sh_lock *lock);

/*
 * A transaction under construction, on the caller's stack. The log is the struct sh_txn of the object whose
 * lock was taken first (qp->txn, or srq->txn / cq->txn when no QP is involved). Every lock that covers a word
 * of it must be held and be named with sh_txn_covers() before the commit.
 */
struct sh_txn_open {
	struct sh_dev *dev;
	struct sh_txn *log;
	struct sh_lock *locks[4];
	unsigned int nlocks;
	unsigned int n;
	uint64_t word;			/* what a covering lock's txn is set to */
};
void sh_txn_begin(struct sh_txn_open *t, struct sh_dev *dev, struct sh_txn *log, struct sh_lock *lock);
void sh_txn_covers(struct sh_txn_open *t, struct sh_lock *lock);
void sh_txn_store64(struct sh_txn_open *t, uint64_t *where, uint64_t val);
void sh_txn_store32(struct sh_txn_open *t, uint32_t *where, uint32_t val);	/* several to one word combine */
/* A 32-byte CQE into a client's CQ buffer (at byte offset off), last byte last. At most one per transaction. -EFAULT:
 * outside the buffer. */
int sh_txn_cqe(struct sh_txn_open *t, const struct sh_umem *buf, uint64_t off, const uint8_t cqe[32]);
void sh_txn_comp_event(struct sh_txn_open *t, uint32_t hca, uint32_t cqn);
/* At most SH_TXN_ASYNC; several of one kind about one object are one. */
void sh_txn_async_event(struct sh_txn_open *t, uint32_t hca, uint32_t type, uint32_t obj);
/* Commit, carry out, raise the events, clear. The locks stay the caller's, and do not belong to the log any more. */
void sh_txn_commit(struct sh_txn_open *t);

#endif
