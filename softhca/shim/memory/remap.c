// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * mremap(): device memory becomes private first. Beside threads it cannot, and moves by copying.
 * Pages that once were device memory may stay a mapping of their own, which the kernel does not
 * move together with its neighbours: then each of these moves by itself.
 */
#include <stdarg.h>

#include "softhca/host/moves.h"
#include "softhca/host/process.h"
#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/interpose.h"
#include "mapcalls.h"
#include "maps.h"
#include "marks.h"
#include "memory.h"
#include "own.h"
#include "share.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

EXPORT void *mremap(void *old, size_t old_len, size_t len, int flags, ...);
/* The pages that were copied. They are revoked; the control connection is held. */
static int leave(void *old, size_t old_len, bool stays)
{
	int err;

	if (stays) {
		err = mapcall_refused(old, old_len) ? -EINVAL : mapcall_renew(old, old_len);
		return !err && REAL(madvise)(old, old_len, MADV_DONTNEED) ? -errno : err;
	}
	if (munmap(old, old_len))
		return -errno;
	mapcall_gone(old, old_len);
	return 0;
}

/*
 * Moves by copying, also to a place that the program wants. The old pages end, or are zeroes if the
 * mapping is to stay. If they cannot, they remain, and there is no copy. What is in the place stays
 * if the old pages cannot be copied.
 */
static void *copy_over(void *old, size_t old_len, size_t len, int flags, void *where)
{
	const int prot = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS;
	const size_t less = old_len < len ? old_len : len;
	bool stays = flags & MREMAP_DONTUNMAP;
	uint64_t at, from = (uintptr_t)old;
	void *ret, *copy = NULL;
	int err = 0;

	if (flags & MREMAP_FIXED) {
		copy = sh_mmap(NULL, less, prot, kind, -1, 0, &err);
		if (copy)
			err = maps_copy(copy, from, less);
		if (err)
			goto fail;
		ret = mmap(where, len, prot, kind | MAP_FIXED, -1, 0);
		if (ret != MAP_FAILED)
			mapcall_gone(where, len);
	} else {
		ret = REAL(mmap)(NULL, len, prot, kind, -1, 0);
	}
	if (ret == MAP_FAILED) {
		err = -errno;
		goto fail;
	}
	at = (uintptr_t)ret;
	marks_moved(from, old_len, at, len, true);
	err = marks_fresh(at, at + mapcall_whole(len), prot);
	if (!err)
		err = maps_copy(ret, copy ? (uintptr_t)copy : from, less);
	if (!err)
		err = maps_protect_as(at, mapcall_whole(len), from, mapcall_whole(old_len));
	if (!err)
		err = leave(old, old_len, stays);
	if (err) {
		own_unmapped(at, mapcall_whole(len));
		(void)marks_unmapped(at, len);
		REAL(munmap)(ret, len);
		goto fail;
	}
	marks_give(at, at + mapcall_whole(len), at, MARKS_ALL);
	if (copy)
		sh_munmap(copy, less);
	return ret;
fail:
	if (copy)
		sh_munmap(copy, less);
	errno = -err;
	return MAP_FAILED;
}

#define PATIENCE_NS UINT64_C(2000000000) /* for those that copy there, before a move */

/*
 * No device and no other process reaches that memory until sh_move_end(), by a key or by its
 * addresses: else what it writes while the memory is being copied would be lost, though it was told
 * that all is well. After the move it finds nothing there. Returns a word, or -errno.
 */
static int hold_off(uint64_t at, size_t len)
{
	int word = shim_changed(SH_CHANGED_REVOKE, at, len);
	uint64_t until = sh_now() + PATIENCE_NS;

	if (word)
		return word;
	do
		word = sh_move_begin(&shim_dev.inst->moves, at, at + len);
	while (word == -EBUSY && sh_now() < until);
	return word;
}

static void *move(void *old, size_t old_len, size_t len, int flags, void *where)
{
	void *ret = MAP_FAILED;
	int word, err = ENOMEM;

	/* Other threads' calls on mappings, and this one's handlers, wait as well. */
	shim_control_reach();
	if (flags & MREMAP_FIXED && shim_shares((uintptr_t)where, mapcall_whole(len)))
		shim_changed(SH_CHANGED_REVOKE, (uintptr_t)where, len);
	word = hold_off((uintptr_t)old, mapcall_whole(old_len));
	if (word >= 0) {
		ret = copy_over(old, old_len, len, flags, where);
		err = errno;
		sh_move_end(&shim_dev.inst->moves, word);
	}
	shim_control_put();
	errno = err;
	return ret;
}

