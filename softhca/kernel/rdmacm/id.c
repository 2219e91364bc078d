// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Ids: their numbers, their channels, their end.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/instance.h"
#include "channel.h"
#include "exchange.h"
#include "id.h"
#include "mcast.h"
#include "port.h"
#include "rdmacm.h"
#include "timer.h"

struct cm_host *cm_host_of(const struct cm_id *id)
{
	return &id->cm->hosts[id->host];
}

int cm_id_new(struct cm_channel *ch, uint32_t host, struct cm_id **out)
{
	struct rdmacm *cm = ch->cm;
	struct cm_id *id = calloc(1, sizeof(*id));
	int err;

	if (!id)
		return -ENOMEM;
	id->cm = ch->cm;
	id->host = host;
	err = cm_due_reserve(&cm->due_ids, HASH_COUNT(cm->ids) + 1);
	if (!err)
		err = cm_table_add(&cm->hosts[host].ids, id, &id->number);
	if (err) {
		free(id);
		return err;
	}
	/* The lower half goes over the wire, where 0 stands for no id. */
	if (!(uint32_t)++cm->next_comm)
		cm->next_comm++;
	id->comm = cm->next_comm;
	if (getrandom(&id->psn, sizeof(id->psn), GRND_NONBLOCK) != sizeof(id->psn))
		id->psn = (uint32_t)id->comm * 2654435761u;
	id->psn &= 0xffffff;
	id->channel = ch;
	DL_APPEND(ch->ids, id);
	HASH_ADD(hh, cm->ids, comm, sizeof(id->comm), id);
	if (!id->hh.tbl) {
		DL_DELETE(ch->ids, id);
		cm_table_del(&cm->hosts[host].ids, id->number);
		free(id);
		return -ENOMEM;
	}
	*out = id;
	return 0;
}

/* What others see of it. Unread events stay. */
static void withdraw(struct cm_id *id)
{
	cm_exchange_end(id);
	cm_id_timer(id, 0);
	cm_id_wait_no_more(id);
	while (id->waiting)
		cm_id_wait_no_more(id->waiting);
	cm_port_leave(id);
}

void cm_id_destroy(struct cm_id *id, uint32_t *reported)
{
	struct rdmacm *cm = id->cm;

	/* Nothing that this causes is to be told to its program. */
	id->known = false;
	withdraw(id);
	cm_members_free(id);
	cm_events_of(id, cm_event_drop);
	if (cm_id_asked_by(id->cm, id->peer) == id)
		HASH_DELETE(ha, cm->asked, id);
	HASH_DELETE(hh, cm->ids, id);
	DL_DELETE(id->channel->ids, id);
	cm_table_del(&cm_host_of(id)->ids, id->number);
	*reported = id->reported;
	free(id);
}

/* The event of a request that was not read has the only reference to its id. */
static void drop_request(struct cm_id *id)
{
	struct cm_event *e;

	DL_FOREACH(id->channel->events, e)
	if (e->fresh == id) {
		e->id->backlog++;
		cm_event_drop(e);
		return;
	}
}

void cm_id_remove(struct cm_id *id)
{
	struct cm_event *e;

	if (id->removed)
		return;
	if (id->hidden) {
		drop_request(id);
		return;
	}
	id->removed = true;
	withdraw(id);
	e = cm_event_new(id, CM_EV_DEVICE_REMOVAL, 0);
	if (e)
		cm_event_queue(e);
}

int cm_id_get(struct cm_channel *ch, uint32_t number, struct cm_id **out)
{
	int err = cm_id_get_any(ch, number, out);

	if (err || !(*out)->removed)
		return err;
	return ch->cm->cfg->face == SH_FACE_OFED ? -EIO : -ENXIO;
}

int cm_id_get_any(struct cm_channel *ch, uint32_t number, struct cm_id **out)
{
	struct cm_id *id = cm_table_get(&ch->cm->hosts[ch->host].ids, number);

	if (!id || id->hidden)
		return -ENOENT;
	if (id->channel != ch)
		return -EINVAL;
	*out = id;
	return 0;
}

struct cm_id *cm_id_by_comm(struct rdmacm *cm, uint64_t comm)
{
	struct cm_id *id;

	HASH_FIND(hh, cm->ids, &comm, sizeof(comm), id);
	return id;
}

struct cm_id *cm_id_asked_by(struct rdmacm *cm, uint64_t comm)
{
	struct cm_id *id;

	HASH_FIND(ha, cm->asked, &comm, sizeof(comm), id);
	return id;
}

void cm_id_asked(struct cm_id *id)
{
	HASH_ADD(ha, id->cm->asked, peer, sizeof(id->peer), id);
}

void cm_id_migrate(struct cm_id *id, struct cm_channel *to)
{
	struct cm_channel *from = id->channel;
	struct cm_event *e;

	if (from == to)
		return;
	DL_DELETE(from->ids, id);
	DL_APPEND(to->ids, id);
	DL_FOREACH2(id->events, e, next_of_id)
	{
		DL_DELETE(from->events, e);
		DL_APPEND(to->events, e);
		from->unread--;
		to->unread++;
		if (e->fresh)
			cm_id_migrate(e->fresh, to);
	}
	id->channel = to;
	cm_channel_level(from);
	cm_channel_level(to);
}

bool cm_id_is_ud(const struct cm_id *id)
{
	return id->qp_type == CM_QPT_UD;
}

uint32_t cm_id_qkey(const struct cm_id *id)
{
	if (id->qkey)
		return id->qkey;
	return id->ps == CM_PS_IPOIB ? CM_IPOIB_QKEY : CM_UDP_QKEY;
}

void cm_id_timer(struct cm_id *id, uint64_t due)
{
	cm_due_set(&id->cm->due_ids, id, due);
	if (due)
		cm_timer_set(id->cm, due);
}

void cm_id_wait(struct cm_id *id, struct cm_id *listener)
{
	if (id->full == listener)
		return;
	cm_id_wait_no_more(id);
	id->full = listener;
	DL_APPEND2(listener->waiting, id, wprev, wnext);
}

void cm_id_wait_no_more(struct cm_id *id)
{
	if (!id->full)
		return;
	DL_DELETE2(id->full->waiting, id, wprev, wnext);
	id->full = NULL;
}
