// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* From a number to its rsocket. Readers take no lock: a chunk, once there, stays. */

#include "rs.h"

enum { CHUNK = 1024, CHUNKS = 1024 };

static struct rs **chunks[CHUNKS];
/* In place of one that has been closed while its descriptor is open still. */
static struct rs ending;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct rs **entry(int fd)
{
	struct rs **chunk;

	if (fd < 0 || fd >= CHUNK * CHUNKS)
		return NULL;
	chunk = __atomic_load_n(&chunks[fd / CHUNK], __ATOMIC_ACQUIRE);
	return chunk ? &chunk[fd % CHUNK] : NULL;
}

int rs_set(int fd, struct rs *rs)
{
	struct rs **chunk;

	if (fd < 0 || fd >= CHUNK * CHUNKS)
		return -EMFILE;
	pthread_mutex_lock(&lock);
	chunk = chunks[fd / CHUNK];
	if (!chunk) {
		chunk = calloc(CHUNK, sizeof(struct rs *));
		__atomic_store_n(&chunks[fd / CHUNK], chunk, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	if (!chunk)
		return -ENOMEM;
	pthread_mutex_lock(&rs->lock);
	rs->number = fd;
	pthread_mutex_unlock(&rs->lock);
	__atomic_store_n(&chunk[fd % CHUNK], rs, __ATOMIC_RELEASE);
	return 0;
}

void rs_clear(struct rs *rs)
{
	struct rs **at = entry(rs->number);

	if (at)
		__atomic_store_n(at, &ending, __ATOMIC_RELEASE);
	rs->number = -1;
}

void rs_ended(int fd)
{
	struct rs **at = entry(fd), *expected = &ending;

	/* It may be another one's already. */
	if (at)
		__atomic_compare_exchange_n(at, &expected, NULL, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED);
}

struct rs *rs_get(int fd)
{
	struct rs **at = entry(fd), *rs = at ? __atomic_load_n(at, __ATOMIC_ACQUIRE) : NULL;

	return rs == &ending ? NULL : rs;
}

void rs_await_end(int fd)
{
	struct rs **at = entry(fd);
	int ms;

	/*
	 * In the child of a process that was about to close it, no thread will: so the wait ends.
	 */
	for (ms = 0; at && __atomic_load_n(at, __ATOMIC_ACQUIRE) == &ending && ms < RS_CLOSE_MS;
	     ms++)
		poll(NULL, 0, 1);
}
