// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the daemon has taken away but cannot reuse yet: keys and pages that a thread in device code
 * may have looked up before (until it leaves), and objects whose lock a thread holds (until it lets
 * go). The loop comes back to them. Nothing here waits, and clients are not told.
 */
#include "softhca/device/memory/announce.h"
#include "softhca/device/memory/exec.h"
#include "softhca/host/process.h"
#include "aside.h"
#include "kern.h"
#include "lists.h"
#include "process.h"

/*
 * Until then each lock is released that is held by a thread which does not stay in device code, and
 * the life there of a thread that is stopped has ended, if it can be ended.
 */
#define VAIN_NS UINT64_C(20000000)
/*
 * More threads than wait for each other in a row: each has a lock further up in the order of locks.
 */
#define CHAIN 8

/* The list is in the order in which graces began: if one is not over, those behind it are not. */
static void sweep_graced(struct kernel *k)
{
	struct aside *a, *tmp;

	DL_FOREACH_SAFE(k->graced, a, tmp)
	{
		if (!sh_grace_over(&k->dev, 0, a->moment))
			return;
		DL_DELETE(k->graced, a);
		a->set = false;
		(void)a->finish(k, a);
	}
}

void aside_sweep(struct kernel *k)
{
	struct aside *a, *tmp, *all;

	sweep_graced(k);
	all = k->locked;
	k->locked = NULL;
	DL_FOREACH_SAFE(all, a, tmp)
	{
		a->set = false;
		if (!a->finish(k, a))
			aside_until_unlocked(k, a, a->finish);
	}
}

void aside_until_left(struct kernel *k, struct aside *a,
		      bool (*finish)(struct kernel *k, struct aside *a))
{
	a->finish = finish;
	a->moment = sh_grace_begin(&k->dev);
	a->set = true;
	DL_APPEND(k->graced, a);
}

void aside_until_unlocked(struct kernel *k, struct aside *a,
			  bool (*finish)(struct kernel *k, struct aside *a))
{
	a->finish = finish;
	a->moment = 0;
	a->set = true;
	DL_APPEND(k->locked, a);
}

static const struct sh_exec *slot_at(const struct kernel *k, uint32_t slot)
{
	return (struct sh_exec *)sh_at(&k->dev, SH_EXEC_OFF) + slot;
}

static struct kproc *process_at(const struct kernel *k, uint32_t proc)
{
	return proc < SH_MAX_PROC ? k->proc[proc] : NULL;
}

/* Is it stopped, or frozen? */
static bool is_stopped(struct kernel *k, uint32_t slot)
{
	const struct sh_exec *e = slot_at(k, slot);
	uint32_t proc = __atomic_load_n(&e->proc, __ATOMIC_RELAXED);
	struct kproc *p = process_at(k, proc);

	if (!p)
		return false;
	return number_stopped(p->pid) ||
	       number_stopped((int)__atomic_load_n(&e->tid, __ATOMIC_RELAXED)) || proc_stands(p);
}

/* The slot of the thread that holds the lock at this offset. False: there is none. */
static bool holds(const struct kernel *k, uint64_t off, uint32_t *slot)
{
	uint64_t owner;

	if (off % _Alignof(struct sh_lock) || off > k->dev.pool_off - sizeof(struct sh_lock))
		return false;
	owner = __atomic_load_n(&((struct sh_lock *)sh_at(&k->dev, off))->owner, __ATOMIC_RELAXED);
	*slot = (uint32_t)(owner & SH_OWNER_SLOT) - 1;
	return *slot < SH_MAX_EXEC &&
	       __atomic_load_n(&slot_at(k, *slot)->generation, __ATOMIC_SEQ_CST) ==
		       owner >> SH_OWNER_GENERATION;
}

