// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Copies between the memories of two contexts: with loads and stores where the pages of both sides
 * are device memory, otherwise by process_vm_readv and process_vm_writev. A page that is missing
 * ends the copy in an error, in this process's own memory, too. An address space that has ended is
 * told from a missing page, and the one that follows it in the process is not touched (witness.h).
 * A copy can also store a word of device memory, as the last thing that one call does. Where the
 * kernel does not let this process reach the other one, the daemon makes the copy (ferry.h).
 * Holds no lock and allocates no memory.
 */
#include <errno.h>
#include <string.h>

#include "ferry.h"
#include "moves.h"
#include "process.h"
#include "reach.h"
#include "softhca/device/memory/copy.h"
#include "witness.h"

#define PIECES	32
#define AT_ONCE 4    /* pieces of one call that need not be one; on the stack, which may be small */
#define BOUNCE	2048 /* likewise */
#define PAGE	4096

/* One side of a copy: whose memory it is, and the position in its list of pieces. */
struct side {
	int pid;	  /* 0: plain pointers of this process */
	uint64_t witness; /* 0: this address space */
	uint32_t hca, proc;
	bool gone;
	const struct sh_seg *seg;
	unsigned int nseg;
	uint64_t skip; /* bytes of seg[0] that are done */
};

static inline bool lives(uint32_t ctx)
{
	const struct sh_ctx *c = sh_ctx(sh_process.dev, ctx);

	return c && __atomic_load_n(&c->state, __ATOMIC_ACQUIRE) == SH_CTX_LIVE;
}

static void side_init(struct side *side, uint32_t ctx, const struct sh_seg *seg, unsigned int nseg)
{
	const struct sh_ctx *c;

	*side = (struct side){.seg = seg, .nseg = nseg};
	if (!ctx)
		return;
	c = sh_ctx(sh_process.dev, ctx);
	if (!c || __atomic_load_n(&c->state, __ATOMIC_ACQUIRE) != SH_CTX_LIVE)
		side->gone = true;
	if (side->gone)
		return;
	side->pid = (int)c->pid;
	side->hca = c->hca;
	side->proc = c->proc;
	/*
	 * A slot belongs to one process image: what this process had before exec is the memory of
	 * another.
	 */
	if (side->pid == sh_process.pid && c->proc == sh_process.dev->proc)
		return;
	side->witness = c->witness;
	side->gone = !side->witness;
}

static bool side_is_own(const struct side *side)
{
	return !side->witness;
}

/* The next pieces of at most max bytes. Returns their bytes, and leaves the position. */
static uint64_t side_pieces(const struct side *side, struct iovec *iov, unsigned int *niov,
			    uint64_t max)
{
	uint64_t skip = side->skip, total = 0;
	unsigned int n = 0;

	for (unsigned int i = 0; i < side->nseg && n < AT_ONCE && total < max; i++, skip = 0) {
		uint64_t len = side->seg[i].len - skip;

		if (!len)
			continue;
		if (len > max - total)
			len = max - total;
		iov[n].iov_base = (void *)(uintptr_t)(side->seg[i].addr + skip);
		iov[n].iov_len = len;
		total += len;
		n++;
	}
	*niov = n;
	return total;
}

static void side_advance(struct side *side, uint64_t len)
{
	while (len) {
		uint64_t left = side->seg->len - side->skip;

		if (len < left) {
			side->skip += len;
			return;
		}
		len -= left;
		side->seg++;
		side->nseg--;
		side->skip = 0;
	}
}

/* Shortens the pieces to len bytes. */
static void trim(struct iovec *iov, unsigned int *niov, uint64_t len)
{
	unsigned int n = 0;

	while (len && n < *niov) {
		if (iov[n].iov_len > len)
			iov[n].iov_len = len;
		len -= iov[n].iov_len;
		n++;
	}
	*niov = n;
}

/*
 * The kernel may have switched this thread out, which disarms it (life.h). A thread that is stopped
 * in a system call must be armed there and after it, for the sake of those that wait for it.
 */
static inline void rearm(void)
{
	if (sh_self.armed)
		sh_rearm();
}

/* The arrays have one more element at their beginning, for the witness of another address space. */
static long pull(const struct side *from, struct iovec *local, unsigned int nlocal,
		 struct iovec *remote, unsigned int nremote)
{
	rearm();
	if (side_is_own(from))
		return sh_reach_readv((int)syscall(SYS_gettid), local + 1, nlocal, remote + 1,
				      nremote);
	return sh_witness_readv(from->pid, from->witness, local, nlocal, remote, nremote);
}

/*
 * Has the daemon copy one piece, if that can replace a call that has failed. Returns what the call
 * would return.
 */
