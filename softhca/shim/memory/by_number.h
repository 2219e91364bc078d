/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Calls that change mappings, as this library makes them in the end. A program makes such a call by
 * its function, or by its number through syscall(). A call by number ends in the kernel: the C
 * library's function may have been overwritten with code that made this call.
 */
#ifndef SOFTHCA_SHIM_BY_NUMBER_H
#define SOFTHCA_SHIM_BY_NUMBER_H

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "softhca/shim/interpose.h"

#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

enum made { BY_NAME, BY_NUMBER };

int shim_munmap(enum made made, void *addr, size_t len);
int shim_mprotect(enum made made, void *addr, size_t len, int prot);
int shim_pkey_mprotect(enum made made, void *addr, size_t len, int prot, int pkey);
void *shim_mmap(enum made made, void *addr, size_t len, int prot, int flags, int fd, off_t off);
void *shim_mremap(enum made made, void *old, size_t old_len, size_t len, int flags, void *where);
int shim_remap_file_pages(enum made made, void *addr, size_t len, int prot, size_t pgoff,
			  int flags);
int shim_madvise(enum made made, void *addr, size_t len, int advice);
ssize_t shim_process_madvise(enum made made, int pidfd, const struct iovec *iov, size_t n,
			     int advice, unsigned int flags);

/* The same without anything of this library's. Results and errno are the C library's. */

static inline int end_munmap(enum made made, void *addr, size_t len)
{
	return made == BY_NUMBER ? (int)syscall(SYS_munmap, addr, len) : REAL(munmap)(addr, len);
}

static inline int end_mprotect(enum made made, void *addr, size_t len, int prot)
{
	return made == BY_NUMBER ? (int)syscall(SYS_mprotect, addr, len, (long)prot)
				 : REAL(mprotect)(addr, len, prot);
}

static inline void *end_mmap(enum made made, void *addr, size_t len, int prot, int flags, int fd,
			     off_t off)
{
	return made == BY_NUMBER ? (void *)syscall(SYS_mmap, addr, len, (long)prot, (long)flags,
						   (long)fd, off)
				 : REAL(mmap)(addr, len, prot, flags, fd, off);
}

static inline void *end_mremap(enum made made, void *old, size_t old_len, size_t len, int flags,
			       void *where)
{
	return made == BY_NUMBER
		       ? (void *)syscall(SYS_mremap, old, old_len, len, (long)flags, where)
		       : REAL(mremap)(old, old_len, len, flags, where);
}

static inline int end_madvise(enum made made, void *addr, size_t len, int advice)
{
	return made == BY_NUMBER ? (int)syscall(SYS_madvise, addr, len, (long)advice)
				 : REAL(madvise)(addr, len, advice);
}

#endif
