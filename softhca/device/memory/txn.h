/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Locks and transitions that survive the death of the thread at work.
 *
 * A client can be killed between any two of its stores into device memory. So a transition (a
 * receive WQE taken, a CQE written, a PSN advanced: words of a QP, an SRQ and a CQ that must change
 * together) is first written down in a struct sh_txn, then committed by one store (log->commit),
 * then carried out, then cleared. A thread that finds a lock's holder dead carries a committed
 * transition out again. The stores are absolute values, so carrying out twice has the same effect
 * as once. If the transition was not committed, there is nothing to undo.
 *
 * Why no stale value is ever applied again:
 *
 * - Recoveries happen one at a time (inst.recovery), before the new owner of the lock touches
 *   anything.
 * - As long as log->commit is set, the dead holder still has every lock that joined, or that lock
 *   waits for its own recovery. So no thread can have changed a covered word in between.
 * - The first recoverer clears log->commit. It may then use the same log again while other locks of
 *   the dead holder still point to it. Their words carry the old seq and the log has a new one, so
 *   nothing is done. A new transaction, or the first of several under the same locks
 *   (sh_txn_again), changes seq before commit; a recoverer reads commit before seq.
 * - A holder clears the log, then the word of the lock, then releases the lock. A word that still
 *   names the log in between (sh_txn_commit_cqe) means nothing: commit is 0, or seq is another one.
 *
 * A lock word that still names a log also tells the next owner that a recoverer had to give up: the
 * daemon does not wait long for another recovery. The next owner tries again.
 *
 * Events are raised before the log is cleared. The log says how many of them have been raised, and
 * a recovery goes on from there: none is missing, and none is raised twice (event.c). The exception
 * is a death between the write and the note of it, where the file system does not tell, or the
 * recoverer does not see the FIFO (it has another root directory): it raises that one again. An
 * event whose queue's lock was not to be had is owed (layout.h) before the log is cleared.
 *
 * Values written through a transaction are not visible to plain reads before sh_txn_commit().
 */
#ifndef SOFTHCA_DEVICE_MEMORY_TXN_H
#define SOFTHCA_DEVICE_MEMORY_TXN_H

#include "lock.h"

/*
 * Called for each object; only the first call has an effect: a lock that was made stays as it is.
 */
void sh_lock_init(struct sh_lock *lock);
static inline bool sh_lock_made(const struct sh_lock *lock)
{
	return __atomic_load_n(&lock->txn, __ATOMIC_RELAXED) & SH_LOCK_MADE;
}

/*
 * The order of a thread's own stores decides what it leaves behind if it is killed between two of
 * them.
 */
