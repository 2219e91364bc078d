// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Copies bytes in an order that a reader which polls the last byte can rely on. No locks.
 */
#include <string.h>

#include "copy.h"

typedef unsigned char vector __attribute__((vector_size(16), aligned(1), may_alias));

/*
 * The end of a copy on processors that make stores visible in any order. Stores everything but the
 * last word; then comes the barrier; then the last word. If that word cannot be stored at once, the
 * last byte takes its place.
 */
static __attribute__((unused)) void copy_end(unsigned char *to, const unsigned char *from,
					     uint64_t len)
{
	uint64_t word;

	if (len % sizeof(word) == 0 && (uintptr_t)to % sizeof(word) == 0) {
		memcpy(to, from, len - sizeof(word));
		memcpy(&word, from + len - sizeof(word), sizeof(word));
		sh_order_stores();
		__atomic_store_n((uint64_t *)(to + len - sizeof(word)), word, __ATOMIC_RELAXED);
		return;
	}
	memcpy(to, from, len - 1);
	sh_order_stores();
	__atomic_store_n(to + len - 1, from[len - 1], __ATOMIC_RELAXED);
}

#define LINE (4 * sizeof(vector))
/* A long copy goes in steps of so many bytes. */
#define STEP UINT64_C(2048)

/* Copies len bytes, a multiple of LINE. */
SH_INLINE void copy_lines(unsigned char *to, const unsigned char *from, uint64_t len)
{
	for (const unsigned char *end = from + len; from != end; from += LINE, to += LINE) {
		const vector *f = (const vector *)from;
		vector a = f[0], b = f[1], c = f[2], d = f[3], *t = (vector *)to;

		/*
		 * These keep the compiler from storing in another order, and from making this a
		 * call of memcpy().
		 */
		t[0] = a;
		__asm__ volatile("" ::: "memory");
		t[1] = b;
		__asm__ volatile("" ::: "memory");
		t[2] = c;
		__asm__ volatile("" ::: "memory");
		t[3] = d;
		__asm__ volatile("" ::: "memory");
	}
}

/*
 * A loop of vectors instead of memcpy(). For this size memcpy() uses string instructions, which are
 * ten times slower if the low bits of the addresses nearly agree, as those of ordinary buffers do.
 * A thread that was switched out during a long copy is armed again after each step (life.h).
 */
void sh_copy_forward(void *dst, const void *src, uint64_t len)
{
	const unsigned char *from = src;
	unsigned char *to = dst;

	if ((uintptr_t)to - (uintptr_t)from < len) { /* the destination begins inside the source */
		memmove(to, from, len);
		return;
	}
	for (; len >= 2 * STEP; len -= STEP) {
		copy_lines(to, from, STEP);
		to += STEP;
		from += STEP;
		if (sh_self.armed)
			sh_rearm();
	}
	if (len >= LINE + SH_WEAKLY_ORDERED) {
		uint64_t lines = (len - SH_WEAKLY_ORDERED) / LINE * LINE;

		copy_lines(to, from, lines);
		to += lines;
		from += lines;
		len -= lines;
	}
	if (SH_WEAKLY_ORDERED) {
		if (len)
			copy_end(to, from, len);
		return;
	}
	for (; len >= sizeof(uint64_t); len -= sizeof(uint64_t)) {
		uint64_t word;

		__builtin_memcpy(&word, from, sizeof(word));
		__builtin_memcpy(to, &word, sizeof(word));
		to += sizeof(word);
		from += sizeof(word);
		__asm__ volatile("" ::: "memory");
	}
	for (; len; len--) {
		*to++ = *from++;
		__asm__ volatile("" ::: "memory");
	}
}

enum sh_copy sh_commit_far(struct sh_dev *dev, const struct sh_last *last, uint64_t *commit,
			   uint64_t word)
{
	const struct sh_seg val = {(uintptr_t)&last->val, sizeof(last->val)};
	const struct sh_seg *from = last->nfrom ? last->from : &val;
	const unsigned int n = last->nfrom ? last->nfrom : 1;
	enum sh_copy err = SH_COPY_APART;
	struct sh_door *door;

	if (sh_self.armed && dev->ops->seal)
		err = dev->ops->seal(dev->host, last->ctx, &last->to, last->from_ctx, from, n,
				     last->len, commit, word);
	if (err == SH_COPY_APART) {
		door = sh_pin();
		err = dev->ops->copy(dev->host, last->ctx, &last->to, 1, last->from_ctx, from, n,
				     last->len);
		if (!err)
			__atomic_store_n(commit, word, __ATOMIC_RELEASE);
		sh_unpin(door);
	}
	sh_rearm();
	return err;
}
