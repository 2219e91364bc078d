/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The device memory of one instance: what every process of it maps at offset 0 of one memfd.
 *
 * The daemon ("kernel") makes it, sizes it and allocates pages before it promises them. Every
 * process (daemon and clients) works on it. References inside it are offsets or table indices,
 * never pointers.
 *
 *	OFFSET			WHAT
 *	0			struct sh_instance
 *	inst.ctx_off		struct sh_ctx[SH_MAX_CTX]	one per open device file; index 0 is the kernel's own
 *	inst.proc_off		struct sh_proc[SH_MAX_PROC]	one per connected process; index 0 is the daemon
 *	inst.exec_off		struct sh_exec[SH_MAX_EXEC]	one per thread that runs device code
 *	inst.evq_off		struct sh_evq[SH_MAX_EVQ]	event queues (completion channels, async fds); 0 = none
 *	inst.xrc_reg_off	struct sh_xrc_reg[SH_MAX_XRC_REG]	registrations of XRC receive QPs; 0 = none
 *	SH_TAP_OFF		struct sh_tap			copies of packets, while a capture runs
 *	SH_FERRIES_OFF		struct sh_ferries		copies that threads have the daemon make
 *	SH_FERRY_DATA_OFF	bytes				SH_FERRY_MAX for each of these; only system calls touch them
 *	inst.hca_off + i*span	one HCA: struct sh_hca, then its QP, CQ, SRQ, MPT and multicast tables
 *	inst.pool_off		pages that stand in for queue buffers and doorbell records of the clients
 *	inst.shared_off		pages that stand in for memory that the clients have registered
 *
 * Locks: every lock is a struct sh_lock, which others can take when its holder has died (lock.h).
 * Order: a QP's requester lock (lock), a QP's responder lock (rlock), SRQ, CQ, EVQ. No thread holds
 * the requester locks of two QPs, or the responder locks of two QPs. A transition of several stores
 * goes through the log of the QP (or CQ, SRQ) whose lock it runs under: see txn.h.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_LAYOUT_H
#define SOFTHCA_DEVICE_MEMORY_LAYOUT_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "ip.h"
#include "wire_lids.h"

#define SH_MAGIC       UINT64_C(0x534f465448434131)
#define SH_MAX_CTX     16384
#define SH_MAX_PROC    8192
#define SH_MAX_EXEC    16384
#define SH_MAX_EVQ     32768
#define SH_EVS_OWED    256
#define SH_MAX_XRC_REG 262144 /* as many as QPs; a power of two */
#define SH_MAX_HCAS    256
#define SH_MAX_PORTS   2
#define SH_MAX_LIDS    1024 /* unicast LIDs given out: 1 .. SH_MAX_LIDS-1, base LID of each port */
#define SH_SWITCH_LID  (SH_MAX_LIDS - 1) /* the switch's at first: ports have those below it */

/*
 * What different processes write is this far apart, because processors fetch a line with its
 * neighbour.
 */
#define SH_APART 128

#define SH_LOG_QPS  18 /* reported as qp_tab_size */
#define SH_LOG_CQS  16
#define SH_LOG_SRQS 16
#define SH_LOG_MPTS 19
#define SH_MAX_MCG  8192 /* as many as a ConnectX has */
#define SH_MCG_QPS  56
#define SH_GIDS	    128
#define SH_PKEYS    128

/*
 * A robust lock and, for recovery, the transaction that its holder works in. A lock is made once
 * and outlives the objects that use its slot. A thread may be waiting for it at any time, so no
 * code clears it with the object.
 *
 *	BITS	OF txn
 *	0	the lock has been made
 *	3-39	offset of the struct sh_txn, 0 = none
 *	40-63	its seq, as it was when this lock joined it
 */
