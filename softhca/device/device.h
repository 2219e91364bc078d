/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The device as its two users see it: the kernel's control path and the doorbells.
 *
 * Every function takes the device handle of this process. Internal convention: 0 or -errno. Functions of the
 * control path are called by the daemon only, which never sleeps for a client. Where a client holds a lock for longer than
 * it takes to look a few times, they return -EINPROGRESS and have changed nothing: the daemon serves others and tries again.
 */
#ifndef SOFTHCA_DEVICE_DEVICE_H
#define SOFTHCA_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host.h"
#include "softhca/device/memory/layout.h"

/* How long the daemon sleeps for a lock (sh_lock_bounded): it only looks a few times, some microseconds. */
#define SH_LOCK_WAIT_MS	0

/* What every message goes through is one function for the compiler; what few do is kept out of that. */
#define SH_INLINE static inline __attribute__((always_inline))
#define SH_OUTLINE static __attribute__((noinline))

enum sh_face { SH_FACE_OFED, SH_FACE_MAINLINE };

/*
 * One process's view of an instance. Every process of it can write to device memory, its header
 * included. So what bounds depend on is here, in the process's own memory: sh_dev_attach() takes it
 * from the header once, and nothing looks there again.
 */
struct sh_dev {
	struct sh_instance *inst;	/* base of the mapping */
	const struct sh_host_ops *ops;
	void *host;
	uint32_t proc;			/* index of this process, 0 = the daemon */
	uint32_t hcas, hcas_per_host, ports;
	uint32_t cqe_size;
	uint64_t size, pool_off, shared_off;	/* the pool ends where shared memory begins */
	/*
	 * Up to where this process has mapped the pool, and the shared area: all of both after
	 * sh_dev_attach(). The host may begin with less and have it grow (ops->extend), in any
	 * thread and at any time; so each is read once for a decision.
	 */
	uint64_t pool_end, shared_end;
	uint64_t witness;		/* of this address space, for the host's use: host/witness.h. 0: there is none */
};

/* Added as integers: an offset read from device memory may have any value until it is checked, and pointers must not overflow. */
static inline void *sh_at(const struct sh_dev *dev, uint64_t off)
{
	return (void *)((uintptr_t)dev->inst + off);
}
/*
 * Whether [off, off + len) is in the pool, or in the shared area, and mapped: what is read must be
 * there, so this is asked before. The kernel has the pages mapped before the end says so; a thread
 * that sees the end can touch them.
 */
static inline bool sh_in_pool(const struct sh_dev *dev, uint64_t off, uint64_t len)
{
	uint64_t end = __atomic_load_n(&dev->pool_end, __ATOMIC_RELAXED);

	return off >= dev->pool_off && off <= end && len <= end - off;
}
static inline bool sh_in_shared(const struct sh_dev *dev, uint64_t off, uint64_t len)
{
	uint64_t end = __atomic_load_n(&dev->shared_end, __ATOMIC_RELAXED);

	return off >= dev->shared_off && off <= end && len <= end - off;
}
/* NULL when out of range. */
static inline struct sh_ctx *sh_ctx(const struct sh_dev *dev, uint32_t index)
{
	return index < SH_MAX_CTX ? (struct sh_ctx *)sh_at(dev, SH_CTX_OFF) + index : NULL;
}
struct sh_proc *sh_proc(const struct sh_dev *dev, uint32_t index);
struct sh_evq *sh_evq(const struct sh_dev *dev, uint32_t index);
struct sh_hca *sh_hca(const struct sh_dev *dev, uint32_t index);

/* ---- making an instance (instance.c; daemon) ---- */

struct sh_config {
	uint32_t hosts, hcas_per_host, ports;
	uint32_t cqe_size, driver_abi, face, trap;
	uint64_t pool_size;		/* for queues; 0 = the default */
	uint64_t shared_size;		/* for registered memory; 0 = the default */
};
uint64_t sh_instance_size(const struct sh_config *cfg);
/* What of it lies before the pool. */
uint64_t sh_instance_tables(const struct sh_config *cfg);
/* Write the header, tables and port state into zeroed device memory, of which sh_instance_tables() bytes are mapped; fd is
 * its memfd. Pages are allocated as they are promised. -ENOMEM. */