static inline void sh_program_order(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* The ways into a lock that is not free, or whose holder has died. */
void sh_lock_wait(struct sh_dev *dev, struct sh_lock *lock);
int sh_lock_wait_within(struct sh_dev *dev, struct sh_lock *lock, enum sh_wait how);
/*
 * Recovers after the dead holder of a lock that this thread has taken. 0, or -EBUSY: the thread
 * does not hold it any more.
 */
int sh_lock_held(struct sh_dev *dev, struct sh_lock *lock, bool bounded);

/* Takes the lock if it is free, and recovers what its last holder has left. */
static inline bool sh_lock_free(struct sh_dev *dev, struct sh_lock *lock)
{
	return __builtin_expect(sh_hold_free(dev, lock), 1) &&
	       (__builtin_expect(lock->txn == SH_LOCK_MADE, 1) || !sh_lock_held(dev, lock, false));
}

/*
 * Takes the lock, and recovers after a dead holder. Never fails: it waits without bound. For what
 * no thread of another process holds for long, and for what cannot be put off.
 */
static inline void sh_lock(struct sh_dev *dev, struct sh_lock *lock)
{
	if (__builtin_expect(!sh_lock_free(dev, lock), 0))
		sh_lock_wait(dev, lock);
}
/*
 * The same, for a client that can do without: it does not wait for a thread that is stopped and
 * whose life cannot be ended. how: SH_WAIT_BRIEFLY or SH_WAIT_PATIENTLY. 0, or -EINPROGRESS.
 */
static inline int sh_lock_within(struct sh_dev *dev, struct sh_lock *lock, enum sh_wait how)
{
	return __builtin_expect(!sh_lock_free(dev, lock), 0) ? sh_lock_wait_within(dev, lock, how)
							     : 0;
}
/* For the daemon: -EBUSY after SH_LOCK_WAIT_MS. */
int sh_lock_bounded(struct sh_dev *dev, struct sh_lock *lock);
/* Does not wait: -EBUSY if the lock is held. */
int sh_trylock(struct sh_dev *dev, struct sh_lock *lock);
static inline void sh_unlock(struct sh_dev *dev, struct sh_lock *lock)
{
	(void)dev;
	if (lock->txn !=
	    SH_LOCK_MADE) /* sh_txn_commit_cqe(), or a transaction that was begun and given up */
		lock->txn = SH_LOCK_MADE;
	sh_program_order();
	sh_let_go(lock);
}

/*
 * A transaction under construction, on the caller's stack. The log is the struct sh_txn of the
 * object whose lock was taken first (qp->txn, or srq->txn or cq->txn if no QP is involved). The
 * caller must hold every lock that covers a word of it, and name each by sh_txn_covers() or
 * sh_txn_joins() before the commit. Exempt is a word that tells by itself when it is out of date
 * (sh_left()).
 */
struct sh_txn_open {
	struct sh_dev *dev;
	struct sh_txn *log;
	struct sh_lock *locks[4];
	unsigned int nlocks;
	unsigned int n;
	uint64_t word; /* what a covering lock's txn is set to */
	/*
	 * Where the stores go. The log says so, too, for a recoverer; but other processes can write
	 * to the log.
	 */
	uint64_t *where[SH_TXN_STORES];
};

static inline void sh_txn_covers(struct sh_txn_open *t, struct sh_lock *lock)
{
	unsigned int i;

	for (i = 0; i < t->nlocks; i++)
		if (t->locks[i] == lock)
			return;
	if (t->nlocks == sizeof(t->locks) / sizeof(t->locks[0]))
		__builtin_trap(); /* no transition has more locks */
	t->locks[t->nlocks++] = lock;
	lock->txn = t->word;
}

static inline void sh_txn_begin(struct sh_txn_open *t, struct sh_dev *dev, struct sh_txn *log,
				struct sh_lock *lock)
{
	uint32_t seq = log->seq + 1;

	t->dev = dev;
	t->log = log;
	t->locks[0] = lock;
	t->nlocks = 1;
	t->n = 0;
	t->word = SH_LOCK_MADE | (uint64_t)((char *)log - (char *)dev->inst) |
		  (uint64_t)(seq & SH_TXN_SEQ_MASK) << SH_LOCK_TXN_SEQ_SHIFT;
	/*
	 * The log is clear (its owner cleared it): seq may change now, and must before the next
	 * commit.
	 */
	sh_program_order();
	__atomic_store_n(&log->seq, seq, __ATOMIC_RELAXED);
	log->comp_cqn = 0;
	log->cqe_ctx = 0;
	log->nasync = log->ncqe = 0;
	log->raised = 0;
	lock->txn = t->word;
}

/*
 * Begins the next transaction with the same locks and the same log, which the words of the locks
 * name already. Only the stores of the log begin anew: what sh_txn_log_cqe() has put there stays.
 */
static inline void sh_txn_again(struct sh_txn_open *t, struct sh_dev *dev, struct sh_txn *log)
{
	t->dev = dev;
	t->log = log;
	t->n = 0;
	sh_program_order();
}

/* Where the new value of a word goes. */
static inline uint64_t *sh_txn_slot(struct sh_txn_open *t, void *word)
{
	if (t->n == SH_TXN_STORES)
		__builtin_trap();
	t->where[t->n] = word;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): begun, so it has a log */
	t->log->store[t->n].off = (uint64_t)((const char *)word - (const char *)t->dev->inst);
	return &t->log->store[t->n++].val;
}

static inline void sh_txn_store64(struct sh_txn_open *t, uint64_t *where, uint64_t val)
{
	*sh_txn_slot(t, where) = val;
}

/*
 * Two neighbouring words. The first is aligned to 8 bytes, and the transaction stores neither in
 * another way.
 */
static inline uint64_t sh_two(uint32_t first, uint32_t second)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return (uint64_t)first << 32 | second;
#else
	return (uint64_t)second << 32 | first;
#endif
}
static inline void sh_txn_store_two(struct sh_txn_open *t, uint32_t *where, uint32_t first,
				    uint32_t second)
{
	*sh_txn_slot(t, where) = sh_two(first, second);
}
/* Several stores to one 64-bit word combine. */
void sh_txn_store32(struct sh_txn_open *t, uint32_t *where, uint32_t val);
/* How a CQE in device memory becomes visible. */
static inline void sh_txn_put_cqe(uint64_t *place, const uint64_t cqe[4])
{
	__atomic_store_n(&place[0], cqe[0], __ATOMIC_RELAXED);
	__atomic_store_n(&place[1], cqe[1], __ATOMIC_RELAXED);
	__atomic_store_n(&place[2], cqe[2], __ATOMIC_RELAXED);
	/* pairs with the provider's read barrier after the owner byte */
	__atomic_store_n(&place[3], cqe[3], __ATOMIC_RELEASE);
}
/*
 * Adds a 32-byte CQE for a client's CQ buffer (at byte offset off), whose last byte is stored last.
 * At most one per transaction. 0, or -EFAULT: outside the buffer.
 */
