/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Threads in device code: slots, what waits until a thread leaves, and graces. Functions return
 * -errno or say what they return.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_EXEC_H
#define SOFTHCA_DEVICE_MEMORY_EXEC_H

#include "dev.h"

/*
 * Thread slots. sh_ring(), sh_arm(), sh_recv_posted() and sh_attention() are called between enter and leave, and so is
 * whatever else uses memory keys. enter returns false when this thread is in device code already (a signal handler
 * interrupted it): the caller then records the doorbell with one of the *_later() and returns; leave serves it.
 * Both are async-signal-safe once the thread has entered for the first time, or called sh_exec_prepare().
 */
bool sh_enter(struct sh_dev *dev);
void sh_leave(struct sh_dev *dev);
void sh_exec_prepare(struct sh_dev *dev);
/*
 * Whether this thread is in device code; and the same, with fn() called once by the sh_leave() that
 * ends it. For signal handlers on top of it.
 */
bool sh_inside(void);
bool sh_after_leave(void (*fn)(void));
/* This thread gives its slot back: before the instance's memory is unmapped under it. */
void sh_exec_release(void);
void sh_ring_later(struct sh_dev *dev, uint32_t ctx, uint32_t qpn);
void sh_recv_later(struct sh_dev *dev, uint32_t ctx, uint32_t qpn);
void sh_arm_later(struct sh_dev *dev, uint32_t ctx, uint32_t cqn, uint32_t dw0, uint32_t dw1);
/*
 * After something was made unreachable: the moment, and whether each thread that was in device code at that moment has left
 * since. Until then a thread may use what it had looked up before. Threads that were in already at the moment `since` are not
 * asked about (0: all are).
 */
uint64_t sh_grace_begin(struct sh_dev *dev);
bool sh_grace_over(struct sh_dev *dev, uint64_t since, uint64_t moment);
/* The process of one after the other that has not left, with *at 0 at first; false: no more. */
bool sh_grace_holder(struct sh_dev *dev, uint64_t since, uint64_t moment, uint32_t *at, uint32_t *proc);
/* Threads that have been in device code since before that moment: what one holds that is stopped there becomes free (life.h). */
void sh_grace_suspect(struct sh_dev *dev, uint64_t moment);
/* Everything a dead process held: exec slots. certain: it cannot run any more, whatever the kernel says of them. Daemon. */
void sh_proc_gone(struct sh_dev *dev, uint32_t proc, bool certain);

/* Make the thread slots of a new instance (exec.c). 0 or -ENOMEM. */
int sh_exec_init(struct sh_instance *inst);

/* Wake the threads that doze in poll_cq on CQs of this context: now, or when this thread leaves the device (exec.c). */
void sh_cq_rouse(struct sh_dev *dev, struct sh_ctx *ctx);

#endif
