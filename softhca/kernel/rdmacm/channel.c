// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Open rdma_cm files. Each is a FIFO with a byte for each unread event, so that poll() works and a
 * thread can sleep in read(). Events themselves are fetched by a command. A thread that slept has
 * taken a byte away; whatever becomes of it, the next change of the channel and each second's tick
 * make the FIFO as full as it must be.
 *
 * IN_CLOSE_NOWRITE says that the program's end may be closed. It is said also when somebody else
 * has looked into the FIFO, by O_PATH in kernels before 6.11, and it is not said when the queue of
 * inotify has overflowed. So the FIFO itself is asked whether it has a reader besides the daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/kernel/kern.h"
#include "softhca/kernel/lists.h"
#include "softhca/kernel/process.h"
#include "softhca/kernel/user.h"
#include "channel.h"
#include "id.h"
#include "mcast.h"
#include "rdmacm.h"

#define SUSPECT_TICKS 60
#define MOST_BYTES    4096 /* a FIFO has room for it at least */

static void path_of(const struct cm_channel *ch, char path[64])
{
	snprintf(path, 64, "channels/%u.%u", ch->index, ch->generation);
}

static int open_both(struct cm_channel *ch, int *fd)
{
	struct kernel *k = ch->k;
	struct stat st;
	char path[64];
	int err;

	path_of(ch, path);
	if (mkfifoat(k->dir_fd, path, 0600) < 0)
		return -errno;
	ch->fd = openat(k->dir_fd, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (ch->fd < 0 || fstat(ch->fd, &st) < 0)
		goto fail;
	ch->dev = st.st_dev;
	ch->ino = st.st_ino;
	*fd = openat(k->dir_fd, path, O_RDONLY | O_CLOEXEC);
	if (*fd >= 0)
		return 0;
fail:
	err = -errno;
	if (ch->fd >= 0)
		close(ch->fd);
	unlinkat(k->dir_fd, path, 0);
	return err;
}

static void close_own(struct cm_channel *ch)
{
	char path[64];

	path_of(ch, path);
	unlinkat(ch->k->dir_fd, path, 0);
	close(ch->fd);
}

int cm_channel_open(struct kernel *k, struct kproc *p, struct cm_channel **out, int *fd)
{
	struct cm_channel *ch = calloc(1, sizeof(*ch));
	int err;

	if (!ch)
		return -ENOMEM;
	err = cm_table_add(&k->rdmacm->channels, ch, &ch->index);
	if (err)
		goto err_free;
	ch->k = k;
	ch->generation = ++k->rdmacm->generation;
	ch->host = p->host;
	ch->pid = p->pid;
	err = open_both(ch, fd);
	if (err)
		goto err_table;
	HASH_ADD(hh, k->rdmacm->by_ino, ino, sizeof(ch->ino), ch);
	if (!ch->hh.tbl) {
		err = -ENOMEM;
		goto err_fifo;
	}
	*out = ch;
	return 0;

err_fifo:
	close(*fd);
	close_own(ch);
err_table:
	cm_table_del(&k->rdmacm->channels, ch->index);
err_free:
	free(ch);
	return err;
}

void cm_channel_free(struct cm_channel *ch)
{
	struct kernel *k = ch->k;
	struct cm_event *e, *tmp;
	uint32_t reported;

	while (ch->ids)
		cm_id_destroy(ch->ids, &reported);
	DL_FOREACH_SAFE(ch->events, e, tmp)
	cm_event_drop(e);
	HASH_DELETE(hh, k->rdmacm->by_ino, ch);
	close_own(ch);
	cm_table_del(&k->rdmacm->channels, ch->index);
	free(ch);
}

/*
 * Is anybody's end open for reading? Meanwhile the daemon's own is not, and another one of it keeps
 * readers from seeing the end of the FIFO. The number of the descriptor stays the same. -errno: the
 * daemon has no descriptor left for it.
 */
static int has_reader(struct cm_channel *ch)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLOUT};
	char path[64];
	int fd, err;

	path_of(ch, path);
	fd = openat(ch->k->dir_fd, path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = dup3(fd, ch->fd, O_CLOEXEC) < 0 ? -errno : 0;
	close(fd);
	if (err)
		return err;
	if (poll(&p, 1, 0) < 0)
		p.revents = 0;
	fd = openat(ch->k->dir_fd, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = dup3(fd, ch->fd, O_CLOEXEC) < 0 ? -errno : !(p.revents & POLLERR);
	close(fd);
	return err;
}

void cm_channel_check(struct cm_channel *ch)
{
	int used = has_reader(ch);

	if (used > 0)
		ch->suspect--;
	else if (!used)
		cm_channel_free(ch);
}

/*
 * Kernels tell of a close before they take the reader away. A process that has no processor at this
 * moment is a reader for longer, and there is no second word of it.
 */
void cm_channel_suspect(struct cm_channel *ch)
{
	ch->suspect = SUSPECT_TICKS;
	cm_channel_check(ch);
}

struct cm_channel *cm_channel_get(struct kernel *k, uint32_t index, uint32_t generation)
{
	struct cm_channel *ch = cm_table_get(&k->rdmacm->channels, index);

	return ch && ch->generation == generation ? ch : NULL;
}

int cm_channel_by_fd(struct kernel *k, pid_t tid, int fd, struct cm_channel **out)
{
	struct cm_channel *ch;
	struct stat st;
	int own, err;

	own = k->user->open_fd(k->user_arg, tid, fd);
	if (own < 0)
		return -ENOENT;
	err = fstat(own, &st) < 0 ? -EINVAL : 0;
	close(own);
	if (err)
		return err;
	HASH_FIND(hh, k->rdmacm->by_ino, &st.st_ino, sizeof(st.st_ino), ch);
	if (!ch || ch->dev != st.st_dev)
		return -EINVAL;
	*out = ch;
	return 0;
}

void cm_channel_level(struct cm_channel *ch)
{
	static const char bytes[256];
	int want = ch->unread < MOST_BYTES ? (int)ch->unread : MOST_BYTES, held;
	char taken[256];
	ssize_t n = 1;

	if (ioctl(ch->fd, FIONREAD, &held) < 0)
		return;
	for (; n > 0 && held < want; held += (int)n)
		n = write(ch->fd, bytes, want - held < 256 ? want - held : 256);
	for (; n > 0 && held > want; held -= (int)n)
		n = read(ch->fd, taken, held - want < 256 ? held - want : 256);
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
	ch->k->rdmacm->count.event[e->resp.event]++;
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
