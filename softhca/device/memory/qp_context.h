/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The QP context: what a ConnectX keeps about a queue pair. Each slot of the table has its own
 * locks. Only softhca/device includes this. gen, engine_seq, timer_gen and polled survive reuse of
 * the slot; creation sets everything else.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_QP_CONTEXT_H
#define SOFTHCA_DEVICE_MEMORY_QP_CONTEXT_H

#include "qp_attr.h"
#include "txn.h"

#define SH_PSN_MASK   0xffffffu
#define SH_QP_ATOMICS 16  /* results of atomics kept for replay; max_dest_rd_atomic's limit */
#define SH_QP_READS   128 /* max_rd_atomic's limit */

#define SH_QP_RECEIVES 4 /* of 16 bytes, on one line of the queue */

/* What a message in progress at the responder is. */
enum sh_recv_op { SH_RECV_NONE, SH_RECV_SEND, SH_RECV_WRITE };

/*
 * A QP has two halves, each with a lock of its own, because different processes use them. The owner
 * runs the requester, under lock. For what the requester sends, its thread runs the peer's
 * responder, under that QP's rlock. A field that both halves read changes only while both locks are
 * held; lock is taken first. So a reader needs one of them, and no thread that holds an rlock waits
 * for a lock.
 *
 * Each half has cache lines of its own, and so have the fields that hardly ever change: moving one
 * line from one processor to another costs more than all the instructions of a message.
 *
 *	LINE	WHAT				WRITTEN UNDER
 *	0-1	the requester			lock; left: see there
 *	2-4	identity, attributes		both
 *	5	the alternate path		both; counters: lock; drops: none
 *	6-7	the responder			rlock
 *	8	receives, read ahead		rlock
 *	9-12	the log				rlock
 *	13-15	results of atomics		rlock
 *
 * Behind the lines that the peer writes with every message (6-11) are lines that nearly no message
 * writes. A processor that sees lines used in ascending order fetches some more. Without those
 * lines that would be the requester of the next QP, which it would take away from its owner.
 */
struct sh_qp {
	struct sh_lock lock;
	/* Token of the thread that runs the requester, 0: no thread does. */
	uint32_t engine;
	uint32_t engine_seq;
	uint64_t deadline; /* of the wait in progress (RNR or ack), 0 = none */
	union {
		/*
		 * The CQ that its last message was announced in: a hint. told_cqn 0: not known. No
		 * HCA has a number with SH_IS_LEFT.
		 */
		struct {
			uint32_t told_hca, told_cqn;
		};
		/*
		 * sh_left(): an answer that the requester has not taken in. Written under the
		 * peer's rlock, also by a thread that recovers after the peer; and by one that did
		 * not get this lock back. So both are stored as one word.
		 */
		uint64_t left;
	};
	union {
		/*
		 * sq_una and una_psn before a message that the receiver may not have committed
		 * (express_way.h). Valid if has_floor is set: the thread that ran the engine has
		 * not come to that commit. RC and XRC alone have such messages.
		 */
		uint64_t floor;
		uint64_t xmit_multicast; /* UD: like xmit_packets */
	};
	uint32_t has_floor;
	/*
	 * On the wire: ack_psn + 1 when the requester went back because packets were lost. Until
	 * ack_psn moves on, or the timer fires, what else was on its way says the same again.
	 */
	uint32_t went_back;
	uint32_t wire_psn;    /* on the wire: one past the newest PSN that has left */
	uint32_t wire_engine; /* the last token of the wire's engine */

	/* Requester: WQE counters run free, PSNs are 24 bits. una <= next <= begun. */
	uint32_t sq_una __attribute__((aligned(64)));
	uint32_t una_psn;		/* oldest WQE not completed and its first PSN */
	uint32_t sq_next, next_wqe_psn; /* WQE that the next packet belongs to and its first PSN */
	uint32_t sq_begun;		/* WQEs below this one have been begun */
	uint32_t ack_psn;		/* oldest PSN not acknowledged, within sq_una */
	uint32_t next_psn;		/* of the next packet */
	uint32_t sent_psn;		/* one past the newest PSN ever sent */
	uint32_t rd_out;		/* READs and atomics sent and not completed */
	/*
	 * The deadline is that of a receiver that was not ready (RNR NAK); SH_PUT_OFF: that of a
	 * lock that was not to be had (sh_put_off()), with the newest answer that the requester has
	 * and could not take in (SH_HELD()).
	 */
	uint32_t rnr_waiting;
#define SH_PUT_OFF     2u
#define SH_SOURCE_GONE 8u /* UC, UD: the oldest WQE was sent, and its memory is gone: it fails */
/* An answer to this PSN: an ACK, or a NAK that ends the WQE. */
#define SH_HELD(psn, syndrome) ((psn) << 8 | ((syndrome)&3u) << 4 | 4u)
#define SH_IS_HELD	       4u
#define SH_HELD_PSN(word)      ((word) >> 8)
#define SH_HELD_NAK(word)      ((word) >> 4 & 3u) /* the syndrome's last bits; 0: an ACK */
	uint64_t timer_at; /* when the pending timer fires, 0 = none is pending */
	uint32_t timer_gen;
	uint32_t messages_sent;
	uint32_t polled; /* gen for which the owner's helper thread looks at the queues in ERR */
	uint8_t again;	 /* a doorbell came while the engine ran */
	uint8_t drained; /* SQD: nothing is in progress any more */
	/*
	 * retry_left: with SH_RETRY_ARMED if there was another path at the last retry. rnr_left: if
	 * rnr_retry is SH_RNR_FOREVER, that plus the RNR NAKs in a row
	 */
	uint8_t retry_left, rnr_left;
#define SH_RETRY_ARMED	    0x80u
#define SH_RETRY_LEFT(left) ((left) & ~SH_RETRY_ARMED)

