/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Contexts of CQs and SRQs in device memory.
 * Only softhca/device includes this. QP contexts are in qp_context.h.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_OBJECTS_H
#define SOFTHCA_DEVICE_MEMORY_OBJECTS_H

#include "txn.h"

/*
 * Nonzero between create and destroy. Damaged: a thread has found it overwritten and told its
 * owner; the device uses it no more.
 */
enum sh_live { SH_NONE = 0, SH_LIVE = 1, SH_DAMAGED = 2 };

enum sh_arm { SH_ARM_NONE = 0, SH_ARM_SOLICITED = 1, SH_ARM_ANY = 2 };

/* Every CQE changes the first line; the others hardly ever change. */
struct sh_cq {
	struct sh_lock lock;
	uint32_t producer;	     /* free-running, 32 bit; 24 bits of it are the HCA's index */
	uint32_t solicited_producer; /* producer index after the last solicited CQE */
	uint32_t armed;		     /* enum sh_arm */
	uint32_t last_notified;	     /* producer when the last event was raised */
	uint32_t live __attribute__((aligned(64))); /* enum sh_live */
	uint32_t cqn;
	uint32_t ctx;
	uint32_t log_size;
	uint32_t overrun;
	uint32_t comp_evq;
	struct sh_umem buf;
	uint32_t consumer_seen; /* set_ci as last read from the record */
	uint32_t arm_acted;	/* arm record word acted on last */
	struct sh_umem db;
	uint64_t user_handle;
	uint32_t comp_events; /* records written so far; under the event queue's lock */
	uint32_t async_events;
	struct sh_txn txn __attribute__((aligned(64)));
} __attribute__((aligned(SH_APART)));
_Static_assert(offsetof(struct sh_cq, live) == 64, "one line for what changes");

struct sh_srq {
	struct sh_lock lock;
	uint32_t head;	   /* next WQE to take */
	uint32_t consumed; /* only 16 bits count */
	uint32_t limit;
	uint32_t seen; /* the doorbell record as last read */
	uint32_t live __attribute__((aligned(
		64))); /* enum sh_live; damaged also by a link that leads out of the queue */
	uint32_t srqn;
	uint32_t ctx, pdn;
	uint32_t log_size, wqe_shift, max_sge;
	uint32_t xrcd, cqn;
	uint32_t async_events; /* under the event queue's lock */
	/* Counts the SRQs that this number has had: of two with one number, which is meant. */
	uint32_t gen;
	uint64_t user_handle;
	struct sh_umem buf;
	struct sh_umem db;
	struct sh_txn txn __attribute__((aligned(64)));
} __attribute__((aligned(SH_APART)));
_Static_assert(offsetof(struct sh_srq, live) == 64, "one line for what changes");

#endif