struct sh_lock {
	uint64_t owner; /* which thread holds it: lock.h */
	uint64_t txn;	/* written by the holder only */
};
#define SH_LOCK_MADE	      UINT64_C(1)
#define SH_LOCK_TXN_OFF	      UINT64_C(0x000000fffffffff8)
#define SH_LOCK_TXN_SEQ_SHIFT 40
#define SH_TXN_SEQ_MASK	      0xffffffu

/*
 * Memory that belongs to a client's provider: a queue buffer or a doorbell record. shm_off != 0:
 * its pages are device memory, which the client has mapped over its own pages; device code uses
 * them in place. shm_off == 0: they are the client's private pages; device code reaches them
 * through the host interface.
 */
struct sh_umem {
	uint64_t uaddr; /* address in the client */
	uint64_t len;
	uint64_t shm_off;
	uint32_t ctx; /* index of the owning context */
	uint32_t reserved;
};

/*
 * The log of a transition: what its stores will be, written down before the first of them. See
 * txn.h.
 */
#define SH_TXN_STORES 8
#define SH_TXN_CQES   2
#define SH_TXN_ASYNC  3
struct sh_txn {
	uint32_t commit;   /* the commit point: number of stores + 1; 0 = nothing to carry out */
	uint32_t seq;	   /* counts transactions of this log; 24 bits count */
	uint32_t hca;	   /* of the events */
	uint32_t comp_cqn; /* CQ whose completion event to raise, 0 = none */
	/* Context whose CQ buffer gets CQEs; 0: there are no CQEs. */
	uint32_t cqe_ctx;
	uint8_t nasync, ncqe;
	uint16_t raised;   /* how far its events have been raised (event.h) */
	uint64_t cqe_addr; /* in that context's memory */
	uint64_t cqe_shm;  /* its place in device memory; 0 = through the host interface */
	struct {
		uint32_t type; /* affiliated asynchronous event */
		uint32_t obj;  /* number of the QP, CQ or SRQ it is about */
	} async[SH_TXN_ASYNC];
	struct {
		uint64_t off; /* of an aligned 64-bit word of device memory */
		uint64_t val;
	} store[SH_TXN_STORES];
	uint64_t cqe
		[SH_TXN_CQES]
		[4]; /* neighbours, as they are in memory; the last byte of each becomes visible last */
};

/* One open device file of one process. The daemon writes it; clients change only dozing. */
enum sh_ctx_state {
	SH_CTX_FREE,
	SH_CTX_LIVE,
	/* Its address space has ended: no process touches its memory any more. */
	SH_CTX_GONE,
};

struct sh_ctx {
	uint32_t state;
	uint32_t pid;  /* process whose memory uaddr values refer to */
	uint32_t proc; /* index of the process */
	uint32_t hca;
	uint32_t host;
	uint32_t async_evq;
	uint32_t generation; /* counts reuses of the slot */
	uint32_t kick;	     /* nonzero: the post and arm operations are wrapped; 0: stores trap */
	uint64_t witness;    /* a page that only its address space has: host/witness.h */
	uint32_t
		dozing; /* nonzero: a thread of the owner may sleep until a CQE comes (sh_proc.roused) */
	uint32_t reserved[5];
};

/*
 * One process of the instance. attention is a shared futex, on which the helper thread of the
 * process sleeps.
 */
#define SH_ATTENTION_RING 64
struct sh_proc {
	uint32_t pid;	    /* 0 = slot free */
	uint32_t attention; /* incremented and woken to make the helper thread look */
	/* Nonzero: entries did not fit; lost_* says which QPs and CQs to look at. */
	uint32_t ring_lost;
	/* Advanced atomically by writers; the helper thread consumes. */
	uint32_t ring_tail;
	/* Futex of the threads that doze in poll_cq: incremented before all of them are woken. */
	uint32_t roused;
	uint32_t ended; /* nonzero: the instance has ended, and the process lives on */
	/* Where the process has mapped device memory, which it says itself; 0: not yet. */
	uint64_t base;
	uint64_t ring[SH_ATTENTION_RING];    /* (hca << 32 | QPN) + 1; 0 = taken */
	uint64_t lost_hca[SH_MAX_HCAS / 64]; /* a bit for each HCA; never cleared */
	uint64_t lost_qps[(1u << SH_LOG_QPS) / 64 /
			  64]; /* a bit for 64 slots of the table, of whichever HCA */
	uint64_t lost_cqs[(1u << SH_LOG_CQS) / 64 /
			  64]; /* likewise: CQs that an arm doorbell named */
};

