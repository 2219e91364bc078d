/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Numbers, pages and keys that were taken away and are not to be reused yet.
 */
#ifndef SOFTHCA_KERNEL_ASIDE_H
#define SOFTHCA_KERNEL_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

struct kernel;
struct kproc;

struct aside {
	struct aside *prev, *next;
	uint64_t moment;    /* when its grace began; 0: it waits for a lock instead */
	bool set;	    /* it is in one of the two lists */
	struct kproc *proc; /* the owner of the pages, which outlives this; or NULL */
	/*
	 * Gives back what this is about, and frees it. False: a lock is still held. While the
	 * instance ends: frees it and returns true.
	 */
	bool (*finish)(struct kernel *k, struct aside *a);
};
void aside_until_left(struct kernel *k, struct aside *a,
		      bool (*finish)(struct kernel *k, struct aside *a));
void aside_until_unlocked(struct kernel *k, struct aside *a,
			  bool (*finish)(struct kernel *k, struct aside *a));
/* Until unlocked, with pages of that process. */
void aside_pages(struct kernel *k, struct aside *a, struct kproc *proc,
		 bool (*finish)(struct kernel *k, struct aside *a));
/*
 * Does a thread that has been in device code since before this moment run, rather than being
 * stopped there, or waiting for the lock of one that is?
 */
bool one_runs(struct kernel *k, uint64_t moment);
/* Does the thread run that holds the lock at this offset, although it entered after the request? */
bool holder_runs(struct kernel *k, uint64_t off);
/*
 * Has each thread left that has been in device code since before this moment, but for those that
 * wait_no_more() gave up?
 */
bool all_left(struct kernel *k, uint64_t moment);
/*
 * A request that came then (by the clock) still finds a thread in its way. Can that only be one
 * that is stopped in device code or waits for one that is? This ends the lives there of those that
 * are stopped, where they can be ended. True says that a thread is left which may store late.
 */
bool waits_in_vain(struct kernel *k, uint64_t since);
/* Has wait_no_more() given up each thread that is in device code? */
bool waited_for_all(struct kernel *k);
/* A request has waited too long for these threads. */
void wait_no_more(struct kernel *k, uint64_t moment);
/*
 * May a thread that wait_no_more() gave up know of what was made at that moment? One that has not
 * run since does not know of what was made later.
 */
bool may_know(struct kernel *k, uint64_t born);
/* Takes it off its list, if it is in one. */
void aside_take(struct kernel *k, struct aside *a);
void aside_sweep(struct kernel *k);
void aside_end(struct kernel *k);

#endif
