// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Open rdma_cm files. Each is a FIFO (fifo.h) with a byte for each unread event. Events themselves
 * are fetched by a command.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "softhca/kernel/lists.h"
#include "softhca/kernel/process.h"
#include "softhca/protocol.h"
#include "channel.h"
#include "id.h"
#include "mcast.h"
#include "rdmacm.h"

int cm_channel_open(struct rdmacm *cm, struct kproc *p, uint32_t flags, struct cm_channel **out,
		    int *fd)
{
	struct cm_channel *ch = calloc(1, sizeof(*ch));
	uint32_t index;
	int err;

	if (!ch)
		return -ENOMEM;
	err = cm_table_add(&cm->channels, ch, &index);
	if (err)
		goto err_free;
	ch->cm = cm;
	ch->host = p->host;
	ch->pid = p->pid;
	err = fifo_open(
		&ch->fifo, cm->k,
		&(struct fifo_opening){.dir = "channels",
				       .index = index,
				       .generation = ++cm->generation,
				       .flags = flags,
				       .mark = (flags & O_ACCMODE) == O_RDWR ? SH_FIFO_MARK : 0,
				       .pid = p->pid},
		fd);
	if (err)
		goto err_table;
	HASH_ADD(hh, cm->by_ino, fifo.ino, sizeof(ch->fifo.ino), ch);
	if (!ch->hh.tbl) {
		err = -ENOMEM;
		goto err_fifo;
	}
	*out = ch;
	return 0;

err_fifo:
	close(*fd);
	fifo_close(&ch->fifo);
err_table:
	cm_table_del(&cm->channels, index);
err_free:
	free(ch);
	return err;
}

void cm_channel_free(struct cm_channel *ch)
{
	struct rdmacm *cm = ch->cm;
	struct cm_event *e, *tmp;
	uint32_t reported;

	while (ch->ids)
		cm_id_destroy(ch->ids, &reported);
	DL_FOREACH_SAFE(ch->events, e, tmp)
	cm_event_drop(e);
	HASH_DELETE(hh, cm->by_ino, ch);
	cm_table_del(&cm->channels, ch->fifo.index);
	fifo_close(&ch->fifo);
	free(ch);
}

void cm_channel_check(struct cm_channel *ch)
{
	if (fifo_unused(&ch->fifo))
		cm_channel_free(ch);
}

struct cm_channel *cm_channel_get(struct rdmacm *cm, uint32_t index, uint32_t generation)
{
	struct cm_channel *ch = cm_table_get(&cm->channels, index);

	return ch && ch->fifo.generation == generation ? ch : NULL;
}

int cm_channel_by_fd(struct rdmacm *cm, pid_t tid, int fd, struct cm_channel **out)
{
	struct cm_channel *ch;
	dev_t dev;
	ino_t ino;
	int err = fifo_of_fd(cm->k, tid, fd, &dev, &ino);

	if (err)
		return err;
	HASH_FIND(hh, cm->by_ino, &ino, sizeof(ino), ch);
	if (!ch || ch->fifo.dev != dev)
		return -EINVAL;
	*out = ch;
	return 0;
}

void cm_channel_level(struct cm_channel *ch)
{
	fifo_level(&ch->fifo, ch->unread);
}

struct cm_event *cm_event_new(struct cm_id *id, enum cm_event_type type, int status)
{
	struct cm_event *e;

	if (!id->known)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->id = id;
	e->resp.uid = id->uid;
	e->resp.id = id->number;
	e->resp.event = type;
	e->resp.status = status;
	return e;
}

void cm_event_queue(struct cm_event *e)
{
	struct cm_channel *ch = e->id->channel;

	DL_APPEND(ch->events, e);
	DL_APPEND2(e->id->events, e, prev_of_id, next_of_id);
	ch->unread++;
	ch->cm->count.event[e->resp.event]++;
	cm_channel_level(ch);
}

static void take(struct cm_event *e)
{
	struct cm_channel *ch = e->id->channel;

	DL_DELETE(ch->events, e);
	DL_DELETE2(e->id->events, e, prev_of_id, next_of_id);
	ch->unread--;
	cm_channel_level(ch);
}

void cm_event_drop(struct cm_event *e)
{
	struct cm_id *fresh = e->fresh;
	uint32_t reported;

	take(e);
	free(e);
	if (fresh)
		cm_id_destroy(fresh, &reported);
}

void cm_event_done(struct cm_event *e)
{
	take(e);
	e->id->reported++;
	if (e->member)
		e->member->reported++;
	free(e);
}

void cm_events_of(struct cm_id *id, void (*fn)(struct cm_event *e))
{
	struct cm_event *e, *tmp;

	DL_FOREACH_SAFE2(id->events, e, tmp, next_of_id)
	fn(e);
}
