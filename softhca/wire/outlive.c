// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See outlive.h. A thread waits for the programs through descriptors of them, so that no process
 * which gets the number of a program later is taken for it.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "outlive.h"

static int programs[SH_MAX_PROC];
static unsigned int nprograms;

/*
 * Opens a descriptor of each program, as far as the limit of open files permits. If it permits too
 * few, the engine ends with the last of the programs that it knows.
 */
static void find_programs(const struct sh_dev *dev)
{
	for (uint32_t i = 1; i < SH_MAX_PROC; i++) {
		uint32_t pid = __atomic_load_n(&sh_proc(dev, i)->pid, __ATOMIC_RELAXED);
		int fd;

		if (!pid || i == dev->proc)
			continue;
		fd = (int)syscall(SYS_pidfd_open, (int)pid, 0);
		if (fd >= 0)
			programs[nprograms++] = fd;
	}
}

static void *wait_for_them(void *unused)
{
	(void)unused;
	for (unsigned int i = 0; i < nprograms; i++) {
		struct pollfd p = {.fd = programs[i], .events = POLLIN};

		while (poll(&p, 1, -1) < 0 && errno == EINTR)
			;
	}
	_exit(0);
}

int sh_wire_outlive(struct sh_dev *dev)
{
	pthread_t thread;
	int err;

	find_programs(dev);
	if (!nprograms)
		return -ESRCH;
	err = pthread_create(&thread, NULL, wait_for_them, NULL);
	if (!err)
		pthread_detach(thread);
	return -err;
}
