/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The device memory of one instance: what every process of it maps at offset 0 of one memfd.
 *
 * The daemon ("kernel") makes it, sizes it and allocates pages before it promises them; every process
 * (daemon and clients) works on it. References inside it are offsets or table indices, never pointers.
 *
 *	OFFSET			WHAT
 *	0			struct sh_instance
 *	inst.ctx_off		struct sh_ctx[SH_MAX_CTX]	one per open device file; index 0 is the kernel's own
 *	inst.proc_off		struct sh_proc[SH_MAX_PROC]	one per connected process; index 0 is the daemon
 *	inst.exec_off		struct sh_exec[SH_MAX_EXEC]	one per thread that runs device code
 *	inst.evq_off		struct sh_evq[SH_MAX_EVQ]	event queues (completion channels, async fds); 0 = none
 *	inst.reg_off		struct sh_reg[SH_MAX_REG]	registrations of XRC receive QPs; 0 = none
 *	inst.hca_off + i*span	one HCA: struct sh_hca, then its QP, CQ, SRQ, MPT and multicast tables
 *	inst.pool_off		pages that stand in for queue buffers and doorbell records of the clients
 *	inst.shared_off		pages that stand in for memory that the clients have registered
 *
 * Locks: every lock is a struct sh_lock, which the death of its holder does not keep from others (lock.h). Order: a QP's
 * requester (lock), a QP's responder (rlock), SRQ, CQ, EVQ. Nobody holds two QPs' requester locks, or two responder locks. A transition of
 * several stores goes through the transaction of the QP (or CQ, SRQ) whose lock it runs under: see txn.h.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_LAYOUT_H
#define SOFTHCA_DEVICE_MEMORY_LAYOUT_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define SH_MAGIC	UINT64_C(0x534f465448434131)
#define SH_MAX_CTX	16384
#define SH_MAX_PROC	8192
#define SH_MAX_EXEC	16384
#define SH_MAX_EVQ	32768
#define SH_MAX_REG	262144	/* as many as QPs; a power of two */
#define SH_MAX_HCAS	256
#define SH_MAX_PORTS	2
#define SH_MAX_LIDS	1024	/* unicast LIDs given out: 1 .. SH_MAX_LIDS-1, base LID of each port */

/* What different processes write is so far apart: processors fetch a line and its neighbour. */
#define SH_APART	128

#define SH_LOG_QPS	18	/* reported as qp_tab_size */
#define SH_LOG_CQS	16
#define SH_LOG_SRQS	16
#define SH_LOG_MPTS	19
#define SH_MAX_MCG	8192	/* as many as a ConnectX has */
#define SH_MCG_QPS	56
#define SH_GIDS		128
#define SH_PKEYS	128

/*
 * A robust lock and, for recovery, the transaction that its holder works in. A lock is made once and outlives the
 * objects that use its slot: somebody may be waiting for it at any time, so nothing clears it with the object.
 *
 *	BITS	OF txn
 *	0	the lock was made
 *	3-39	offset of the struct sh_txn, 0 = none
 *	40-63	its seq, as it was when this lock joined it
 */
struct sh_lock {
	uint64_t owner;			/* which thread holds it: lock.h */
	uint64_t txn;			/* written by the holder only */
};
#define SH_LOCK_MADE		UINT64_C(1)
#define SH_LOCK_TXN_OFF		UINT64_C(0x000000fffffffff8)
#define SH_LOCK_TXN_SEQ_SHIFT	40
#define SH_TXN_SEQ_MASK		0xffffffu

/*
 * Memory that belongs to a client's provider: a queue buffer or a doorbell record.
 * shm_off != 0: its pages are device memory (the client has them mapped over its own); device code uses
 * them in place. shm_off == 0: they are the client's private pages and go through the host interface.
 */
struct sh_umem {
	uint64_t uaddr;			/* address in the client */
	uint64_t len;
	uint64_t shm_off;
	uint32_t ctx;			/* index of the owning context */
	uint32_t reserved;
};