SH_OUTLINE long by_ferry(long failed, const struct side *dst, const struct iovec *d,
			 unsigned int nd, const struct side *src, const struct iovec *s,
			 unsigned int ns)
{
	if (failed != -EPERM)
		return failed;
	if (!side_is_own(dst))
		return sh_ferry(dst->proc, dst->witness, true, s, ns, d);
	return side_is_own(src) ? failed : sh_ferry(src->proc, src->witness, false, d, nd, s);
}

/*
 * Tells on which side a copy failed: tries to read one byte of every page of the source's pieces.
 */
static enum sh_copy blame(const struct side *src, const struct iovec *iov, unsigned int niov)
{
	for (unsigned int i = 0; i < niov; i++) {
		uint64_t at = (uintptr_t)iov[i].iov_base, end = at + iov[i].iov_len;

		while (at < end) {
			char byte;
			struct iovec local[] = {{0}, {.iov_base = &byte, .iov_len = 1}};
			struct iovec remote[] = {{0},
						 {.iov_base = (void *)(uintptr_t)at, .iov_len = 1}};
			const struct side here = {0};
			long done = pull(src, local, 1, remote, 1);

			if (done != 1)
				done = by_ferry(done, &here, local + 1, 1, src, remote + 1, 1);
			if (done != 1)
				return done == -ESRCH ? SH_COPY_GONE : SH_COPY_SRC;
			at = (at | (PAGE - 1)) + 1;
		}
	}
	return SH_COPY_DST;
}

/* Copies len bytes, at least one side of which is this process's memory. */
static enum sh_copy copy_direct(struct side *dst, struct side *src, uint64_t len)
{
	struct iovec darray[AT_ONCE + 1], sarray[AT_ONCE + 1], *d = darray + 1, *s = sarray + 1;
	unsigned int nd, ns;

	while (len) {
		uint64_t nbytes = side_pieces(src, s, &ns, len);
		uint64_t dbytes = side_pieces(dst, d, &nd, nbytes);
		long done;

		if (!nbytes)
			return SH_COPY_SRC;
		if (!dbytes)
			return SH_COPY_DST;
		if (dbytes < nbytes)
			trim(s, &ns, dbytes);
		rearm();
		if (side_is_own(dst))
			done = pull(src, darray, nd, sarray, ns);
		else
			done = sh_witness_writev(dst->pid, dst->witness, sarray, ns, darray, nd);
		if (done <= 0) {
			if (done == -EINTR || done == -EAGAIN)
				continue;
			done = by_ferry(done, dst, d, nd, src, s, ns);
			if (done == -ESRCH)
				return SH_COPY_GONE;
			if (done <= 0)
				return blame(src, s, ns);
		}
		side_advance(src, (uint64_t)done);
		side_advance(dst, (uint64_t)done);
		len -= (uint64_t)done;
	}
	return SH_COPY_OK;
}

/* For two sides of which neither is this process's: copies through a buffer. */
static enum sh_copy copy_bounce(struct side *dst, struct side *src, uint64_t len)
{
	char buf[BOUNCE];
	struct sh_seg seg = {.addr = (uintptr_t)buf};
	struct side mid;
	enum sh_copy result;

	while (len) {
		seg.len = len < sizeof(buf) ? len : sizeof(buf);
		mid = (struct side){.seg = &seg, .nseg = 1};
		result = copy_direct(&mid, src, seg.len);
		if (result != SH_COPY_OK)
			return result == SH_COPY_GONE ? result : SH_COPY_SRC;
		mid = (struct side){.seg = &seg, .nseg = 1};
		result = copy_direct(dst, &mid, seg.len);
		if (result != SH_COPY_OK)
			return result == SH_COPY_GONE ? result : SH_COPY_DST;
		len -= seg.len;
	}
	return SH_COPY_OK;
}

static enum sh_copy copy_plain(struct side *dst, struct side *src, uint64_t len)
{
	while (len) {
		struct iovec d, s;
		struct side one;
		unsigned int n;
		uint64_t bytes;

		one = *src;
		one.nseg = one.nseg ? 1 : 0;
		bytes = side_pieces(&one, &s, &n, len);
		if (!n) {
			if (src->nseg < 2)
				return SH_COPY_SRC;
			src->seg++;
			src->nseg--;
			src->skip = 0;
			continue;
		}
		one = *dst;
		one.nseg = one.nseg ? 1 : 0;
		bytes = side_pieces(&one, &d, &n, bytes);
		if (!n) {
			if (dst->nseg < 2)
				return SH_COPY_DST;
			dst->seg++;
			dst->nseg--;
			dst->skip = 0;
			continue;
		}
		sh_copy_forward(d.iov_base, s.iov_base, bytes);
		side_advance(src, bytes);
		side_advance(dst, bytes);
		len -= bytes;
	}
	return SH_COPY_OK;
}

/* ---- memory that is device memory ---- */