	/* Identity: set at creation. */
	uint32_t qpn;				    /* 24 bits as reported, 0 = slot free */
	uint32_t ctx;				    /* 0 = kernel-made XRC receive QP */
	uint32_t state __attribute__((aligned(8))); /* enum sh_qp_state */
	uint32_t gen;  /* counts entries into RESET and ERR, creations and destructions */
	uint32_t type; /* enum sh_qp_type */
	uint32_t pdn;
	uint32_t send_cqn, recv_cqn; /* 0 = none */
	uint32_t srqn, xrcd;
	uint8_t log_sq_size, sq_shift, log_rq_size, rq_shift;
	/* silent: its address space has ended, or the card has failed */
	uint8_t sq_present, rq_present, sq_sig_all, silent;
	uint32_t sq_off, rq_off; /* of each queue in buf */
	uint32_t regs;		 /* head of the list of registrations, 0 = none */
	uint32_t async_events;	 /* affiliated events written so far */
	struct sh_umem buf;
	struct sh_umem rq_db;

	/* Attributes. */
	uint32_t qkey, dest_qpn;
	uint32_t access; /* enum sh_access bits: remote read, write, atomic */
	uint16_t pkey_index, alt_pkey_index;
	uint8_t path_mtu, mig_state, sqd_notify, max_rd_atomic;
	uint8_t max_dest_rd_atomic, min_rnr_timer, port, timeout;
	uint8_t retry_cnt, rnr_retry, alt_port, alt_timeout;
	struct sh_path path;
	uint32_t last_wqe; /* LAST_WQE_REACHED was raised */
	struct sh_path alt_path;
	uint64_t user_handle;
	uint16_t cap_recv_wr, cap_recv_sge;
	uint32_t drops; /* packets for it that vanished; any thread, relaxed atomics */
	uint64_t xmit_packets, xmit_data; /* of short messages; the HCA's counters have the rest */

	struct sh_lock rlock __attribute__((aligned(64)));
	uint32_t msn, e_psn;
	/* Free running, only 16 bits count; index of the next receive WQE. */
	uint32_t rq_consumed;
	uint32_t rq_seen;  /* the doorbell record as last read */
	uint32_t cur_op;   /* enum sh_recv_op */
	uint32_t cur_wqe;  /* receive WQE of the SEND in progress + 1, 0 = none is taken */
	uint32_t cur_srqn; /* the SRQ it came from, 0 = the RQ */
	uint32_t cur_done; /* bytes placed so far */
	uint32_t cur_len;  /* WRITE: length in the RETH */
	uint32_t cur_rkey;
	union {
		uint64_t cur_va;
		uint64_t rcv_multicast; /* UD, which has no WRITE: like xmit_packets */
	};
	uint32_t messages_received;
	uint32_t cur_srq_gen; /* and which SRQ of that number */
	/* A sequence NAK has been sent; no second one until the PSN fits. */
	uint8_t nak_sent;
	uint8_t comm_est;  /* COMM_EST was raised */
	uint8_t wire_left; /* requester, on the wire: SH_WIRE_ASKED, SH_WIRE_UNSENT */
	/* UD, set at creation: what the QP sends to a group of its own does not come back to it. */
	uint8_t block_self_mcast;
	/*
	 * Requester, on the wire: packets below this PSN may have been sent more than once
	 * (transport/wire_pace.c).
	 */
	uint32_t wire_again;
	uint64_t rcv_packets, rcv_data; /* like xmit_packets, xmit_data */
	uint32_t atomic_head;
	/* Index of the first receive in rq_cache << 8 | number of receives there. */
	uint32_t rq_cached;
	/* Bytes of long messages: what the ports count, too. Advanced with relaxed atomics. */
	uint64_t long_xmit_data, long_rcv_data;
	uint32_t retries; /* timeouts, sequence NAKs and RNR NAKs; requester */
	/*
	 * On the wire: ack_psn + 1 when the oldest packet was sent again ahead of time (timer.c).
	 */
	uint32_t probed;
	uint64_t rq_cache[SH_QP_RECEIVES][2]
		__attribute__((aligned(64))); /* receives of one segment, as the queue has them */
	struct sh_txn txn;

