// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See ferry.h. A thread that asks waits for the daemon, which waits for no client. The thread may
 * hold locks of the device, which the daemon does without, if need be. The thread is pinned: if it
 * were thrown out of the wait, it would leave a copy to be made that it does not know of. If it is
 * killed, the daemon either finds its life over, and copies nothing, or still counts its process as
 * inside the device. Then no memory that the copy changes gets another use before the copy is done.
 */
#include <limits.h>
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

#define LOOK_NS 100000000 /* how often a thread that waits looks whether the daemon lives */

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

/* Has the daemon been killed? */
static bool abandoned(const struct sh_dev *dev)
{
	const struct sh_proc *daemon = sh_proc(dev, 0);
	uint32_t pid = __atomic_load_n(&daemon->pid, __ATOMIC_RELAXED);

	return !is_open(dev) || !pid || sh_thread_dead(pid);
}

/* Waits for the daemon's answer. False: there is none, and will be none. */
static bool answered(struct sh_dev *dev, struct sh_ferry *f)
{
	const struct timespec limit = {.tv_nsec = LOOK_NS};

	while (__atomic_load_n(&f->state, __ATOMIC_ACQUIRE) == SH_FERRY_ASKED)
		if (futex(&f->state, FUTEX_WAIT, SH_FERRY_ASKED, &limit) == -ETIMEDOUT &&
		    abandoned(dev))
			return false;
	return true;
}

static void call_daemon(struct sh_dev *dev, const struct sh_ferry *f)
{
	uint64_t slot = (uint64_t)(f - ferries(dev)->ferry);

	__atomic_fetch_or(&ferries(dev)->asked[slot / 64], UINT64_C(1) << slot % 64,
			  __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&sh_proc(dev, 0)->attention, 1, __ATOMIC_SEQ_CST);
	dev->ops->wake(dev->host, 0);
}

/*
 * This thread's place. The thread waits here only if the earlier thread of its slot was killed
 * during a request: for the daemon to finish that. NULL: the daemon makes no copies.
 */
static struct sh_ferry *place(struct sh_dev *dev, uint32_t proc)
{
	const uint64_t slot = sh_self_word(dev) & SH_OWNER_SLOT;
	struct sh_ferry *f;
	bool ready;

	if (!slot || slot > SH_MAX_EXEC || !is_open(dev))
		return NULL;
	f = &ferries(dev)->ferry[slot - 1];
	if (__atomic_load_n(&f->state, __ATOMIC_ACQUIRE) != SH_FERRY_ASKED)
		return f;
	/* The earlier thread may have been killed just before it called. */
	call_daemon(dev, f);
	sh_wait_begin(dev, SH_WAITS_COPY, proc, 0);
	ready = answered(dev, f);
	sh_wait_end(dev);
	return ready ? f : NULL;
}

static void *data_of(const struct sh_dev *dev, const struct sh_ferry *f)
{
	return sh_at(dev, SH_FERRY_DATA_OFF + (uint64_t)(f - ferries(dev)->ferry) * SH_FERRY_MAX);
}

/* Asks, and returns the daemon's answer. If none comes, the place stays as it is. */
static long ask(struct sh_dev *dev, struct sh_ferry *f)
{
	bool came;

	f->tid = (uint32_t)own_tid();
	f->asker = sh_self.word;
	__atomic_store_n(&f->state, SH_FERRY_ASKED, __ATOMIC_SEQ_CST);
	call_daemon(dev, f);
	sh_errands(dev);
	sh_wait_begin(dev, SH_WAITS_COPY, f->proc, 0);
	came = answered(dev, f);
	sh_wait_end(dev);
	return came ? f->result : -EPERM;
}

/* Copies between the thread's own memory, which may be missing, and a buffer. */
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

/* The daemon's thread copies for itself, since no other thread would answer it. */
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

/*
 * The daemon makes the copy. The room for the data gets memory when it is touched first. Only the
 * kernel touches it: where there is no memory, that is an error and no signal.
 */
static long by_daemon(struct sh_dev *dev, uint32_t proc, uint64_t witness, bool out,
		      const struct iovec *local, unsigned long nlocal, const struct iovec *remote,
		      size_t len)
{
	struct sh_ferry *f = place(dev, proc);
	long some = (long)len, done;
	void *data;

	if (!f)
		return -EPERM;
	data = data_of(dev, f);
	if (out)
		some = load(local, nlocal, data, len);
	if (some <= 0)
		return some;
	f->proc = proc;
	f->witness = witness;
	f->addr = (uintptr_t)remote->iov_base;
	f->out = out;
	f->len = (uint32_t)some;
	done = ask(dev, f);
	/* Other processes can write there. */
	if (done > some)
		done = -EFAULT;
	return out || done <= 0 ? done : unload(local, nlocal, data, (size_t)done);
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
	/* A signal handler must not use the place of the thread that it has interrupted. */
	if (!sh_inside())
		return -ESRCH;
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
			       __atomic_load_n(&f->addr, __ATOMIC_RELAXED), data_of(dev, f), len,
			       __atomic_load_n(&f->out, __ATOMIC_RELAXED));
}

static void serve_place(struct sh_dev *dev, struct sh_ferry *f)
{
	if (__atomic_load_n(&f->state, __ATOMIC_SEQ_CST) != SH_FERRY_ASKED)
		return;
	__atomic_store_n(&f->result, own.fn ? serve(dev, f) : -EPERM, __ATOMIC_RELAXED);
	__atomic_store_n(&f->state, SH_FERRY_DONE, __ATOMIC_SEQ_CST);
	/* Wakes the thread that asked, and one that has its slot by now. */
	futex(&f->state, FUTEX_WAKE, INT_MAX, NULL);
}

void sh_ferry_serve(struct sh_dev *dev)
{
	struct sh_ferries *all = ferries(dev);

	for (unsigned int i = 0; i < SH_MAX_EXEC / 64; i++) {
		uint64_t asked = __atomic_load_n(&all->asked[i], __ATOMIC_SEQ_CST);

		if (asked)
			asked = __atomic_exchange_n(&all->asked[i], 0, __ATOMIC_SEQ_CST);
		for (; asked; asked &= asked - 1)
			serve_place(dev,
				    &all->ferry[64 * i + (unsigned int)__builtin_ctzll(asked)]);
	}
}
