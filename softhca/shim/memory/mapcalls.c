// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls that change mappings. Before a call changes pages that are device memory, the shim has the
 * daemon revoke them; afterwards it gives the daemon those that are gone. A call on other memory
 * costs two comparisons more than without softhca. The C library's own calls do not come here: what
 * it unmaps stays device memory, which no process maps there, until its region ends.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "softhca/host/aside.h"
#include "softhca/host/far.h"
#include "softhca/host/moves.h"
#include "softhca/host/process.h"
#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/files/context.h"
#include "softhca/shim/interpose.h"
#include "softhca/shim/signals/handlers.h"
#include "fork.h"
#include "mapcalls.h"
#include "maps.h"
#include "marks.h"
#include "memory.h"
#include "own.h"
#include "share.h"
#include "softhca/shim/doorbells/trap.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef PIDFD_SELF_THREAD /* of Linux 6.15 */
#define PIDFD_SELF_THREAD	-10000
#define PIDFD_SELF_THREAD_GROUP -20000
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

EXPORT int munmap(void *addr, size_t len);
EXPORT int mprotect(void *addr, size_t len, int prot);
EXPORT int pkey_mprotect(void *addr, size_t len, int prot, int pkey);
EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off);
EXPORT void *mremap(void *old, size_t old_len, size_t len, int flags, ...);

bool mapcall_begin(void *addr, size_t len)
{
	uint64_t at = (uintptr_t)addr;

	/*
	 * In a signal handler that interrupted a call with the connection the change goes unseen,
	 * as the C library's own do.
	 */
	if (likely(!shim_may_share(at, len)) || !len || shim_control_mine())
		return false;
	shim_control_reach();
	if (shim_shares(at, mapcall_whole(len)))
		return true;
	shim_control_put();
	return false;
}

static int unmap(void *addr, size_t len)
{
	int ret;

	if (!mapcall_begin(addr, len)) {
		if (likely(!shim_may_queue((uintptr_t)addr, len)))
			return REAL(munmap)(addr, len);
		/* A handler that jumped away would keep every later fork waiting. */
		shim_handlers_wait();
		shim_fork_hold_off();
		ret = REAL(munmap)(addr, len);
		shim_fork_let();
		shim_handlers_go_on();
		return ret;
	}
	shim_changed(SH_CHANGED_REVOKE, (uintptr_t)addr, len);
	ret = REAL(munmap)(addr, len);
	if (!ret)
		mapcall_gone(addr, len);
	shim_control_put();
	return ret;
}

EXPORT int munmap(void *addr, size_t len)
{
	int before = errno, ret;
	bool had_marks;

	shim_trap_unmapped((uintptr_t)addr, (uintptr_t)addr + len);
	own_unmapped((uintptr_t)addr, mapcall_whole(len));
	/* Before the call: another thread may get the place at once. */
	had_marks = (uintptr_t)addr % SHIM_PAGE == 0 && marks_unmapped((uintptr_t)addr, len);
	ret = unmap(addr, len);
	if (ret && had_marks)
		marks_unsure();
	return shim_kept(ret, before);
}

EXPORT int mprotect(void *addr, size_t len, int prot)
{
	int before = errno;

	/*
	 * The device keeps to what the process may do, as with memory that it reaches by address.
	 */
	if (!(prot & PROT_READ && prot & PROT_WRITE) && mapcall_begin(addr, len)) {
		shim_changed(SH_CHANGED_REVOKE, (uintptr_t)addr, len);
		shim_control_put();
	}
	return shim_kept(REAL(mprotect)(addr, len, prot), before);
}

/* The key would be lost when the pages are exchanged again. */
EXPORT int pkey_mprotect(void *addr, size_t len, int prot, int pkey)
{
	int before = errno;

	if (pkey > 0)
		marks_note();
	if (mapcall_begin(addr, len)) {
		if (shim_privatize((uintptr_t)addr, len))
			shim_changed(SH_CHANGED_REVOKE, (uintptr_t)addr, len);
		shim_control_put();
	}
	return shim_kept(REAL(pkey_mprotect)(addr, len, prot, pkey), before);
}

