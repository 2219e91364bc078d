// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Robust locks, transactions and their recovery. txn.h says why this is safe. A function here waits
 * for nothing but a lock. A log belongs to the thread that holds the lock under which it was begun.
 * The log of a dead thread belongs to the holder of inst.recovery.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "event.h"
#include "txn.h"

#define program_order sh_program_order

void sh_lock_init(struct sh_lock *lock)
{
	if (!sh_lock_made(lock))
		__atomic_store_n(&lock->txn, SH_LOCK_MADE, __ATOMIC_RELEASE);
}

/* ---- carrying out ---- */

static uint8_t cqe_owner(const uint64_t cqe[4])
{
	return ((const uint8_t *)cqe)[31] & 0x80;
}

/*
 * Writes a CQE by its address in the owner's memory. The pages are the owner's alone, or this
 * process cannot map them.
 */
SH_OUTLINE void copy_cqe(struct sh_dev *dev, const struct sh_txn *log, unsigned int i, bool redo)
{
	const uint64_t to = log->cqe_addr + i * sizeof(log->cqe[0]);
	struct sh_seg dst[2] = {{to, 31}, {to + 31, 1}};
	struct sh_seg src = {(uintptr_t)log->cqe[i], 32};

	if (redo) {
		uint8_t last;
		struct sh_seg mine = {(uintptr_t)&last, 1};

		if (dev->ops->copy(dev->host, 0, &mine, 1, log->cqe_ctx, &dst[1], 1, 1) !=
			    SH_COPY_OK ||
		    (last & 0x80) == cqe_owner(log->cqe[i]))
			return;
	}
	dev->ops->copy(dev->host, log->cqe_ctx, dst, 2, 0, &src, 1, 32);
}

/*
 * Writes the CQEs. redo: leaves alone a CQE that is valid in the buffer. It was written whole
 * before, and the owner may have moved it or used the entry again since.
 */
SH_INLINE void put_cqes(struct sh_dev *dev, const struct sh_txn *log, bool redo)
{
	/* Read once: another process may overwrite it. */
	const unsigned int n = __atomic_load_n(&log->ncqe, __ATOMIC_RELAXED) > 1 ? SH_TXN_CQES : 1;
	const uint64_t shm = __atomic_load_n(&log->cqe_shm, __ATOMIC_RELAXED);
	int place = 0;

	if (!sh_ctx_live(dev, log->cqe_ctx))
		return;
	if (shm && !sh_in_pool(dev, shm, n * sizeof(log->cqe[0])))
		place = shm < dev->shared_off ? sh_extend(dev, shm, n * sizeof(log->cqe[0]))
					      : -EINVAL;
	if (shm && place != -ENOMEM) {
		uint64_t *dst = sh_at(dev, shm);

		if (shm % 8 || place) {
			dev->ops->complain(dev->host, "a CQE outside the pool", log->hca,
					   log->comp_cqn);
			return;
		}
		for (unsigned int i = 0; i < n; i++, dst += 4)
			if (!redo || cqe_owner(dst) != cqe_owner(log->cqe[i]))
				sh_txn_put_cqe(dst, log->cqe[i]);
	} else {
		for (unsigned int i = 0; i < n; i++)
			copy_cqe(dev, log, i, redo);
	}
}

/* Raises events, which few transactions have. */
SH_OUTLINE void raise_events(struct sh_dev *dev, struct sh_txn *log)
{
	uint32_t i, nasync = log->nasync;

	if (log->comp_cqn)
		sh_comp_event_of(dev, log->hca, log->comp_cqn, log);
	for (i = 0; i < nasync && i < SH_TXN_ASYNC; i++)
		sh_affiliated_event_of(dev, log->hca, log->async[i].type, log->async[i].obj, log,
				       i + 1);
}

/* Carries out what comes after the stores: CQEs, then events. Clears the log. */
SH_INLINE void carry_out(struct sh_dev *dev, struct sh_txn *log, bool redo)
{
	if (log->cqe_ctx)
		put_cqes(dev, log, redo);
	if (log->comp_cqn || log->nasync)
		raise_events(dev, log);
	program_order();
	__atomic_store_n(&log->commit, 0, __ATOMIC_RELEASE);
}

