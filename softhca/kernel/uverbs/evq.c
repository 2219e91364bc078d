// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Event queues: the FIFOs (fifo.h) behind completion channels and asynchronous event files. Clients
 * write to them, too. When a client closes its own end, the daemon sees IN_CLOSE_NOWRITE. It may
 * also see that when another program has looked into the directory, so the lock on the client's end
 * (fifo_lock()) decides. Where the file system has no such locks, the event alone does: no other
 * descriptor of a FIFO is open for reading only.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "softhca/device/memory/event.h"
#include "softhca/device/memory/txn.h"
#include "softhca/kernel/process.h"
#include "softhca/kernel/server.h"
#include "softhca/kernel/lists.h"
#include "context.h"
#include "evq.h"
#include "room.h"
#include "uverbs-abi.h"
#include "uverbs.h"
#include "softhca/host/process.h"

/* 0 is not a queue: all are in use. */
static uint32_t free_index(struct kernel *k)
{
	uint32_t i, index;

	for (i = 0; i < SH_MAX_EVQ; i++) {
		index = (k->uverbs->evq_next + i) % SH_MAX_EVQ;
		if (index && !k->uverbs->evq[index] && !k->uverbs->evq_aside[index]) {
			k->uverbs->evq_next = index + 1;
			return index;
		}
	}
	return 0;
}

int evq_open(struct kctx *ctx, bool async, struct kevq **out, int *client_fd)
{
	struct kernel *k = ctx->k;
	struct kevq *e;
	int fd, err;

	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->index = free_index(k);
	if (!e->index) {
		free(e);
		return -ENOMEM;
	}
	if (!++k->uverbs->evq_gen[e->index])
		++k->uverbs->evq_gen[e->index];
	e->generation = k->uverbs->evq_gen[e->index];
	e->ctx = ctx;
	e->async = async;
	err = fifo_open(&e->fifo, k,
			&(struct fifo_opening){.dir = "events",
					       .index = e->index,
					       .generation = e->generation,
					       .flags = O_RDONLY,
					       .pid = ctx->proc->pid},
			&fd);
	if (err < 0)
		goto err_free;
	err = sh_evq_init(&k->dev, e->index, ctx->index,
			  async ? sizeof(struct uv_async_record) : sizeof(struct uv_comp_record),
			  e->generation);
	if (err < 0)
		goto err_close;
	/* Without the lock, fifo_unused() opens that end anew, in between for writing only. */
	if (fifo_lock(&e->fifo, fd))
		sh_event_lend(e->index, e->generation, e->fifo.fd);
	sh_evq(&k->dev, e->index)->tells = sh_event_tells(e->fifo.fd);
	k->uverbs->evq[e->index] = e;
	DL_APPEND(ctx->evqs, e);
	*out = e;
	*client_fd = fd;
	return 0;

err_close:
	close(fd);
	fifo_close(&e->fifo);
err_free:
	free(e);
	return err;
}

static bool evq_finish(struct kernel *k, struct aside *a)
{
	struct kevq *e = container_of(a, struct kevq, aside);

	if (!k->ending && sh_evq_init(&k->dev, e->index, 0, 0, 0) == -EINPROGRESS)
		return false;
	k->uverbs->evq_aside[e->index] = false;
	free(e);
	return true;
}

struct late_event {
	struct late_event *next;
	uint32_t port, type;
};

/* False: a client holds the lock still, or again. */
static bool raise_late(struct kernel *k, struct aside *a)
{
	struct kevq *e = container_of(a, struct kevq, late_aside);
	struct late_event *l, *tmp;

	LL_FOREACH_SAFE(e->late, l, tmp)
	{
		if (!k->ending &&
		    sh_async_event(&k->dev, e->ctx->index, l->port, l->type) == -EINPROGRESS)
			return false;
		LL_DELETE(e->late, l);
		free(l);
	}
	if (!k->ending)
		evq_spill(k);
	return true;
}

static void forget_late(struct kernel *k, struct kevq *e)
{
	struct late_event *l, *tmp;

	aside_take(k, &e->late_aside);
	LL_FOREACH_SAFE(e->late, l, tmp)
	{
		LL_DELETE(e->late, l);
		free(l);
	}
}

void evq_port_event(struct kernel *k, struct kevq *e, uint32_t port, uint32_t type)
{
	struct late_event *l;

	if (!e->late && sh_async_event(&k->dev, e->ctx->index, port, type) != -EINPROGRESS)
		return;
	/* A kernel, too, drops an event if it has no memory for it. */
	l = malloc(sizeof(*l));
	if (!l)
		return;
	*l = (struct late_event){.port = port, .type = type};
	LL_APPEND(e->late, l);
	if (!e->late_aside.set)
		aside_until_unlocked(k, &e->late_aside, raise_late);
}

