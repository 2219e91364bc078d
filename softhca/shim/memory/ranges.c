// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See ranges.h. The table is in pages of its own, so that it works inside malloc() and with every
 * signal blocked.
 */
#include <string.h>

#include "ranges.h"
#include "softhca/host/sys.h"

size_t ranges_find(const struct ranges *t, uint64_t addr)
{
	size_t lo = 0, hi = t->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->at[mid].uaddr + t->at[mid].len <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool ranges_overlap(const struct ranges *t, uint64_t addr, uint64_t len)
{
	size_t i = ranges_find(t, addr);

	return i < t->count && t->at[i].uaddr < addr + len;
}

bool ranges_hold(const struct ranges *t, struct range r)
{
	size_t i = ranges_find(t, r.uaddr);
	const struct range *in = &t->at[i];

	return i < t->count && in->uaddr <= r.uaddr && r.uaddr + r.len <= in->uaddr + in->len &&
	       in->shm + (r.uaddr - in->uaddr) == r.shm;
}

/* Leaves free places at both ends: the kernel maps downwards, so most new ranges come first. */
bool ranges_room(struct ranges *t)
{
	size_t more = t->room ? 2 * t->room : 4096 / sizeof(*t->at), head = (more - t->count) / 2;
	struct range *old = t->at ? t->at - t->head : NULL, *grown;

	if (t->head && t->head + t->count < t->room)
		return true;
	grown = sh_pages(more * sizeof(*grown));
	if (!grown)
		return false;
	if (old)
		memcpy(grown + head, t->at, t->count * sizeof(*grown));
	/* A child that another thread makes in between has the old array or the new one. */
	__atomic_store_n(&t->at, grown + head, __ATOMIC_SEQ_CST);
	if (old)
		sh_munmap(old, t->room * sizeof(*old));
	t->head = head;
	t->room = more;
	return true;
}

static void widen(struct ranges *t, uint64_t low, uint64_t high)
{
	if (!t->highest || low < t->lowest)
		__atomic_store_n(&t->lowest, low, __ATOMIC_RELEASE);
	if (high > t->highest)
		__atomic_store_n(&t->highest, high, __ATOMIC_RELEASE);
}

void ranges_insert(struct ranges *t, struct range r)
{
	size_t i = ranges_find(t, r.uaddr);

	/* Moves the shorter part, if there is room at that end. */
	if (t->head && (i < t->count / 2 || t->head + t->count == t->room)) {
		t->at--;
		t->head--;
		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): it has a head */
		memmove(t->at, t->at + 1, i * sizeof(*t->at));
	} else {
		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): there is room */
		memmove(&t->at[i + 1], &t->at[i], (t->count - i) * sizeof(*t->at));
	}
	t->at[i] = r;
	t->count++;
	widen(t, r.uaddr, r.uaddr + r.len);
}

static bool continues(const struct range *a, const struct range *b)
{
	return a->uaddr + a->len == b->uaddr && (a->shm ? a->shm + a->len == b->shm : !b->shm);
}

/* Extends a neighbour if it can: to move the other ranges takes longer, the more there are. */
void ranges_join(struct ranges *t, struct range r)
{
	size_t i = ranges_find(t, r.uaddr);
	struct range *next = i < t->count ? &t->at[i] : NULL, *last = i ? &t->at[i - 1] : NULL;

	if (next && !continues(&r, next))
		next = NULL;
	if (last && !continues(last, &r))
		last = NULL;
	if (last) {
		last->len += r.len + (next ? next->len : 0);
		if (next)
			memmove(next, next + 1, (--t->count - i) * sizeof(*next));
	} else if (next) {
		*next = (struct range){r.uaddr, r.len + next->len, r.shm};
	} else {
		ranges_insert(t, r);
	}
	widen(t, r.uaddr, r.uaddr + r.len);
}

bool ranges_remove(struct ranges *t, uint64_t addr, uint64_t len)
{
	uint64_t end = addr + len;
	size_t i = ranges_find(t, addr);

	while (i < t->count && t->at[i].uaddr < end) {
		struct range *r = &t->at[i], tail = *r;
		bool has_tail = r->uaddr + r->len > end;

		if (has_tail && r->uaddr < addr && !ranges_room(t))
			return false;
		r = &t->at[i]; /* the array may have moved */
		tail.uaddr = end;
		tail.len = r->uaddr + r->len - end;
		tail.shm += tail.shm ? end - r->uaddr : 0;
		if (r->uaddr < addr) {
			r->len = addr - r->uaddr;
			i++;
			if (has_tail)
				ranges_insert(t, tail);
		} else if (has_tail) {
			*r = tail;
		} else {
			memmove(r, r + 1, (--t->count - i) * sizeof(*r));
		}
	}
	return true;
}
