/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Event queues: completion channels and asynchronous files, which are FIFOs.
 */
#ifndef SOFTHCA_KERNEL_UVERBS_EVQ_H
#define SOFTHCA_KERNEL_UVERBS_EVQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "softhca/kernel/aside.h"
#include "softhca/kernel/fifo.h"
#include "handle.h"

struct kernel;

struct kevq {
	uint32_t index, generation;
	struct kctx *ctx;
	bool async, closed;	  /* closed: the client has closed its end */
	struct fifo fifo;	  /* its daemon's end also drains it, and polls for room */
	bool polled;		  /* waiting for room */
	uint32_t refs;		  /* CQs that report here */
	struct kevq *prev, *next; /* of the context */
	struct aside aside;	  /* until its place in device memory is free */
	struct late_event *late;  /* in their order, while a client holds the queue's lock */
	struct aside late_aside;
};

int evq_open(struct kctx *ctx, bool async, struct kevq **out, int *client_fd);
void evq_free(struct kernel *k, struct kevq *e);
/*
 * Raises an event of a port for the context of an asynchronous event queue. Such events keep their
 * order: a program that reads PORT_ERR last takes the port to be down.
 */
void evq_port_event(struct kernel *k, struct kevq *e, uint32_t port, uint32_t type);
void evq_put(struct kernel *k, struct kevq *e); /* one CQ fewer reports here */
/* inotify says so. It also does when another program has looked into the file (kernel/fifo.c). */
void evq_client_closed(struct kernel *k, uint32_t index, uint32_t generation);
/* Looks again at queues that may be closed; any may be. */
void evq_doubted(struct kernel *k);
void evq_missed(struct kernel *k);
/*
 * The completion channel of the context behind that descriptor: 0, -EINVAL, or -ENOMEM
 * (client_file()).
 */
int evq_by_fd(struct kctx *ctx, pid_t tid, int fd, struct kevq **out);
/*
 * Drops the records of an object that has ended. On entry *events is how many were written. On
 * return it is how many were read, and will be acknowledged. -EINPROGRESS: a client holds the
 * queue's lock. late: that is not waited for any more.
 */
int evq_drop_comp(struct kernel *k, struct kevq *e, uint64_t user_handle, bool late,
		  uint32_t *events);
int evq_drop_async(struct kernel *k, struct kevq *e, uint64_t user_handle, enum uobj_type type,
		   bool late, uint32_t *events);
void evq_spill(struct kernel *k);		 /* something may have spilled */
void evq_room(struct kernel *k, struct kevq *e); /* the pipe has room */

#endif