/*
 * One thread that runs device code. What it has looked up there stays valid until it leaves. After
 * the daemon has invalidated a key, it advances inst.epoch, and gives the key out again when no
 * slot has an older epoch.
 *
 * A thread holds the robust mutex of its slot as long as it lives. A thread that can take the mutex
 * has found a free slot or that of a dead thread, and counts that in generation. Locks tell by slot
 * and generation which thread holds them. A generation is a life: it ends with the thread, or while
 * the thread is stopped (life.h).
 *
 * Threads that found no free slot share the last one, one call at a time.
 */
struct sh_exec {
	pthread_mutex_t owner;
	uint32_t proc;
	uint32_t generation; /* changes whenever a life ends or begins */
	uint64_t epoch;	     /* inst.epoch at entry, 0 = not in device code */
	/*
	 * What the thread announces before it sleeps (announce.h), for `softhca show --waits`. The
	 * device itself reads only the number of the thread, for life.h.
	 */
	/* Its number; stale if it has ended and its slot has not been freed. */
	uint32_t tid;
	uint32_t waits;		   /* enum sh_waits, stored last; 0: the thread does not sleep */
	uint64_t waits_since;	   /* CLOCK_MONOTONIC, ns */
	uint64_t waits_a, waits_b; /* enum sh_waits says what */
	/* The generation that epoch belongs to; written by the thread that begins it. */
	uint32_t life;
	/* The thread's struct sh_self, in its own address space; 0: it cannot be thrown. */
	uint64_t self_at;
	/* Held by the thread that ends this life; no thread waits for it (life.h). */
	struct sh_lock ending;
} __attribute__((aligned(SH_APART)));

/*
 * A completion channel or an async file. The pipe is events/<index>.<generation> in the instance
 * directory.
 */
#define SH_EVQ_SPILL 64
struct sh_evq {
	struct sh_lock lock;
	uint32_t generation; /* 0 = slot free */
	uint32_t ctx;
	uint32_t record_size; /* 8 or 16 */
	uint32_t spilled;     /* records in spill[], oldest first: they did not fit into the pipe */
	/* Records that did not fit into spill[] either, and are not counted as written. */
	uint32_t lost;
	uint32_t host;
	/*
	 * The record in flight. If a thread dies between counting it and the end of write(),
	 * flight_off stays set. The next holder of the lock looks whether the spill has the record,
	 * and asks the host whether it was written, if it was to go into the pipe. If so, it counts
	 * the record, and notes in the log of its transaction that it was raised. Where the host
	 * cannot tell, it was not written, and the transaction raises it again: a record too many
	 * is allowed there, one too few is not.
	 */
	uint32_t flight_count;	 /* the counter before */
	uint32_t flight_spilled; /* spilled before */
	/* Uncounted: nonzero after a death; the pipe may have records that no counter counts. */
	uint32_t uncounted;
	uint32_t tells; /* nonzero: the host's event_written() can tell */
	/* Where the counter (32 bits) is; SH_FLIGHT_UNCOUNTED: it has none; 0: none in flight. */
	uint64_t flight_off;
#define SH_FLIGHT_UNCOUNTED 1
	uint64_t flight_log;	/* where the log of its transaction is, 0 = it is of none */
	uint32_t flight_seq;	/* of that log */
	uint32_t flight_raised; /* what the log's `raised` is afterwards */
	uint32_t flight_piped;	/* nonzero: event_begin() was called for it, and succeeded */
	uint32_t reserved;
	uint64_t spill[SH_EVQ_SPILL][2];
};

