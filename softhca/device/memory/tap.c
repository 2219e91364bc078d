// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See tap.h. No lock, and no function waits. */
#include <errno.h>
#include <string.h>

#include "instance.h"
#include "lock.h"
#include "tap.h"

static uint32_t slot_of(uint64_t position)
{
	return position % SH_TAP_SLOTS;
}

static uint32_t slots_for(uint32_t payload)
{
	return (sizeof(struct sh_tapped) + payload + SH_TAP_SLOT - 1) / SH_TAP_SLOT;
}

/* ---- senders ---- */

static bool positions(struct sh_tap *tap, uint32_t n, uint64_t *at)
{
	uint64_t head = __atomic_load_n(&tap->head, __ATOMIC_RELAXED);

	do {
		uint64_t tail = __atomic_load_n(&tap->tail, __ATOMIC_ACQUIRE);

		/* Negative: the head is an old one, and the exchange brings the new one. */
		if ((int64_t)(head + n - tail) > SH_TAP_SLOTS)
			return false;
	} while (!__atomic_compare_exchange_n(&tap->head, &head, head + n, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	*at = head;
	return true;
}

static bool claim(struct sh_tap *tap, uint64_t position, uint64_t word)
{
	uint64_t nobody = 0;

	/* pairs with the release in free_slots() */
	return __atomic_compare_exchange_n(&tap->owner[slot_of(position)], &nobody, word, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

struct sh_tapped *sh_tap_take(struct sh_dev *dev, uint32_t payload)
{
	uint32_t n = slots_for(payload), capture, i;
	struct sh_tap *tap = sh_tap(dev);
	uint64_t word = sh_self_word(dev), at;
	struct sh_tapped *t;

	capture = __atomic_load_n(&tap->capture, __ATOMIC_RELAXED);
	if (!capture)
		return NULL;
	if (!word || payload > SH_TAP_PAYLOAD || !positions(tap, n, &at)) {
		__atomic_fetch_add(&tap->lost, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	for (i = 0; i < n; i++)
		if (!claim(tap, at + i,
			   word | (i ? SH_TAP_PART | (uint64_t)i << SH_TAP_COUNT_SHIFT : 0)))
			break;
	if (i == n) {
		t = (struct sh_tapped *)tap->slot[slot_of(at)];
		t->position = at;
		t->capture = capture;
		t->have = (uint16_t)payload;
		return t;
	}
	/* Backwards, so that no part outlives the first slot. */
	for (uint32_t k = i + 1; k < n; k++)
		(void)claim(tap, at + k, SH_TAP_UNUSED);
	while (i--)
		__atomic_store_n(&tap->owner[slot_of(at + i)], SH_TAP_UNUSED, __ATOMIC_RELEASE);
	__atomic_fetch_add(&tap->lost, 1, __ATOMIC_RELAXED);
	return NULL;
}

unsigned int sh_tap_payload(struct sh_dev *dev, const struct sh_tapped *t, struct sh_seg seg[2])
{
	struct sh_tap *tap = sh_tap(dev);
	uint64_t from = (uint64_t)slot_of(t->position) * SH_TAP_SLOT + sizeof(*t), left;

	left = sizeof(tap->slot) - from;
	seg[0] = (struct sh_seg){(uintptr_t)tap->slot + from, t->have < left ? t->have : left};
	seg[1] = (struct sh_seg){(uintptr_t)tap->slot, t->have - seg[0].len};
	return seg[1].len ? 2 : 1;
}

void sh_tap_put(struct sh_dev *dev, struct sh_tapped *t)
{
	uint64_t n = slots_for(t->have);

	__atomic_store_n(&sh_tap(dev)->owner[slot_of(t->position)],
			 sh_self.word | SH_TAP_READY | n << SH_TAP_COUNT_SHIFT, __ATOMIC_RELEASE);
}

void sh_tap_drop(struct sh_dev *dev, struct sh_tapped *t)
{
	struct sh_tap *tap = sh_tap(dev);
	uint64_t at = t->position;

	for (uint32_t n = slots_for(t->have); n--;)
		__atomic_store_n(&tap->owner[slot_of(at + n)], SH_TAP_UNUSED, __ATOMIC_RELEASE);
}

/* ---- the daemon ---- */

int sh_tap_begin(struct sh_dev *dev, uint32_t snap, uint32_t host, uint32_t qpn)
{
	struct sh_tap *tap = sh_tap(dev);
	int err = sh_promise(dev, tap, sizeof(*tap));

	if (err)
		return err;
	tap->snap = snap < SH_TAP_PAYLOAD ? snap : SH_TAP_PAYLOAD;
	tap->host = host;
	tap->qpn = qpn;
	__atomic_store_n(&tap->lost, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&tap->tail, __atomic_load_n(&tap->head, __ATOMIC_RELAXED),
			 __ATOMIC_RELEASE);
	__atomic_store_n(&tap->capture, tap->capture + 1 ? tap->capture + 1 : 1, __ATOMIC_RELEASE);
	return 0;
}

/* ---- the reader ---- */

void sh_tap_open(struct sh_tap_reader *r, struct sh_tap *tap, const struct sh_exec *exec)
{
	*r = (struct sh_tap_reader){.tap = tap, .exec = exec, .blocked_at = UINT64_MAX};
	r->at = __atomic_load_n(&tap->tail, __ATOMIC_RELAXED);
}

static uint64_t owner(const struct sh_tap_reader *r, uint64_t position)
{
	/* pairs with the release in sh_tap_put() */
	return __atomic_load_n(&r->tap->owner[slot_of(position)], __ATOMIC_ACQUIRE);
}

static void free_slots(struct sh_tap_reader *r, uint64_t position, uint32_t n)
{
	while (n--)
		__atomic_store_n(&r->tap->owner[slot_of(position + n)], 0, __ATOMIC_RELEASE);
}

static void advance(struct sh_tap_reader *r, uint64_t n)
{
	r->at += n;
	__atomic_store_n(&r->tap->tail, r->at, __ATOMIC_RELEASE);
}

static bool dead(const struct sh_tap_reader *r, uint64_t word)
{
	uint64_t slot = (word & SH_OWNER_SLOT) - 1;

	return slot >= SH_MAX_EXEC ||
	       __atomic_load_n(&r->exec[slot].generation, __ATOMIC_SEQ_CST) !=
		       word >> SH_OWNER_GENERATION;
}

/*
 * A slot of a dead sender. It stays as it is if the sender had made the record ready: then the slot
 * goes with the first one of its record.
 */
static bool left_over(const struct sh_tap_reader *r, uint64_t position, uint64_t word)
{
	uint64_t first;

	if (word & SH_TAP_READY || !dead(r, word))
		return false;
	if (!(word & SH_TAP_PART))
		return true;
	/* The sender is dead, so this changes no more. */
	first = owner(r, position - (word >> SH_TAP_COUNT_SHIFT & SH_TAP_COUNT_MASK));
	return !(first & SH_TAP_READY) || (first ^ word) >> SH_OWNER_GENERATION ||
	       (first ^ word) & SH_OWNER_SLOT;
}

/* Copies a record that is ready, wherever the numbers in it lead. Its slots are free afterwards. */
static bool copy_out(struct sh_tap_reader *r, uint64_t position, uint64_t word, struct sh_tapped *t,
		     unsigned char *payload)
{
	uint32_t n = word >> SH_TAP_COUNT_SHIFT & SH_TAP_COUNT_MASK;
	const unsigned char *from = r->tap->slot[slot_of(position)];
	uint64_t left = sizeof(r->tap->slot) - (uint64_t)slot_of(position) * SH_TAP_SLOT;
	bool right, ours;

	memcpy(t, from, sizeof(*t));
	/* The slots of the largest record have room for some bytes more. */
	right = t->have <= SH_TAP_PAYLOAD && n == slots_for(t->have);
	ours = right && t->capture == __atomic_load_n(&r->tap->capture, __ATOMIC_RELAXED);
	r->damaged += !right;
	if (ours) {
		uint32_t first = t->have;

		left -= sizeof(*t);
		if (first > left)
			first = (uint32_t)left;
		memcpy(payload, from + sizeof(*t), first);
		memcpy(payload + first, r->tap->slot, t->have - first);
	}
	free_slots(r, position, n && n <= SH_TAP_LARGEST ? n : 1);
	return ours;
}

/* Is the reader to go on without this position, which is not ready? */
static bool pass(struct sh_tap_reader *r, uint64_t now, uint64_t patience)
{
	if (r->at < r->waited)
		return true;
	if (r->blocked_at != r->at) {
		r->blocked_at = r->at;
		r->blocked_since = now;
		return false;
	}
	if (now - r->blocked_since < patience)
		return false;
	r->waited = __atomic_load_n(&r->tap->head, __ATOMIC_RELAXED);
	/* Any program of the instance can write there: not round and round. */
	if (r->waited - r->at > SH_TAP_SLOTS)
		r->waited = r->at + SH_TAP_SLOTS;
	return true;
}

bool sh_tap_next(struct sh_tap_reader *r, uint64_t now, uint64_t patience, struct sh_tapped *t,
		 unsigned char payload[SH_TAP_PAYLOAD])
{
	while (r->at != __atomic_load_n(&r->tap->head, __ATOMIC_ACQUIRE)) {
		uint64_t word = owner(r, r->at), at = r->at;

		if (word & SH_TAP_READY) {
			uint32_t n = word >> SH_TAP_COUNT_SHIFT & SH_TAP_COUNT_MASK;
			bool ours = copy_out(r, at, word, t, payload);

			advance(r, n && n <= SH_TAP_LARGEST ? n : 1);
			if (ours)
				return true;
			continue;
		}
		if (word & SH_TAP_UNUSED || (word && left_over(r, at, word)))
			free_slots(r, at, 1);
		else if (!pass(r, now, patience))
			return false;
		advance(r, 1);
	}
	return false;
}

/* Is this position one that sh_tap_next() has yet to come to? */
static bool ahead(const struct sh_tap_reader *r, uint64_t position)
{
	return position - r->at < SH_TAP_SLOTS;
}

bool sh_tap_late(struct sh_tap_reader *r, struct sh_tapped *t,
		 unsigned char payload[SH_TAP_PAYLOAD])
{
	while (r->scan < SH_TAP_SLOTS) {
		uint32_t slot = r->scan++;
		uint64_t word = owner(r, slot), at;

		if (!word || word & SH_TAP_UNUSED)
			continue;
		/* Slots are so many that the position of a part follows from its number alone. */
		if (!(word & SH_TAP_READY)) {
			if (left_over(r, slot + SH_TAP_SLOTS, word))
				free_slots(r, slot, 1);
			continue;
		}
		at = ((const struct sh_tapped *)r->tap->slot[slot])->position;
		if (ahead(r, at))
			continue;
		if (copy_out(r, slot, word, t, payload))
			return true;
	}
	r->scan = 0;
	return false;
}