int sh_instance_init(void *base, int fd, const struct sh_config *cfg);
/*
 * Use the device memory that is mapped at base. size is what its descriptor has (fstat), not what
 * the header says. 0, or -EPROTO: it is no instance, or its parts do not fit together; then *dev is
 * as it was.
 */
int sh_dev_attach(struct sh_dev *dev, struct sh_instance *base, uint64_t size);
/* Make sure [off, off+len) has pages (fallocate on the memfd): 0 or -ENOMEM. Daemon only. */
int sh_reserve(int fd, uint64_t off, uint64_t len);

/* ---- doorbells (any process; doorbell.c) ---- */

/* The send doorbell (or a BlueFlame write) of a context named this QP. Unknown numbers and foreign QPs are ignored. */
void sh_ring(struct sh_dev *dev, uint32_t ctx, uint32_t qpn);
/* The arm doorbell named this CQ: look at its arm record. dw0/dw1 are the doorbell's words in host order, or
 * both 0 when only the record is to be looked at. */
void sh_arm(struct sh_dev *dev, uint32_t ctx, uint32_t cqn, uint32_t dw0, uint32_t dw1);
/* A receive may have been posted to a QP in the error state. */
void sh_recv_posted(struct sh_dev *dev, uint32_t ctx, uint32_t qpn);
/* Whether it is in the error state, nearly never. Needs no sh_enter(). */
bool sh_recv_matters(struct sh_dev *dev, uint32_t ctx, uint32_t qpn);
/* Called by the helper thread when proc.attention changed: serve the ring of requests of this process. */
void sh_attention(struct sh_dev *dev);

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
/*
 * Locks that the dead held become free, so that nobody sleeps for them until it looks again: orphans.c. Daemon.
 * Whether any thread has died in device code since *seen, which is moved on; then each object that exists is named.
 */
bool sh_orphans(struct sh_dev *dev, uint32_t *seen);
void sh_orphans_of_hca(struct sh_dev *dev, uint32_t hca);
void sh_orphans_of_qp(struct sh_dev *dev, uint32_t hca, uint32_t qpn);
void sh_orphans_of_srq(struct sh_dev *dev, uint32_t hca, uint32_t srqn);
void sh_orphans_of_cq(struct sh_dev *dev, uint32_t hca, uint32_t cqn);
void sh_orphans_of_evq(struct sh_dev *dev, uint32_t evq);

/* ---- completion queues (cq.c) ---- */

struct sh_cq_init {
	uint32_t ctx;
	uint32_t log_size;		/* log2 of the number of entries */
	uint64_t user_handle;
	uint32_t comp_evq;		/* 0 = no channel */
	uint32_t comp_vector;
	struct sh_umem buf;
	struct sh_umem db;		/* 8 bytes */
};
/* Fills the buffer with hardware-owned entries. cqn is chosen by the caller (number spaces are the kernel's). */
int sh_cq_create(struct sh_dev *dev, uint32_t hca, uint32_t cqn, const struct sh_cq_init *init);
/* Two halves, the device's part of RESIZE_CQ (mlx4-hardware.md 5.9). -EINVAL: too small for what is in it. */
int sh_cq_resize(struct sh_dev *dev, uint32_t hca, uint32_t cqn, const struct sh_umem *buf, uint32_t log_size);
/* No write after return. Reports events written so far (the caller subtracts those it drops from the pipes). */
int sh_cq_destroy(struct sh_dev *dev, uint32_t hca, uint32_t cqn, uint32_t *comp_events, uint32_t *async_events);
void sh_cq_end(struct sh_dev *dev, uint32_t hca, uint32_t cqn, uint32_t *comp_events, uint32_t *async_events);
int sh_cq_reclaim(struct sh_dev *dev, uint32_t hca, uint32_t cqn);
struct sh_cq_info {
	uint32_t cqn, ctx, entries, producer, consumer, armed, overrun, comp_evq;
	uint64_t comp_events;
};
int sh_cq_query(struct sh_dev *dev, uint32_t hca, uint32_t cqn, struct sh_cq_info *info);

/* ---- shared receive queues (srq.c) ---- */