/*
 * One registration of a context with a kernel-made XRC receive QP, in a list that begins at the QP.
 * For a QP of type SH_QPT_XRC the record of an event has element = QPN and type | 0x80000000, and
 * is not counted. For a QP of type SH_QPT_XRC_TGT (mainline; one entry per handle) it is an
 * ordinary record with element = user_handle, and is counted in events.
 */
struct sh_xrc_reg {
	uint32_t ctx;
	uint32_t next;
	uint64_t user_handle;
	uint32_t events;
	uint32_t reserved;
};

struct sh_port {
	uint32_t state; /* IB port state: 1 down, 4 active */
	uint32_t lid;
	uint32_t sm_lid;
	uint32_t lmc;
	uint8_t gid[SH_GIDS][16];
	uint16_t pkey[SH_PKEYS]; /* host order */
};

/*
 * Packet faults: each rule by rate (per million) or for the next `count` packets; but a limit and a
 * partition are about all packets. See fault.h.
 */
enum sh_fault_kind {
	SH_FAULT_DROP,
	SH_FAULT_DELAY,
	SH_FAULT_DUPLICATE,
	SH_FAULT_CORRUPT,
	SH_FAULT_JITTER,    /* a delay of a length that the seed chooses */
	SH_FAULT_REORDER,   /* held back until another packet has passed */
	SH_FAULT_LIMIT,	    /* packets wait until those before them have left */
	SH_FAULT_PARTITION, /* nothing gets through, in either direction */
	SH_FAULT_KINDS
};
#define SH_FAULT_SCOPED 16 /* rules that name an end of a link or a QP */
#define SH_FAULT_RULES	(SH_FAULT_KINDS + SH_FAULT_SCOPED)
struct sh_fault_rule {
	uint64_t scope;	      /* which packets it is about, and its kind; 0: never used */
	uint32_t rate, count; /* both 0: it is over */
	uint64_t delay_ns;    /* how long a packet is held, or may wait */
	uint64_t bits;	      /* a second, of SH_FAULT_LIMIT */
	uint64_t free_at;     /* its link is busy until then (CLOCK_MONOTONIC, ns) */
	uint64_t done;	      /* packets hit so far */
	/* The choices of a rate: their seed, and how many there were. */
	uint32_t seed, drawn;
};
#define SH_ACTIVE_FAULTS   1u
#define SH_ACTIVE_CAPTURE  2u
#define SH_ACTIVE_LOOPBACK 4u
struct sh_faults {
	/*
	 * The one word that the fast path reads: nonzero while packets are to take the ordinary
	 * way, one by one. SH_ACTIVE_FAULTS while a rule is set, SH_ACTIVE_CAPTURE while packets
	 * are copied to the tap, SH_ACTIVE_LOOPBACK in an instance whose packets go as bytes
	 * (transport/loop.h).
	 */
	uint32_t active;
	uint32_t reserved;
	/* Those of the whole fabric first, by kind. */
	struct sh_fault_rule rule[SH_FAULT_RULES];
};

/*
 * What went through a port, but for what its QPs have counted themselves (qp_context.h): data is
 * payload. Multicast packets are among the packets. Senders count them there first, and readers
 * read them last: the difference, the unicast packets, is never more than there have been.
 */
struct sh_traffic {
	uint64_t xmit_packets, xmit_data, rcv_packets, rcv_data;
	uint64_t xmit_multicast, rcv_multicast;
	/* Octets that fill up payloads to words. Those of QPs' short messages are here, too. */
	uint64_t xmit_pads, rcv_pads;
	/*
	 * Of the drops: lost on their way out, corrupted on their way in, of a foreign partition.
	 */
	uint64_t xmit_discards, rcv_errors, rcv_constraint;
};