void evq_free(struct kernel *k, struct kevq *e)
{
	forget_late(k, e);
	sh_event_forget(e->index);
	fifo_close(&e->fifo);
	k->uverbs->evq[e->index] = NULL;
	DL_DELETE(e->ctx->evqs, e);
	if (e->ctx->async == e)
		e->ctx->async = NULL;
	/* A client that raises an event may hold the lock of the queue's place in device memory. */
	k->uverbs->evq_aside[e->index] = true;
	if (!evq_finish(k, &e->aside))
		aside_until_unlocked(k, &e->aside, evq_finish);
}

void evq_put(struct kernel *k, struct kevq *e)
{
	if (!--e->refs && e->closed && !e->async)
		evq_free(k, e);
}

/* Without the lock, the event that it was closed has to be believed. */
static void end_if_closed(struct kernel *k, struct kevq *e)
{
	if (e->closed || (e->fifo.locked && !fifo_unused(&e->fifo)))
		return;
	e->closed = true;
	if (!e->refs && !e->async)
		evq_free(k, e);
}

void evq_client_closed(struct kernel *k, uint32_t index, uint32_t generation)
{
	struct kevq *e = index < SH_MAX_EVQ ? k->uverbs->evq[index] : NULL;

	if (!e || e->generation != generation || e->closed)
		return;
	if (e->fifo.locked)
		fifo_doubt(&e->fifo);
	end_if_closed(k, e);
}

void evq_doubted(struct kernel *k)
{
	for (uint32_t i = 1; i < SH_MAX_EVQ; i++)
		if (k->uverbs->evq[i] && k->uverbs->evq[i]->fifo.doubted)
			end_if_closed(k, k->uverbs->evq[i]);
}

void evq_missed(struct kernel *k)
{
	for (uint32_t i = 1; i < SH_MAX_EVQ; i++)
		if (k->uverbs->evq[i] && k->uverbs->evq[i]->fifo.locked &&
		    !k->uverbs->evq[i]->closed)
			fifo_doubt(&k->uverbs->evq[i]->fifo);
	evq_doubted(k);
}

int evq_by_fd(struct kctx *ctx, pid_t tid, int fd, struct kevq **out)
{
	struct kevq *e;
	dev_t dev;
	ino_t ino;
	int err = fifo_of_fd(ctx->k, tid, fd, &dev, &ino);

	if (err)
		return err == -ENOMEM ? err : -EINVAL;
	DL_FOREACH(ctx->evqs, e)
	if (!e->async && e->fifo.ino == ino && e->fifo.dev == dev) {
		*out = e;
		return 0;
	}
	return -EINVAL;
}

/* ---- records of objects that have ended ---- */

/* Is an affiliated event about objects of this type? */
static bool about(uint32_t event, enum uobj_type type)
{
	switch (event) {
	case UV_EV_CQ_ERR:
		return type == UO_CQ;
	case UV_EV_SRQ_ERR:
	case UV_EV_SRQ_LIMIT_REACHED:
		return type == UO_SRQ;
	case UV_EV_QP_FATAL:
	case UV_EV_QP_REQ_ERR:
	case UV_EV_QP_ACCESS_ERR:
	case UV_EV_COMM_EST:
	case UV_EV_SQ_DRAINED:
	case UV_EV_PATH_MIG:
	case UV_EV_PATH_MIG_ERR:
	case UV_EV_QP_LAST_WQE_REACHED:
		return type == UO_QP;
	}
	return false;
}

static bool matches(const struct kevq *e, const uint64_t *record, uint64_t user_handle,
		    enum uobj_type type)
{
	return record[0] == user_handle && (!e->async || about((uint32_t)record[1], type));
}

_Static_assert(PIPE_BUF % sizeof(struct uv_async_record) == 0 &&
		       PIPE_BUF % sizeof(struct uv_comp_record) == 0,
	       "whole records");
/*
 * Empties the pipe and writes back what stays, in order and before anything newer: a thread that
 * raises an event needs the queue's lock. A reader that comes in between waits, as it would for an
 * event that was dropped. Nothing is read before there is room for all that may have to be written
 * back. Returns how many records were dropped.
 */
static uint32_t drop_from_pipe(struct kernel *k, struct kevq *e, uint64_t user_handle,
			       enum uobj_type type)
{
	size_t size = e->async ? 16 : 8, len = 0, at, n;
	uint32_t dropped = 0;
	uint64_t record[2];
	ssize_t got;
	char *grown;
	int held;

	if (ioctl(e->fifo.fd, FIONREAD, &held) < 0 || held <= 0)
		return 0;
	/* This happens only if a client has given its pipe more room than a new pipe has. */
	if ((size_t)held > k->uverbs->keep_size) {
		grown = realloc(k->uverbs->keep, held);
		/*
		 * All of the pipe stays: its owner reads and acknowledges records of an object that
		 * has ended.
		 */
		if (!grown)
			return 0;
		k->uverbs->keep = grown;
		k->uverbs->keep_size = held;
	}
	got = read(e->fifo.fd, k->uverbs->keep, held / size * size);
	for (at = 0; got > 0 && at + size <= (size_t)got; at += size) {
		memcpy(record, k->uverbs->keep + at, size);
		if (matches(e, record, user_handle, type)) {
			dropped++;
			continue;
		}
		memcpy(k->uverbs->keep + len, record, size);
		len += size;
	}
	/*
	 * Of what is no longer than PIPE_BUF, the pipe takes all or nothing: never half a record.
	 */
	for (at = 0; at < len; at += n) {
		n = len - at < PIPE_BUF ? len - at : PIPE_BUF;
		if (write(e->fifo.fd, k->uverbs->keep + at, n) != (ssize_t)n)
			break;
	}
	return dropped;
}

