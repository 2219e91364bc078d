/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Processes: one image of each, from its first message to its end or its next exec.
 */
#ifndef SOFTHCA_KERNEL_PROCESS_H
#define SOFTHCA_KERNEL_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user.h"

struct kernel;
struct kmr;
struct kwindow;

/* One image of a process, from its first message to its end or its next exec. */
struct kproc {
	uint32_t slot; /* in device memory; 0: the daemon */
	pid_t pid;
	uint32_t host;
	int pidfd;
	uint32_t refs;		 /* the connection and the contexts */
	bool connected, gone;	 /* gone: the slot has been given back */
	uint64_t locked;	 /* pages counted against RLIMIT_MEMLOCK */
	struct kwindow *windows; /* by address */
	struct user user;
	/*
	 * All its threads have slept since then, with so many switches: proc_asleep(). 0: one ran.
	 */
	uint64_t asleep, switches;
	uint64_t looked; /* when proc_stands() last looked */
	bool stands;	 /* what it saw */
	void *regions;	 /* a tree of struct kregion, by address */
	/* When regions were revoked to which a thread may still be writing. 0: no thread is. */
	uint64_t revoked;
	struct kmr *unshared; /* memory regions that are not device memory */
};

int proc_attach(struct kernel *k, pid_t pid, uint32_t host, uint32_t again, uint64_t witness,
		struct kproc **out);
/*
 * Does the image live, and has it ended, for certain? Neither, if the process has made itself
 * undumpable, for example.
 */
bool proc_lives(struct kernel *k, const struct kproc *p);
bool proc_ended(const struct kproc *p);
void proc_detach(struct kernel *k, struct kproc *p); /* its connection has closed */
void proc_dead(struct kernel *k, struct kproc *p);   /* the process, or its image, has ended */
void proc_put(struct kernel *k, struct kproc *p);
bool number_stopped(int number); /* the process or thread, by a signal or a debugger */
/*
 * Has each thread of the process slept at the last look and at this one, with no moment in which it
 * ran in between, and was the last look so long ago? A thread that waits for a processor does not
 * sleep. One that a cgroup's freezer holds does.
 */
bool proc_asleep(struct kproc *p, uint64_t ns);
/*
 * Do its threads stand still, because a cgroup's freezer holds them, or because they sleep for
 * seconds in device code? The answer may be some milliseconds old.
 */
bool proc_stands(struct kproc *p);

#endif