struct sh_counters {
	/* Of all ports. sh_counters() alone fills them in; in device memory the ports have them. */
	uint64_t xmit_packets, xmit_data, rcv_packets, rcv_data;
	/* Work requests completed and messages received, of QPs that no longer exist. */
	uint64_t messages_sent, messages_received;
	/*
	 * Packets that vanished, by reason. Counted at the HCA that they were for; drops_lid and
	 * drops_mcast at the sender's, because there is no other.
	 */
	uint64_t drops_no_qp, drops_state, drops_pkey, drops_qkey, drops_icrc, drops_no_wqe;
	uint64_t drops_lid; /* no port has the LID */
	/* The port is down: the sender's, or the receiver's. */
	uint64_t drops_port;
	uint64_t drops_path; /* came from elsewhere than where the QP is connected to */
	/* The group has no member, or the packet is not addressed as multicast is. */
	uint64_t drops_mcast;
	/* It cannot be placed: key, bounds, rights, or the memory is gone. */
	uint64_t drops_memory;
	uint64_t drops_fault; /* softhca fault */
	uint64_t retries, rnr_retries, naks_sent, rnr_naks_sent, duplicates, out_of_sequence;
	uint64_t copies_fallback; /* queue accesses through the host interface */
	/* Payload copies by system calls: one side was not in device memory. */
	uint64_t copies_foreign;
};

/*
 * Processes that are exchanging pages of their own, and threads that are reaching into a process by
 * its addresses. Neither begins while the other is under way. A word is (number of the thread << 32
 * | process that has the pages), 0 = free. A word whose thread has ended is free, too. Numbers are
 * below 2^22. Bits 54 to 63 of a thread that reaches are from its life (life.h), so that the thread
 * which ends that life takes away no word of the next one.
 *
 * A process exchanges its pages in pieces. Without SH_MOVES_MARK, a word of moving[] holds off
 * every thread that would reach into the process; the word may be taken away, and then its owner
 * begins anew. With the mark, the piece of the same index is being exchanged, and only what lies
 * there is held off. With the mark, a word of reaching[] holds off nothing: its thread waits, and
 * wants to be let through before the next piece.
 *
 * A piece is one word, so that a thread whose word of moving[] was taken away cannot change the
 * piece of the thread that has taken it since: (number of the commit << 48 | pages << 36 | first
 * page). Pages are of 4 KiB, and 0 of them are all of the memory. Each commit has a number of its
 * own.
 *
 * Threads that are stopped while they reach keep their words. So there are as many as all threads
 * together can take, of which the first SH_MOVES + more are in use (sh_reaches() in life.h). That
 * number only grows.
 */
#define SH_MOVES   64
#define SH_REACHES (2 * SH_MAX_EXEC)
struct sh_moves {
#define SH_MOVES_NUMBER 0x3fffff
#define SH_MOVES_LIFE	22
#define SH_MOVES_MARK	(UINT64_C(1) << 31)
#define SH_PIECE_PAGE	12
#define SH_PIECE_PAGES	36
#define SH_PIECE_COMMIT 48
	uint64_t moving[SH_MOVES];
	uint64_t reaching[SH_REACHES];
	uint64_t piece[SH_MOVES];
	uint32_t more;
	uint32_t reserved;
};

/*
 * The wire (transport/wire.h). One process of the instance, its engine, sends and receives what
 * other instances are to get. Counters are of packets, and advanced with relaxed atomics.
 */
