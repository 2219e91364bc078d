/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Locks that survive their holder, and transitions that do.
 *
 * A client can be killed between any two of its stores into device memory. So a transition (a receive WQE
 * taken, a CQE written, a PSN advanced: words of a QP, an SRQ and a CQ that must change together) is first
 * written down in a struct sh_txn, then committed by one store (nstores), then carried out, then cleared.
 * Who finds a lock's holder dead carries the transition out again if it was committed (its stores are
 * absolute values, so twice is once) or has nothing to undo if it was not. Recovery runs under one
 * instance-wide order: all locks of the transaction are still the dead holder's until nstores is 0 again.
 *
 * Values written through a transaction are not visible to plain reads before sh_txn_commit().
 */
#ifndef SOFTHCA_DEVICE_TXN_H
#define SOFTHCA_DEVICE_TXN_H

#include "device.h"

int sh_lock_init(struct sh_lock *lock);
/* Takes the lock, recovering after a dead holder. Never fails (waits without bound: clients). */
void sh_lock(struct sh_dev *dev, struct sh_lock *lock);
/* The daemon's way: -EBUSY after SH_LOCK_WAIT_MS. */
int sh_lock_bounded(struct sh_dev *dev, struct sh_lock *lock);
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
};
void sh_txn_begin(struct sh_txn_open *t, struct sh_dev *dev, struct sh_txn *log, struct sh_lock *lock);
void sh_txn_covers(struct sh_txn_open *t, struct sh_lock *lock);
void sh_txn_store64(struct sh_txn_open *t, uint64_t *where, uint64_t val);
void sh_txn_store32(struct sh_txn_open *t, uint32_t *where, uint32_t val);	/* several to one word combine */
/* A 32-byte CQE into a client's CQ buffer (entry at byte offset off), last byte last. At most one per transaction. */
void sh_txn_cqe(struct sh_txn_open *t, const struct sh_umem *buf, uint64_t off, const uint8_t cqe[32]);
void sh_txn_comp_event(struct sh_txn_open *t, uint32_t hca, uint32_t cqn);
void sh_txn_async_event(struct sh_txn_open *t, uint32_t hca, uint32_t type, uint32_t obj);
/* Commit, carry out, clear; then raise the events. The locks stay the caller's. */
void sh_txn_commit(struct sh_txn_open *t);

#endif
