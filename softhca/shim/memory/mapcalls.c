// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls that change mappings; mremap() is in remap.c, and madvise() in advice.c. Before a call
 * changes pages that are device memory, the shim has the daemon revoke them; afterwards it gives
 * the daemon those that are gone. A call on other memory costs two comparisons more than without
 * softhca. The C library's own calls do not come here: what it unmaps stays device memory, which no
 * process maps there, until its region ends.
 */
#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/doorbells/trap.h"
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

EXPORT int munmap(void *addr, size_t len);
EXPORT int mprotect(void *addr, size_t len, int prot);
EXPORT int pkey_mprotect(void *addr, size_t len, int prot, int pkey);
EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off);

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

bool mapcall_refused(void *addr, size_t len)
{
	return REAL(madvise)(addr, len, MADV_DONTNEED) && errno == EINVAL;
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

/* These functions themselves, wherever the program's symbols of these names lead. */
extern __typeof__(munmap) this_munmap
	__attribute__((alias("munmap"), visibility("hidden"), nothrow, leaf));
extern __typeof__(mmap) this_mmap
	__attribute__((alias("mmap"), visibility("hidden"), nothrow, leaf));

const void *own_source(int i)
{
	const void *const source[OWN_SOURCES] = {(void *)this_munmap, (void *)this_mmap,
						 (void *)this_mremap};

	return source[i];
}
