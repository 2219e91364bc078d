/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Contexts of the HCA's objects in device memory, and what the transport asks of CQs, SRQs, keys and queues.
 * Only softhca/device includes this. QP contexts are in qp.h.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_OBJECTS_H
#define SOFTHCA_DEVICE_MEMORY_OBJECTS_H

#include <errno.h>
#include <linux/types.h>

#include "softhca/device/device.h"
#include "txn.h"

SH_INLINE bool sh_ctx_live(const struct sh_dev *dev, uint32_t ctx)
{
	return ctx && ctx < SH_MAX_CTX &&
	       __atomic_load_n(&((struct sh_ctx *)sh_at(dev, SH_CTX_OFF))[ctx].state, __ATOMIC_ACQUIRE) == SH_CTX_LIVE;
}

/* The daemon's way to a lock: it looks as long as a running holder takes, and never sleeps. -EINPROGRESS: later. */
static inline int sh_lock_soon(struct sh_dev *dev, struct sh_lock *lock)
{
	return sh_lock_bounded(dev, lock) ? -EINPROGRESS : 0;
}

/* The daemon, before it puts something into a table: make sure [off, off+len) has pages. 0 or -ENOMEM. */
int sh_promise(const struct sh_dev *dev, const void *where, uint64_t len);

/* Make the thread slots of a new instance (exec.c). 0 or -ENOMEM. */
int sh_exec_init(struct sh_instance *inst);

/* ---- client memory of queues (umem.c) ---- */

/* 0, or -EFAULT when the pages are gone. In place when the pages are device memory. */
int sh_umem_read(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, void *buf, size_t len);
int sh_umem_write(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, const void *buf, size_t len);
/* A pointer into shared pages, or NULL when the memory is reached through the host. Bounds-checked. */
void *sh_umem_at(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, size_t len);
/* The same inline, without asking whether the context lives, and of what this process has mapped already. off and len are
 * below 2^62. */
static inline void *sh_umem_in_place(const struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, uint64_t len)
{
	/* Once: what is checked is what is used. */
	uint64_t base = __atomic_load_n(&mem->shm_off, __ATOMIC_RELAXED), at = base + off;

	if (__builtin_expect(off + len > mem->len || !base || !sh_in_pool(dev, at, len), 0))
		return NULL;
	return sh_at(dev, at);
}
/* One big-endian word (a doorbell record), in host order, read before anything that it covers. 0 or -EFAULT. */
int sh_umem_load32(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, uint32_t *val);
/* Fill [off, off+len) with a byte. 0 or -EFAULT. */
int sh_umem_fill(struct sh_dev *dev, const struct sh_umem *mem, uint64_t off, uint8_t byte, uint64_t len);

/* ---- completion queues ---- */

/* Nonzero between create and destroy. Damaged: found overwritten, told so to its owner, used no more. */
enum sh_live { SH_NONE = 0, SH_LIVE = 1, SH_DAMAGED = 2 };

enum sh_arm { SH_ARM_NONE = 0, SH_ARM_SOLICITED = 1, SH_ARM_ANY = 2 };

/* The first line is what every CQE changes, the others hardly ever change. */
struct sh_cq {
	struct sh_lock lock;
	uint32_t producer;		/* free-running, 32 bit; 24 bits of it are the HCA's index */
	uint32_t solicited_producer;	/* producer index after the last solicited CQE */
	uint32_t armed;			/* enum sh_arm */
	uint32_t last_notified;		/* producer when the last event was raised */
	uint32_t live __attribute__((aligned(64)));	/* enum sh_live */
	uint32_t cqn;
	uint32_t ctx;
	uint32_t log_size;
	uint32_t overrun;
	uint32_t comp_evq;
	struct sh_umem buf;
	uint32_t consumer_seen;		/* set_ci as last read from the record */
	uint32_t arm_acted;		/* arm record word acted on last */
	struct sh_umem db;
	uint64_t user_handle;
	uint32_t comp_events;		/* records written, ever; under the event queue's lock */
	uint32_t async_events;
	struct sh_txn txn __attribute__((aligned(64)));
} __attribute__((aligned(SH_APART)));
_Static_assert(offsetof(struct sh_cq, live) == 64, "one line for what changes");

/* Wake the threads that doze in poll_cq on CQs of this context: now, or when this thread leaves the device (exec.c). */
void sh_cq_rouse(struct sh_dev *dev, struct sh_ctx *ctx);

/*
 * Let the lock of a CQ go that may have a new CQE. A thread that polled it in vain for long may doze. It says so in
 * sh_ctx.dozing and polls once more before it sleeps; here the CQE is stored first, and the flag is read when the lock has
 * been let go. That is an atomic exchange, and orders the two: pairs with the fence in shim/idle.c.
 */
