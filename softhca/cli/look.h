/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * One look at an instance from outside: a copy of its device memory, and what the kernel says of
 * the threads in it. For `softhca show --waits`, which works without the daemon, since the daemon
 * may be what hangs. The look has no effect on the instance: it reads the memory through a
 * descriptor, and maps or makes no page of it.
 */
#ifndef SOFTHCA_CLI_LOOK_H
#define SOFTHCA_CLI_LOOK_H

#include <stdint.h>

#include "softhca/device/waits.h"

/* A thread of a process of the instance. */
struct task {
	uint32_t proc, pid, tid;
	int host;   /* -1: it has no device open */
	char state; /* as in /proc/PID/stat; 0: the thread has ended */
	/* On a processor; ready, but without one. 0 if the kernel does not count. */
	uint64_t ran_ns, queued_ns;
	/*
	 * The system call that the thread is in, and its first argument; -1 if it is in none or
	 * that is not known.
	 */
	long call, arg;
	bool announced; /* it has a slot: */
	struct sh_thread slot;
};

struct look {
	struct sh_dev dev; /* of the copy */
	uint64_t now;	   /* CLOCK_MONOTONIC, ns */
	struct task *task;
	unsigned int ntasks;
	struct sh_due *due;
	unsigned int ndue;
	uint32_t unseen; /* queues that could not be looked into */
	struct sh_held *held;
	unsigned int nheld;
	bool no_memory; /* something did not fit */
};

/* Returns a descriptor of the device memory of the daemon with this process number, or -errno. */
int look_open(long daemon);
/* Returns 0 or -errno. The descriptor stays the caller's. */
int look_take(struct look *l, int memory);
void look_drop(struct look *l);

/* The thread with this number, or NULL. */
const struct task *look_task(const struct look *l, uint32_t pid, uint32_t tid);
uint32_t look_pid(const struct look *l, uint32_t proc);

#endif
