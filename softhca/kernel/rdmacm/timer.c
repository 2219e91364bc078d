// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The room's clock: one timer of the daemon's loop, set to the earliest of what is due. Messages on
 * their way make it due at once.
 */
#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "softhca/host/process.h"
#include "exchange.h"
#include "farewell.h"
#include "id.h"
#include "message.h"
#include "rdmacm.h"
#include "resolve.h"
#include "timer.h"

int cm_timer_init(struct rdmacm *cm)
{
	cm->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return cm->timer < 0 ? -errno : 0;
}

void cm_timer_exit(struct rdmacm *cm)
{
	if (cm->timer >= 0)
		close(cm->timer);
}

void cm_timer_set(struct rdmacm *cm, uint64_t due)
{
	struct itimerspec t = {0};

	if (cm->held || (cm->due && cm->due <= due))
		return;
	cm->due = due;
	t.it_value.tv_sec = (time_t)(due / 1000000000);
	t.it_value.tv_nsec = (long)(due % 1000000000);
	(void)timerfd_settime(cm->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void on_time(struct cm_id *id)
{
	if (id->state == CM_ADDR_ASKED || id->state == CM_ROUTE_ASKED)
		cm_resolve_due(id);
	else
		cm_exchange_due(id);
}

void cm_timer_hold(struct rdmacm *cm)
{
	cm->held = true;
}

void cm_timer_go(struct rdmacm *cm)
{
	uint64_t now = sh_now(), farewell;
	struct cm_id *id;

	/* Answers to messages, too: each exchange has an end. */
	while (cm->messages)
		cm_messages_deliver(cm);
	/* What this makes due is due after now. */
	while ((id = cm_due_first(&cm->due_ids)) && id->due <= now) {
		cm_id_timer(id, 0);
		on_time(id);
	}
	farewell = cm_farewell_due(cm, now);
	cm->held = false;
	if (cm->messages)
		cm_timer_set(cm, 1);
	else if (id)
		cm_timer_set(cm, id->due);
	if (farewell)
		cm_timer_set(cm, farewell);
}

void cm_timer_ready(struct rdmacm *cm)
{
	uint64_t n;

	(void)!read(cm->timer, &n, sizeof(n));
	cm->due = 0;
	cm_timer_hold(cm);
	cm_timer_go(cm);
}
