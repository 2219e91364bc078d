/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * One look at an instance from outside: a copy of its device memory, and what the kernel says of
 * the threads in it. For `softhca show --waits`, which works without the daemon, since that may be
 * what hangs. Nothing in the instance hears of it: the memory is read by descriptor, no page of it
 * is mapped or made.
 */
#ifndef SOFTHCA_CLI_LOOK_H
#define SOFTHCA_CLI_LOOK_H

#include <stdint.h>

#include "softhca/device/waits.h"

/* A thread of a process of the instance. */
struct task {
	uint32_t proc, pid, tid;
	int host;		    /* -1: it has no device open */
	char state;		    /* of /proc/PID/stat; 0: it is no more */
	uint64_t ran_ns, queued_ns; /* on a processor; ready, without one. 0 where the kernel does
				       not count */
	long call, arg; /* the system call that it is in and its first argument; -1: none, or it
			   cannot be told */
	bool announced; /* it has a slot: */
	struct sh_thread slot;
};

struct look {
	struct sh_dev dev; /* on the copy */
	uint64_t now;	   /* CLOCK_MONOTONIC, ns */
	struct task *task;
	unsigned int ntasks;
	struct sh_due *due;
	unsigned int ndue;
	struct sh_held *held;
	unsigned int nheld;
	bool no_memory; /* something did not fit */
};

/* A descriptor of the device memory of the daemon with this number, or -errno. */
int look_open(long daemon);
/* 0 or -errno. What look_open() returned stays the caller's. */
int look_take(struct look *l, int memory);
void look_drop(struct look *l);

/* The thread of this number; NULL. */
const struct task *look_task(const struct look *l, uint32_t pid, uint32_t tid);
uint32_t look_pid(const struct look *l, uint32_t proc);

#endif