static inline void sh_cq_let_go(struct sh_dev *dev, struct sh_cq *cq)
{
	struct sh_ctx *ctx = (struct sh_ctx *)sh_at(dev, SH_CTX_OFF) + cq->ctx % SH_MAX_CTX;

	sh_unlock(dev, &cq->lock);
	if (__builtin_expect(__atomic_load_n(&ctx->dozing, __ATOMIC_SEQ_CST), 0))
		sh_cq_rouse(dev, ctx);
}

/* What the completer says; cq.c turns it into the 32 bytes of the format. */
struct sh_cqe {
	uint32_t qpn;			/* dw0: bit 23 as the QP has it */
	__be32 imm_be;		/* dw1, raw */
	uint32_t srqn_srcqp;		/* dw2: flags | source QPN, or SRQ number */
	uint16_t sl_vid;		/* +12, host order */
	uint16_t slid;			/* +14 */
	uint32_t byte_cnt;
	uint16_t wqe_index;
	uint8_t opcode;			/* 5 bits; SH_CQE_ERROR for errors */
	uint8_t send;			/* nonzero: send queue */
	uint8_t syndrome, vendor;	/* errors */
	uint8_t solicited;		/* counts for an arm of solicited kind (errors always do) */
};

/*
 * Add a CQE to an open transaction. The CQ's lock is held and covered. 0, or -ENOSPC: overrun (the CQ is
 * marked, CQ_ERR is queued in the transaction; the QP goes to the error state with QP_FATAL: caller's part),
 * -ENODEV: the CQ is gone or its owner is (nothing is added and the caller goes on as if it were).
 */
int sh_cq_put(struct sh_txn_open *t, struct sh_hca *hca, struct sh_cq *cq, const struct sh_cqe *cqe);

/* ---- shared receive queues ---- */

struct sh_srq {
	struct sh_lock lock;
	uint32_t head;			/* next WQE to take */
	uint32_t consumed;		/* 16 bits count */
	uint32_t limit;
	uint32_t seen;			/* the doorbell record as it was read last */
	uint32_t live __attribute__((aligned(64))); /* enum sh_live; damaged also by a link that leads out of the queue */
	uint32_t srqn;
	uint32_t ctx, pdn;
	uint32_t log_size, wqe_shift, max_sge;
	uint32_t xrcd, cqn;
	uint32_t async_events;		/* under the event queue's lock */
	uint64_t user_handle;
	struct sh_umem buf;
	struct sh_umem db;
	struct sh_txn txn __attribute__((aligned(64)));
} __attribute__((aligned(SH_APART)));
_Static_assert(offsetof(struct sh_srq, live) == 64, "one line for what changes");
/* WQEs posted and not taken. Lock held. */
int sh_srq_available(struct sh_dev *dev, struct sh_srq *srq);
/*
 * Take the head WQE inside an open transaction (lock held and covered): *index and its scatter list. The limit
 * event is queued in the transaction when the watermark is crossed. -ENOENT: empty; -EFAULT: queue memory gone.
 */
int sh_srq_take(struct sh_txn_open *t, struct sh_hca *hca, struct sh_srq *srq, uint32_t *index);
/* Read the scatter list of a WQE: segments (lkey per segment) up to max; returns how many, -errno. */
struct sh_sge {
	uint64_t addr;
	uint32_t len, key;
};
int sh_srq_scatter(struct sh_dev *dev, struct sh_srq *srq, uint32_t index, struct sh_sge *sge, unsigned int max);

/* ---- memory keys (mr.c) ---- */

/*
 * Check [addr, addr+len) of a key for a PD and an access (enum sh_access bits, all required; 0 = local read).
 * 0 and *ctx of the memory; -ENOENT no such key; -EPERM wrong PD or missing right; -ERANGE bounds.
 * Valid until the thread leaves the device (sh_leave).
 */
int sh_mr_check(struct sh_dev *dev, uint32_t hca, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
		uint32_t access, uint32_t *ctx);
/* Where [addr, addr + len) of a region is, as struct sh_seg says it. Only after a check of it has succeeded. */
uint64_t sh_mr_home(struct sh_dev *dev, uint32_t hca, uint32_t key, uint64_t addr, uint64_t len);
/* Check a gather or scatter list and cut [skip, skip+len) of it into plain segments. All of one context.
 * Returns the number of segments, or -errno as above (-EMSGSIZE: the list is shorter than skip+len). */
int sh_mr_slice(struct sh_dev *dev, struct sh_hca *hca, uint32_t pdn, uint32_t access, const struct sh_sge *sge,
		unsigned int nsge, uint64_t skip, uint64_t len, struct sh_seg *seg, unsigned int max, uint32_t *ctx);

/* ---- events (event.c) ---- */

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