static bool any_shared(const struct sh_seg *seg, unsigned int nseg)
{
	for (unsigned int i = 0; i < nseg; i++)
		if (seg[i].addr & SH_SEG_SHARED)
			return true;
	return false;
}

/*
 * The first piece of a side, of at most len bytes, as a side of its own. Its pointers are plain if
 * its pages are shared.
 */
static bool first_piece(const struct side *side, uint64_t len, struct side *one, struct sh_seg *seg)
{
	void *at;

	if (!side->nseg)
		return false;
	*seg = (struct sh_seg){side->seg->addr + side->skip, side->seg->len - side->skip};
	if (seg->len > len)
		seg->len = len;
	*one = *side;
	one->seg = seg;
	one->nseg = 1;
	one->skip = 0;
	if (!(seg->addr & SH_SEG_SHARED))
		return true;
	at = sh_shared_at(sh_process.dev, seg);
	seg->addr = (uintptr_t)at;
	one->pid = 0;
	one->witness = 0;
	return at != NULL;
}

/* What the side has of the memory of its process. */
#define reached(side) ((const struct sh_reached){(uint32_t)(side)->pid, (side)->nseg, (side)->seg})

/* To the others a process that is stopped in the middle of an exchange of pages is silent. */
static enum sh_copy by_pid(struct side *to, struct side *from, uint64_t len)
{
	struct sh_moves *moves = &sh_process.dev->inst->moves;
	struct sh_reach reach;
	enum sh_copy result;
	struct sh_hca *hca;

	if (!to->pid && !from->pid)
		return copy_plain(to, from, len);
	hca = sh_hca(sh_process.dev, to->pid ? to->hca : from->hca);
	if (hca)
		__atomic_fetch_add(&hca->counters.copies_foreign, 1, __ATOMIC_RELAXED);
	/*
	 * The daemon does not wait for a process that is exchanging pages, since that may be
	 * stopped. It reaches queues, whose pages are the provider's own and never among those that
	 * are exchanged; and other memory only between sh_host_reach() and sh_host_reach_end().
	 */
	if (sh_process.dev->proc && !sh_reach_begin(moves, &reach, &reached(to), &reached(from)))
		return SH_COPY_GONE;
	result = side_is_own(to) || side_is_own(from) ? copy_direct(to, from, len)
						      : copy_bounce(to, from, len);
	if (sh_process.dev->proc)
		sh_reach_end(moves, &reach);
	rearm();
	return result;
}

/* Piece by piece: one side may have a piece in device memory where the other has not. */
static enum sh_copy copy_pieces(struct side *dst, struct side *src, uint64_t len)
{
	while (len) {
		struct sh_seg d, s;
		struct side to, from;
		enum sh_copy result;

		while (src->nseg && src->skip == src->seg->len) {
			src->seg++;
			src->nseg--;
			src->skip = 0;
		}
		while (dst->nseg && dst->skip == dst->seg->len) {
			dst->seg++;
			dst->nseg--;
			dst->skip = 0;
		}
		if (!first_piece(src, len, &from, &s))
			return SH_COPY_SRC;
		if (!first_piece(dst, s.len, &to, &d))
			return SH_COPY_DST;
		s.len = d.len;
		result = by_pid(&to, &from, d.len);
		if (result != SH_COPY_OK)
			return result;
		src->skip += d.len;
		dst->skip += d.len;
		len -= d.len;
	}
	return SH_COPY_OK;
}

enum sh_copy sh_host_copy(void *host, uint32_t dst_ctx, const struct sh_seg *dst, unsigned int ndst,
			  uint32_t src_ctx, const struct sh_seg *src, unsigned int nsrc,
			  uint64_t len)
{
	struct side to, from;

	(void)host;
	if (ndst == 1 && nsrc == 1 && lives(dst_ctx) && (!src_ctx || lives(src_ctx)) &&
	    sh_copy_one(sh_process.dev, dst, src_ctx, src, len))
		return SH_COPY_OK;
	side_init(&to, dst_ctx, dst, ndst);
	side_init(&from, src_ctx, src, nsrc);
	if (from.gone || to.gone)
		return SH_COPY_GONE;
	return any_shared(dst, ndst) || any_shared(src, nsrc) ? copy_pieces(&to, &from, len)
							      : by_pid(&to, &from, len);
}

/* ---- the daemon's ---- */

/* What this thread has announced. depth 0: nothing. pid 0: the context has no process any more. */
static __thread struct {
	struct sh_reach reach;
	uint32_t pid;
	unsigned int depth;
} announced;

bool sh_host_reach(void *host, uint32_t ctx)
{
	uint32_t pid = lives(ctx) ? sh_ctx(sh_process.dev, ctx)->pid : 0;

	(void)host;
	if (announced.depth) {
		if (announced.pid != pid)
			return false;
	} else {
		announced.reach = (struct sh_reach){{-1, -1}};
		announced.pid = pid;
		if (pid && !sh_reach_try(&sh_process.dev->inst->moves, &announced.reach, pid))
			return false;
	}
	announced.depth++;
	return true;
}