/* ---- recovery ---- */

struct store {
	uint64_t *where, val;
};

/*
 * Reads the stores from the log, each once, since other processes can write to it. False: the log
 * is damaged.
 */
static bool read_stores(struct sh_dev *dev, const struct sh_txn *log, uint32_t n, struct store *to)
{
	uint32_t i;

	if (n > SH_TXN_STORES)
		return false;
	for (i = 0; i < n; i++) {
		uint64_t off = __atomic_load_n(&log->store[i].off, __ATOMIC_RELAXED);

		if (off % 8 || off < SH_CTX_OFF || off >= dev->pool_off)
			return false;
		to[i].where = sh_at(dev, off);
		to[i].val = __atomic_load_n(&log->store[i].val, __ATOMIC_RELAXED);
	}
	return true;
}

static void redo_stores(const struct store *store, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		__atomic_store_n(store[i].where, store[i].val, __ATOMIC_RELAXED);
}

/*
 * Recovers after the thread that died with this lock, which the caller holds now. 0, or -EBUSY:
 * another recovery takes too long.
 */
static int recover(struct sh_dev *dev, struct sh_lock *lock, bool bounded)
{
	struct sh_instance *inst = dev->inst;
	uint64_t word = lock->txn, off = word & SH_LOCK_TXN_OFF;

	if (off >= SH_HCA_OFF && off <= dev->pool_off - sizeof(struct sh_txn)) {
		struct sh_txn *log = sh_at(dev, off);
		uint32_t commit;

		if (sh_hold(dev, &inst->recovery, bounded ? SH_WAIT_BOUNDED : SH_WAIT_EVER) ==
		    -EBUSY)
			return -EBUSY;
		/* commit before seq: a transaction begun since changed seq first (sh_txn_begin) */
		commit = __atomic_load_n(&log->commit, __ATOMIC_ACQUIRE);
		if (commit && (__atomic_load_n(&log->seq, __ATOMIC_RELAXED) & SH_TXN_SEQ_MASK) ==
				      word >> SH_LOCK_TXN_SEQ_SHIFT) {
			struct store store[SH_TXN_STORES];

			if (read_stores(dev, log, commit - 1, store)) {
				redo_stores(store, commit - 1);
				carry_out(dev, log, true);
			} else {
				dev->ops->complain(dev->host, "a damaged log", log->hca,
						   log->comp_cqn);
				__atomic_store_n(&log->commit, 0, __ATOMIC_RELEASE);
			}
		}
		sh_let_go(&inst->recovery);
	} else if (off) {
		dev->ops->complain(dev->host, "a lock that names no log", 0, 0);
	}
	program_order();
	lock->txn = SH_LOCK_MADE;
	return 0;
}

int sh_lock_held(struct sh_dev *dev, struct sh_lock *lock, bool bounded)
{
	int err = lock->txn == SH_LOCK_MADE ? 0 : recover(dev, lock, bounded);

	/* The word stays, and tells the next owner. */
	if (err)
		sh_let_go(lock);
	return err;
}

void sh_lock_wait(struct sh_dev *dev, struct sh_lock *lock)
{
	while (sh_hold(dev, lock, SH_WAIT_EVER) < 0 || sh_lock_held(dev, lock, false))
		sched_yield();
}

int sh_lock_wait_within(struct sh_dev *dev, struct sh_lock *lock, enum sh_wait how)
{
	for (;;) {
		int err = sh_hold(dev, lock, how);

		if (err == -EINPROGRESS)
			return err;
		if (err >= 0 && !sh_lock_held(dev, lock, false))
			return 0;
		sched_yield();
	}
}

bool sh_defer_or_lock(struct sh_dev *dev, struct sh_lock *lock,
		      void (*fn)(struct sh_dev *, uint64_t, uint64_t), uint64_t a, uint64_t b)
{
	if (!sh_defer_once(dev, dev->ops->now(dev->host) + SH_PUT_OFF_NS, fn, a, b))
		return true;
	sh_lock(dev, lock);
	return false;
}

