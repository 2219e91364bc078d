// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls that change mappings. Before a call changes pages that are device memory, the shim has the
 * daemon revoke them; afterwards it gives the daemon those that are gone. A call on other memory
 * costs two comparisons more than without softhca. The C library's own calls do not come here: what
 * it unmaps stays device memory, which no process maps there, until its region ends.
 */
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "attach.h"
#include "context.h"
#include "dontfork.h"
#include "interpose.h"
#include "maps.h"
#include "marks.h"
#include "memory.h"
#include "own.h"
#include "share.h"
#include "trap.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

EXPORT int munmap(void *addr, size_t len);
EXPORT int mprotect(void *addr, size_t len, int prot);
EXPORT int pkey_mprotect(void *addr, size_t len, int prot, int pkey);
EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off);
EXPORT void *mremap(void *old, size_t old_len, size_t len, int flags, ...);

static size_t whole(size_t len)
{
	return (len + SHIM_PAGE - 1) & ~(SHIM_PAGE - 1);
}

/* True: the range has shared pages, and the control connection is held. */
static bool begin(void *addr, size_t len)
{
	uint64_t at = (uintptr_t)addr;

	/*
	 * In a signal handler that interrupted a call with the connection the change goes unseen,
	 * as the C library's own do.
	 */
	if (likely(!shim_may_share(at, len)) || !len || shim_control_mine() || shim_control_get())
		return false;
	if (shim_shares(at, whole(len)))
		return true;
	shim_control_put();
	return false;
}

static void gone(void *addr, size_t len)
{
	(void)shim_share_forget((uintptr_t)addr, whole(len));
	shim_changed(SH_CHANGED_GONE, (uintptr_t)addr, whole(len));
}

EXPORT int munmap(void *addr, size_t len)
{
	int ret;

	shim_trap_unmapped((uintptr_t)addr, (uintptr_t)addr + len);
	own_unmapped((uintptr_t)addr, whole(len));
	if (!begin(addr, len))
		return REAL(munmap)(addr, len);
	shim_changed(SH_CHANGED_REVOKE, (uintptr_t)addr, len);
	ret = REAL(munmap)(addr, len);
	if (!ret)
		gone(addr, len);
	shim_control_put();
	return ret;
}

EXPORT int mprotect(void *addr, size_t len, int prot)
{
	/*
	 * The device keeps to what the process may do, as with memory that it reaches by address.
	 */
	if (!(prot & PROT_READ && prot & PROT_WRITE) && begin(addr, len)) {
		shim_changed(SH_CHANGED_REVOKE, (uintptr_t)addr, len);
		shim_control_put();
	}
	return REAL(mprotect)(addr, len, prot);
}

/* The key would be lost when the pages are exchanged again. */
EXPORT int pkey_mprotect(void *addr, size_t len, int prot, int pkey)
{
	if (pkey > 0)
		marks_note();
	if (begin(addr, len)) {
		if (shim_privatize((uintptr_t)addr, len))
			shim_changed(SH_CHANGED_REVOKE, (uintptr_t)addr, len);
		shim_control_put();
	}
	return REAL(pkey_mprotect)(addr, len, prot, pkey);
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
	void *ret;

	if (flags & MAP_FIXED) {
		shim_trap_unmapped((uintptr_t)addr, (uintptr_t)addr + len);
		own_unmapped((uintptr_t)addr, whole(len));
	}
	if (!(flags & MAP_FIXED) || !begin(addr, len)) {
		ret = noted(REAL(mmap)(addr, len, prot, flags, fd, off), len, flags, fd, off);
		if (ret != MAP_FAILED && plain(flags))
			own_mapped((uintptr_t)ret, whole(len));
		return ret;
	}
	shim_changed(SH_CHANGED_REVOKE, (uintptr_t)addr, len);
	ret = noted(REAL(mmap)(addr, len, prot, flags, fd, off), len, flags, fd, off);
	if (ret != MAP_FAILED)
		gone(addr, len);
	shim_control_put();
	return ret;
}

EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
{
	return mmap(addr, len, prot, flags, fd, off);
}

