// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Writes event records into the FIFOs of the instance. Owns this process's cache of their
 * descriptors. Each descriptor is checked before it is used, because programs close descriptors
 * that they did not open. The FIFOs are opened for reading as well, so that a write never raises
 * SIGPIPE. A thread that holds the cache's lock makes system calls only.
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>

#include "process.h"
#include "sys.h"

#define CACHED 64

struct pipe_fd {
	uint32_t evq, generation; /* generation 0: empty */
	int fd;
	struct sh_ident id;
};

static struct pipe_fd cache[CACHED];
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;

void sh_event_forked(void)
{
	/*
	 * The descriptors are good in a child as well, but another thread of the parent may have
	 * held the lock.
	 */
	cache_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void drop(struct pipe_fd *p)
{
	if (p->generation && sh_ident_holds(p->fd, &p->id))
		sh_close(p->fd);
	p->generation = 0;
}

/* The queues of another instance have the same names. */
void sh_event_reset(void)
{
	unsigned int i;

	pthread_mutex_lock(&cache_lock);
	for (i = 0; i < CACHED; i++)
		drop(&cache[i]);
	pthread_mutex_unlock(&cache_lock);
}

/* The queue has ended. Its FIFO would live on as long as a process holds it open. */
void sh_event_forget(uint32_t evq)
{
	struct pipe_fd *p = &cache[evq % CACHED];

	pthread_mutex_lock(&cache_lock);
	if (p->evq == evq)
		drop(p);
	pthread_mutex_unlock(&cache_lock);
}

/* The descriptor of the queue's FIFO, or -errno. */
static int pipe_get(struct pipe_fd *p, uint32_t evq, uint32_t generation)
{
	char path[PATH_MAX];
	int fd;

	if (p->generation == generation && p->evq == evq && sh_ident_holds(p->fd, &p->id))
		return p->fd;
	drop(p);
	snprintf(path, sizeof(path), "%.*s/events/%u.%u", PATH_MAX - 64, sh_process.dir, evq,
		 generation);
	fd = sh_open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return fd;
	fd = sh_fd_high(fd);
	if (!sh_ident_take(fd, &p->id)) {
		sh_close(fd);
		return -EBADF;
	}
	p->fd = fd;
	p->evq = evq;
	p->generation = generation;
	return fd;
}

/*
 * A queue that has ended takes every record, since no process will read it. A client that cannot
 * reach the FIFO (it has no descriptor left, or another root directory) leaves the record to the
 * daemon, which knows whether the queue lives.
 */
int sh_host_event(void *host, uint32_t evq, const void *record, size_t len)
{
	struct sh_evq *q = sh_evq(sh_process.dev, evq);
	long done = 0;
	int fd;

	(void)host;
	if (!q || !q->generation)
		return 0;
	pthread_mutex_lock(&cache_lock);
	fd = pipe_get(&cache[evq % CACHED], evq, q->generation);
	if (fd >= 0) {
		do
			done = sh_write(fd, record, len);
		while (done == -EINTR);
	}
	pthread_mutex_unlock(&cache_lock);
	if (fd < 0 && (sh_process.dev->proc || fd != -ENOENT))
		return -EAGAIN;
	return done == -EAGAIN ? -EAGAIN : 0;
}