/* What a store sequence will do, written down before it does it. See txn.h. */
#define SH_TXN_STORES	8
#define SH_TXN_CQES	2
#define SH_TXN_ASYNC	3
struct sh_txn {
	uint32_t commit;		/* the commit point: number of stores + 1; 0 = nothing to carry out */
	uint32_t seq;			/* counts transactions of this log; 24 bits count */
	uint32_t hca;			/* of the events */
	uint32_t comp_cqn;		/* completion event to raise for this CQ, 0 = none */
	uint32_t cqe_ctx;		/* 0, or whose CQ buffer gets CQEs */
	uint8_t nasync, ncqe;
	uint64_t cqe_addr;		/* in that context's memory */
	uint64_t cqe_shm;		/* its place in device memory; 0 = through the host interface */
	struct {
		uint32_t type;		/* affiliated asynchronous event */
		uint32_t obj;		/* number of the QP, CQ or SRQ it is about */
	} async[SH_TXN_ASYNC];
	struct {
		uint64_t off;		/* of an aligned 64-bit word of device memory */
		uint64_t val;
	} store[SH_TXN_STORES];
	uint64_t cqe[SH_TXN_CQES][4];	/* neighbours, as they are in memory; the last byte of each becomes visible last */
};

/* One open device file of one process. Written by the kernel; state by the kernel only. */
enum sh_ctx_state {
	SH_CTX_FREE,
	SH_CTX_LIVE,
	SH_CTX_GONE,			/* its address space ended: nothing touches its memory any more */
};

struct sh_ctx {
	uint32_t state;
	uint32_t pid;			/* whose memory uaddr values mean */
	uint32_t proc;			/* index of the process */
	uint32_t hca;
	uint32_t host;
	uint32_t async_evq;
	uint32_t generation;		/* counts reuses of the slot */
	uint32_t kick;			/* nonzero: the post and arm operations are wrapped; 0: stores trap */
	uint64_t witness;		/* a page that only its address space has: host/witness.h */
	uint32_t dozing;		/* nonzero: a thread of the owner may sleep until a CQE comes (sh_proc.roused) */
	uint32_t reserved[5];
};

/* One process of the instance. attention is a shared futex: the helper thread of the process sleeps on it. */
#define SH_ATTENTION_RING 64
struct sh_proc {
	uint32_t pid;			/* 0 = slot free */
	uint32_t attention;		/* incremented and woken to make the helper thread look */
	uint32_t ring_lost;		/* nonzero: entries did not fit, look at the QPs that lost_* mean */
	uint32_t ring_tail;		/* atomically advanced by writers; consumer is the helper thread */
	uint32_t roused;		/* futex of the threads that doze in poll_cq: incremented, and all are woken */
	uint32_t reserved;
	uint64_t ring[SH_ATTENTION_RING]; /* (hca << 32 | QPN) + 1; 0 = taken */
	uint64_t lost_hca[SH_MAX_HCAS / 64];	/* a bit each; never taken back */
	uint64_t lost_qps[(1u << SH_LOG_QPS) / 64 / 64];	/* a bit for 64 slots of the table, of whichever HCA */
};

/*
 * One thread while it runs device code: what it looked up stays valid until it leaves. The kernel, after it
 * has invalidated a key, advances inst.epoch, and gives the key out again when no slot is older. A thread holds the
 * robust mutex of its slot as long as it lives: whoever can take it has found a free slot, or a dead thread's, and counts
 * that in generation, by which locks know who holds them. A generation is a life: it ends with the thread, or while the
 * thread is stopped (life.h).
 * The last slot is shared, one call at a time, by threads that found none.
 */
struct sh_exec {
	pthread_mutex_t owner;
	uint32_t proc;
	uint32_t generation;		/* changes whenever a life ends or begins */
	uint64_t epoch;			/* inst.epoch at entry, 0 = not in device code */
	/*
	 * What the thread says of itself before it sleeps (announce.h), for `softhca show --waits`. Of it
	 * the device reads the thread's number, for life.h.
	 */
	uint32_t tid;			/* its number; stale where it has ended and nobody has freed the slot */
	uint32_t waits;			/* enum sh_waits, stored last; 0: the thread does not sleep */
	uint64_t waits_since;		/* CLOCK_MONOTONIC, ns */
	uint64_t waits_a, waits_b;	/* enum sh_waits says what */
	uint32_t life;			/* the generation that epoch is of; written by who begins it */
	uint64_t self_at;		/* the thread's struct sh_self, in its own address space; 0: it cannot be thrown */
	struct sh_lock ending;		/* of the thread that is ending this life; it is never waited for (life.h) */
} __attribute__((aligned(SH_APART)));