int sh_lock_bounded(struct sh_dev *dev, struct sh_lock *lock)
{
	return sh_hold(dev, lock, SH_WAIT_BOUNDED) < 0 ? -EBUSY : sh_lock_held(dev, lock, true);
}

int sh_trylock(struct sh_dev *dev, struct sh_lock *lock)
{
	return sh_hold(dev, lock, SH_WAIT_NOT) < 0 ? -EBUSY : sh_lock_held(dev, lock, true);
}

/* ---- building ---- */

void sh_txn_store32(struct sh_txn_open *t, uint32_t *where, uint32_t val)
{
	uint64_t *word = (uint64_t *)((uintptr_t)where & ~(uintptr_t)7);
	uint64_t *slot = NULL;
	unsigned int i, shift = ((uintptr_t)where & 4 ? 32 : 0) ^
				(__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 32 : 0);

	for (i = t->n; i-- > 0;)
		if (t->where[i] == word) {
			slot = &t->log->store[i].val;
			break;
		}
	if (!slot) {
		slot = sh_txn_slot(t, word);
		*slot = *word;
	}
	/*
	 * Whole words: if half of one were stored and all of it read back, the processor would
	 * stall.
	 */
	*slot = (*slot & ~(UINT64_C(0xffffffff) << shift)) | (uint64_t)val << shift;
}

int sh_txn_cqe(struct sh_txn_open *t, const struct sh_umem *buf, uint64_t off, const void *cqe)
{
	struct sh_txn *log = t->log;

	if (off > buf->len || buf->len - off < sizeof(log->cqe[0]))
		return -EFAULT;
	log->cqe_ctx = buf->ctx;
	log->cqe_addr = buf->uaddr + off;
	log->cqe_shm = buf->shm_off ? buf->shm_off + off : 0;
	log->ncqe = 1;
	memcpy(log->cqe[0], cqe, sizeof(log->cqe[0]));
	return 0;
}

void sh_txn_comp_event(struct sh_txn_open *t, uint32_t hca, uint32_t cqn)
{
	t->log->hca = hca;
	t->log->comp_cqn = cqn;
}

void sh_txn_async_event(struct sh_txn_open *t, uint32_t hca, uint32_t type, uint32_t obj)
{
	struct sh_txn *log = t->log;
	uint32_t i;

	for (i = 0; i < log->nasync; i++)
		if (log->async[i].type == type && log->async[i].obj == obj)
			return;
	if (i == SH_TXN_ASYNC)
		return;
	log->hca = hca;
	log->async[i].type = type;
	log->async[i].obj = obj;
	log->nasync = i + 1;
}

_Static_assert(offsetof(struct sh_txn, commit) % sizeof(uint64_t) == 0 &&
		       offsetof(struct sh_txn, seq) ==
			       offsetof(struct sh_txn, commit) + sizeof(uint32_t),
	       "one store");

/* What was committed. */
SH_INLINE void finish(struct sh_txn_open *t)
{
	struct sh_txn *log = t->log;
	unsigned int i;

	program_order();
	for (i = 0; i < t->n; i++)
		__atomic_store_n(t->where[i], log->store[i].val, __ATOMIC_RELAXED);
	carry_out(t->dev, log, false);
	program_order();
	for (i = 0; i < t->nlocks; i++)
		t->locks[i]->txn = SH_LOCK_MADE;
}

void sh_txn_commit(struct sh_txn_open *t)
{
	/* pairs with the acquire in recover() */
	__atomic_store_n(&t->log->commit, t->n + 1, __ATOMIC_RELEASE);
	finish(t);
}

enum sh_copy sh_txn_commit_last(struct sh_txn_open *t, const struct sh_last *last)
{
	/* pairs with the acquire in recover() */
	enum sh_copy err = sh_commit_last(t->dev, last, (uint64_t *)&t->log->commit,
					  sh_two(t->n + 1, t->log->seq));

	if (!err)
		finish(t);
	return err;
}
