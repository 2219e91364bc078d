/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What an instance waits for, read from its device memory alone: its threads, the locks that they
 * hold, and whatever is under way and not done. For `softhca show --waits`. This code takes no
 * lock, calls no host and changes nothing. So it works on a copy of device memory, and while every
 * process is stuck. What it finds is as torn as the copy: only what two looks, some time apart,
 * find alike counts.
 *
 * For everything under way there is something that will carry it on: a thread in device code, a
 * timer of the helper thread, the peer, or the program itself. If by the device's own rules there
 * is none, the wake-up is lost, and enum sh_lost says which rule is broken.
 */
#ifndef SOFTHCA_DEVICE_WAITS_H
#define SOFTHCA_DEVICE_WAITS_H

#include "softhca/device/memory/announce.h"

/* ---- threads ---- */

struct sh_thread {
	uint32_t slot, proc, tid;
	bool inside;	     /* in device code */
	enum sh_waits waits; /* the rest counts unless this is SH_WAITS_NOT */
	uint64_t since, a, b;
};
/* Calls fn for each slot that a thread has; some of these threads may have ended. */
void sh_each_thread(const struct sh_dev *dev, void (*fn)(void *arg, const struct sh_thread *t),
		    void *arg);

/* ---- locks ---- */

enum sh_lock_kind {
	SH_LOCK_UNKNOWN,
	SH_LOCK_REQUESTER,
	SH_LOCK_RESPONDER,
	SH_LOCK_CQ,
	SH_LOCK_SRQ,
	SH_LOCK_EVQ,
	SH_LOCK_ATOMICS,
	SH_LOCK_MULTICAST,
	SH_LOCK_PORTS,
	SH_LOCK_RECOVERY,
};
struct sh_held {
	enum sh_lock_kind kind;
	/* of the QP, CQ, SRQ or event queue; for atomics the place in a page */
	uint32_t hca, number;
	uint64_t owner;	     /* the lock's word; 0 = free */
	bool sleepers, dead; /* dead: the holder's slot has another generation by now */
	struct sh_thread holder;
};
/* The lock at an offset of device memory. */
void sh_lock_at(const struct sh_dev *dev, uint64_t off, struct sh_held *out);
void sh_each_held(const struct sh_dev *dev, void (*fn)(void *arg, const struct sh_held *h),
		  void *arg);

/* ---- what is under way ---- */

enum sh_due_kind {
	/* WQEs that the device is working on, or has not taken from the send queue. */
	SH_DUE_SEND,
	SH_DUE_STATE,	  /* the same in a QP that does not send: see state */
	SH_DUE_ACK,	  /* requests sent and not acknowledged */
	SH_DUE_RNR,	  /* the same, to a receiver that was not ready */
	SH_DUE_RECEIVE,	  /* receives posted */
	SH_DUE_POLL,	  /* CQEs written and not polled */
	SH_DUE_ARM,	  /* the CQ was armed in its record, and the device has not looked yet */
	SH_DUE_EVENT,	  /* the CQ is armed, and CQEs came that no event announced */
	SH_DUE_SPILL,	  /* event records that did not fit into the pipe */
	SH_DUE_LOOK,	  /* QPs that the helper thread has to look at */
	SH_DUE_ATTENTION, /* the attention word moved on while the helper thread sleeps */
	SH_DUE_ROUSE,	  /* a thread dozes, and its announcement was taken */
	SH_DUE_COPY,	  /* a copy that a thread has the daemon make (host/ferry.h) */
};

/* Which rule is broken. */
enum sh_lost {
	SH_LOST_NOT,
	SH_LOST_DOORBELL, /* WQEs wait, and no thread serves the queue or has been asked to */
	/* A thread should be serving the queue, but none of the process is in device code. */
	SH_LOST_ENGINE,
	SH_LOST_TIMER,	/* a request waits for an answer or a time, and no timer is set */
	SH_LOST_HELPER, /* a timer is set, and the helper thread sleeps beyond it */
	SH_LOST_EVENT,	/* an armed CQ has CQEs, and no thread of the instance is in device code */
	SH_LOST_ATTENTION, /* the helper thread was asked, and no thread has woken it */
	SH_LOST_ROUSE,	   /* a dozing thread should have been woken, and was not */
};

struct sh_due {
	enum sh_due_kind kind;
	enum sh_lost lost;
	uint32_t hca, number; /* QP, CQ; event queue; 0 */
	/*
	 * SH_DUE_RECEIVE: the SRQ, 0 = the QP's own queue. SH_DUE_RNR over XRC: the SRQ that the
	 * request names.
	 */
	uint32_t srqn;
	uint32_t proc; /* index of the process that owns it */
	/*
	 * Of what waits in a send queue: the process that carries it on. It is the owner, or the
	 * wire's engine where requests leave the instance (0: that has not come, or has ended).
	 */
	uint32_t carrier;
	uint32_t count;
	uint32_t untaken; /* SH_DUE_ACK, SH_DUE_RNR: WQEs behind them */
	uint32_t state;	  /* SH_DUE_STATE: enum sh_qp_state */
	bool engine;	  /* SH_DUE_SEND, SH_DUE_ACK, SH_DUE_RNR: a thread serves the queue */
	uint64_t until;	  /* the timer's time, 0 = none */
	uint32_t left;	  /* retries left; for SH_DUE_RNR, 7: without end */
	bool forever;	  /* SH_DUE_ACK: the program has chosen timeout 0 */
	bool put_off;	  /* SH_DUE_ACK: until a stopped thread has let go a lock */
	bool has_peer;	  /* connected, to this QP: */
	uint32_t peer_hca, peer_qpn, peer_proc; /* peer_proc 0: not known, or kernel-made */
	uint32_t peer_has; /* SH_DUE_RECEIVE: what the peer has under way; SH_DUE_RNR: receives
			      posted there */
	uint64_t progress; /* the same in two looks: nothing has moved */
};
/*
 * Returns how many queues (CQs, SRQs, queues of QPs) could not be looked into, because their memory
 * is not device memory.
 */
uint32_t sh_each_due(const struct sh_dev *dev, void (*fn)(void *arg, const struct sh_due *due),
		     void *arg);

#endif
