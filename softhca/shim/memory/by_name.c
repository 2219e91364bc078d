// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The functions that change mappings, as programs call them. mapcalls.c says what becomes of the
 * calls. Libraries that watch mappings themselves, such as UCX and Open MPI, overwrite the first
 * instructions of these functions. This file finds out whether the calls still come here then: by
 * syscall(), as a rule (by_number.c).
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include "by_number.h"
#include "memory.h"
#include "own.h"

/* Each has room for the jump with which it may be overwritten. */
#define ROOM __attribute__((aligned(32)))

ROOM EXPORT int munmap(void *addr, size_t len);
ROOM EXPORT int mprotect(void *addr, size_t len, int prot);
ROOM EXPORT int pkey_mprotect(void *addr, size_t len, int prot, int pkey);
ROOM EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
ROOM EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off);
ROOM EXPORT void *mremap(void *old, size_t old_len, size_t len, int flags, ...);
ROOM EXPORT int madvise(void *addr, size_t len, int advice);
/* Of glibc 2.36. */
ssize_t process_madvise(int pidfd, const struct iovec *iov, size_t n, int advice,
			unsigned int flags);

EXPORT int munmap(void *addr, size_t len)
{
	return shim_munmap(BY_NAME, addr, len);
}

EXPORT int mprotect(void *addr, size_t len, int prot)
{
	return shim_mprotect(BY_NAME, addr, len, prot);
}

EXPORT int pkey_mprotect(void *addr, size_t len, int prot, int pkey)
{
	return shim_pkey_mprotect(BY_NAME, addr, len, prot, pkey);
}

EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	return shim_mmap(BY_NAME, addr, len, prot, flags, fd, off);
}

EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
{
	return shim_mmap(BY_NAME, addr, len, prot, flags, fd, off);
}

EXPORT void *mremap(void *old, size_t old_len, size_t len, int flags, ...)
{
	void *where;
	va_list ap;

	va_start(ap, flags);
	where = va_arg(ap, void *);
	va_end(ap);
	return shim_mremap(BY_NAME, old, old_len, len, flags, where);
}

EXPORT int remap_file_pages(void *addr, size_t len, int prot, size_t pgoff, int flags)
{
	return shim_remap_file_pages(BY_NAME, addr, len, prot, pgoff, flags);
}

EXPORT int madvise(void *addr, size_t len, int advice)
{
	return shim_madvise(BY_NAME, addr, len, advice);
}

EXPORT ssize_t process_madvise(int pidfd, const struct iovec *iov, size_t n, int advice,
			       unsigned int flags)
{
	if (!REAL(process_madvise))
		RETURN_ERRNO(-ENOSYS);
	return shim_process_madvise(BY_NAME, pidfd, iov, n, advice, flags);
}

/* These functions themselves, wherever the program's symbols of these names lead. */
extern __typeof__(munmap) this_munmap
	__attribute__((alias("munmap"), visibility("hidden"), nothrow, leaf));
extern __typeof__(mmap) this_mmap
	__attribute__((alias("mmap"), visibility("hidden"), nothrow, leaf));
extern __typeof__(mremap) this_mremap
	__attribute__((alias("mremap"), visibility("hidden"), nothrow, leaf));

void *own_source(int i)
{
	void *const source[OWN_SOURCES] = {
		[OWN_MUNMAP] = (void *)this_munmap,
		[OWN_MMAP] = (void *)this_mmap,
		[OWN_MREMAP] = (void *)this_mremap,
	};

	return source[i];
}

/* Those of the C library. */
void *own_libc_source(int i)
{
	void *const source[OWN_SOURCES] = {
		[OWN_MUNMAP] = (void *)REAL(munmap),
		[OWN_MMAP] = (void *)REAL(mmap),
		[OWN_MREMAP] = (void *)REAL(mremap),
	};

	return source[i];
}

/* Larger than what the C library's heap takes from anything but a mapping of its own. */
#define LARGE (64UL << 20)

/* A heap that has taken the place of the C library's maps its memory as the application does. */
static bool heap_comes_here(void)
{
	void *chunk = malloc(LARGE);
	bool comes;

	__asm__ volatile("" : "+r"(chunk)); /* it stays a call */
	comes = !chunk || own_has((uintptr_t)chunk & ~(uintptr_t)(SHIM_PAGE - 1), SHIM_PAGE);
	free(chunk);
	return comes;
}

/*
 * Maps, moves and unmaps a page by the functions as they are now, and looks each time whether the table
 * of own.c has heard of it. To the code that has overwritten them, that is a caller like any other.
 * The pointers are volatile because the compiler knows what the functions were.
 */
bool own_hears(void)
{
	void *(*volatile const map)(void *, size_t, int, int, int, off_t) = own_source(OWN_MMAP);
	void *(*volatile const move)(void *, size_t, size_t, int, ...) = own_source(OWN_MREMAP);
	int (*volatile const unmap)(void *, size_t) = own_source(OWN_MUNMAP);
	const int prot = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS;
	bool heard = false;
	void *a, *b, *to;

	a = map(NULL, SHIM_PAGE, prot, kind, -1, 0);
	b = map(NULL, SHIM_PAGE, prot, kind, -1, 0);
	if (a != MAP_FAILED && b != MAP_FAILED && own_has((uintptr_t)a, SHIM_PAGE) &&
	    own_has((uintptr_t)b, SHIM_PAGE)) {
		to = move(a, SHIM_PAGE, 2 * SHIM_PAGE, MREMAP_MAYMOVE);
		heard = to != MAP_FAILED && !own_has((uintptr_t)a, SHIM_PAGE);
		if (to != MAP_FAILED && !unmap(to, 2 * SHIM_PAGE))
			a = MAP_FAILED;
	}
	if (a != MAP_FAILED)
		(void)unmap(a, SHIM_PAGE);
	if (b != MAP_FAILED)
		heard = !unmap(b, SHIM_PAGE) && heard && !own_has((uintptr_t)b, SHIM_PAGE);
	return heard && !heap_comes_here();
}
