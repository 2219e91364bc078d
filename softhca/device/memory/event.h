/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Event queues, and the events that are raised through them. Each function takes the queue's lock,
 * unless it says otherwise.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_EVENT_H
#define SOFTHCA_DEVICE_MEMORY_EVENT_H

#include "dev.h"

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

/*
 * Raises an unaffiliated asynchronous event for one context. element: the number of the port, or 0.
 * -EINPROGRESS, for the daemon alone: a client holds the queue's lock, and the daemon must come back, with
 * this event before later ones.
 */
int sh_async_event(struct sh_dev *dev, uint32_t ctx, uint64_t element, uint32_t type);

/*
 * Raises the events that clients could not raise, because a thread that stands had their queue's
 * lock. The daemon calls it when a client has called for its attention, and after a death.
 */
void sh_evs_owed(struct sh_dev *dev);

/*
 * Moves spilled records into the pipe. The daemon calls it when the pipe has room. Returns how many
 * records are left, or -EINPROGRESS: a client holds the lock of the queue.
 */
int sh_evq_flush(struct sh_dev *dev, uint32_t evq);
/* Makes an event queue. generation 0 frees the slot. 0, -EINVAL, -EINPROGRESS or -ENOMEM. */
int sh_evq_init(struct sh_dev *dev, uint32_t evq, uint32_t ctx, uint32_t record_size,
		uint32_t generation);
/*
 * The first event queue >= from that has spilled records, or 0. The daemon asks whenever its
 * attention word changes, and after every death of a client.
 */
uint32_t sh_evq_spilled(struct sh_dev *dev, uint32_t from);

/*
 * Ends the events of an object that is being destroyed. The caller holds the object's event queues
 * first (-EINPROGRESS), then clears what makes the object live, then calls sh_evq_end(). That drops
 * the object's records from the spill, and returns how many have gone to the pipe so far. element:
 * the user handle, or the QP number if the records carry that. kind: what the records are about.
 */
enum sh_event_kind { SH_EV_COMP, SH_EV_CQ, SH_EV_QP, SH_EV_SRQ };
int sh_evq_hold(struct sh_dev *dev, uint32_t evq); /* 0 for evq 0 */
void sh_evq_release(struct sh_dev *dev, uint32_t evq);
uint32_t sh_evq_end(struct sh_dev *dev, uint32_t evq, uint32_t *counter, uint64_t element,
		    enum sh_event_kind kind);

/*
 * Raises the completion event of a CQ: counts it and writes the record, or spills it if the pipe is
 * full.
 */
void sh_comp_event(struct sh_dev *dev, uint32_t hca, uint32_t cqn);
/*
 * Raises an affiliated event about object number obj; the type says which kind of object. The event
 * of an XRC receive QP goes to every registered context, with 0x80000000 in its type and uncounted;
 * that of a target QP to every handle.
 */
void sh_affiliated_event(struct sh_dev *dev, uint32_t hca, uint32_t type, uint32_t obj);
/*
 * The same for an event of a transaction, whose log this thread has: at the commit, or in a
 * recovery, which raises only what is missing. number: of the event in the log; a completion event
 * is number 0.
 */
void sh_comp_event_of(struct sh_dev *dev, uint32_t hca, uint32_t cqn, struct sh_txn *log);
void sh_affiliated_event_of(struct sh_dev *dev, uint32_t hca, uint32_t type, uint32_t obj,
			    struct sh_txn *log, uint32_t number);

#endif
