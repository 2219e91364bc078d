/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What one process, daemon or client, lends to the device: struct sh_host_ops over Linux. There is one of it
 * in a process. Internal convention: 0 or -errno.
 */
#ifndef SOFTHCA_HOST_PROCESS_H
#define SOFTHCA_HOST_PROCESS_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "softhca/device/device.h"

/*
 * Fill dev->ops and dev->host; dev->inst and dev->proc are set already, dir is the instance directory. May be
 * called again (a forked child, a new connection): pending calls of the old life are dropped then.
 */
int sh_process_init(struct sh_dev *dev, const char *dir);

/* Start the helper thread if it does not run: 0, -EAGAIN. It is started by the first deferred call otherwise. */
int sh_process_helper(void);

/*
 * Whether pages of this size are what softhca is written for. false, with what to say about it in
 * text: device memory, queues and the doorbell pages are laid out in pages of 4096 bytes.
 */
bool sh_page_size_known(long size, char *text, size_t len);

/* Is this thread in the middle of starting it? */
bool sh_process_helper_starting(void);

/* How many threads of this process are ours. */
int sh_process_threads(void);

/* The kernel's number of the helper; 0: it has not begun to run. */
int sh_process_helper_thread(void);

/* The helper's stack, with all that the C library has of the thread. false: there has been none so far. */
bool sh_process_helper_memory(uint64_t *low, uint64_t *high);

/* How many bytes the C library takes for a thread's variables, an upper bound. */
size_t sh_thread_size(void);

/* In a forked child: the parent's helper thread, timers and locks are not ours. */
void sh_process_forked(void);

/* End the helper thread and wait for it. */
void sh_process_stop(void);

/* An event queue was freed: this process keeps nothing of it. */
void sh_event_forget(uint32_t evq);

/* ---- between the files of this directory ---- */

struct sh_process {
	struct sh_dev *dev;
	int pid;
	char dir[PATH_MAX];
};
extern struct sh_process sh_process;

enum sh_copy sh_host_copy(void *host, uint32_t dst_ctx, const struct sh_seg *dst, unsigned int ndst,
			  uint32_t src_ctx, const struct sh_seg *src, unsigned int nsrc, uint64_t len);
int sh_host_event(void *host, uint32_t evq, const void *record, size_t len);
void sh_event_forked(void);
void sh_event_reset(void);
int sh_host_defer(void *host, uint64_t deadline_ns, void (*fn)(struct sh_dev *, uint64_t, uint64_t),
		   uint64_t a, uint64_t b);
void sh_host_wake(void *host, uint32_t proc);
void sh_host_rouse(void *host, uint32_t proc);
void sh_helper_forked(void);
void sh_helper_watch(void);

#endif