struct sh_srq_init {
	uint32_t ctx, pdn;
	uint32_t log_size, wqe_shift;	/* entries and their stride */
	uint32_t xrcd, cqn;		/* XRC: domain and CQ; else 0 */
	uint32_t max_sge;
	uint64_t user_handle;
	struct sh_umem buf;
	struct sh_umem db;		/* 4 bytes */
};
int sh_srq_create(struct sh_dev *dev, uint32_t hca, uint32_t srqn, const struct sh_srq_init *init);
int sh_srq_limit(struct sh_dev *dev, uint32_t hca, uint32_t srqn, uint32_t limit);	/* arm the watermark */
int sh_srq_destroy(struct sh_dev *dev, uint32_t hca, uint32_t srqn, uint32_t *async_events);
uint32_t sh_srq_end(struct sh_dev *dev, uint32_t hca, uint32_t srqn);
int sh_srq_reclaim(struct sh_dev *dev, uint32_t hca, uint32_t srqn);
struct sh_srq_info {
	uint32_t srqn, ctx, pdn, entries, available, limit, xrcd, cqn;
};
int sh_srq_query(struct sh_dev *dev, uint32_t hca, uint32_t srqn, struct sh_srq_info *info);

/* ---- memory regions (mr.c) ---- */

int sh_mr_create(struct sh_dev *dev, uint32_t hca, uint32_t key, uint32_t ctx, uint32_t pdn,
		 uint64_t start, uint64_t len, uint32_t access);
/* The same where the region's addresses (start) are not those that its owner has its memory at (home). */
int sh_mr_create_at(struct sh_dev *dev, uint32_t hca, uint32_t key, uint32_t ctx, uint32_t pdn, uint64_t start,
		    uint64_t home, uint64_t len, uint32_t access);
/*
 * The owner's pages of the region are device memory: off is where its first byte is there; 0 takes that back, which is
 * true for each thread only when a grace that begins afterwards is over. -ENOENT.
 */
int sh_mr_share(struct sh_dev *dev, uint32_t hca, uint32_t key, uint64_t off);
/*
 * Invalidate: no thread finds it any more, but one that has may use it still. So the caller does not give out the key again
 * before the grace that begins afterwards is over. -ENOENT.
 */
int sh_mr_destroy(struct sh_dev *dev, uint32_t hca, uint32_t key);

/* ---- queue pairs (qp.c, modify.c) ---- */

enum sh_qp_type {			/* service types */
	SH_QPT_RC = 0, SH_QPT_UC = 1, SH_QPT_UD = 3, SH_QPT_XRC = 6,	/* OFED's XRC: both directions */
	SH_QPT_XRC_INI = 16, SH_QPT_XRC_TGT = 17,			/* mainline's halves */
};
enum sh_qp_state {			/* as the verbs number them */
	SH_QPS_RESET, SH_QPS_INIT, SH_QPS_RTR, SH_QPS_RTS, SH_QPS_SQD, SH_QPS_SQE, SH_QPS_ERR,
};

struct sh_qp_init {
	uint32_t ctx;			/* 0 = kernel-made XRC receive QP: no queues, no CQs */
	uint32_t type;			/* enum sh_qp_type */
	uint32_t pdn, send_cqn, recv_cqn, srqn;	/* 0 = none */
	uint32_t xrcd;
	uint32_t sq_sig_all;
	uint32_t log_sq_size, sq_shift;	/* log_sq_size/rq: log2 of WQE count; sizes 0 with *_present 0 */
	uint32_t log_rq_size, rq_shift;
	uint32_t sq_present, rq_present;
	uint64_t user_handle;
	struct sh_umem buf;
	struct sh_umem rq_db;		/* 4 bytes */
	/* caps as query reports them */
	uint32_t cap_recv_wr, cap_recv_sge;
};

/* Attributes in uverbs terms (struct ibv_modify_qp's fields); mask bits as IBV_QP_*. */
struct sh_path {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint16_t dlid;
	uint8_t sgid_index, hop_limit, traffic_class, sl, src_path_bits, static_rate, is_global, port_num;
};
struct sh_qp_attr {
	uint32_t qp_state, cur_qp_state, path_mtu, path_mig_state;
	uint32_t qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout, sq_sig_all;
	uint32_t max_recv_wr, max_recv_sge;	/* query only */
	struct sh_path path, alt_path;
};

int sh_qp_create(struct sh_dev *dev, uint32_t hca, uint32_t qpn, const struct sh_qp_init *init);
/* The whole transition table with required and optional masks, mlx4-hardware.md 7.1: -EINVAL changes nothing.
 * Moving to RTS does not run the send queue: the caller rings it (the owner's process does). Moving to ERR flushes. */
