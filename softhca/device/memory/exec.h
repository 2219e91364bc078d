/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Threads in device code: slots, what waits until a thread leaves, and graces. Functions return
 * -errno or say what they return.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_EXEC_H
#define SOFTHCA_DEVICE_MEMORY_EXEC_H

#include "dev.h"

/*
 * Thread slots. A thread calls sh_ring(), sh_arm(), sh_recv_posted() and sh_attention(), and
 * everything else that uses memory keys, between sh_enter() and sh_leave(). sh_enter() returns
 * false if the thread is in device code already, because a signal handler has interrupted it there.
 * The caller then records the doorbell with one of the *_later() functions and returns; sh_leave()
 * serves it. All are async-signal-safe once the thread has entered for the first time, or has
 * called sh_exec_prepare().
 */
bool sh_enter(struct sh_dev *dev);
void sh_leave(struct sh_dev *dev);
void sh_exec_prepare(struct sh_dev *dev);
/*
 * Is this thread in device code? sh_after_leave() asks the same; if it is true, the sh_leave() that
 * ends it calls fn() once. For signal handlers that have interrupted the thread.
 */
bool sh_inside(void);
bool sh_after_leave(void (*fn)(void));
/*
 * Is the thread that this word of a lock names (lock.h) in device code, as far as anyone knows? If
 * it has died there, and the caller is the daemon's thread, no grace is over before the daemon has
 * asked for it again.
 */
bool sh_inside_still(struct sh_dev *dev, uint64_t word);
/* Gives back this thread's slot, before the instance's memory is unmapped. */
void sh_exec_release(void);
/*
 * In a forked child: it has no slot, since that belongs to the parent's thread. fork() calls it by
 * itself.
 */
void sh_exec_forked(void);
/*
 * What the *_later() functions of doorbell.h and cq.h have in common: sh_leave() calls fn with
 * these values. The same doorbell twice counts as one. False: there are too many doorbells. The
 * caller then marks the queue (attention.h), and sh_leave() has the helper thread look at what is
 * marked.
 */
typedef void sh_later_fn(struct sh_dev *dev, uint32_t ctx, uint32_t number, uint32_t dw0,
			 uint32_t dw1);
bool sh_later(sh_later_fn *fn, uint32_t ctx, uint32_t number, uint32_t dw0, uint32_t dw1);
/*
 * sh_grace_begin(), called after something was made unreachable, returns the moment.
 * sh_grace_over(): has each thread that was in device code at that moment left since? Until then a
 * thread may use what it had looked up before. Threads that were in device code already at the
 * moment `since` do not count (0: all count).
 */
uint64_t sh_grace_begin(struct sh_dev *dev);
bool sh_grace_over(struct sh_dev *dev, uint64_t since, uint64_t moment);
/*
 * Gives the processes of the threads that have not left, one after the other. *at is 0 at first.
 * False: there are no more.
 */
bool sh_grace_holder(struct sh_dev *dev, uint64_t since, uint64_t moment, uint32_t *at,
		     uint32_t *proc);
/*
 * If a thread that has been in device code since before that moment is stopped there, what it holds
 * becomes free (life.h).
 */
void sh_grace_suspect(struct sh_dev *dev, uint64_t moment);
/*
 * Frees the thread slots of a dead process. certain: the process cannot run any more, whatever the
 * kernel says of its threads. The daemon calls it.
 */
void sh_proc_gone(struct sh_dev *dev, uint32_t proc, bool certain);

/*
 * Makes the robust mutexes of a new instance, whose file is fd: thread slots, wire (slots.c). 0 or
 * -ENOMEM.
 */
int sh_exec_init(struct sh_instance *inst, int fd);

/*
 * Wakes the threads that doze in poll_cq on CQs of this context: now, or when this thread leaves
 * the device (exec.c).
 */
void sh_cq_rouse(struct sh_dev *dev, struct sh_ctx *ctx);

#endif