	/*
	 * The newest atomic operations and READs: PSN + 1, with a bit for READs
	 * (transport/responder_rdma.c).
	 */
	uint32_t atomic_psn[SH_QP_ATOMICS];
	uint64_t atomic_result[SH_QP_ATOMICS];
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct sh_qp) == 1024, "a QP context and its log");
_Static_assert(offsetof(struct sh_qp, sq_una) == 64, "requester");
_Static_assert(offsetof(struct sh_qp, qpn) == 128, "who it is");
_Static_assert(offsetof(struct sh_qp, buf) == 192, "queues");
_Static_assert(offsetof(struct sh_qp, qkey) == 256, "attributes");
_Static_assert(offsetof(struct sh_qp, alt_path) == 320, "alternate path");
_Static_assert(offsetof(struct sh_qp, rlock) == 384, "responder");
_Static_assert(offsetof(struct sh_qp, txn) == 576, "log");
_Static_assert(offsetof(struct sh_qp, atomic_psn) == 832, "atomics");

/*
 * Why the wire's engine still has to send what was posted: it has been asked to go on with the send
 * queue, and has not looked since; or it has looked, and something that has not been sent yet waits
 * for answers to what has.
 */
#define SH_WIRE_ASKED  1u
#define SH_WIRE_UNSENT 2u

/* All other types have lower numbers. */
_Static_assert((SH_QPT_RC | SH_QPT_UC | SH_QPT_UD) < SH_QPT_XRC && SH_QPT_XRC < SH_QPT_XRC_INI &&
		       SH_QPT_XRC < SH_QPT_XRC_TGT,
	       "numbers of service types");
static inline bool sh_qp_is_xrc(const struct sh_qp *qp)
{
	return qp->type >= SH_QPT_XRC;
}

/* Connected and acknowledged: RC and XRC. */
static inline bool sh_qp_is_reliable(const struct sh_qp *qp)
{
	return qp->type == SH_QPT_RC || sh_qp_is_xrc(qp);
}

/*
 * An answer that the thread which got it may not live to take in: an ACK, or a NAK that ends the
 * WQE. The peer would not give it once more: a responder that has refused a request is in ERR. So
 * the responder's move to ERR and this word of the requester are one transaction. gen: the
 * requester's. A recovery may carry the transaction out when that is another one, without the
 * requester's lock: then the word means nothing, as a hint and as an answer.
 */
#define SH_IS_LEFT	0x80000000u
#define SH_LEFT_NO_DATA 0x80 /* no syndrome of an AETH. UC, UD: as SH_SOURCE_GONE */
static inline uint64_t sh_left(uint32_t gen, uint32_t psn, uint8_t syndrome)
{
	return sh_two(gen | SH_IS_LEFT, psn << 8 | syndrome);
}
static inline uint32_t sh_left_answer(uint64_t left)
{
	return (uint32_t)(__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? left : left >> 32);
}
#define SH_LEFT_PSN(left)      (sh_left_answer(left) >> 8)
#define SH_LEFT_SYNDROME(left) ((uint8_t)sh_left_answer(left))

/* How a thread that delivers a packet waits for the locks of its receiver. */
static inline enum sh_wait sh_qp_wait(const struct sh_qp *qp)
{
	return sh_qp_is_reliable(qp) ? SH_WAIT_BRIEFLY : SH_WAIT_PATIENTLY;
}

#define SH_RNR_FOREVER 7 /* value of rnr_retry */

/* The RNR retries that are left, or SH_RNR_FOREVER. */
static inline uint32_t sh_rnr_left(const struct sh_qp *qp)
{
	return qp->rnr_left < SH_RNR_FOREVER ? qp->rnr_left : SH_RNR_FOREVER;
}

/* Distance from b to a on the PSN circle, -2^23 .. 2^23-1. */
static inline int32_t sh_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t sh_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & SH_PSN_MASK;
}

/* What path_mtu is without a path: a datagram may have 4096 bytes. */
static inline uint8_t sh_first_mtu(uint32_t type)
{
	return type == SH_QPT_UD ? 5 : 0;
}
static inline uint32_t sh_qp_mtu(const struct sh_qp *qp)
{
	return 128u << (qp->path_mtu & 7);
}

/* Packets that carry len bytes. The MTU is a power of two. */
static inline uint32_t sh_packets(uint64_t len, uint32_t mtu)
{
	return len <= mtu ? 1 : (uint32_t)((len + mtu - 1) >> __builtin_ctz(mtu));
}

#endif