/* Moves by copying. munmap() then ends the old pages. */
static void *move(void *old, size_t old_len, size_t len)
{
	void *ret = REAL(mmap)(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (ret == MAP_FAILED)
		return ret;
	if (sh_peek(ret, (uintptr_t)old, old_len < len ? old_len : len)) {
		REAL(munmap)(ret, len);
		errno = EFAULT;
		return MAP_FAILED;
	}
	munmap(old, old_len);
	return ret;
}

/*
 * Device memory that other threads use cannot be made private: does what can be done without that.
 */
static void *remap_shared(void *old, size_t old_len, size_t len, int flags)
{
	if (flags & ~MREMAP_MAYMOVE || (whole(len) > whole(old_len) && !(flags & MREMAP_MAYMOVE))) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (whole(len) > whole(old_len))
		return move(old, old_len, len);
	if (whole(len) < whole(old_len) && munmap((char *)old + whole(len), whole(old_len) - whole(len)))
		return MAP_FAILED;
	return old;
}

EXPORT void *mremap(void *old, size_t old_len, size_t len, int flags, ...)
{
	void *where, *ret;
	va_list ap;
	bool privatized = false;
	int err = 0;

	va_start(ap, flags);
	where = va_arg(ap, void *);
	va_end(ap);
	own_unmapped((uintptr_t)old, whole(old_len));
	if (flags & MREMAP_FIXED)
		own_unmapped((uintptr_t)where, whole(len));
	/* Shared pages would grow into those of others, and move without the daemon's knowledge. */
	if (begin(old, old_len)) {
		err = shim_privatize((uintptr_t)old, old_len);
		shim_control_put();
		privatized = true;
	}
	if (err == -EBUSY && len && (uintptr_t)old % SHIM_PAGE == 0)
		return remap_shared(old, old_len, len, flags);
	if (!err && flags & MREMAP_FIXED && begin(where, len)) {
		shim_changed(SH_CHANGED_REVOKE, (uintptr_t)where, len);
		ret = REAL(mremap)(old, old_len, len, flags, where);
		if (ret != MAP_FAILED)
			gone(where, len);
		shim_control_put();
		return ret;
	}
	if (err) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	ret = REAL(mremap)(old, old_len, len, flags, where);
	/*
	 * The pages that were shared are a mapping of their own now, and one call moves only one
	 * mapping.
	 */
	if (ret == MAP_FAILED && errno == EFAULT && privatized && flags == MREMAP_MAYMOVE)
		ret = move(old, old_len, len);
	return ret;
}

/*
 * Makes the shared pages of the range fresh private ones. Other memory that is mapped there by now
 * stays.
 */
static int renew(void *addr, size_t len)
{
	uint64_t at = (uintptr_t)addr, end = at + whole(len);
	int err = shim_changed(SH_CHANGED_REVOKE, at, len);
	struct mapping m;
	struct maps maps;

	if (!err)
		err = maps_open(&maps);
	if (err)
		return err;
	while (!err && maps_next(&maps, &m) && m.start < end) {
		uint64_t from = m.start > at ? m.start : at, to = m.end < end ? m.end : end;

		if (m.end <= at || !shim_region_mapped(&m))
			continue;
		err = shim_fresh_pages(from, to - from, mapping_prot(&m));
		if (!err)
			gone((void *)(uintptr_t)from, to - from);
	}
	maps_close(&maps);
	if (!err)
		gone(addr, len);
	return err;
}

EXPORT int madvise(void *addr, size_t len, int advice)
{
	int err = 0;

	if (marks_is(advice))
		marks_note();
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_FREE:
		if ((uintptr_t)addr % SHIM_PAGE == 0 && begin(addr, len)) {
			err = renew(addr, len);
			shim_control_put();
		}
		break;
	case MADV_WIPEONFORK:
		if (begin(addr, len)) {
			err = shim_privatize((uintptr_t)addr, len);
			shim_control_put();
		}
		break;
	case MADV_DONTDUMP:
	case MADV_HUGEPAGE:
	case MADV_NOHUGEPAGE:
	case MADV_MERGEABLE:
		/* Beside threads the pages stay shared, and have the attribute as long as they are. */
		if (begin(addr, len)) {
			(void)shim_privatize((uintptr_t)addr, len);
			shim_control_put();
		}
		break;
	case MADV_REMOVE:	/* to the caller this is private memory, which the call refuses */
		if (begin(addr, len)) {
			err = -EINVAL;
			shim_control_put();
		}
		break;
	}
	if (err)
		RETURN_ERRNO(err == -EINVAL ? err : -ENOMEM);
	err = REAL(madvise)(addr, len, advice);
	if (!err)
		shim_dontfork_note((uintptr_t)addr, len, advice);
	return err;
}