int sh_qp_modify(struct sh_dev *dev, uint32_t hca, uint32_t qpn, const struct sh_qp_attr *attr, uint32_t mask);
/*
 * Before a move to RESET or ERR that has to wait for a lock: as seen by each thread that takes a lock of the QP from now on,
 * it is in ERR, where nothing is sent, placed or answered.
 */
void sh_qp_halt(struct sh_dev *dev, uint32_t hca, uint32_t qpn);
int sh_qp_query(struct sh_dev *dev, uint32_t hca, uint32_t qpn, struct sh_qp_attr *attr);
/* The same without locks, for a QP whose locks a client does not let go. */
int sh_qp_peek(struct sh_dev *dev, uint32_t hca, uint32_t qpn, struct sh_qp_attr *attr);
/* No CQE for it after return. */
int sh_qp_destroy(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint32_t *async_events);
/*
 * The same in two halves, for an object whose lock a client does not let go; for CQs and SRQs as well. _end: no thread finds
 * it any more; what it reports as sh_*_destroy() does. Its number and memory stay taken until _reclaim, which needs the lock
 * (-EINPROGRESS), has returned 0.
 */
uint32_t sh_qp_end(struct sh_dev *dev, uint32_t hca, uint32_t qpn);
int sh_qp_reclaim(struct sh_dev *dev, uint32_t hca, uint32_t qpn);
struct sh_qp_info {
	uint32_t qpn, ctx, type, state, pdn, send_cqn, recv_cqn, srqn, xrcd, dest_qpn, dlid, port;
	uint32_t sq_posted_unfinished, rq_available, retry_left, rnr_left;
	uint64_t messages_sent, messages_received;
};
int sh_qp_info(struct sh_dev *dev, uint32_t hca, uint32_t qpn, struct sh_qp_info *info);
/* The counters of an HCA that exists, with those that its QPs keep for themselves. For the daemon, which alone ends QPs. */
void sh_counters(struct sh_dev *dev, uint32_t hca, struct sh_counters *out);
/* Registrations of an XRC receive QP (events go to each): head of a list in the reg table, which the kernel alone changes. */
int sh_qp_set_regs(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint32_t head);
/*
 * The address space of a context ended, or the card: its QPs become silent, to their peers and
 * their owner.
 */
int sh_qp_silence(struct sh_dev *dev, uint32_t hca, uint32_t qpn);

/*
 * The client could not map device memory over [uaddr, uaddr+len): a buffer or record of the object in there goes back to the
 * client's own pages, with what the device has written so far (unshare.c). -EINPROGRESS, -EFAULT, -EINVAL: no such object.
 */
int sh_cq_unshare(struct sh_dev *dev, uint32_t hca, uint32_t cqn, uint64_t uaddr, uint64_t len);
int sh_srq_unshare(struct sh_dev *dev, uint32_t hca, uint32_t srqn, uint64_t uaddr, uint64_t len);
int sh_qp_unshare(struct sh_dev *dev, uint32_t hca, uint32_t qpn, uint64_t uaddr, uint64_t len);

/* ---- multicast, ports, events (mcast.c, port.c, event.c) ---- */

int sh_mcast_attach(struct sh_dev *dev, uint32_t hca, const uint8_t gid[16], uint32_t qpn);	/* idempotent; -ENOMEM full */
int sh_mcast_detach(struct sh_dev *dev, uint32_t hca, const uint8_t gid[16], uint32_t qpn);	/* -EINVAL not attached */

/* Raise an unaffiliated asynchronous event (port number or 0) to one context: event.c. */
int sh_async_event(struct sh_dev *dev, uint32_t ctx, uint64_t element, uint32_t type);
/* Raise an affiliated event about a QP, CQ or SRQ to its owner (to every registration for XRC receive QPs), counting it. */
/* Try to move spilled records into the pipe. Daemon, when the pipe has room. Returns records left; -EINPROGRESS: a
 * client has the queue's lock. */
int sh_evq_flush(struct sh_dev *dev, uint32_t evq);
/* generation 0 frees the slot. -EINPROGRESS, -ENOMEM. */
int sh_evq_init(struct sh_dev *dev, uint32_t evq, uint32_t ctx, uint32_t record_size, uint32_t generation);
/* The first event queue >= from that has spilled records, 0 = none. The daemon looks at every attention and after every
 * death of a client. */
uint32_t sh_evq_spilled(struct sh_dev *dev, uint32_t from);

#endif