int sh_txn_cqe(struct sh_txn_open *t, const struct sh_umem *buf, uint64_t off, const void *cqe);
void sh_txn_comp_event(struct sh_txn_open *t, uint32_t hca, uint32_t cqn);
/* At most SH_TXN_ASYNC. Several of one kind about one object count as one. */
void sh_txn_async_event(struct sh_txn_open *t, uint32_t hca, uint32_t type, uint32_t obj);
/*
 * Commits, carries out, raises the events, and clears the log. The caller keeps the locks, which no
 * longer belong to the log.
 */
void sh_txn_commit(struct sh_txn_open *t);
/*
 * The same, and the commit is that of a change of the receiver's memory, too (life.h). If that
 * fails, nothing is committed.
 */
enum sh_copy sh_txn_commit_last(struct sh_txn_open *t, const struct sh_last *last);

/*
 * Adds a lock that the transaction does not cover yet. Only for a transaction that ends with
 * sh_txn_commit_cqe().
 */
static inline void sh_txn_joins(const struct sh_txn_open *t, struct sh_lock *lock)
{
	lock->txn = t->word;
}
/* Takes a lock out again: one that stays held when the lock that the log belongs to is released. */
static inline void sh_txn_leave(struct sh_lock *lock)
{
	lock->txn = SH_LOCK_MADE;
}

/*
 * Stores the words of a CQE into the log. Word by word: combined to larger ones they would have to
 * leave the store buffer first.
 */
SH_INLINE void sh_txn_log_cqe(const struct sh_txn_open *t, unsigned int n, const uint64_t cqe[4])
{
#pragma GCC unroll 4
	for (unsigned int i = 0; i < 4; i++)
		__atomic_store_n(&t->log->cqe[n][i], cqe[i], __ATOMIC_RELAXED);
}

/*
 * Like sh_txn_commit(), inline, for a transaction with CQEs and without events. cqe goes to place,
 * which is in device memory. second: the CQE that sh_txn_log_cqe() has stored as number 0 goes
 * before it. last: as of sh_txn_commit_last(), or NULL. The locks still name the log until they are
 * released or join another transaction; by then there is nothing to recover.
 */
SH_INLINE enum sh_copy sh_txn_commit_cqe(const struct sh_txn_open *t, const struct sh_umem *buf,
					 uint64_t *place, const uint64_t cqe[4], bool second,
					 const struct sh_last *last)
{
	struct sh_txn *log = t->log;
	uint64_t *first = second ? place - 4 : place;

	log->cqe_ctx = buf->ctx;
	log->ncqe = 1 + second;
	log->cqe_shm = (uint64_t)((char *)first - (char *)t->dev->inst);
	log->cqe_addr = buf->uaddr + (log->cqe_shm - buf->shm_off);
	sh_txn_log_cqe(t, second, cqe);
	/* pairs with the acquire in recover() */
	if (last) {
		enum sh_copy err = sh_commit_last(t->dev, last, (uint64_t *)&log->commit,
						  sh_two(t->n + 1, log->seq));

		if (err)
			return err;
	} else {
		__atomic_store_n(&log->commit, t->n + 1, __ATOMIC_RELEASE);
	}
	sh_program_order();
#pragma GCC unroll 4
	for (unsigned int i = 0; i < t->n; i++)
		__atomic_store_n(t->where[i], log->store[i].val, __ATOMIC_RELAXED);
	if (second)
		sh_txn_put_cqe(first, log->cqe[0]);
	sh_txn_put_cqe(place, cqe);
	sh_program_order();
	__atomic_store_n(&log->commit, 0, __ATOMIC_RELEASE);
	return SH_COPY_OK;
}

/*
 * A client did not get the lock (sh_lock_within()). Has fn(dev, a, b) called soon, in the helper
 * thread. True; or false: that is not possible, and the client has waited for the lock and got it.
 */
bool sh_defer_or_lock(struct sh_dev *dev, struct sh_lock *lock,
		      void (*fn)(struct sh_dev *, uint64_t, uint64_t), uint64_t a, uint64_t b);

/*
 * How the daemon takes a lock: it looks for as long as a running holder takes, and never sleeps. 0,
 * or -EINPROGRESS: later.
 */
static inline int sh_lock_soon(struct sh_dev *dev, struct sh_lock *lock)
{
	if (!sh_lock_bounded(dev, lock))
		return 0;
	__atomic_store_n(&dev->busy_lock, (uint64_t)((char *)lock - (char *)dev->inst),
			 __ATOMIC_RELAXED);
	return -EINPROGRESS;
}

/*
 * 0, or -EINPROGRESS: the daemon does not wait for the lock, and a client gives up a thread that
 * stands (sh_lock_within()).
 */
static inline int sh_lock_mine(struct sh_dev *dev, struct sh_lock *lock, enum sh_wait how)
{
	return dev->proc ? sh_lock_within(dev, lock, how) : sh_lock_soon(dev, lock);
}

#endif