/*
 * The table tells a trapped store by its address alone: the handler may have no descriptor left to
 * ask with.
 */
static void *noted(void *ret, size_t len, int flags, int fd, off_t off)
{
	const struct shim_ctx *ctx;

	if (ret != MAP_FAILED && fd >= 0 && flags & MAP_SHARED && shim_dev.inst &&
	    (ctx = shim_ctx_open_on(fd)))
		shim_trap_mapped(ctx, (uintptr_t)ret, len, (uint64_t)off);
	return ret;
}

/* Memory, and not for a stack. */
static bool plain(int flags)
{
	return (flags & (MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_GROWSDOWN | MAP_HUGETLB)) ==
	       (MAP_PRIVATE | MAP_ANONYMOUS);
}

EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	int before = errno;
	void *ret;

	/* Device memory does not grow. */
	if (flags & MAP_GROWSDOWN)
		marks_note();
	if (flags & MAP_FIXED) {
		shim_trap_unmapped((uintptr_t)addr, (uintptr_t)addr + len);
		own_unmapped((uintptr_t)addr, mapcall_whole(len));
	}
	if (!(flags & MAP_FIXED) || !mapcall_begin(addr, len)) {
		ret = noted(REAL(mmap)(addr, len, prot, flags, fd, off), len, flags, fd, off);
		if (ret != MAP_FAILED && plain(flags))
			own_mapped((uintptr_t)ret, mapcall_whole(len));
		if (ret != MAP_FAILED)
			marks_mapped((uintptr_t)ret, len, flags & MAP_NORESERVE);
		return mapcall_kept(ret, before);
	}
	shim_changed(SH_CHANGED_REVOKE, (uintptr_t)addr, len);
	ret = noted(REAL(mmap)(addr, len, prot, flags, fd, off), len, flags, fd, off);
	if (ret != MAP_FAILED) {
		mapcall_gone(addr, len);
		marks_mapped((uintptr_t)ret, len, flags & MAP_NORESERVE);
	}
	shim_control_put();
	return mapcall_kept(ret, before);
}

EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
{
	return mmap(addr, len, prot, flags, fd, off);
}

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
		/* It is device memory still, which beside threads only the application's own can be. */
		if (was_own && (ret == old || ret == MAP_FAILED))
			own_mapped((uintptr_t)old, mapcall_whole(ret == old ? len : old_len));
		return ret;
	}
	if (!err && flags & MREMAP_FIXED && mapcall_begin(where, len)) {
		shim_changed(SH_CHANGED_REVOKE, (uintptr_t)where, len);
		ret = REAL(mremap)(old, old_len, len, flags, where);
		if (ret != MAP_FAILED) {
			mapcall_gone(where, len);
			moved(old, old_len, ret, len, flags);
		}
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

/* These functions themselves, wherever the program's symbols of these names lead. */
extern __typeof__(munmap) this_munmap
	__attribute__((alias("munmap"), visibility("hidden"), nothrow, leaf));
extern __typeof__(mmap) this_mmap
	__attribute__((alias("mmap"), visibility("hidden"), nothrow, leaf));
extern __typeof__(mremap) this_mremap
	__attribute__((alias("mremap"), visibility("hidden"), nothrow, leaf));

const void *own_source(int i)
{
	const void *const source[OWN_SOURCES] = {(void *)this_munmap, (void *)this_mmap,
						 (void *)this_mremap};

	return source[i];
}

int mapcall_renew(void *addr, size_t len)
{
	uint64_t at = (uintptr_t)addr, end = at + mapcall_whole(len);
	int err = shim_changed(SH_CHANGED_REVOKE, at, len);
	struct mapping m;
	struct maps maps;

	if (!err || err == -EBUSY)
		err = maps_open(&maps);
	if (err)
		return err;
	while (!err && maps_next(&maps, &m) && m.start < end) {
		uint64_t from = m.start > at ? m.start : at, to = m.end < end ? m.end : end;

		if (m.end <= at || !shim_region_mapped(&m))
			continue;
		err = shim_fresh_pages(from, to - from, mapping_prot(&m));
		if (!err)
			mapcall_gone((void *)(uintptr_t)from, to - from);
	}
	maps_close(&maps);
	if (!err)
		mapcall_gone(addr, len);
	return err;
}

/*
 * Does this kernel know guards, in memory of that kind? It does in private memory since Linux 6.13,
 * and in shared memory since 6.15.
 */
static bool knows_guards(int kind)
{
	bool knows = false;
	int err;
	void *page =
		sh_mmap(NULL, SHIM_PAGE, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0, &err);

	if (page) {
		knows = !sh_madvise((uintptr_t)page, SHIM_PAGE, MADV_GUARD_INSTALL);
		sh_munmap(page, SHIM_PAGE);
	}
	return knows;
}

/*
 * Guards take contents away, so they are for private pages that are not exchanged back. Nothing is
 * taken away if the kernel refuses the guards.
 */
static int before_guards(void *addr, size_t len)
{
	if (knows_guards(MAP_SHARED)) {
		if (REAL(madvise)(addr, len, MADV_GUARD_INSTALL))
			return 0;
	} else if (!knows_guards(MAP_PRIVATE)) {
		return 0;
	}
	return mapcall_renew(addr, len);
}

/*
 * To the caller this is private memory, which the kernel refuses. In device memory it would map
 * other pages of that, such as the device's own.
 */
EXPORT int remap_file_pages(void *addr, size_t len, int prot, size_t pgoff, int flags)
{
	if (mapcall_begin(addr, len)) {
		shim_control_put();
		RETURN_ERRNO(-EINVAL);
	}
	return REAL(remap_file_pages)(addr, len, prot, pgoff, flags);
}

/* Is that advice one that joins or divides mappings of a region, with no other effect on it? */
static bool is_order(int advice)
{
	return advice == MADV_NORMAL || advice == MADV_RANDOM || advice == MADV_SEQUENTIAL;
}

/* The kernel has been given that advice, and has answered with that errno, or 0. */
static void advised(void *addr, size_t len, int advice, int err)
{
	if (!err)
		marks_advised((uintptr_t)addr, len, advice);
	else if (err == ENOMEM || err == EAGAIN)
		marks_maybe_advised((uintptr_t)addr, len, advice);
	if (is_order(advice) && mapcall_begin(addr, len)) {
		shim_share_split((uintptr_t)addr, mapcall_whole(len));
		shim_control_put();
	}
}

bool mapcall_refused(void *addr, size_t len)
{
	return REAL(madvise)(addr, len, MADV_DONTNEED) && errno == EINVAL;
}

/*
 * What a child gets is listed before a fork, and the kernel told, by advice of this kind too. So it does
 * not change until the child is made.
 */
static int advise_of_forks(void *addr, size_t len, int advice)
{
	int err, saved;

	/* A handler that jumped away would keep every later fork waiting. */
	shim_handlers_wait();
	shim_fork_hold_off();
	err = REAL(madvise)(addr, len, advice);
	saved = errno;
	advised(addr, len, advice, err ? saved : 0);
	shim_fork_let();
	shim_handlers_go_on();
	errno = saved;
	return err;
}

EXPORT int madvise(void *addr, size_t len, int advice)
{
	int err = 0, before = errno, saved;

	switch (advice) {
	case MADV_DONTFORK:
	case MADV_DOFORK:
		if (shim_active() && shim_dev.inst)
			return shim_kept(advise_of_forks(addr, len, advice), before);
		break;
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_FREE:
		if ((uintptr_t)addr % SHIM_PAGE == 0 && mapcall_begin(addr, len)) {
			err = advice != MADV_DONTNEED_LOCKED && mapcall_refused(addr, len)
				      ? -EINVAL
				      : mapcall_renew(addr, len);
			shim_control_put();
		}
		break;
	case MADV_GUARD_INSTALL:
		if ((uintptr_t)addr % SHIM_PAGE == 0 && mapcall_begin(addr, len)) {
			err = before_guards(addr, len);
			shim_control_put();
		}
		break;
	case MADV_WIPEONFORK:
		if (mapcall_begin(addr, len)) {
			err = shim_privatize((uintptr_t)addr, len);
			shim_control_put();
		}
		break;
	case MADV_DONTDUMP:
	case MADV_HUGEPAGE:
	case MADV_NOHUGEPAGE:
	case MADV_MERGEABLE:
		/* Beside threads the pages stay shared, and have the attribute then as well. */
		if (mapcall_begin(addr, len)) {
			(void)shim_privatize((uintptr_t)addr, len);
			shim_control_put();
		}
		break;
	case MADV_REMOVE: /* to the caller this is private memory, which the call refuses */
		if (mapcall_begin(addr, len)) {
			err = -EINVAL;
			shim_control_put();
		}
		break;
	}
	if (err)
		RETURN_ERRNO(err == -EINVAL ? err : -ENOMEM);
	err = REAL(madvise)(addr, len, advice);
	saved = errno;
	advised(addr, len, advice, err ? saved : 0);
	errno = saved;
	return shim_kept(err, before);
}

/* POSIX_MADV_DONTNEED leaves contents alone: the C library makes no call of it. */
EXPORT int posix_madvise(void *addr, size_t len, int advice)
{
	int saved = errno, err = REAL(posix_madvise)(addr, len, advice);

	if (is_order(advice))
		advised(addr, len, advice, err);
	errno = saved;
	return err;
}

_Static_assert(POSIX_MADV_NORMAL == MADV_NORMAL && POSIX_MADV_RANDOM == MADV_RANDOM &&
		       POSIX_MADV_SEQUENTIAL == MADV_SEQUENTIAL,
	       "for is_order() and the marks");

/* Is that a descriptor of this process, or one of the constants that mean this process? */
static bool is_this_process(int pidfd)
{
	char path[64], text[512];
	const char *pid;
	long got;
	int fd;

	if (pidfd < 0)
		return pidfd == PIDFD_SELF_THREAD || pidfd == PIDFD_SELF_THREAD_GROUP;
	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", pidfd);
	fd = sh_open_aside(path, O_RDONLY);
	if (fd < 0)
		return false;
	got = sh_read(fd, text, sizeof(text) - 1);
	sh_close(fd);
	text[got > 0 ? got : 0] = '\0';
	pid = strstr(text, "Pid:");
	return pid && atoi(pid + strlen("Pid:")) == getpid();
}

/* The kernel reads the whole array first. */
static bool readable(const struct iovec *iov, size_t n)
{
	struct iovec part[16];

	for (size_t i = 0, some; i < n; i += some) {
		some = n - i < 16 ? n - i : 16;
		if (sh_peek(part, (uintptr_t)&iov[i], some * sizeof(part[0])))
			return false;
	}
	return true;
}

/* Of glibc 2.36. */
ssize_t process_madvise(int pidfd, const struct iovec *iov, size_t n, int advice,
			unsigned int flags);
EXPORT ssize_t process_madvise(int pidfd, const struct iovec *iov, size_t n, int advice,
			       unsigned int flags)
{
	int before = errno;
	ssize_t done = 0;

	if (!REAL(process_madvise))
		RETURN_ERRNO(-ENOSYS);
	/* What the kernel refuses with nothing to do it refuses altogether. */
	if (!shim_shares_any() || !n || n > IOV_MAX || !is_this_process(pidfd) ||
	    REAL(process_madvise)(pidfd, iov, 0, advice, flags) < 0 || !readable(iov, n))
		return REAL(process_madvise)(pidfd, iov, n, advice, flags);
	for (size_t i = 0; i < n; i++) {
		if (madvise(iov[i].iov_base, iov[i].iov_len, advice)) {
			if (!done)
				return -1;
			break;
		}
		done += (ssize_t)iov[i].iov_len;
	}
	errno = before;
	return done;
}
