// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Each process looks whether the wire's engine lives. The daemon fails the card when the engine
 * ends, but it may have been killed with the engine. A process that has left requests to the engine
 * looks once a second, by its helper thread. When the kernel says that the thread which holds
 * wire.alive has died, the process takes its requesters back: from the engine's timers, and from an
 * engine that ended while it ran them.
 */
#include "softhca/device/memory/exec.h"
#include "requester.h"
#include "wire.h"

#define LOOK_NS UINT64_C(1000000000)

/*
 * The time of this process's next look; 0: there is none. A child has it from its parent, whose
 * helper looks.
 */
static uint64_t next_look;
static uint32_t looks_for;

static bool engine_lives(struct sh_dev *dev)
{
	pthread_mutex_t *alive = &dev->inst->wire.alive;
	int err = pthread_mutex_trylock(alive);

	/* Not made consistent: each process that looks from now on gets an error, too. */
	if (!err || err == EOWNERDEAD)
		pthread_mutex_unlock(alive);
	/* If the lock was free, the engine is about to come. */
	return !err || err == EBUSY;
}

/*
 * May the engine have left something undone there? A thread of this process that runs it goes on.
 */
static bool is_abandoned(const struct sh_dev *dev, const struct sh_qp *qp)
{
	return (qp->type == SH_QPT_UD || sh_wire_leads(dev, qp->path.dlid)) &&
	       (!qp->engine || qp->engine == qp->wire_engine);
}

/* Is it one of this process, which alone looks after it? */
static bool is_own(struct sh_dev *dev, const struct sh_qp *qp)
{
	uint32_t number = __atomic_load_n(&qp->ctx, __ATOMIC_RELAXED);
	const struct sh_ctx *ctx = number ? sh_ctx(dev, number) : NULL;

	return ctx && ctx->proc == dev->proc;
}

static void inherit_late(struct sh_dev *dev, uint64_t hca, uint64_t slot);

static void inherit_one(struct sh_dev *dev, uint32_t index, uint32_t slot, uint64_t unused)
{
	struct sh_hca *hca = sh_hca(dev, index);
	struct sh_qp *qp = hca ? sh_qp_slot(dev, index, slot) : NULL;

	(void)unused;
	/* A card that has failed stays silent. */
	if (!qp || !is_own(dev, qp) || __atomic_load_n(&hca->fatal, __ATOMIC_RELAXED))
		return;
	if (sh_lock_within(dev, &qp->lock, SH_WAIT_BRIEFLY) &&
	    sh_defer_or_lock(dev, &qp->lock, inherit_late, index, slot))
		return;
	if (is_own(dev, qp) && qp->sq_present && is_abandoned(dev, qp))
		sh_requester_inherit(dev, hca, qp);
	else
		sh_unlock(dev, &qp->lock);
}

static void inherit_late(struct sh_dev *dev, uint64_t hca, uint64_t slot)
{
	bool entered = sh_enter(dev);

	sh_catch(dev, (uint32_t)hca, (uint32_t)slot, 0, inherit_one);
	if (entered)
		sh_leave(dev);
}

static void inherit(struct sh_dev *dev, uint32_t u1, uint32_t u2, uint64_t u3)
{
	(void)u1, (void)u2, (void)u3;
	for (uint32_t i = 0; i < dev->hcas; i++) {
		struct sh_hca *hca = sh_hca(dev, i);
		uint32_t used = hca ? __atomic_load_n(&hca->qp_used, __ATOMIC_RELAXED) : 0;

		for (uint32_t n = 0; n < used; n++)
			inherit_one(dev, i, n, 0);
	}
}

static void looks(struct sh_dev *dev, uint64_t when, uint64_t unused);

static void look_at(struct sh_dev *dev, uint64_t when)
{
	if (sh_defer(dev, when, looks, when, 0))
		__atomic_store_n(&next_look, 0, __ATOMIC_RELAXED);
}

static void looks(struct sh_dev *dev, uint64_t when, uint64_t unused)
{
	uint64_t next = dev->ops->now(dev->host) + LOOK_NS;
	bool entered;

	(void)unused;
	/* Pairs with sh_wire_watch(): only one of two calls goes on. */
	if (!__atomic_compare_exchange_n(&next_look, &when, next, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	if (engine_lives(dev)) {
		look_at(dev, next);
		return;
	}
	__atomic_store_n(&dev->inst->wire.lost, 1, __ATOMIC_SEQ_CST);
	entered = sh_enter(dev);
	sh_catch(dev, 0, 0, 0, inherit);
	if (entered)
		sh_leave(dev);
}

void sh_wire_watch(struct sh_dev *dev)
{
	uint64_t then = __atomic_load_n(&next_look, __ATOMIC_RELAXED);
	uint64_t now = dev->ops->now(dev->host), next = now + LOOK_NS;
	struct sh_door *door;

	/* A look that is long overdue was forgotten with another instance. */
	if (then && now < then + 2 * LOOK_NS &&
	    __atomic_load_n(&looks_for, __ATOMIC_RELAXED) == dev->proc)
		return;
	/*
	 * Pinned: a thread that is thrown in between would leave the time of a look, but no timer
	 * for it.
	 */
	door = sh_pin();
	if (__atomic_compare_exchange_n(&next_look, &then, next, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED)) {
		__atomic_store_n(&looks_for, dev->proc, __ATOMIC_RELAXED);
		look_at(dev, next);
	}
	sh_unpin(door);
}
