/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The tap: a ring in device memory, which takes copies of packets while a capture runs. Any number
 * of senders fill it, and one reader empties it, the command that captures. No sender waits: a
 * packet that finds no room is counted. The reader does not wait for a sender either.
 *
 * A packet takes a record of some slots that follow each other, round the end of the ring, too. A
 * position counts slots, and never goes back; slot number position % SH_TAP_SLOTS is its slot. The
 * sender takes the positions (head), then puts its word (as in locks, lock.h) into the owner word
 * of each of the slots, fills them, and says in the owner word of the first that the record is
 * ready. The reader makes the slots free again, and moves tail on.
 *
 *	BITS	OF an owner word; all 0 = the slot is free
 *	0-14	the sender's slot + 1, as in locks
 *	16	first slot: the record is ready
 *	17-22	first slot: how many slots the record has; other slots: how far they are from the first
 *	23	it is one of the others
 *	24	the position is not used: another sender has not left one of its slots
 *	32-63	generation, as in locks
 *
 * A sender that was killed, or whose life was ended (life.h), stores nothing more. Its generation
 * tells, and the reader frees its slots. A sender that is stopped otherwise keeps its slots, and
 * the reader passes them over: when the sender goes on, the reader finds its record late
 * (sh_tap_late). Positions that come round to slots which it still has are marked as not used.
 */
#ifndef SOFTHCA_DEVICE_MEMORY_TAP_H
#define SOFTHCA_DEVICE_MEMORY_TAP_H

#include "dev.h"

#define SH_TAP_SLOTS   32768
#define SH_TAP_SLOT    256
#define SH_TAP_PAYLOAD 4096 /* of a packet: the largest MTU */
#define SH_TAP_LARGEST ((sizeof(struct sh_tapped) + SH_TAP_PAYLOAD + SH_TAP_SLOT - 1) / SH_TAP_SLOT)
#define SH_TAP_ANY     UINT32_MAX /* a host or QP that the capture does not name */

#define SH_TAP_READY	   (UINT64_C(1) << 16)
#define SH_TAP_COUNT_SHIFT 17
#define SH_TAP_COUNT_MASK  0x3f
#define SH_TAP_PART	   (UINT64_C(1) << 23)
#define SH_TAP_UNUSED	   (UINT64_C(1) << 24)

/* A packet as it was seen. The payload follows, `have` bytes of `len`. */
struct sh_tapped {
	uint64_t position; /* of its first slot */
	uint64_t when;	   /* CLOCK_MONOTONIC, ns */
	uint32_t capture;  /* which one it is for: sh_tap.capture */
	uint16_t len, have;
	/*
	 * enum sh_pkt_op, enum sh_service, enum sh_pkt_flags and SH_TAPPED_AGAIN
	 * (transport/packet.h)
	 */
	uint8_t op, service, flags;
	uint8_t sl;
	uint16_t slid, dlid, pkey;
	uint8_t syndrome;
	uint8_t fate; /* enum sh_fault_kind; SH_FAULT_KINDS: no fault */
	uint32_t srcqp, dqpn, psn;
	uint32_t qkey, srqn, msn;
	uint32_t rkey, dmalen;
	uint32_t imm; /* as it stands in the packet */
	uint64_t va, swap_add, compare;
	uint32_t delay_us;
	uint32_t flow_label;
	uint8_t traffic_class, hop_limit;
	uint8_t wire; /* enum sh_tapped_wire */
	uint8_t reserved[5];
	uint8_t sgid[16], dgid[16];
};
_Static_assert(sizeof(struct sh_tapped) == 144, "a record's head");
_Static_assert(SH_TAP_LARGEST <= SH_TAP_COUNT_MASK, "slots of a record");
/* On the wire: it came from there, or goes there. Numbers as in pcapng. */
enum sh_tapped_wire { SH_TAPPED_FABRIC, SH_TAPPED_IN, SH_TAPPED_OUT };
#define SH_TAPPED_AGAIN 128 /* the second of two that a fault made of one */

struct sh_tap {
	/* What is captured. The daemon sets it while no capture runs. */
	uint32_t capture; /* counts captures; 0: there was none, and the rest has no memory */
	uint32_t snap;	  /* bytes of payload to keep */
	uint32_t host, qpn;
	uint64_t head __attribute__((aligned(SH_APART))); /* positions given out */
	uint64_t lost;					  /* packets that found no room */
	uint64_t tail __attribute__((aligned(SH_APART))); /* below it the reader is done */
	uint64_t owner[SH_TAP_SLOTS] __attribute__((aligned(SH_APART)));
	unsigned char slot[SH_TAP_SLOTS][SH_TAP_SLOT] __attribute__((aligned(SH_TAP_SLOT)));
};

_Static_assert(sizeof(struct sh_tap) <= SH_TAP_SIZE && SH_TAP_SIZE - sizeof(struct sh_tap) < 4096,
	       "its room in the layout");

static inline struct sh_tap *sh_tap(const struct sh_dev *dev)
{
	return (struct sh_tap *)sh_at(dev, SH_TAP_OFF);
}

/* ---- senders ---- */

/*
 * Takes a record for so many bytes of payload. NULL: there is no room, which has been counted. The
 * caller fills in what follows `have`, and so much payload where sh_tap_payload() says, and calls
 * one of the other two.
 */
struct sh_tapped *sh_tap_take(struct sh_dev *dev, uint32_t payload);
/* Where the payload goes: one piece, or two at the end of the ring. Returns how many. */
unsigned int sh_tap_payload(struct sh_dev *dev, const struct sh_tapped *t, struct sh_seg seg[2]);
void sh_tap_put(struct sh_dev *dev, struct sh_tapped *t);
void sh_tap_drop(struct sh_dev *dev, struct sh_tapped *t);

/* ---- the daemon ---- */

/* Sets up the tap for a capture. 0 or -ENOMEM. */
int sh_tap_begin(struct sh_dev *dev, uint32_t snap, uint32_t host, uint32_t qpn);

/* ---- the reader ---- */

struct sh_tap_reader {
	struct sh_tap *tap;
	const struct sh_exec *exec; /* all SH_MAX_EXEC */
	uint64_t at;		    /* the next position to look at */
	/* Positions below it have been waited for long enough. */
	uint64_t waited;
	uint64_t blocked_at, blocked_since; /* UINT64_MAX: not blocked */
	uint32_t scan;			    /* of sh_tap_late() */
	uint64_t damaged; /* records whose numbers were wrong: they are left out */
};

void sh_tap_open(struct sh_tap_reader *r, struct sh_tap *tap, const struct sh_exec *exec);
/*
 * Copies the next record out and frees its slots. False: there is none at present. now: ns; a
 * position that is not ready is passed over when it has not been ready for `patience` ns.
 */
bool sh_tap_next(struct sh_tap_reader *r, uint64_t now, uint64_t patience, struct sh_tapped *t,
		 unsigned char payload[SH_TAP_PAYLOAD]);
/*
 * The same for records whose positions were passed over, and frees what dead senders have left.
 * False: there is no more; the next call looks at all slots again.
 */
bool sh_tap_late(struct sh_tap_reader *r, struct sh_tapped *t,
		 unsigned char payload[SH_TAP_PAYLOAD]);

#endif
