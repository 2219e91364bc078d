// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The room's clock: one timer of the daemon's loop, set to the earliest of what is due. Messages on
 * their way make it due at once.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "softhca/host/process.h"
#include "softhca/kernel/kern.h"
#include "softhca/kernel/server.h"
#include "exchange.h"
#include "farewell.h"
#include "id.h"
#include "message.h"
#include "rdmacm.h"
#include "resolve.h"
#include "room.h"
#include "timer.h"

int cm_timer_init(struct kernel *k)
{
	k->rdmacm->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return k->rdmacm->timer < 0 ? -errno : 0;
}

void cm_timer_exit(struct kernel *k)
{
	if (k->rdmacm->timer >= 0)
		close(k->rdmacm->timer);
}

/* The loop has its epoll after the room has been made. */
static void watch(struct kernel *k)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = server_room_event(&rdmacm_room, 0)};
	struct rdmacm *r = k->rdmacm;

	if (!r->watched && k->epoll >= 0)
		r->watched = epoll_ctl(k->epoll, EPOLL_CTL_ADD, r->timer, &ev) == 0;
}

void cm_timer_set(struct kernel *k, uint64_t due)
{
	struct itimerspec t = {0};
	struct rdmacm *r = k->rdmacm;

	if (r->held || (r->due && r->due <= due))
		return;
	watch(k);
	r->due = due;
	t.it_value.tv_sec = (time_t)(due / 1000000000);
	t.it_value.tv_nsec = (long)(due % 1000000000);
	(void)timerfd_settime(r->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void on_time(struct cm_id *id)
{
	if (id->state == CM_ADDR_ASKED || id->state == CM_ROUTE_ASKED)
		cm_resolve_due(id);
	else
		cm_exchange_due(id);
}

void cm_timer_hold(struct kernel *k)
{
	k->rdmacm->held = true;
}

void cm_timer_go(struct kernel *k)
{
	struct rdmacm *r = k->rdmacm;
	uint64_t now = sh_now(), farewell;
	struct cm_id *id;

	/* Answers to messages, too: each exchange has an end. */
	while (r->messages)
		cm_messages_deliver(k);
	/* What this makes due is due after now. */
	while ((id = cm_due_first(&r->due_ids)) && id->due <= now) {
		cm_id_timer(id, 0);
		on_time(id);
	}
	farewell = cm_farewell_due(k, now);
	r->held = false;
	if (r->messages)
		cm_timer_set(k, 1);
	else if (id)
		cm_timer_set(k, id->due);
	if (farewell)
		cm_timer_set(k, farewell);
}

void cm_timer_ready(struct kernel *k, uint32_t value)
{
	struct rdmacm *r = k->rdmacm;
	uint64_t n;

	(void)value;
	(void)!read(r->timer, &n, sizeof(n));
	r->due = 0;
	cm_timer_hold(k);
	cm_timer_go(k);
}