/* Maps private pages behind the old ones, which stay where they are. */
static void *grow(void *old, size_t old_len, size_t len)
{
	uint64_t end = (uintptr_t)old + mapcall_whole(old_len),
		 more = mapcall_whole(len) - mapcall_whole(old_len);
	int err;
	void *at = sh_mmap((void *)end, more, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0, &err);

	if (at && (uintptr_t)at != end) /* a kernel that does not know the flag */
		sh_munmap(at, more);
	if ((uintptr_t)at != end) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	err = maps_protect_as(end, more, end - SHIM_PAGE, SHIM_PAGE);
	if (err) {
		sh_munmap(at, more);
		errno = -err;
		return MAP_FAILED;
	}
	marks_moved((uintptr_t)old, old_len, (uintptr_t)old, len, false);
	marks_give(end, end + more, end, MARKS_ALL);
	return old;
}

/* The kernel refuses to move memory over itself. */
static bool overlaps(const void *old, size_t old_len, const void *where, size_t len)
{
	return (uintptr_t)where < (uintptr_t)old + mapcall_whole(old_len) &&
	       (uintptr_t)old < (uintptr_t)where + mapcall_whole(len);
}

/*
 * Device memory that other threads use cannot be made private: does what can be done without that.
 */
static void *remap_shared(void *old, size_t old_len, size_t len, int flags, void *where)
{
	if (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP) ||
	    (flags && !(flags & MREMAP_MAYMOVE)) || (flags & MREMAP_DONTUNMAP && len != old_len) ||
	    (flags & MREMAP_FIXED &&
	     ((uintptr_t)where % SHIM_PAGE || overlaps(old, old_len, where, len)))) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	/* More than an address space has. */
	if (!mapcall_whole(len)) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))
		return move(old, old_len, len, flags, where);
	if (mapcall_whole(len) > mapcall_whole(old_len))
		return flags ? move(old, old_len, len, flags, NULL) : grow(old, old_len, len);
	if (mapcall_whole(len) < mapcall_whole(old_len) &&
	    munmap((char *)old + mapcall_whole(len), mapcall_whole(old_len) - mapcall_whole(len)))
		return MAP_FAILED;
	return old;
}

static void moved(void *old, size_t old_len, void *to, size_t len, int flags)
{
	marks_moved((uintptr_t)old, old_len, (uintptr_t)to, len, flags & MREMAP_DONTUNMAP);
}

#define PIECES 64

/* Mappings in a row that would be one, had this library not exchanged some of their pages. */
struct row {
	uint64_t end[PIECES];
	unsigned int n;
	int prot;
};

/*
 * False: there is a hole, a difference, or a place where the kernel keeps two mappings apart by
 * itself; or there are too many.
 */
static bool find_row(uint64_t start, uint64_t end, struct row *row)
{
	struct mapping m;
	struct maps maps;
	uint64_t at = start;

	row->n = 0;
	row->prot = 0;
	if (maps_open(&maps))
		return false;
	while (at < end && maps_next(&maps, &m)) {
		if (m.end <= at)
			continue;
		if (m.start > at || m.ino || m.stack || m.perms[3] != 'p' || row->n == PIECES ||
		    (row->n && (mapping_prot(&m) != row->prot || !shim_is_seam(at))))
			break;
		row->prot = mapping_prot(&m);
		at = m.end < end ? m.end : end;
		row->end[row->n++] = at;
	}
	maps_close(&maps);
	return at == end;
}

/* Moves each mapping of the row to the same place behind `to`. 0 or -errno: nothing has moved. */
static int move_row(const struct row *row, uint64_t start, uint64_t to)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < row->n && !err; i++) {
		uint64_t from = i ? row->end[i - 1] : start, len = row->end[i] - from;

		if (REAL(mremap)((void *)(uintptr_t)from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
				 (void *)(uintptr_t)(to + (from - start))) == MAP_FAILED)
			err = -errno;
	}
	for (i -= !!err; err && i-- > 0;) {
		uint64_t from = i ? row->end[i - 1] : start, len = row->end[i] - from;

		REAL(mremap)
		((void *)(uintptr_t)(to + (from - start)), len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
		 (void *)(uintptr_t)from);
	}
	return err;
}

