/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The order in which threads take locks of device memory, as docs/memory-order.md has it, checked
 * while unit tests run. softhca/device/Makefile.am compiles the device once more with this header
 * in front of each source, for libsofthca-ordered.a. What users get knows nothing of it.
 *
 * A thread that would wait for a lock breaks the order if it has a lock that does not come before.
 * A thread that tries a lock and goes on without it makes no others wait in a circle, and may try
 * any; but of some kinds no thread has two in any way. What a lock is follows from its place in
 * device memory.
 *
 * A lock counts as held until it is let go, and only while its word names this thread. So those of
 * a thread that was thrown or forked do not count, and those that are taken over from a dead thread
 * do. Code that is compiled without this header, as tests and the daemon are, may let go what the
 * device has taken for it; what it takes by itself counts if it waits for it.
 */
#ifndef TESTS_UNIT_SOFTHCA_ORDER_H
#define TESTS_UNIT_SOFTHCA_ORDER_H

#include "softhca/device/memory/lock.h"

enum order_broken {
	ORDER_LATER,	/* waits for a lock that comes before one that it has */
	ORDER_TWO,	/* has two of a kind of which no thread has two */
	ORDER_OWN,	/* waits for a lock that it has */
	ORDER_WAITS,	/* waits for a lock that threads only try */
	ORDER_NAMELESS, /* takes a lock that the order does not name */
};

#define ORDER_FRAMES 8
/*
 * A lock that a thread has or wants: its name, and who called whom when it was taken, the last call
 * first.
 */
struct order_lock {
	char name[80];
	void *from[ORDER_FRAMES];
};

/*
 * Called when the order is broken, with the lock that the thread wants and the one that it has
 * (NULL with ORDER_WAITS and ORDER_NAMELESS). At first this prints both with the places where they
 * were taken, and ends the process; the test then fails, though the process be one that it would
 * have killed.
 */
extern void (*order_on_break)(enum order_broken how, const struct order_lock *wants,
			      const struct order_lock *has);
/* What it prints. */
void order_print(int fd, enum order_broken how, const struct order_lock *wants,
		 const struct order_lock *has);

/* This thread would have waited for the lock, and has it now. True. */
bool order_took(struct sh_dev *dev, struct sh_lock *lock);

static inline bool order_hold_free(struct sh_dev *dev, struct sh_lock *lock)
{
	return sh_hold_free(dev, lock) && order_took(dev, lock);
}

/* This thread lets it go. */
void order_gives(struct sh_lock *lock);

static inline void order_let_go(struct sh_lock *lock)
{
	order_gives(lock);
	sh_let_go(lock);
}

/* For txn.h and all that includes it. */
#define sh_hold_free order_hold_free
#define sh_let_go    order_let_go

#endif
