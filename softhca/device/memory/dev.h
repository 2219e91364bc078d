/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * One process's view of an instance, and where things are in its device memory.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_DEV_H
#define SOFTHCA_DEVICE_MEMORY_DEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softhca/device/host.h"
#include "layout.h"

/*
 * How long the daemon sleeps for a lock (sh_lock_bounded): not at all. It only looks a few times,
 * for some microseconds.
 */
#define SH_LOCK_WAIT_MS 0

/* Makes one function of all that every message runs, and keeps out of it what few messages run. */
#define SH_INLINE  static inline __attribute__((always_inline))
#define SH_OUTLINE static __attribute__((noinline))

enum sh_face { SH_FACE_OFED, SH_FACE_MAINLINE };

#define SH_GIVEN_UP 16

/*
 * One process's view of an instance. Every process of the instance can write to device memory,
 * header included. So the values that bounds depend on are here, in the process's own memory.
 * sh_dev_attach() takes them from the header once; no other code reads them there.
 */
struct sh_dev {
	struct sh_instance *inst; /* base of the mapping */
	const struct sh_host_ops *ops;
	void *host;
	uint32_t proc; /* index of this process, 0 = the daemon */
	uint32_t hcas, hcas_per_host, ports;
	uint32_t cqe_size;
	/*
	 * In the daemon: the offset of the lock that sh_lock_soon() has found taken last; 0: none.
	 */
	uint64_t busy_lock;
	/* Holders of locks that this process has given up, by their slots: the last one of each. */
	uint64_t given_up[SH_GIVEN_UP];
	uint64_t size, pool_off, shared_off; /* the pool ends where shared memory begins */
	/*
	 * How far this process has mapped the pool and the shared area: all of both after
	 * sh_dev_attach(). The host may begin with less and extend it (ops->extend), in any thread
	 * and at any time. So the code reads each of these once for a decision.
	 */
	uint64_t pool_end, shared_end;
	/* Of this address space, for the host: host/witness.h. 0: there is none. */
	uint64_t witness;
	/* In the wire's engine alone (transport/wire.h); else NULL. */
	const struct sh_wire_ops *wire;
	/* With softhca start --wire-loopback alone (transport/loop.h); else NULL. */
	const struct sh_loop_ops *loop;
};

/*
 * Adds integers, because pointers must not overflow: an offset read from device memory may have any
 * value until it is checked.
 */
static inline void *sh_at(const struct sh_dev *dev, uint64_t off)
{
	return (void *)((uintptr_t)dev->inst + off);
}
/*
 * Is [off, off + len) in the pool, or in the shared area, and mapped? What a thread reads must be
 * mapped, so it asks first. The pages are mapped before the end moves, so a thread that sees the
 * new end can access them.
 */
SH_INLINE bool sh_in_pool(const struct sh_dev *dev, uint64_t off, uint64_t len)
{
	uint64_t end = __atomic_load_n(&dev->pool_end, __ATOMIC_RELAXED);

	return off >= dev->pool_off && off <= end && len <= end - off;
}
SH_INLINE bool sh_in_shared(const struct sh_dev *dev, uint64_t off, uint64_t len)
{
	uint64_t end = __atomic_load_n(&dev->shared_end, __ATOMIC_RELAXED);

	return off >= dev->shared_off && off <= end && len <= end - off;
}
/* NULL: out of range. */
static inline struct sh_ctx *sh_ctx(const struct sh_dev *dev, uint32_t index)
{
	return index < SH_MAX_CTX ? (struct sh_ctx *)sh_at(dev, SH_CTX_OFF) + index : NULL;
}
struct sh_proc *sh_proc(const struct sh_dev *dev, uint32_t index);
struct sh_evq *sh_evq(const struct sh_dev *dev, uint32_t index);
struct sh_hca *sh_hca(const struct sh_dev *dev, uint32_t index);

SH_INLINE bool sh_ctx_live(const struct sh_dev *dev, uint32_t ctx)
{
	return ctx && ctx < SH_MAX_CTX &&
	       __atomic_load_n(&((struct sh_ctx *)sh_at(dev, SH_CTX_OFF))[ctx].state,
			       __ATOMIC_ACQUIRE) == SH_CTX_LIVE;
}

#define SH_COUNT(hca, what, n) __atomic_fetch_add(&(hca)->counters.what, (n), __ATOMIC_RELAXED)
/* The same for a port. Its number may be any. */
#define SH_COUNT_PORT(hca, number, what, n)                                                        \
	do {                                                                                       \
		uint32_t number_ = (number)-1;                                                     \
		if (number_ < SH_MAX_PORTS)                                                        \
			__atomic_fetch_add(&(hca)->traffic[number_].what, (n), __ATOMIC_RELAXED);  \
	} while (0)
/* Packets that a port sends or receives, with so much payload. Only the last of them has pads. */
#define SH_COUNT_XMIT(hca, number, packets, len) SH_COUNT_TRAFFIC(hca, number, xmit, packets, len)
#define SH_COUNT_RCV(hca, number, packets, len)	 SH_COUNT_TRAFFIC(hca, number, rcv, packets, len)
#define SH_COUNT_TRAFFIC(hca, number, way, packets, len)                                           \
	do {                                                                                       \
		uint64_t len_ = (len);                                                             \
		SH_COUNT_PORT(hca, number, way##_packets, packets);                                \
		SH_COUNT_PORT(hca, number, way##_data, len_);                                      \
		if (SH_PADS(len_))                                                                 \
			SH_COUNT_PORT(hca, number, way##_pads, SH_PADS(len_));                     \
	} while (0)
#define SH_PADS(len) (-(len)&3)
/* The same for a QP. */
#define SH_COUNT_QP(qp, what, n) __atomic_fetch_add(&(qp)->what, (n), __ATOMIC_RELAXED)
/*
 * Stands at each place where packets are dropped. The reasons are the counters drops_* (layout.h).
 */
#define SH_DROPPED(hca, reason, n) SH_COUNT(hca, drops_##reason, n)
/* The same where the QP is known that the packet was for: NULL, if there is none after all. */
#define SH_DROPPED_AT(hca, qp, reason, n)                                                          \
	do {                                                                                       \
		struct sh_qp *qp_ = (qp);                                                          \
		SH_DROPPED(hca, reason, n);                                                        \
		if (qp_)                                                                           \
			SH_COUNT_QP(qp_, drops, n);                                                \
	} while (0)

#endif
