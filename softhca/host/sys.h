/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * System calls made directly: code that lives inside an application must not call functions that
 * the application, or the preloaded library itself, has taken over. Each returns its result or
 * -errno. syscall() is variadic: an argument that the kernel reads as 64 bits must have 64, so
 * calls with such arguments have wrappers here.
 */
#ifndef SOFTHCA_HOST_SYS_H
#define SOFTHCA_HOST_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(long) == 8, "struct stat is the kernel's own on 64-bit machines only");

#define SH_FIRST_PAGE 4096UL

/*
 * Of Linux 5.3 and 5.9, and the same for every processor: the headers may be older than the kernel.
 */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static inline long sh_sys(long result)
{
	return result == -1 ? -errno : result;
}

/*
 * For each turn of a loop that waits until another thread has gone on. Sleeps from some turn on: a
 * thread that only yields lets none of a lower priority run, and the other one may have that.
 * Leaves errno alone.
 */
static inline void sh_give_way(unsigned int turn)
{
	static const struct timespec moment = {.tv_nsec = 50000};
	int saved = errno;

	if (turn < 100)
		syscall(SYS_sched_yield);
	else
		syscall(SYS_nanosleep, &moment, NULL);
	errno = saved;
}

static inline int sh_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	return sh_sys(syscall(SYS_openat, dirfd, path, flags, mode));
}

static inline int sh_open(const char *path, int flags)
{
	return sh_openat(AT_FDCWD, path, flags, 0);
}

/*
 * Closes descriptors that are softhca's own, too (descriptors.h). If the program has given the
 * number of such a one to a file of its own, it is gone: -EBADF.
 */
int sh_close(int fd);

static inline long sh_read(int fd, void *buf, size_t len)
{
	return sh_sys(syscall(SYS_read, fd, buf, len));
}

static inline long sh_write(int fd, const void *buf, size_t len)
{
	return sh_sys(syscall(SYS_write, fd, buf, len));
}

/* futimens() */
static inline int sh_utimens(int fd, const struct timespec times[2])
{
	return sh_sys(syscall(SYS_utimensat, fd, NULL, times, 0));
}

static inline int sh_fstat(int fd, struct stat *st)
{
	return sh_sys(syscall(SYS_fstat, fd, st));
}

static inline int sh_stat(const char *path, struct stat *st)
{
	return sh_sys(syscall(SYS_newfstatat, AT_FDCWD, path, st, 0));
}

/*
 * Is this process in another user namespace than the kernel's first (PROC_USER_INIT_INO)? There a
 * capability is one for that namespace only. False where /proc does not tell.
 */
static inline bool sh_in_user_namespace(void)
{
	struct stat st;

	return !sh_stat("/proc/thread-self/ns/user", &st) && st.st_ino != 0xeffffffdU;
}

static inline int sh_fcntl(int fd, int cmd, long arg)
{
	return sh_sys(syscall(SYS_fcntl, fd, cmd, arg));
}

/*
 * Returns NULL and *err for MAP_FAILED. -ENOMEM if the program's mlockall() and its limit leave no
 * room.
 */
static inline void *sh_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off,
			    int *err)
{
	long at = sh_sys(syscall(SYS_mmap, addr, len, prot, flags, fd, off));

	*err = at == -EAGAIN ? -ENOMEM : at < 0 && at > -4096 ? (int)at : 0;
	return *err ? NULL : (void *)at;
}

static inline int sh_munmap(void *addr, size_t len)
{
	return sh_sys(syscall(SYS_munmap, addr, len));
}

static inline int sh_madvise(uint64_t addr, size_t len, int advice)
{
	return sh_sys(syscall(SYS_madvise, addr, len, advice));
}

/*
 * Address space of which little will be used: core dumps leave it out, and mlockall(MCL_FUTURE)
 * does not lock it. A mapping that grows keeps its properties, so only the first page is mapped
 * while that rule applies. If the caller asks for an address, the mapping stays there.
 */