/* The slot of the thread that holds the lock which this one sleeps for. False: there is none. */
static bool waits_for(const struct kernel *k, uint32_t *slot)
{
	const struct sh_exec *e = slot_at(k, *slot);

	/* pairs with the release in sh_wait_begin() */
	return __atomic_load_n(&e->waits, __ATOMIC_ACQUIRE) == SH_WAITS_LOCK &&
	       holds(k, __atomic_load_n(&e->waits_a, __ATOMIC_RELAXED), slot);
}

/* Is the thread stopped, or does it wait for one that is? */
static bool stands(struct kernel *k, uint32_t slot)
{
	for (unsigned int i = 0; i < CHAIN; i++) {
		if (is_stopped(k, slot))
			return true;
		if (!waits_for(k, &slot))
			break;
	}
	return false;
}

bool one_runs(struct kernel *k, uint64_t moment)
{
	uint32_t at = 0, proc;

	while (sh_grace_holder(&k->dev, k->stuck, moment, &at, &proc))
		if (!stands(k, at - 1))
			return true;
	return false;
}

bool holder_runs(struct kernel *k, uint64_t off)
{
	uint32_t slot;

	return off && holds(k, off, &slot) && !stands(k, slot);
}

bool all_left(struct kernel *k, uint64_t moment)
{
	return sh_grace_over(&k->dev, k->stale, moment) && !one_runs(k, moment);
}

bool waits_in_vain(struct kernel *k, uint64_t since)
{
	uint32_t at = 0, proc;

	/* Threads that have come since may hold what it waits for. */
	if (sh_now() - since < VAIN_NS || one_runs(k, UINT64_MAX))
		return false;
	/*
	 * The daemon itself may have had no processor for as long. Where this frees a lock, the
	 * thread that waited for it goes on.
	 */
	sh_grace_suspect(&k->dev, UINT64_MAX);
	return !one_runs(k, UINT64_MAX) && sh_grace_holder(&k->dev, 0, UINT64_MAX, &at, &proc);
}

bool waited_for_all(struct kernel *k)
{
	return sh_grace_over(&k->dev, k->stale, UINT64_MAX);
}

void wait_no_more(struct kernel *k, uint64_t moment)
{
	uint32_t at = 0, proc;

	if (one_runs(k, moment))
		k->stuck = moment;
	k->stale = moment;
	k->gave_up = sh_grace_begin(&k->dev);
	/* A first look, for may_know(). */
	while (sh_grace_holder(&k->dev, 0, moment, &at, &proc))
		if (process_at(k, proc))
			(void)proc_asleep(process_at(k, proc), 0);
	k->gave_up_at = sh_now();
}

bool may_know(struct kernel *k, uint64_t born)
{
	uint32_t at = 0, slot, proc;

	if (born < k->gave_up)
		return true;
	while (sh_grace_holder(&k->dev, 0, k->stale, &at, &proc)) {
		slot = at - 1;
		/* A thread that waits for another one's lock wakes up now and then, for nothing. */
		if (!waits_for(k, &slot) && process_at(k, proc) &&
		    !proc_asleep(process_at(k, proc), sh_now() - k->gave_up_at))
			return true;
	}
	return false;
}

/*
 * Windows of pages refer to the process, so it stays until they are given back, even if it has
 * ended.
 */
void aside_pages(struct kernel *k, struct aside *a, struct kproc *proc,
		 bool (*finish)(struct kernel *k, struct aside *a))
{
	a->proc = proc;
	proc->refs++;
	aside_until_unlocked(k, a, finish);
}

void aside_take(struct kernel *k, struct aside *a)
{
	if (!a->set)
		return;
	if (a->moment)
		DL_DELETE(k->graced, a);
	else
		DL_DELETE(k->locked, a);
	a->set = false;
}

/* The instance ends: what is left is memory of the daemon's own. */
void aside_end(struct kernel *k)
{
	struct aside *a, *tmp;

	k->ending = true;
	DL_FOREACH_SAFE(k->graced, a, tmp)
	(void)a->finish(k, a);
	DL_FOREACH_SAFE(k->locked, a, tmp)
	(void)a->finish(k, a);
	k->graced = k->locked = NULL;
}
