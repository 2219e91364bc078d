// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See ferry.h. A thread that asks waits for the daemon, which waits for no client. It may hold locks
 * of the device, which the daemon does without, if need be. It is pinned: a thread that was thrown
 * out of the wait would leave a copy to be made that it does not know of. If it is killed, the daemon
 * finds the life over that has asked, or its process still counts as inside the device, and nothing
 * that the copy changes is given to anyone else before the daemon is done with it.
 */
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>

#include "ferry.h"
#include "moves.h"
#include "process.h"
#include "softhca/device/memory/announce.h"
#include "softhca/device/memory/exec.h"
#include "softhca/device/memory/lock.h"
#include "sys.h"

#define LOOK_NS	   100000000 /* how often a thread that waits looks whether the daemon lives */
#define LOOK_TURNS 2000

/* In the daemon. */
static struct {
	sh_ferry_fn *fn;
	void *arg;
	int tid;
} own;

static struct sh_ferries *ferries(const struct sh_dev *dev)
{
	return sh_at(dev, SH_FERRIES_OFF);
}

static int own_tid(void)
{
	return (int)syscall(SYS_gettid);
}

static long futex(uint32_t *word, int op, uint32_t val, const struct timespec *limit)
{
	return sh_sys(syscall(SYS_futex, word, op, (long)val, limit, NULL, 0L));
}

static bool is_open(const struct sh_dev *dev)
{
	return __atomic_load_n(&ferries(dev)->open, __ATOMIC_SEQ_CST);
}

