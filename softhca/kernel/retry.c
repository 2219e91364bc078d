// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests that found a client's thread in their way: keeps each with its connection and tries it
 * again by a timer, while other clients are served. The same timer carries on contexts that could
 * not be ended, things that are set aside, locks that dead threads held, and events that were
 * spilled. Owns server.kept, server.again, server.nap and server.suspect.
 */
#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "softhca/host/process.h"
#include "softhca/device/memory/exec.h"
#include "aside.h"
#include "conn.h"
#include "dispatch.h"
#include "files.h"
#include "kern.h"
#include "lists.h"
#include "orphans.h"
#include "ports.h"
#include "retry.h"
#include "room.h"
#include "server.h"

/*
 * How long threads may be in the way of a request; and how long if they run, since they may be
 * copying much.
 */
#define PATIENCE_NS	UINT64_C(2000000000)
#define PATIENCE_RUN_NS UINT64_C(10000000000)
/* Until a request is tried again; each nap is twice the one before, up to LAST_NAP_NS. */
#define FIRST_NAP_NS UINT64_C(50000)
#define LAST_NAP_NS  UINT64_C(10000000)
/* A thread that has been in the way for so long may be stopped. */
#define SUSPECT_NAP_NS UINT64_C(1500000)
/* The longest nap if no client waits. */
#define IDLE_NAP_NS UINT64_C(1000000000)

static bool unfinished(const struct kernel *k)
{
	if (k->graced || k->locked || k->loud || orphans_left(k))
		return true;
	for (uint32_t i = 0; rooms[i]; i++)
		if (rooms[i]->unfinished && rooms[i]->unfinished(k))
			return true;
	return false;
}

/* Sets the timer, if there is something to come back to. */
static void nap(struct server *s, uint64_t ns)
{
	struct itimerspec t = {0};
	uint64_t longest = s->kept ? LAST_NAP_NS : IDLE_NAP_NS;

	if (!s->kept && !unfinished(s->k))
		ns = 0;
	else if (ns > longest)
		ns = longest;
	if (ns == s->nap && !ns)
		return;
	s->nap = ns;
	t.it_value.tv_sec = (time_t)(ns / 1000000000);
	t.it_value.tv_nsec = (long)(ns % 1000000000);
	(void)timerfd_settime(s->again, 0, &t, NULL);
}

/* There is something new to come back to, soon. */
static void nap_anew(struct server *s)
{
	if (!s->nap || s->nap > FIRST_NAP_NS)
		nap(s, FIRST_NAP_NS);
}

int retry_keep(struct server *s, struct conn *c, size_t len)
{
	if (len > sizeof(c->kept))
		return -EPROTO;
	memcpy(c->kept, s->message, len);
	c->kept_len = len;
	c->since = sh_now();
	c->moment = sh_grace_begin(&s->k->dev);
	DL_APPEND(s->kept, c);
	nap_anew(s);
	return 0;
}

void retry_forget(struct server *s, struct conn *c)
{
	if (c->kept_len)
		DL_DELETE(s->kept, c);
	c->kept_len = 0;
}

/*
 * Asked after a try in vain, which has noted the lock that was in its way. The thread that holds
 * that lock may have come after the request. It may still copy much, into memory that is the
 * program's after the answer.
 */
static bool is_late(struct kernel *k, const struct conn *c)
{
	uint64_t waited = sh_now() - c->since;

	return waited >= PATIENCE_RUN_NS ||
	       (waited >= PATIENCE_NS && !one_runs(k, c->moment) &&
		!holder_runs(k, __atomic_load_n(&k->dev.busy_lock, __ATOMIC_RELAXED)));
}

/*
 * Tries first, and then asks whose lock is in the way: since the try before, a stopped holder may
 * have let go, and another thread have taken the lock. *late: the request waits no longer.
 */
static int try_again(struct server *s, struct conn *c, bool *late)
{
	int err;

	*late = false;
	__atomic_store_n(&s->k->dev.busy_lock, 0, __ATOMIC_RELAXED);
	err = dispatch(s, c, c->kept, c->kept_len, false);
	if (err != -EINPROGRESS || !is_late(s->k, c))
		return err;
	*late = true;
	return dispatch(s, c, c->kept, c->kept_len, true);
}

/*
 * Before another try after a long nap. A thread that the last such look found, and this one does,
 * has not moved on since.
 */
static void suspect(struct server *s)
{
	if (s->nap < SUSPECT_NAP_NS) {
		s->suspect = 0;
		return;
	}
	if (s->suspect)
		sh_grace_suspect(&s->k->dev, s->suspect);
	s->suspect = sh_grace_begin(&s->k->dev);
}

void retry_all(struct server *s)
{
	struct conn *c, *tmp;
	uint64_t n;

	if (read(s->again, &n, sizeof(n)) < 0)
		return;
	suspect(s);
	files_drain(s);
	DL_FOREACH_SAFE(s->kept, c, tmp)
	{
		bool late;
		int err = try_again(s, c, &late);

		if (err == -EINPROGRESS)
			continue;
		if (late && !one_runs(s->k, c->moment))
			wait_no_more(s->k, c->moment);
		s->k->count.late += late;
		retry_forget(s, c);
		if (err < 0)
			conn_close(s, c);
	}
	hcas_retry(s->k);
	aside_sweep(s->k);
	orphans_free(s->k);
	ROOMS(retry, s->k);
	nap(s, s->nap ? s->nap * 2 : FIRST_NAP_NS);
}

void retry_begin(struct server *s)
{
	if (!s->nap && unfinished(s->k))
		nap_anew(s);
}