/*
 * The kernel has refused to move mappings that would be one without this library. Its own answer is
 * left if they would not.
 */
static void *remap_row(void *old, size_t old_len, size_t len, int flags, void *where)
{
	const uint64_t from = (uintptr_t)old, old_end = from + mapcall_whole(old_len);
	struct row row;
	uint64_t at;
	void *to;
	int err;

	if (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED) || !find_row(from, old_end, &row)) {
		errno = EFAULT;
		return MAP_FAILED;
	}
	if (!(flags & MREMAP_MAYMOVE))
		return grow(old, old_len, len);
	to = REAL(mmap)(flags & MREMAP_FIXED ? where : NULL, len, row.prot,
			MAP_PRIVATE | MAP_ANONYMOUS | (flags & MREMAP_FIXED ? MAP_FIXED : 0), -1,
			0);
	if (to == MAP_FAILED)
		return to;
	at = (uintptr_t)to;
	err = move_row(&row, from, at);
	if (err) {
		REAL(munmap)(to, len);
		errno = -err;
		return MAP_FAILED;
	}
	for (unsigned int i = 0; i < row.n; i++)
		shim_note_seam(at + (row.end[i] - from));
	marks_moved(from, old_len, at, len, false);
	marks_give(at, at + mapcall_whole(len), at, MARKS_ALL);
	return to;
}

static void *remap(void *old, size_t old_len, size_t len, int flags, void *where)
{
	bool privatized = false, was_own;
	int err = 0;
	void *ret;

	/* The kernel makes a second mapping of shared pages, but not of private ones. */
	if (!old_len && mapcall_begin(old, SHIM_PAGE)) {
		shim_control_put();
		errno = EINVAL;
		return MAP_FAILED;
	}
	was_own = shim_may_share((uintptr_t)old, old_len) &&
		  own_has((uintptr_t)old, mapcall_whole(old_len));
	own_unmapped((uintptr_t)old, mapcall_whole(old_len));
	if (flags & MREMAP_FIXED)
		own_unmapped((uintptr_t)where, mapcall_whole(len));
	/* Shared pages would grow into those of others, and move without the daemon's knowledge. */
	if (mapcall_begin(old, old_len)) {
		err = shim_privatize((uintptr_t)old, old_len);
		shim_control_put();
		privatized = true;
	}
	if (err == -EBUSY && len && (uintptr_t)old % SHIM_PAGE == 0) {
		ret = remap_shared(old, old_len, len, flags, where);
		/*
		 * It is device memory still, which beside threads only the application's own can
		 * be.
		 */
		if (was_own && (ret == old || ret == MAP_FAILED))
			own_mapped((uintptr_t)old, mapcall_whole(ret == old ? len : old_len));
		return ret;
	}
	if (!err && flags & MREMAP_FIXED && mapcall_begin(where, len)) {
		shim_changed(SH_CHANGED_REVOKE, (uintptr_t)where, len);
		ret = REAL(mremap)(old, old_len, len, flags, where);
		if (ret != MAP_FAILED)
			moved(old, old_len, ret, len, flags);
		else if (errno == EFAULT)
			ret = remap_row(old, old_len, len, flags, where);
		if (ret != MAP_FAILED)
			mapcall_gone(where, len);
		shim_control_put();
		return ret;
	}
	if (err) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	ret = REAL(mremap)(old, old_len, len, flags, where);
	if (ret != MAP_FAILED)
		moved(old, old_len, ret, len, flags);
	/*
	 * The pages that were shared are a mapping of their own now, and one call moves only one
	 * mapping.
	 */
	if (ret == MAP_FAILED && errno == EFAULT && shim_dev.inst && len)
		ret = remap_row(old, old_len, len, flags, where);
	if (ret == MAP_FAILED && errno == EFAULT && privatized &&
	    (flags & ~MREMAP_DONTUNMAP) == MREMAP_MAYMOVE)
		ret = move(old, old_len, len, flags, NULL);
	return ret;
}

EXPORT void *mremap(void *old, size_t old_len, size_t len, int flags, ...)
{
	int before = errno;
	void *where;
	va_list ap;

	va_start(ap, flags);
	where = va_arg(ap, void *);
	va_end(ap);
	return mapcall_kept(remap(old, old_len, len, flags, where), before);
}

/* This function itself, wherever the program's symbol of this name leads. */
extern __typeof__(mremap) this_mremap
	__attribute__((alias("mremap"), visibility("hidden"), nothrow, leaf));
