// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the daemon has taken away but cannot reuse yet: keys and pages that a thread in device code
 * may have looked up before (until it leaves), and objects whose lock a thread holds (until it lets
 * go). The loop comes back to them. Nothing here waits, and clients are not told.
 */
#include "softhca/device/memory/exec.h"
#include "softhca/host/process.h"
#include "aside.h"
#include "kern.h"
#include "lists.h"
#include "process.h"

/* Until then each lock is released that is held by a thread which does not stay in device code. */
#define VAIN_NS UINT64_C(20000000)

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

static bool stopped(struct kernel *k, uint32_t slot, uint32_t proc)
{
	const struct sh_exec *e = (struct sh_exec *)sh_at(&k->dev, SH_EXEC_OFF) + slot;

	if (proc >= SH_MAX_PROC || !k->proc[proc])
		return false;
	return number_stopped(k->proc[proc]->pid) ||
	       number_stopped((int)__atomic_load_n(&e->tid, __ATOMIC_RELAXED));
}

bool one_runs(struct kernel *k, uint64_t moment)
{
	uint32_t at = 0, proc;

	while (sh_grace_holder(&k->dev, k->stuck, moment, &at, &proc))
		if (!stopped(k, at - 1, proc))
			return true;
	return false;
}

bool all_left(struct kernel *k, uint64_t moment)
{
	return sh_grace_over(&k->dev, k->stale, moment) && !one_runs(k, moment);
}

bool waits_in_vain(struct kernel *k, uint64_t since, uint64_t moment)
{
	uint32_t at = 0, proc;

	/* Threads that have come since may hold what it waits for, and are waited for as always. */
	return sh_now() - since >= VAIN_NS && sh_grace_holder(&k->dev, 0, moment, &at, &proc) &&
	       all_left(k, UINT64_MAX);
}

void wait_no_more(struct kernel *k, uint64_t moment)
{
	if (one_runs(k, moment))
		k->stuck = moment;
	k->stale = moment;
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
