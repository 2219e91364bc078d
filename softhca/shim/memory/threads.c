// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls that create a thread. Before the first one registered memory is made private, while the
 * process is still. Later the threads would have to be held off, which cannot be done unnoticed.
 */
#include <aio.h>
#include <mqueue.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <threads.h>
#include <time.h>

#include "softhca/host/process.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"
#include "share.h"
#include "softhca/shim/signals/timers.h"

/*
 * Returns 0 or -ENOMEM: pages that stay as they are would be a danger to a child made later. They
 * do for want of memory, where the daemon lives and cannot be told, and while another process
 * reaches into this one.
 */
static int before(uint64_t low, uint64_t high)
{
	int err;

	if (!shim_active())
		return 0;
	err = shim_make_private_first(low, high);
	return err == -ENOMEM || err == -ENOTCONN || err == -EAGAIN ? -ENOMEM : 0;
}

/*
 * The stack that a thread is to have, with its descriptor at the end. False: the C library provides
 * it.
 */
static bool stack_of(const pthread_attr_t *attr, uint64_t *low, uint64_t *high)
{
	void *addr;
	size_t size;

	*low = *high = 0;
	/* If no stack was set, what the attributes report ends at 0. */
	if (!attr || pthread_attr_getstack(attr, &addr, &size) || !((uintptr_t)addr + size))
		return false;
	*low = (uintptr_t)addr;
	*high = *low + size;
	return true;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	uint64_t low, high;
	bool own;

	if (sh_process_helper_starting())
		return REAL(pthread_create)(thread, attr, fn, arg);
	own = stack_of(attr, &low, &high);
	/* A forked child would miss a descriptor in memory that it does not have from the start. */
	if (before(low, high) || (own && shim_shares_now(low, high - low)))
		return EAGAIN;
	return REAL(pthread_create)(thread, attr, fn, arg);
}

EXPORT int thrd_create(thrd_t *thread, thrd_start_t fn, void *arg)
{
	return before(0, 0) ? thrd_nomem : REAL(thrd_create)(thread, fn, arg);
}

/* ---- threads of the C library's own ---- */

static bool by_thread(const struct sigevent *ev)
{
	return ev && ev->sigev_notify == SIGEV_THREAD;
}

#define REFUSED(cond)                                                                              \
	do {                                                                                       \
		if ((cond) && before(0, 0)) {                                                      \
			errno = EAGAIN;                                                            \
			return -1;                                                                 \
		}                                                                                  \
	} while (0)

EXPORT int timer_create(clockid_t clock, struct sigevent *ev, timer_t *timer)
{
	struct sigevent copy;

	REFUSED(by_thread(ev));
	return REAL(timer_create)(clock, by_thread(ev) ? timers_event(ev, &copy) : ev, timer);
}

EXPORT int mq_notify(mqd_t mq, const struct sigevent *ev)
{
	REFUSED(by_thread(ev));
	return REAL(mq_notify)(mq, ev);
}

EXPORT int aio_read(struct aiocb *cb)
{
	REFUSED(true);
	return REAL(aio_read)(cb);
}

EXPORT int aio_write(struct aiocb *cb)
{
	REFUSED(true);
	return REAL(aio_write)(cb);
}

EXPORT int aio_fsync(int op, struct aiocb *cb)
{
	REFUSED(true);
	return REAL(aio_fsync)(op, cb);
}

EXPORT int lio_listio(int mode, struct aiocb *const cbs[], int n, struct sigevent *ev)
{
	REFUSED(true);
	return REAL(lio_listio)(mode, cbs, n, ev);
}

EXPORT int aio_read64(struct aiocb64 *cb);
EXPORT int aio_read64(struct aiocb64 *cb)
{
	REFUSED(true);
	return REAL(aio_read64)(cb);
}

EXPORT int aio_write64(struct aiocb64 *cb);
EXPORT int aio_write64(struct aiocb64 *cb)
{
	REFUSED(true);
	return REAL(aio_write64)(cb);
}

EXPORT int aio_fsync64(int op, struct aiocb64 *cb);
EXPORT int aio_fsync64(int op, struct aiocb64 *cb)
{
	REFUSED(true);
	return REAL(aio_fsync64)(op, cb);
}

EXPORT int lio_listio64(int mode, struct aiocb64 *const cbs[], int n, struct sigevent *ev);
EXPORT int lio_listio64(int mode, struct aiocb64 *const cbs[], int n, struct sigevent *ev)
{
	REFUSED(true);
	return REAL(lio_listio64)(mode, cbs, n, ev);
}

EXPORT int getaddrinfo_a(int mode, struct gaicb *list[], int n, struct sigevent *ev)
{
	if (before(0, 0))
		return EAI_AGAIN;
	return REAL(getaddrinfo_a)(mode, list, n, ev);
}