/* A completion channel or an async file. The pipe is events/<index>.<generation> in the instance directory. */
#define SH_EVQ_SPILL 64
struct sh_evq {
	struct sh_lock lock;
	uint32_t generation;		/* 0 = slot free */
	uint32_t ctx;
	uint32_t record_size;		/* 8 or 16 */
	uint32_t spilled;		/* records in spill[], oldest first: they did not fit into the pipe */
	uint32_t lost;			/* records that did not fit into spill[] either; not counted as written */
	uint32_t host;
	/*
	 * The record in flight. A death between counting it and the end of write() leaves flight_off set: then the
	 * pipe may or may not have it. The next owner of the lock takes it for not written (the transaction that
	 * raised it raises it again): a record too many is allowed, one too few is not.
	 */
	uint32_t flight_count;		/* the counter before */
	uint32_t flight_spilled;	/* spilled before */
	uint32_t uncounted, reserved;	/* uncounted: after a death; the pipe may have records that no counter knows */
	uint64_t flight_off;		/* where the counter (32 bits) is, 0 = nothing in flight */
	uint64_t spill[SH_EVQ_SPILL][2];
};

/*
 * One context registered with one kernel-made XRC receive QP; a list hanging off the QP. QPs of type SH_QPT_XRC:
 * the record says element = QPN and type | 0x80000000, uncounted. QPs of type SH_QPT_XRC_TGT (mainline; one
 * entry per handle): an ordinary record, element = user_handle, counted in events under the QP's lock.
 */
struct sh_reg {
	uint32_t ctx;
	uint32_t next;
	uint64_t user_handle;
	uint32_t events;
	uint32_t reserved;
};

struct sh_port {
	uint32_t state;			/* IB port state: 1 down, 4 active */
	uint32_t lid;
	uint32_t sm_lid;
	uint32_t lmc;
	uint8_t gid[SH_GIDS][16];
	uint16_t pkey[SH_PKEYS];	/* host order */
};

/* Packet faults: each rule by rate (per million) or for the next `count` packets. See fault.h. */
enum sh_fault_kind { SH_FAULT_DROP, SH_FAULT_DELAY, SH_FAULT_DUPLICATE, SH_FAULT_CORRUPT, SH_FAULT_KINDS };
#define SH_FAULT_SCOPED	16		/* rules that name a host or a QP */
#define SH_FAULT_RULES	(SH_FAULT_KINDS + SH_FAULT_SCOPED)
struct sh_fault_rule {
	uint64_t scope;			/* which packets it is about, and its kind; 0: never used */
	uint32_t rate, count;		/* both 0: it is over */
	uint64_t delay_ns;		/* how long a delayed packet is held */
	uint64_t done;			/* packets treated so far */
	uint32_t seed, drawn;		/* the choices of a rate: where they began, how many there were */
};
struct sh_faults {
	uint32_t active;		/* nonzero when any rule is: the one word the fast path reads */
	uint32_t reserved;
	struct sh_fault_rule rule[SH_FAULT_RULES];	/* first those of the whole fabric, by kind */
};

struct sh_counters {
	uint64_t xmit_packets, xmit_data, rcv_packets, rcv_data;
	/* work requests that were done, and messages that came, of QPs that are no more */
	uint64_t messages_sent, messages_received;
	/*
	 * Packets that vanish, by reason. At the HCA that they were for; drops_lid and drops_mcast
	 * at the one that sent them, for there is no other.
	 */
	uint64_t drops_no_qp, drops_state, drops_pkey, drops_qkey, drops_icrc, drops_no_wqe;
	uint64_t drops_lid;		/* no port has the LID */
	/* the port is down: its sender's, or that of the receiver */
	uint64_t drops_port;
	uint64_t drops_path;		/* not from where the QP is connected to */
	uint64_t drops_mcast;		/* no member, or not addressed as multicast is */
	/* no place for it: key, bounds, rights, or memory is gone */
	uint64_t drops_memory;
	uint64_t drops_fault;		/* softhca fault */
	uint64_t retries, rnr_retries, naks_sent, rnr_naks_sent, duplicates, out_of_sequence;
	uint64_t copies_fallback;	/* queue accesses through the host interface */
	uint64_t copies_foreign;	/* payload copies by system calls: a side was not in device memory */
};

/*
 * Processes that exchange pages of theirs, and threads that reach into a process by its addresses:
 * neither begins while the other is at it. A word is (who << 32 | process that it is done to), 0 =
 * free; who: a thread number. A word whose owner is no more is free, too.
 */
#define SH_MOVES 64
struct sh_moves {
	uint64_t moving[SH_MOVES];
	uint64_t reaching[SH_MOVES];
};

