/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Channels: open rdma_cm files, and the events that wait in them.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_CHANNEL_H
#define SOFTHCA_KERNEL_RDMACM_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "softhca/kernel/fifo.h"
#include "softhca/kernel/lists.h"
#include "rdmacm-abi.h"

struct cm_id;
struct cm_member;
struct kproc;
struct rdmacm;

struct cm_event {
	struct cm_event *prev, *next; /* of the channel */
	struct cm_event *prev_of_id, *next_of_id;
	struct cm_id *id;	  /* whose event it is: a request's is the listener's */
	struct cm_id *fresh;	  /* of a request: its id */
	struct cm_member *member; /* of a group's event */
	struct cm_event_resp resp;
};
struct cm_channel {
	struct rdmacm *cm;
	struct fifo fifo;
	uint32_t host;
	struct cm_event *events;
	uint32_t unread;
	struct cm_id *ids;
	uint64_t commands;
	pid_t pid; /* the opener */
	UT_hash_handle hh;
};

/* *fd: the program's end, which the caller hands on and closes. 0 or -errno. */
int cm_channel_open(struct rdmacm *cm, struct kproc *p, uint32_t flags, struct cm_channel **out,
		    int *fd);
/* The last user has closed the file, or the instance ends: destroys the ids. */
void cm_channel_free(struct cm_channel *ch);
/* Of one in doubt (fifo.h): frees it if it has no user any more. */
void cm_channel_check(struct cm_channel *ch);
struct cm_channel *cm_channel_get(struct rdmacm *cm, uint32_t index, uint32_t generation);
/*
 * Behind a descriptor of a client: 0, -ENOENT (nothing is open there) or -EINVAL (something else
 * is).
 */
int cm_channel_by_fd(struct rdmacm *cm, pid_t tid, int fd, struct cm_channel **out);

/*
 * An event with that type and status in the id's channel, or NULL: the id's program does not know
 * it yet, or no memory.
 */
struct cm_event *cm_event_new(struct cm_id *id, enum cm_event_type type, int status);
void cm_event_queue(struct cm_event *e); /* after it has been filled in */
void cm_event_drop(struct cm_event *e);	 /* unread */
/* The event has been read. */
void cm_event_done(struct cm_event *e);
void cm_events_of(struct cm_id *id, void (*fn)(struct cm_event *e));
/* Makes the FIFO as full as there are events. */
void cm_channel_level(struct cm_channel *ch);

#endif