void sh_host_reach_end(void *host)
{
	(void)host;
	if (!--announced.depth)
		sh_reach_end(&sh_process.dev->inst->moves, &announced.reach);
}

/* ---- a copy that commits ---- */

/*
 * The pieces of a source that this process reads at its own addresses, as one list. Returns how
 * many; 0: there are too many, or it cannot.
 */
static unsigned int own_pieces(uint32_t ctx, const struct sh_seg *seg, unsigned int nseg,
			       uint64_t len, struct iovec *iov, struct side *side)
{
	unsigned int n = 0;

	side_init(side, ctx, seg, nseg);
	if (side->gone || !side_is_own(side))
		return 0;
	for (; len && nseg && n < PIECES; seg++, nseg--) {
		struct sh_seg piece = {seg->addr, seg->len < len ? seg->len : len};

		if (!piece.len)
			continue;
		iov[n].iov_base = piece.addr & SH_SEG_SHARED ? sh_shared_at(sh_process.dev, &piece)
							     : (void *)(uintptr_t)piece.addr;
		if (!iov[n].iov_base)
			return 0;
		iov[n++].iov_len = piece.len;
		len -= piece.len;
	}
	return len ? 0 : n;
}

/*
 * Finds the destination, and the word where its process has it mapped. A shared destination is one
 * of this process. False: it cannot be reached in this way.
 */
static bool find_both(struct side *to, uint64_t at, uint64_t len, const uint64_t *commit,
		      struct iovec *iov)
{
	const struct sh_dev *dev = sh_process.dev;
	const struct sh_seg seg = {at, len};
	uint64_t base = (uintptr_t)dev->inst;
	const struct sh_proc *proc;

	iov[0] = (struct iovec){.iov_base = (void *)(uintptr_t)at, .iov_len = len};
	if (at & SH_SEG_SHARED) {
		iov[0].iov_base = sh_shared_at(dev, &seg);
		to->pid = 0;
		to->witness = 0;
	} else if (!side_is_own(to)) {
		proc = sh_proc(dev, to->proc);
		base = proc ? __atomic_load_n(&proc->base, __ATOMIC_RELAXED) : 0;
	}
	iov[1] = (struct iovec){
		.iov_base = (void *)(uintptr_t)(base + ((uintptr_t)commit - (uintptr_t)dev->inst)),
		.iov_len = sizeof(*commit)};
	return base && iov[0].iov_base;
}

enum sh_copy sh_host_seal(void *host, uint32_t dst_ctx, const struct sh_seg *dst, uint32_t src_ctx,
			  const struct sh_seg *src, unsigned int nsrc, uint64_t len,
			  uint64_t *commit, uint64_t word)
{
	struct iovec from[PIECES + 2], into[3];
	struct sh_reach reach;
	struct side to, own;
	struct sh_hca *hca;
	unsigned int n;
	long done;

	(void)host;
	side_init(&to, dst_ctx, dst, 1);
	if (to.gone)
		return SH_COPY_GONE;
	n = own_pieces(src_ctx, src, nsrc, len, from + 1, &own);
	if (!n || len > dst->len || !find_both(&to, dst->addr, len, commit, into + 1))
		return SH_COPY_APART;
	from[n + 1] = (struct iovec){.iov_base = &word, .iov_len = sizeof(word)};
	hca = sh_hca(sh_process.dev, to.pid ? to.hca : own.hca);
	if (hca)
		__atomic_fetch_add(&hca->counters.copies_foreign, 1, __ATOMIC_RELAXED);
	if (!sh_reach_begin(&sh_process.dev->inst->moves, &reach, &reached(&to), &reached(&own)))
		return SH_COPY_GONE;
	rearm();
	do
		done = side_is_own(&to)
			       ? sh_reach_writev((int)syscall(SYS_gettid), from + 1, n + 1,
						 into + 1, 2)
			       : sh_witness_writev(to.pid, to.witness, from, n + 1, into, 2);
	while (done == -EINTR || done == -EAGAIN);
	sh_reach_end(&sh_process.dev->inst->moves, &reach);
	if (done < 0 || (uint64_t)done < len) {
		if (done == -ESRCH)
			return SH_COPY_GONE;
		/* The daemon does not commit. */
		return done == -EPERM ? SH_COPY_APART : blame(&own, from + 1, n);
	}
	/* The process has unmapped device memory: it cannot tell when the commit comes. */
	if ((uint64_t)done < len + sizeof(word))
		__atomic_store_n(commit, word, __ATOMIC_RELEASE);
	return SH_COPY_OK;
}