struct sh_instance {
	uint64_t magic;
	uint64_t size;			/* bytes to map */
	uint32_t hosts, hcas_per_host, ports, hcas;	/* hcas = hosts * hcas_per_host */
	uint64_t ctx_off, proc_off, exec_off, evq_off, reg_off, hca_off, hca_span, pool_off, pool_size, shared_off, shared_size;
	uint64_t epoch;			/* never 0 */
	uint32_t exec_used;		/* slots of exec[] that were ever taken: below this */
	uint32_t reserved2;
	struct sh_lock recovery;	/* one recovery at a time */
	uint32_t fatal;
	uint32_t cqe_size;		/* 32 or 64 */
	uint32_t driver_abi;
	uint32_t face;			/* enum sh_face of dev.h */
	uint32_t trap;			/* nonzero: stores trap for the whole instance */
	uint32_t died_inside;		/* threads found dead in device code: they may have held locks */
	struct sh_faults faults;
	uint32_t lid_port[SH_MAX_LIDS];	/* (hca << 8 | port) + 1 of the port that has the LID; 0 = none */
	uint64_t evq_spilled[SH_MAX_EVQ / 64];	/* event queues that have spilled records */
	struct sh_moves moves;
};

/* Where the tables begin: fixed, so that nobody need trust the header for it. */
#define SH_PAGES(x)	(((uint64_t)(x) + 4095) & ~UINT64_C(4095))
#define SH_CTX_OFF	SH_PAGES(sizeof(struct sh_instance))
#define SH_PROC_OFF	(SH_CTX_OFF + SH_PAGES(SH_MAX_CTX * sizeof(struct sh_ctx)))
#define SH_EXEC_OFF	(SH_PROC_OFF + SH_PAGES(SH_MAX_PROC * sizeof(struct sh_proc)))
#define SH_EVQ_OFF	(SH_EXEC_OFF + SH_PAGES(SH_MAX_EXEC * sizeof(struct sh_exec)))
#define SH_REG_OFF	(SH_EVQ_OFF + SH_PAGES(SH_MAX_EVQ * sizeof(struct sh_evq)))
#define SH_HCA_OFF	(SH_REG_OFF + SH_PAGES(SH_MAX_REG * sizeof(struct sh_reg)))

struct sh_mcg {
	uint8_t gid[16];
	uint32_t nqps;			/* 0 = slot free */
	uint32_t qpn[SH_MCG_QPS];
};

/* Memory protection table entry. key holds the whole 32-bit key; 0 = free or invalidated. */
enum sh_access {			/* the IB access bits */
	SH_LOCAL_WRITE = 1, SH_REMOTE_WRITE = 2, SH_REMOTE_READ = 4, SH_REMOTE_ATOMIC = 8, SH_MW_BIND = 16,
};
struct sh_mpt {
	uint32_t key;			/* stored last on creation, first (as 0) on removal */
	uint32_t pdn;
	uint32_t ctx;
	uint32_t access;
	uint64_t start;			/* as work requests and packets name it */
	uint64_t len;
	uint64_t shift;			/* add it to such an address to have the owner's own */
	uint64_t shared;		/* where start is in device memory; 0: its pages are the owner's alone */
};

struct sh_hca {
	struct sh_lock atomic_lock;	/* IBV_ATOMIC_HCA: atomics of this HCA against each other */
	struct sh_lock mcg_lock;
	struct sh_lock port_lock;
	uint32_t index, host;
	uint32_t qp_used;		/* slots of the QP table that were ever used: below this */
	uint32_t fatal;			/* the card has stopped */
	uint32_t mcgs_made;		/* the multicast table has pages */
	uint32_t reserved;
	uint64_t node_guid;		/* host order */
	struct sh_port port[SH_MAX_PORTS];	/* port n is [n-1] */
	struct sh_counters counters;	/* advanced with relaxed atomics */
	uint64_t qp_off, cq_off, srq_off, mpt_off, mcg_off;	/* from the start of device memory */
};

_Static_assert(sizeof(struct sh_ctx) == 64, "one cache line");
_Static_assert(sizeof(struct sh_exec) == SH_APART, "lines of its own");
_Static_assert(offsetof(struct sh_txn, store) == 64, "log head");
_Static_assert(SH_MAX_EVQ % 64 == 0, "a bit each");
_Static_assert(sizeof(struct sh_mpt) == 48, "MPT entry");

#endif
