// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Makes the thread slots of a new instance. exec.c hands them out.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "exec.h"

/* So many at once */
#define SLOTS_WRITTEN 512

/* Writes these n slots into the file, again and again until it has all. */
static int write_slots(int fd, const struct sh_exec *some, uint64_t n)
{
	uint64_t at = SH_EXEC_OFF, end = at + SH_MAX_EXEC * sizeof(*some);

	while (at < end) {
		uint64_t from = (at - SH_EXEC_OFF) % (n * sizeof(*some));
		ssize_t written =
			pwrite(fd, (const char *)some + from, n * sizeof(*some) - from, (off_t)at);

		if (written > 0)
			at += (uint64_t)written;
		else if (written == 0 || errno != EINTR)
			return -ENOMEM;
	}
	return 0;
}

/*
 * The slots' mutexes are made elsewhere and written into the file: a store to each slot would have
 * the kernel map all their pages one by one, which took most of the time that an instance is made
 * in.
 */
int sh_exec_init(struct sh_instance *inst, int fd)
{
	struct sh_exec *some = calloc(SLOTS_WRITTEN, sizeof(*some));
	pthread_mutexattr_t attr;
	uint32_t i;
	int err;

	if (!some)
		return -ENOMEM;
	if (pthread_mutexattr_init(&attr)) {
		free(some);
		return -ENOMEM;
	}
	err = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!err)
		err = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	for (i = 0; i < SLOTS_WRITTEN && !err; i++)
		err = pthread_mutex_init(&some[i].owner, &attr);
	if (!err)
		err = pthread_mutex_init(&inst->wire.alive, &attr);
	pthread_mutexattr_destroy(&attr);
	if (!err)
		err = write_slots(fd, some, SLOTS_WRITTEN);
	free(some);
	return err ? -ENOMEM : 0;
}