struct sh_wire {
	uint32_t last_lid;    /* that an address of the network can have; 0: there is no wire */
	uint32_t mtu;	      /* payload of a packet */
	struct sh_ip network; /* a LID added to it gives an address */
	uint32_t proc;	      /* the engine's slot; 0: it has not come yet, or it has ended */
	uint32_t lost;	      /* the engine has ended: what leaves the instance arrives nowhere */
	uint32_t leads; /* LIDs above this one never leave the instance; 0: there is no wire */
	uint32_t
		by_gid; /* where a LID below this one comes with a GID, the GID says which port it is */
	/* Robust. The engine's main thread holds it from its beginning to its end. */
	pthread_mutex_t alive;
	uint64_t sent, received;
	uint64_t unsent;    /* the socket refused them */
	uint64_t malformed; /* not RoCEv2, or with an opcode that does not exist */
	uint64_t bad_icrc;
	struct sh_wire_list list;
};

/*
 * Copies that the daemon makes for threads which the kernel does not let reach into a process
 * (host/ferry.h). Each thread has a place by its slot, so that one which is stopped keeps none from
 * others. It fills the place, stores SH_FERRY_ASKED as its state, and sets its bit. The daemon
 * stores SH_FERRY_DONE when it is done with the place, even if the thread that asked has died
 * meanwhile. Only then does the next thread of the slot use it.
 */
#define SH_FERRY_MAX 8192 /* bytes of one copy */
enum sh_ferry_state { SH_FERRY_NONE, SH_FERRY_ASKED, SH_FERRY_DONE };
struct sh_ferry {
	uint64_t asker; /* by its word, as in locks (lock.h) */
	uint32_t state; /* a futex */
	uint32_t tid;	/* the asker's number */
	uint32_t proc;	/* the process that has the memory */
	uint32_t out;	/* nonzero: from the data to the process */
	uint64_t witness, addr;
	uint32_t len;
	int32_t result; /* bytes copied, or -errno */
} __attribute__((aligned(64)));
struct sh_ferries {
	uint32_t open; /* nonzero: the daemon looks */
	uint64_t asked[SH_MAX_EXEC / 64] __attribute__((aligned(SH_APART)));
	struct sh_ferry ferry[SH_MAX_EXEC];
};

struct sh_instance {
	uint64_t magic;
	uint64_t size;				    /* bytes to map */
	uint32_t hosts, hcas_per_host, ports, hcas; /* hcas = hosts * hcas_per_host */
	uint64_t ctx_off, proc_off, exec_off, evq_off, xrc_reg_off, hca_off, hca_span, pool_off,
		pool_size;
	uint64_t shared_off, shared_size;
	uint64_t epoch;	    /* never 0 */
	uint32_t exec_used; /* slots of exec[] that were ever taken: below this */
	uint32_t reserved2;
	struct sh_lock recovery; /* one recovery at a time */
	uint32_t fatal;
	uint32_t cqe_size; /* 32 or 64 */
	uint32_t driver_abi;
	uint32_t face;	      /* enum sh_face of dev.h */
	uint32_t trap;	      /* nonzero: stores trap for the whole instance */
	uint32_t died_inside; /* threads found dead in device code: they may have held locks */
	struct sh_faults faults;
	uint32_t lid_port
		[SH_MAX_LIDS]; /* (hca << 8 | port) + 1 of the port that has the LID; SH_LID_OF_SWITCH; 0 = none */
	uint64_t evq_spilled[SH_MAX_EVQ / 64]; /* event queues that have spilled records */
	uint64_t evs_owed[SH_EVS_OWED]; /* events that the daemon is to raise (event.c); 0 = none */
	struct sh_moves moves;
	struct sh_wire wire;
};

/*
 * Where the tables begin. The offsets are fixed, so that no code has to trust the header for them.
 */
