// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Announcements of sleeping threads: announce.h. Only the thread itself writes its announcement,
 * and no code that carries a message reads it.
 */
#include <time.h>

#include "announce.h"
#include "exec.h"
#include "lock.h"

/* This thread's slot, or NULL. */
static struct sh_exec *own_slot(struct sh_dev *dev)
{
	if (sh_self.inst != dev->inst || !sh_self.word)
		return NULL;
	return (struct sh_exec *)sh_at(dev, SH_EXEC_OFF) + (sh_self.word & SH_OWNER_SLOT) - 1;
}

void sh_wait_begin(struct sh_dev *dev, enum sh_waits what, uint64_t a, uint64_t b)
{
	struct sh_exec *e = own_slot(dev);

	/* Entering the device gives the thread a slot, and holds back signal handlers meanwhile. */
	if (!e && sh_enter(dev)) {
		sh_leave(dev);
		e = own_slot(dev);
	}
	if (!e)
		return;
	e->waits_since = dev->ops->now(dev->host);
	e->waits_a = a;
	e->waits_b = b;
	/* pairs with the acquire in sh_each_thread() */
	__atomic_store_n(&e->waits, what, __ATOMIC_RELEASE);
}

void sh_wait_end(struct sh_dev *dev)
{
	struct sh_exec *e = own_slot(dev);

	if (e)
		__atomic_store_n(&e->waits, SH_WAITS_NOT, __ATOMIC_RELAXED);
}
