// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Timers that tell by SIGEV_THREAD. The C library makes these threads by itself, with every signal
 * blocked, and in trap a doorbell that they ring is a SIGBUS. So a function of this library
 * unblocks that and calls the program's.
 *
 * What it is to call stands in a table. Entries stay for ever, since a notification may be on its
 * way when timer_delete() has returned. Timers with the same function and value have one.
 */
#include <pthread.h>
#include <string.h>

#include "softhca/host/sys.h"
#include "softhca/shim/attach.h"
#include "signals.h"
#include "timers.h"

#define CHUNK  4096 /* bytes of entries that are allocated at a time */
#define CHAINS 1024

struct call {
	void (*fn)(union sigval value);
	union sigval value;
	struct call *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct call *chain[CHAINS];
static struct call *room; /* what is left of a chunk */
static size_t left;

static void notify(union sigval value)
{
	const struct call *call = value.sival_ptr;

	shim_signals_open();
	call->fn(call->value);
}

static struct call **chain_of(const struct sigevent *ev)
{
	uint64_t both = (uintptr_t)ev->sigev_notify_function ^ (uintptr_t)ev->sigev_value.sival_ptr;

	return &chain[(both * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}

_Static_assert(CHAINS == 1 << 10, "the upper 10 bits of a product");

/* The lock is held. NULL: there is no memory. */
static struct call *make(struct call **first, const struct sigevent *ev)
{
	struct call *call;

	if (!left) {
		room = sh_pages(CHUNK);
		left = room ? CHUNK / sizeof(*room) : 0;
	}
	if (!left)
		return NULL;
	call = room++;
	left--;
	*call = (struct call){ev->sigev_notify_function, ev->sigev_value, *first};
	*first = call;
	return call;
}

static struct call *find(const struct sigevent *ev)
{
	struct call **first = chain_of(ev), *call = *first;

	while (call && (call->fn != ev->sigev_notify_function ||
			call->value.sival_ptr != ev->sigev_value.sival_ptr))
		call = call->next;
	return call ? call : make(first, ev);
}

struct sigevent *timers_event(struct sigevent *ev, struct sigevent *copy)
{
	struct call *call;

	if (!shim_active() || !ev->sigev_notify_function)
		return ev;
	pthread_mutex_lock(&lock);
	call = find(ev);
	pthread_mutex_unlock(&lock);
	if (!call)
		return ev;
	*copy = *ev;
	copy->sigev_notify_function = notify;
	copy->sigev_value.sival_ptr = call;
	return copy;
}

/*
 * Another thread of the parent may have been about to make an entry: what is complete is in a
 * chain.
 */
void timers_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	left = 0;
}