/* A place of a thread that has died is free when the daemon is done with it. */
static bool take_one(struct sh_dev *dev, struct sh_ferry *f, uint64_t me)
{
	uint64_t old = __atomic_load_n(&f->owner, __ATOMIC_ACQUIRE);

	if (old && !sh_owner_dead(dev, old))
		return false;
	if (__atomic_load_n(&f->state, __ATOMIC_ACQUIRE) == SH_FERRY_ASKED)
		return false;
	return __atomic_compare_exchange_n(&f->owner, &old, me, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

/* Has the daemon been killed? */
static bool abandoned(const struct sh_dev *dev)
{
	const struct sh_proc *daemon = sh_proc(dev, 0);
	uint32_t pid = __atomic_load_n(&daemon->pid, __ATOMIC_RELAXED);

	return !is_open(dev) || !pid || sh_thread_dead(pid);
}

/* NULL: the daemon makes no copies. */
static struct sh_ferry *take(struct sh_dev *dev)
{
	const uint64_t me = sh_self_word(dev);
	uint64_t first = me & SH_OWNER_SLOT;

	for (unsigned int turn = 0; me && is_open(dev); turn++) {
		for (uint64_t i = first; i < first + SH_FERRIES; i++) {
			struct sh_ferry *f = &ferries(dev)->ferry[i % SH_FERRIES];

			if (take_one(dev, f, me))
				return f;
		}
		sh_give_way(turn);
		if (turn % LOOK_TURNS == LOOK_TURNS - 1 && abandoned(dev))
			break;
	}
	return NULL;
}

/* The daemon's answer. The place stays as it is if none comes. */
static long ask(struct sh_dev *dev, struct sh_ferry *f, uint32_t pid)
{
	const struct timespec limit = {.tv_nsec = LOOK_NS};
	bool gone = false;

	f->tid = (uint32_t)own_tid();
	f->asker = sh_self.word;
	__atomic_store_n(&f->state, SH_FERRY_ASKED, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&sh_proc(dev, 0)->attention, 1, __ATOMIC_SEQ_CST);
	dev->ops->wake(dev->host, 0);
	sh_errands(dev);
	sh_wait_begin(dev, SH_WAITS_PAGES, pid, 0);
	while (!gone && __atomic_load_n(&f->state, __ATOMIC_ACQUIRE) == SH_FERRY_ASKED)
		gone = futex(&f->state, FUTEX_WAIT, SH_FERRY_ASKED, &limit) == -ETIMEDOUT &&
		       abandoned(dev);
	sh_wait_end(dev);
	return gone ? -EPERM : f->result;
}

static void put(struct sh_ferry *f)
{
	__atomic_store_n(&f->owner, 0, __ATOMIC_RELEASE);
}

/* Between the thread's own memory, which may be missing, and a buffer. */
static long load(const struct iovec *local, unsigned long nlocal, void *buf, size_t len)
{
	const struct iovec here = {.iov_base = buf, .iov_len = len};
	long done = sh_vm_readv(own_tid(), &here, 1, local, nlocal);

	return done > 0 ? done : -EFAULT;
}

static long unload(const struct iovec *local, unsigned long nlocal, void *buf, size_t len)
{
	const struct iovec here = {.iov_base = buf, .iov_len = len};
	long done = sh_vm_writev(own_tid(), &here, 1, local, nlocal);

	return done > 0 ? done : -EFAULT;
}

/* By the daemon's thread itself, which nobody else answers. */
static long at_once(uint32_t proc, uint64_t witness, bool out, const struct iovec *local,
		    unsigned long nlocal, const struct iovec *remote, size_t len)
{
	static char buf[SH_FERRY_MAX];
	long done = out ? load(local, nlocal, buf, len) : (long)len;

	if (done > 0)
		done = own.fn(own.arg, 0, proc, witness, (uintptr_t)remote->iov_base, buf,
			      (size_t)done, out);
	return out || done <= 0 ? done : unload(local, nlocal, buf, (size_t)done);
}

static long by_daemon(struct sh_dev *dev, uint32_t proc, uint64_t witness, bool out,
		      const struct iovec *local, unsigned long nlocal, const struct iovec *remote,
		      size_t len)
{
	struct sh_ferry *f = take(dev);
	const struct sh_proc *p = sh_proc(dev, proc);
	long done = (long)len;

	if (!f)
		return -EPERM;
	f->proc = proc;
	f->witness = witness;
	f->addr = (uintptr_t)remote->iov_base;
	f->out = out;
	if (out)
		done = load(local, nlocal, f->data, len);
	if (done > 0) {
		f->len = (uint32_t)done;
		done = ask(dev, f, p ? __atomic_load_n(&p->pid, __ATOMIC_RELAXED) : 0);
		if (done > (long)f->len)
			done = -EFAULT;
	}
	if (!out && done > 0)
		done = unload(local, nlocal, f->data, (size_t)done);
	put(f);
	return done;
}

long sh_ferry(uint32_t proc, uint64_t witness, bool out, const struct iovec *local,
	      unsigned long nlocal, const struct iovec *remote)
{
	size_t len = remote->iov_len < SH_FERRY_MAX ? remote->iov_len : SH_FERRY_MAX;
	struct sh_dev *dev = sh_process.dev;
	struct sh_door *door;
	long done;

	if (own.fn && own.tid == own_tid())
		return at_once(proc, witness, out, local, nlocal, remote, len);
	door = sh_pin();
	done = by_daemon(dev, proc, witness, out, local, nlocal, remote, len);
	sh_unpin(door);
	return done;
}

/* ---- the daemon's side ---- */

void sh_ferry_open(struct sh_dev *dev, sh_ferry_fn *fn, void *arg)
{
	own.tid = own_tid();
	own.arg = arg;
	own.fn = fn;
	__atomic_store_n(&ferries(dev)->open, fn != NULL, __ATOMIC_SEQ_CST);
}

/* What other processes have written there is read once. */
static int32_t serve(struct sh_dev *dev, struct sh_ferry *f)
{
	uint64_t asker = __atomic_load_n(&f->asker, __ATOMIC_RELAXED);
	uint32_t len = __atomic_load_n(&f->len, __ATOMIC_RELAXED), tid;

	if (!len || len > SH_FERRY_MAX)
		return -EFAULT;
	tid = __atomic_load_n(&f->tid, __ATOMIC_RELAXED);
	if (!tid || !sh_inside_still(dev, asker))
		return -ESRCH;
	return (int32_t)own.fn(own.arg, tid, __atomic_load_n(&f->proc, __ATOMIC_RELAXED),
			       __atomic_load_n(&f->witness, __ATOMIC_RELAXED),
			       __atomic_load_n(&f->addr, __ATOMIC_RELAXED), f->data, len,
			       __atomic_load_n(&f->out, __ATOMIC_RELAXED));
}

void sh_ferry_serve(struct sh_dev *dev)
{
	for (struct sh_ferry *f = ferries(dev)->ferry; f < ferries(dev)->ferry + SH_FERRIES; f++) {
		if (__atomic_load_n(&f->state, __ATOMIC_SEQ_CST) != SH_FERRY_ASKED)
			continue;
		__atomic_store_n(&f->result, own.fn ? serve(dev, f) : -EPERM, __ATOMIC_RELAXED);
		__atomic_store_n(&f->state, SH_FERRY_DONE, __ATOMIC_SEQ_CST);
		futex(&f->state, FUTEX_WAKE, 1, NULL);
	}
}
