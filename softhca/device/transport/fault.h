/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a packet meets under the rules of memory/fault_rule.h, which the daemon alone sets. Senders
 * follow them, and count. No lock: see sh_fate().
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_FAULT_H
#define SOFTHCA_DEVICE_TRANSPORT_FAULT_H

#include <stdbool.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/fault_rule.h"

/* What stands in front of and behind a payload, for limits: as RoCEv2 over IPv4 has it. */
#define SH_FAULT_HEADS 44

/* The way of a packet. SH_FAULT_ANY: there is no such host or QP, or there are many. */
struct sh_way {
	uint32_t from, to; /* hosts, or SH_FAULT_FAR | the LID of another instance's port */
	uint32_t src_qpn, dst_qpn;
	uint32_t bytes;
	/*
	 * It has come over the wire. The rules for what leaves were the sender's: here only those
	 * count that name the sender, and partitions.
	 */
	bool came;
	/*
	 * It is there at once, and once: no rule is about it that makes packets wait or doubles
	 * them.
	 */
	bool at_once;
};

/* What a packet meets. */
struct sh_met {
	/*
	 * SH_FAULT_DROP, SH_FAULT_DELAY, SH_FAULT_DUPLICATE, SH_FAULT_CORRUPT or SH_FAULT_REORDER,
	 * which the others come down to; SH_FAULT_KINDS: no fault.
	 */
	uint32_t fate;
	uint32_t rule;	 /* the rule that reorders it */
	uint32_t passes; /* bits of the rules whose packets it overtakes, which are then free */
	uint32_t limits; /* bits of the limits that it is under, if it is delayed */
	bool twice;	 /* it is delayed, and leaves two times */
	/*
	 * When it leaves, if it is delayed; or at the latest, if others are to pass. And how long
	 * that is from now.
	 */
	uint64_t at, delay_ns;
};

/* Fills in *met, and returns its fate. Called only while a rule is set. */
uint32_t sh_fate(struct sh_dev *dev, const struct sh_way *way, struct sh_met *met);

/* Does a partition lie between these ends? */
bool sh_partitioned(struct sh_dev *dev, uint32_t from, uint32_t to);

/*
 * The head of a packet that is held back, in memory of this process. go() sends it, and frees it.
 */
struct sh_held_back {
	uint32_t proc;
	void (*go)(struct sh_dev *dev, uint64_t held, uint64_t unused);
};
/*
 * The room of what this process holds back, which timers and its memory bound. False: there is none
 * for a packet of so many bytes, which is lost then. What was taken is given back when the packet
 * has gone.
 */
bool sh_held_take(size_t bytes);
void sh_held_give(size_t bytes);
/*
 * Holds a packet back whose fate is SH_FAULT_DELAY or SH_FAULT_REORDER. False: it cannot be held,
 * and is the caller's. The caller is pinned.
 */
bool sh_hold_back(struct sh_dev *dev, const struct sh_met *met, struct sh_held_back *h);
/*
 * A packet that met this has left: it has passed the ones that were held back for it. Pinned, too.
 */
void sh_pass(struct sh_dev *dev, const struct sh_met *met);

/*
 * The next choice of a rule with that scope, below SH_FAULT_MILLION: it is hit if that is below its
 * rate.
 */
uint32_t sh_fault_draw(struct sh_fault_rule *rule, uint64_t scope);

/*
 * Sets the one word that senders look at, by whether any rule is set. Called after each change of a
 * rule.
 */
void sh_faults_settle(struct sh_faults *f);

#endif
