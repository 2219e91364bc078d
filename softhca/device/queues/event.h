/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Event queues, and the events that are raised through them. Each function takes the queue's lock, unless it says otherwise.
 */
#ifndef SOFTHCA_DEVICE_QUEUES_EVENT_H
#define SOFTHCA_DEVICE_QUEUES_EVENT_H

#include "softhca/device/memory/dev.h"

/* Affiliated asynchronous events about QPs, in uverbs numbers. */
enum sh_qp_event {
	SH_QPE_FATAL = 1,
	SH_QPE_REQ_ERR = 2,
	SH_QPE_ACCESS_ERR = 3,
	SH_QPE_COMM_EST = 4,
	SH_QPE_SQ_DRAINED = 5,
	SH_QPE_PATH_MIG = 6,
	SH_QPE_LAST_WQE = 16,
};
#define SH_QPE_NONE 0xffu

/* Raise an unaffiliated asynchronous event (port number or 0) to one context: event.c. */
int sh_async_event(struct sh_dev *dev, uint32_t ctx, uint64_t element, uint32_t type);

/* Try to move spilled records into the pipe. Daemon, when the pipe has room. Returns records left; -EINPROGRESS: a
 * client has the queue's lock. */
int sh_evq_flush(struct sh_dev *dev, uint32_t evq);
/* generation 0 frees the slot. -EINPROGRESS, -ENOMEM. */
int sh_evq_init(struct sh_dev *dev, uint32_t evq, uint32_t ctx, uint32_t record_size, uint32_t generation);
/* The first event queue >= from that has spilled records, 0 = none. The daemon looks at every attention and after every
 * death of a client. */
uint32_t sh_evq_spilled(struct sh_dev *dev, uint32_t from);

/*
 * The end of an object's events (destroy). Hold its event queues first (-EINPROGRESS), then clear what makes
 * the object live, then end: drops its records from the spill and returns how many went to the pipe, ever. element is
 * the user handle, or the QP number where that is what the records carry; kind is what the records are about.
 */
enum sh_event_kind { SH_EV_COMP, SH_EV_CQ, SH_EV_QP, SH_EV_SRQ };
int sh_evq_hold(struct sh_dev *dev, uint32_t evq);	/* 0 for evq 0 */
void sh_evq_release(struct sh_dev *dev, uint32_t evq);
uint32_t sh_evq_end(struct sh_dev *dev, uint32_t evq, uint32_t *counter, uint64_t element, enum sh_event_kind kind);

/* Raise the completion event of a CQ: count it and write the record (spills when the pipe is full). */
void sh_comp_event(struct sh_dev *dev, uint32_t hca, uint32_t cqn);
/* An affiliated event about object number obj; the type says which kind of object. XRC receive QPs: with
 * 0x80000000 to every registered context, uncounted. */
void sh_affiliated_event(struct sh_dev *dev, uint32_t hca, uint32_t type, uint32_t obj);

#endif
