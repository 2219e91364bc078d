/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the parts of the transport ask of each other. "Locked": the QP's requester lock is held; "both locked": that of its
 * responder too (qp.h).
 * Completion and error functions commit one transaction per CQE, so that a kill leaves either all or nothing of it.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_TRANSPORT_H
#define SOFTHCA_DEVICE_TRANSPORT_TRANSPORT_H

#include <errno.h>
#include <string.h>

#include "packet.h"
#include "softhca/device/memory/tables.h"
#include "softhca/device/queues/wqe.h"

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

/* Path migration states as the verbs number them. */
enum { SH_MIG_MIGRATED, SH_MIG_REARM, SH_MIG_ARMED };

#define SH_VENDOR_NONE		0
#define SH_VENDOR_LOC_LEN	0x69
#define SH_VENDOR_LOC_QP_OP	0x6f
#define SH_VENDOR_FLUSH_SQ	0xf9
#define SH_VENDOR_FLUSH_RQ	0xf9
#define SH_VENDOR_RETRY		0x81
#define SH_VENDOR_RNR		0x87
#define SH_VENDOR_REM_ACCESS	0x88
#define SH_VENDOR_REM_OP	0x89
#define SH_VENDOR_REM_INV	0x8a

#define SH_COUNT(hca, what, n)	__atomic_fetch_add(&(hca)->counters.what, (n), __ATOMIC_RELAXED)

/* A client waits for it; the daemon does not (-EINPROGRESS). */
static inline int sh_lock_mine(struct sh_dev *dev, struct sh_lock *lock)
{
	if (dev->proc == 0)
		return sh_lock_soon(dev, lock);
	sh_lock(dev, lock);
	return 0;
}

/* ---- both halves of a QP (qp.c) ---- */

/* A QP's requester lock, then its responder's. The daemon does not wait: -EINPROGRESS, with neither. */
int sh_qp_lock_both(struct sh_dev *dev, struct sh_qp *qp);
void sh_qp_unlock_both(struct sh_dev *dev, struct sh_qp *qp);

/* A transaction over both halves. */
static inline void sh_qp_txn(struct sh_txn_open *t, struct sh_dev *dev, struct sh_qp *qp)
{
	sh_txn_begin(t, dev, &qp->txn, &qp->rlock);
	sh_txn_covers(t, &qp->lock);
}

/* ---- requester.c ---- */

/* Run the send queue from this thread if nobody does. Locked on entry, unlocked on return; the thread is in the
 * device (sh_enter) and in the process that owns the QP. */