static inline void *sh_mmap_unlocked(void *addr, size_t len, int prot, int flags, int fd, off_t off,
				     int *err)
{
	const long move = addr ? 0 : MREMAP_MAYMOVE;
	void *first = sh_mmap(addr, SH_FIRST_PAGE, prot, flags, fd, off, err);
	long at;

	if (!first)
		return NULL;
	sh_sys(syscall(SYS_munlock, first, SH_FIRST_PAGE));
	at = sh_sys(syscall(SYS_mremap, first, SH_FIRST_PAGE, len, move, NULL));
	if (at < 0 && at > -4096) {
		sh_munmap(first, SH_FIRST_PAGE);
		*err = (int)at;
		return NULL;
	}
	(void)sh_madvise((uint64_t)at, len, MADV_DONTDUMP);
	return (void *)at;
}

/* Zeroed memory that malloc() does not know, or NULL. */
static inline void *sh_pages(size_t len)
{
	int err;

	return sh_mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, &err);
}

static inline long sh_vm_readv(int pid, const struct iovec *local, unsigned long nlocal,
			       const struct iovec *remote, unsigned long nremote)
{
	return sh_sys(syscall(SYS_process_vm_readv, pid, local, nlocal, remote, nremote, 0UL));
}

static inline long sh_vm_writev(int pid, const struct iovec *local, unsigned long nlocal,
				const struct iovec *remote, unsigned long nremote)
{
	return sh_sys(syscall(SYS_process_vm_writev, pid, local, nlocal, remote, nremote, 0UL));
}

/*
 * Copies to or from memory of this process that may be missing, or that a sanitizer in the program
 * watches. Returns 0 or -EFAULT. The kernel copies at most 2 GiB at a time. tid is this thread's:
 * the first one of the process may have ended.
 */
static inline int sh_own_copy(int tid, uint64_t own, void *here, size_t len, bool in)
{
	while (len) {
		struct iovec local = {.iov_base = here, .iov_len = len};
		struct iovec remote = {.iov_base = (void *)(uintptr_t)own, .iov_len = len};
		long n = in ? sh_vm_writev(tid, &local, 1, &remote, 1)
			    : sh_vm_readv(tid, &local, 1, &remote, 1);

		if (n <= 0)
			return -EFAULT;
		own += (uint64_t)n;
		here = (char *)here + n;
		len -= (size_t)n;
	}
	return 0;
}

static inline int sh_peek(void *to, uint64_t from, size_t len)
{
	return sh_own_copy((int)syscall(SYS_gettid), from, to, len, false);
}

/* As sh_peek(), for a thread that has just asked for its number. */
static inline int sh_peek_as(uint32_t tid, void *to, uint64_t from, size_t len)
{
	return sh_own_copy((int)tid, from, to, len, false);
}

static inline int sh_poke(uint64_t to, const void *from, size_t len)
{
	return sh_own_copy((int)syscall(SYS_gettid), to, (void *)(uintptr_t)from, len, true);
}

/*
 * Moves a descriptor to a number that programs are unlikely to use, close-on-exec. The old number
 * is closed. From then on it is one of softhca's own, until sh_close().
 */
int sh_fd_high(int fd);
/* A duplicate under such a number, close-on-exec, of softhca's own, or -errno. */
int sh_fd_twin(int fd);
/*
 * Opens a file close-on-exec under such a number: another thread of the program may open files, or
 * close all that it has not opened, meanwhile. Returns a descriptor or -errno.
 */
int sh_open_own(const char *path, int flags);

/*
 * What a descriptor's number referred to when the shim opened it: programs close descriptors that
 * they did not open.
 */
struct sh_ident {
	dev_t dev;
	ino_t ino;
};

static inline bool sh_ident_take(int fd, struct sh_ident *id)
{
	struct stat st;

	if (sh_fstat(fd, &st) < 0)
		return false;
	id->dev = st.st_dev;
	id->ino = st.st_ino;
	return true;
}

static inline bool sh_ident_is(const struct sh_ident *id, const struct stat *st)
{
	return st->st_ino == id->ino && st->st_dev == id->dev;
}

static inline bool sh_ident_holds(int fd, const struct sh_ident *id)
{
	struct stat st;

	return fd >= 0 && !sh_fstat(fd, &st) && sh_ident_is(id, &st);
}

#endif