#define SH_TAP_SIZE	  UINT64_C(0x841000) /* of struct sh_tap, in pages: tap.h */
#define SH_PAGES(x)	  (((uint64_t)(x) + 4095) & ~UINT64_C(4095))
#define SH_CTX_OFF	  SH_PAGES(sizeof(struct sh_instance))
#define SH_PROC_OFF	  (SH_CTX_OFF + SH_PAGES(SH_MAX_CTX * sizeof(struct sh_ctx)))
#define SH_EXEC_OFF	  (SH_PROC_OFF + SH_PAGES(SH_MAX_PROC * sizeof(struct sh_proc)))
#define SH_EVQ_OFF	  (SH_EXEC_OFF + SH_PAGES(SH_MAX_EXEC * sizeof(struct sh_exec)))
#define SH_XRC_REG_OFF	  (SH_EVQ_OFF + SH_PAGES(SH_MAX_EVQ * sizeof(struct sh_evq)))
#define SH_TAP_OFF	  (SH_XRC_REG_OFF + SH_PAGES(SH_MAX_XRC_REG * sizeof(struct sh_xrc_reg)))
#define SH_FERRIES_OFF	  (SH_TAP_OFF + SH_TAP_SIZE)
#define SH_FERRY_DATA_OFF (SH_FERRIES_OFF + SH_PAGES(sizeof(struct sh_ferries)))
#define SH_HCA_OFF	  (SH_FERRY_DATA_OFF + SH_MAX_EXEC * SH_FERRY_MAX)

struct sh_mcg {
	uint32_t gid
		[4]; /* the bytes in their order; the first and the last word 0: the slot was never used */
	uint32_t nqps; /* 0 = slot free */
	uint32_t qpn[SH_MCG_QPS];
};

/* Memory protection table entry. key holds the whole 32-bit key; 0 = free or invalidated. */
enum sh_access { /* the IB access bits */
		 SH_LOCAL_WRITE = 1,
		 SH_REMOTE_WRITE = 2,
		 SH_REMOTE_READ = 4,
		 SH_REMOTE_ATOMIC = 8,
		 SH_MW_BIND = 16,
};
struct sh_mpt {
	uint32_t key; /* stored last on creation, first (as 0) on removal */
	uint32_t pdn;
	uint32_t ctx;
	uint32_t access;
	uint64_t start; /* first address, as work requests and packets name it */
	uint64_t len;
	uint64_t shift; /* what to add to such an address to get the owner's own */
	/* Offset of start in device memory; 0: the pages are the owner's own. */
	uint64_t shared;
};

#define SH_ATOMIC_LOCKS 512 /* the 64-bit words of a page */

struct sh_hca {
	struct sh_lock mcg_lock;
	struct sh_lock port_lock;
	uint32_t index, host;
	uint32_t qp_used;   /* slots of the QP table that were ever used: below this */
	uint32_t fatal;	    /* the card has failed */
	uint32_t mcgs_made; /* the multicast table has pages */
	/*
	 * Odd while the table is being changed, and always with a wire. A search is right if it
	 * finds the same even number before and after.
	 */
	uint32_t mcgs_seq;
	uint64_t node_guid;				    /* host order */
	struct sh_port port[SH_MAX_PORTS];		    /* port n is [n-1] */
	struct sh_counters counters;			    /* advanced with relaxed atomics */
	struct sh_traffic traffic[SH_MAX_PORTS];	    /* likewise */
	uint64_t qp_off, cq_off, srq_off, mpt_off, mcg_off; /* from the start of device memory */
	/*
	 * IBV_ATOMIC_HCA: makes atomic operations of this HCA atomic to each other. Several
	 * processes may have one page at addresses of their own, so the place in the page names the
	 * lock.
	 */
	struct sh_lock atomic_lock[SH_ATOMIC_LOCKS];
};

_Static_assert(SH_MAX_LIDS == SH_WIRE_LIDS, "a bit each");
_Static_assert(sizeof(struct sh_ctx) == 64, "one cache line");
_Static_assert(sizeof(struct sh_exec) == SH_APART, "lines of its own");
_Static_assert(offsetof(struct sh_txn, store) == 64, "log head");
_Static_assert(SH_MAX_EVQ % 64 == 0, "a bit each");
_Static_assert(sizeof(struct sh_mpt) == 48, "MPT entry");

#endif