/*
 * Without the lock only the pipe is searched. It has what matters: what was spilled of an object is
 * dropped when it ends. A client that goes on at this moment puts its record before those that
 * stay. What is written back must not pass for a record that this client is about to write; if the
 * client writes it in between and then dies, it passes for not written.
 */
static int drop(struct kernel *k, struct kevq *e, uint64_t user_handle, enum uobj_type type,
		bool late, uint32_t *number)
{
	struct sh_evq *q = sh_evq(&k->dev, e->index);
	uint32_t i, kept, dropped;
	bool awaited;

	*number = 0;
	if (!q)
		return 0;
	/* This also settles a record in flight, before the pipe is written to. */
	if (sh_evq_hold(&k->dev, e->index)) {
		if (!late)
			return -EINPROGRESS;
		awaited = sh_event_awaited(e->fifo.fd);
		*number = drop_from_pipe(k, e, user_handle, type);
		if (awaited)
			sh_event_await(e->fifo.fd);
		return 0;
	}
	dropped = drop_from_pipe(k, e, user_handle, type);
	for (i = kept = 0; i < q->spilled && i < SH_EVQ_SPILL; i++) {
		if (matches(e, q->spill[i], user_handle, type)) {
			dropped++;
			continue;
		}
		memmove(q->spill[kept++], q->spill[i], sizeof(q->spill[0]));
	}
	q->spilled = kept;
	sh_evq_release(&k->dev, e->index);
	*number = dropped;
	return 0;
}

/*
 * Nearly every object ends without ever having raised an event. Then there is nothing to search.
 * When the instance ends, its clients live on, and keep what their FIFOs have: one that has seen a
 * record by poll() reads it next, and would sleep for ever.
 */
static bool may_have(struct kernel *k, const struct kevq *e, uint32_t written)
{
	const struct sh_evq *q = e && !k->stop ? sh_evq(&k->dev, e->index) : NULL;

	return q && (written || __atomic_load_n(&q->uncounted, __ATOMIC_RELAXED));
}

static int drop_events(struct kernel *k, struct kevq *e, uint64_t user_handle, enum uobj_type type,
		       bool late, uint32_t *events)
{
	uint32_t dropped = 0;
	int err = may_have(k, e, *events) ? drop(k, e, user_handle, type, late, &dropped) : 0;

	/* After a client's death there may be one record more than was counted. */
	if (!err)
		*events = *events > dropped ? *events - dropped : 0;
	return err;
}

int evq_drop_comp(struct kernel *k, struct kevq *e, uint64_t user_handle, bool late,
		  uint32_t *events)
{
	return drop_events(k, e, user_handle, UO_CQ, late, events);
}

int evq_drop_async(struct kernel *k, struct kevq *e, uint64_t user_handle, enum uobj_type type,
		   bool late, uint32_t *events)
{
	return drop_events(k, e, user_handle, type, late, events);
}

/* ---- records that did not fit ---- */

static void wait_for_room(struct kernel *k, struct kevq *e, bool wait)
{
	struct epoll_event ev = {.events = EPOLLOUT,
				 .data.u64 = server_room_event(&uverbs_room, e->index)};

	if (e->polled == wait || k->epoll < 0)
		return;
	if (epoll_ctl(k->epoll, wait ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, e->fifo.fd, &ev) == 0)
		e->polled = wait;
}

static bool is_full(const struct kevq *e)
{
	struct pollfd p = {.fd = e->fifo.fd, .events = POLLOUT};

	return poll(&p, 1, 0) == 0;
}

void evq_room(struct kernel *k, struct kevq *e)
{
	int left = sh_evq_flush(&k->dev, e->index);
	bool full = left > 0 && is_full(e);

	/*
	 * Often it is the client that has just spilled a record: it tells the daemon before it
	 * releases the lock. If there is room, and the daemon could not write for another reason,
	 * that may last: room that is there already would wake the daemon at once, and for ever.
	 */
	if (left == -EINPROGRESS || (left > 0 && !full))
		k->uverbs->spill_again = true;
	wait_for_room(k, e, full);
}

void evq_spill(struct kernel *k)
{
	uint32_t i;

	k->uverbs->spill_again = false;
	sh_evs_owed(&k->dev);
	for (i = sh_evq_spilled(&k->dev, 1); i; i = sh_evq_spilled(&k->dev, i + 1)) {
		if (i >= SH_MAX_EVQ)
			break;
		if (k->uverbs->evq[i])
			evq_room(k, k->uverbs->evq[i]);
	}
}
