/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What one process, daemon or client, lends to the device: struct sh_host_ops on Linux. A process
 * has one of it. Internal functions return 0 or -errno.
 */
#ifndef SOFTHCA_HOST_PROCESS_H
#define SOFTHCA_HOST_PROCESS_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "softhca/device/memory/dev.h"

/*
 * Fills dev->ops and dev->host. dev->inst and dev->proc are set already; dir is the instance
 * directory. It may be called again: for a new connection, and in a forked child, whose parent's
 * pending calls sh_process_forked() has dropped.
 */
int sh_process_init(struct sh_dev *dev, const char *dir);

/*
 * Looks up in the vDSO and the C library what this file's functions need of them. The lookup takes
 * a lock of the loader's, which a thread holds while its dlopen() runs constructors. So a client
 * calls this when it starts. It may be called again.
 */
void sh_process_prepare(void);

/* CLOCK_MONOTONIC in ns, as the kernel has it: a program may have a clock_gettime() of its own. */
uint64_t sh_now(void);
/* CLOCK_REALTIME likewise. */
uint64_t sh_since_1970(void);

/*
 * Starts the helper thread unless it runs. Returns 0, -ENOMEM or -EAGAIN (the process may have no
 * other thread). Otherwise the first deferred call starts it.
 */
int sh_process_helper(void);

/*
 * Is softhca written for pages of this size? If not, text says why: device memory, queues and the
 * doorbell pages are laid out in pages of 4096 bytes.
 */
bool sh_page_size_known(long size, char *text, size_t len);

/* Is this thread in the middle of starting the helper? */
bool sh_process_helper_starting(void);

/* How many threads of this process are softhca's. */
int sh_process_threads(void);

/* The kernel's number of the helper; 0: it has not begun to run. */
int sh_process_helper_thread(void);

/*
 * The helper's stack, with all that the C library keeps of the thread. False: there has been no
 * helper so far.
 */
bool sh_process_helper_memory(uint64_t *low, uint64_t *high);

/* An upper bound of the bytes that the C library takes for a thread's variables. */
size_t sh_thread_size(void);

/*
 * For a process's first thread, when the process starts and in a forked child: the helper ends when
 * this thread and all others of the program have ended, however they did.
 */
void sh_process_leads(void);

/* In a forked child: drops the parent's helper thread, timers and locks. */
void sh_process_forked(void);

/* Ends the helper thread and waits for it. */
void sh_process_stop(void);
/*
 * Deferred calls that have not been made are never made: what they are about ends. The helper
 * thread does not run.
 */
void sh_process_forget_calls(void);

/*
 * This process writes to the queue by that descriptor until sh_event_forget(). It is open for
 * reading, too, so a write raises no SIGPIPE. The daemon calls it.
 */
void sh_event_lend(uint32_t evq, uint32_t generation, int fd);
/* An event queue was freed: this process drops what it has of it. */
void sh_event_forget(uint32_t evq);
/*
 * The program is about to give this number to another file: moves what this process has of an event
 * queue under it to another number. False: it has nothing there, no descriptor is left, or this
 * thread is in the middle of using one. The caller sees to it that no handler jumps away from here.
 */
bool sh_event_move(int fd);
/*
 * Can event_written() of device/host.h tell whether a record was written to this FIFO, which no
 * process reads yet? Not on overlayfs, for instance.
 */
bool sh_event_tells(int fd);
/*
 * sh_event_awaited(): is a record about to be written to this FIFO, and not yet written?
 * sh_event_await() has the FIFO say so; true: it does.
 */
bool sh_event_awaited(int fd);
bool sh_event_await(int fd);

/* ---- between the files of this directory ---- */

struct sh_process {
	struct sh_dev *dev;
	int pid;
	char dir[PATH_MAX];
};
extern struct sh_process sh_process;

enum sh_copy sh_host_copy(void *host, uint32_t dst_ctx, const struct sh_seg *dst, unsigned int ndst,
			  uint32_t src_ctx, const struct sh_seg *src, unsigned int nsrc,
			  uint64_t len);
enum sh_copy sh_host_seal(void *host, uint32_t dst_ctx, const struct sh_seg *dst, uint32_t src_ctx,
			  const struct sh_seg *src, unsigned int nsrc, uint64_t len,
			  uint64_t *commit, uint64_t word);
bool sh_host_reach(void *host, uint32_t ctx);
void sh_host_reach_end(void *host);
int sh_host_event_begin(void *host, uint32_t evq);
bool sh_host_event_written(void *host, uint32_t evq);
int sh_host_event(void *host, uint32_t evq, const void *record, size_t len);
void sh_event_forked(void);
/* This thread was thrown (life.h), perhaps out of one of these. */
void sh_event_thrown(void);
void sh_event_reset(void);
int sh_host_defer(void *host, uint64_t deadline_ns, void (*fn)(struct sh_dev *, uint64_t, uint64_t),
		  uint64_t a, uint64_t b, bool once);
void sh_host_wake(void *host, uint32_t proc);
void sh_host_rouse(void *host, uint32_t proc);
/* The helper thread looks at what is due, if there is one. */
void sh_helper_look(void);
bool sh_host_divert(void *host, uint32_t pid, uint32_t tid, uint64_t self_at, uint64_t word);
bool sh_host_stands(void *host, uint32_t pid, uint32_t tid);
void sh_helper_forked(void);
void sh_helper_prepare(void);
void sh_helper_watch(void);

#endif