void sh_requester_run(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/* Send again from the oldest PSN that is not acknowledged. Locked. */
void sh_requester_rewind(struct sh_qp *qp);

/* ---- completer.c; all locked ---- */

/* Execute a response. cache: a parsed WQE that may be the one in question, or NULL. */
void sh_complete(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *resp,
		 struct sh_wqe *cache);
/* An answer came: what was counted and waited for begins anew. */
static inline void sh_progress(struct sh_qp *qp)
{
	qp->retry_left = qp->retry_cnt;
	qp->rnr_left = qp->rnr_retry;
	if (!qp->rnr_waiting)
		qp->deadline = 0;
}
/* The WQE sent last has arrived. If it is the only one and neither returns data nor wants a CQE, it is done, and no lock
 * was needed. false: not so. */
static inline bool sh_complete_quiet(struct sh_qp *qp, const struct sh_wqe *wqe)
{
	if (wqe->signaled || sh_wqe_is_fetch(wqe) || wqe->index != qp->sq_una || qp->sq_una + 1 != qp->sq_next)
		return false;
	sh_progress(qp);
	/* Both at once, or a thread that is thrown in between goes on with the wrong PSN (life.h). */
	__atomic_store_n((uint64_t *)&qp->sq_una, sh_two(qp->sq_una + 1, qp->next_psn), __ATOMIC_RELAXED);
	qp->ack_psn = qp->next_psn;
	qp->messages_sent++;
	return true;
}
/* The oldest WQE is done: CQE when it asks for one, and on to the next. -ENOSPC: the CQ overran and the QP is in ERR. */
int sh_complete_wqe(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_wqe *wqe);
/* The oldest WQE failed: its error CQE, then ERR (SQE for UC and UD) and the flush. Takes the responder's lock. */
void sh_send_failed(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint8_t syndrome, uint8_t vendor);

/* ---- timer.c; locked ---- */

/* Wait until now + ns. */
void sh_timer_arm(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint64_t deadline);
uint64_t sh_rnr_ns(uint32_t code);
uint64_t sh_ack_ns(uint32_t code);	/* 0 = never */
/* To the alternate path, with its event. Both locked. */
void sh_migrate(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/* An acknowledgement is late: send again or give up. */
void sh_retry(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);

/* ---- flush.c; both locked ---- */

/*
 * Into the error state: the async event (SH_QPE_NONE: none), then everything visible is flushed, then
 * LAST_WQE_REACHED where it applies. The receive WQE of a message in progress completes with the given syndrome.
 */
void sh_qp_error(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t event, uint8_t recv_syndrome,
		 uint8_t vendor);
/*
 * Flush what is visible of a QP in ERR (both queues) or SQE (send queue). -EINPROGRESS, for a QP without an owner
 * only: another thread holds a CQ's lock, and the caller has to flush again.
 */
int sh_qp_flush(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/* Complete the receive WQE of the message in progress in error, if one is taken. -EINPROGRESS: it is as it was (daemon). */
int sh_recv_abort(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint8_t syndrome, uint8_t vendor);
void sh_qp_event(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t event);
/* Have the owner's helper thread look at this QP (any process). */
void sh_attention_post(struct sh_dev *dev, uint32_t proc, uint32_t hca, uint32_t qpn);

/* ---- responders; they take the QP's locks themselves ---- */

void sh_respond_reliable(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
			 const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg);
void sh_respond_uc(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		   const struct sh_packet *p, struct sh_packet *resp);
void sh_respond_ud(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		   const struct sh_packet *p, struct sh_packet *resp);
/* A multicast packet: to every attached QP of every HCA. */
void sh_deliver_mcast(struct sh_dev *dev, const struct sh_packet *p, struct sh_packet *resp);

/* ---- express.c ---- */

#define SH_SHORT	(8u << 10)	/* what is copied while an SRQ and a CQ are locked */

/* The other end of a QP, and what is locked there from one message of a chain to the next. */
struct sh_express {
	struct sh_qp *qp;		/* its responder is locked, or NULL: nothing is */
	struct sh_hca *hca;
	struct sh_srq *srq;		/* locked, or NULL */
	struct sh_cq *cq;		/* locked, or NULL */
	uint32_t srqn;			/* with cq: where receives come from, 0 = the RQ */
	bool begun;			/* their words name the responder's log */
	uint32_t head;			/* with waiting: of the SRQ, when that is committed */
	uint64_t *waiting;		/* a message is done but for its commit, and its CQE goes here; or NULL */
};
/*
 * Execute a whole request if nothing about it is out of the ordinary: *resp (and *resp_seg) is the positive answer then,
 * as far as it is read. false: nothing has changed. Takes no requester's lock.
 */
bool sh_respond_express(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
			const struct sh_packet *p, struct sh_packet *resp, struct sh_seg *resp_seg);
/*
 * The same from the sender's end, whose requester lock is held. *resp is filled for READ only: the answer to anything else is
 * sh_express_ack(). After true, e goes on holding what it has for the next request of this QP: meanwhile the caller takes
 * no lock, and calls sh_express_end() soon. The receiver may hear of the message only then, or with the next one; so the
 * sender's user hears of it after that. After false nothing is held, and of this request nothing has changed.
 */
bool sh_express(struct sh_express *e, struct sh_dev *dev, struct sh_hca *src, const struct sh_packet *p,
		struct sh_packet *resp, struct sh_seg *resp_seg);
void sh_express_end(struct sh_express *e, struct sh_dev *dev);

/* ---- receive.c: receive WQEs of a responder; both locked ---- */

/* The receive side of one packet: what it took and has to give back. */
struct sh_recv {
	struct sh_txn_open txn;
	struct sh_srq *srq;		/* locked, or NULL */
	struct sh_cq *cq;		/* locked, or NULL */
	uint32_t srqn;			/* where the WQE is from: 0 = the RQ */
	uint32_t index;
	uint32_t pdn;			/* its buffers are checked against */
	uint32_t cqn;			/* its CQE goes to */
	bool have;
};
/* Begin: no WQE yet. For XRC, srqn names the SRQ; -EINVAL: not one this QP may use. -ENODEV: its owner
 * has ended. Nothing is held then. */
int sh_recv_begin(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t srqn);
/* Take a WQE in r->txn: 0, -ENOENT none is posted, -EFAULT queue memory gone. */
int sh_recv_take(struct sh_recv *r, struct sh_hca *hca, struct sh_qp *qp);
/* Commit what was taken as the message in progress and start a new transaction; the SRQ is free for others. */
void sh_recv_keep(struct sh_recv *r, struct sh_hca *hca, struct sh_qp *qp);
/* Go on with the WQE of the message in progress. */
void sh_recv_resume(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp);
/* Read its scatter list. -errno */
int sh_recv_scatter(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_sge *sge,
		    unsigned int max);
/* Add the CQE for its WQE. Fields of cqe that name QP, SRQ and index are filled here. -ENOSPC: overrun. */
int sh_recv_cqe(struct sh_recv *r, struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_cqe *cqe);
/* Commit, and let go of the locks. */
void sh_recv_commit(struct sh_recv *r, struct sh_dev *dev);
/* Let go of everything and change nothing. */
void sh_recv_drop(struct sh_recv *r, struct sh_dev *dev);

/* ---- responder_rdma.c; both locked ---- */

/* The PD that a packet's R_Key is checked against: the QP's, for XRC that of the SRQ named. -EINVAL */
int sh_rkey_pd(struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p, uint32_t *pdn);
/* READ and atomics; duplicate: behind the expected PSN. They fill *resp. */
void sh_respond_read(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p,
		     struct sh_packet *resp, struct sh_seg *resp_seg, bool duplicate);
void sh_respond_atomic(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, const struct sh_packet *p,
		       struct sh_packet *resp, bool duplicate);

/* The AETH of a response. */
static inline void sh_aeth(struct sh_packet *resp, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	resp->op = SH_PKT_ACK;
	resp->psn = psn & SH_PSN_MASK;
	resp->npackets = 1;
	resp->syndrome = syndrome;
	resp->msn = msn;
}
/* The positive answer to the whole of a request. */
static inline void sh_express_ack(struct sh_packet *resp, const struct sh_packet *p, uint32_t msn)
{
	sh_aeth(resp, p->psn + p->npackets - 1, SH_AETH_ACK, msn);
}
void sh_nak(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, struct sh_packet *resp, uint8_t syndrome);

/* May this QP take a packet at all: state, peer, port, P_Key. Both locked. */
bool sh_receive_ok(struct sh_dev *dev, struct sh_hca *hca, struct sh_qp *qp, uint32_t port,
		   const struct sh_packet *p);
static inline bool sh_pkey_match(uint16_t a, uint16_t b)
{
	return (a & 0x7fff) && (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000);
}

/* The attributes a QP's port has now. */
static inline uint16_t sh_qp_pkey(const struct sh_hca *hca, const struct sh_qp *qp)
{
	return hca->port[(qp->port - 1) % SH_MAX_PORTS].pkey[qp->pkey_index % SH_PKEYS];
}

#endif
