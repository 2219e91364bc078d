// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The witness of this address space, and copies that name another's. witness.h says what it is for.
 * Takes no lock.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "far.h"
#include "reach.h"
#include "witness.h"

#define PAGE  4096
#define TRIES 64

static const struct sh_far part[] = {
	{UINT64_C(0x610000000000), UINT64_C(0x680000000000)},
	{UINT64_C(0x2000000000), UINT64_C(0x5000000000)},
};

static struct {
	int pid;
	uint64_t at;
} own;

static void *map_somewhere(int *err)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;

	for (unsigned int n = 0; n < 2 * TRIES; n++) {
		void *want = (void *)(uintptr_t)sh_far_pick(&part[n / TRIES], PAGE), *at;

		at = sh_mmap(want, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0, err);
		if (at == want)
			return at;
		if (at) /* a kernel that does not know the flag */
			sh_munmap(at, PAGE);
	}
	if (!*err)
		*err = -ENOMEM;
	return NULL;
}

uint64_t sh_witness(int *err)
{
	int pid = getpid();
	uint64_t *at;

	*err = 0;
	if (own.at && own.pid == pid)
		return own.at;
	at = map_somewhere(err);
	if (!at)
		return 0;
	*err = sh_madvise((uintptr_t)at, PAGE, MADV_DONTFORK);
	if (*err) {
		sh_munmap(at, PAGE);
		return 0;
	}
	(void)sh_madvise((uintptr_t)at, PAGE, MADV_DONTDUMP);
	*at = SH_WITNESS;
	own.at = (uintptr_t)at;
	own.pid = pid;
	return own.at;
}

/*
 * -EFAULT: nothing was copied, since the witness comes first. Other errors go to the caller: a call
 * that never began (-EPERM: this process may not look) does not tell which address space it is.
 */
static long verdict(long done, long before)
{
	if (done == -EFAULT)
		return -ESRCH;
	if (done < 0)
		return done;
	return done < before ? -ESRCH : done - before;
}

/*
 * A process whose first thread has ended by pthread_exit() has no memory under its own number, but
 * under that of each thread that is left. Which address space that is tells the witness.
 */
static int another_thread(int pid)
{
	char text[256]; /* records of struct dirent64, which are shorter than the structure */
	char path[32];
	int fd, tid = 0;
	long got;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	fd = sh_open_own(path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return 0;
	got = sh_sys(syscall(SYS_getdents64, fd, text, sizeof(text)));
	for (long at = 0; at < got && (!tid || tid == pid);) {
		unsigned short len;

		memcpy(&len, text + at + offsetof(struct dirent64, d_reclen), sizeof(len));
		tid = atoi(text + at + offsetof(struct dirent64, d_name));
		at += len;
	}
	sh_close(fd);
	return tid == pid ? 0 : tid;
}

typedef long vm_copy(int, const struct iovec *, unsigned long, const struct iovec *, unsigned long);

static long try(vm_copy *copy, int pid, const struct iovec *local, unsigned long nlocal,
		const struct iovec *remote, unsigned long nremote)
{
	long done = copy(pid, local, nlocal, remote, nremote);
	int tid;

	/* As often as a thread ends between the two calls. */
	for (int i = 0; done == -ESRCH && i < 10 && (tid = another_thread(pid)); i++)
		done = copy(tid, local, nlocal, remote, nremote);
	return done;
}

long sh_witness_readv(int pid, uint64_t witness, struct iovec *local, unsigned long nlocal,
		      struct iovec *remote, unsigned long nremote)
{
	uint64_t says = 0;
	long done;

	local[0] = (struct iovec){.iov_base = &says, .iov_len = sizeof(says)};
	remote[0] = (struct iovec){.iov_base = (void *)(uintptr_t)witness, .iov_len = sizeof(says)};
	done = verdict(try(sh_reach_readv, pid, local, nlocal + 1, remote, nremote + 1),
		       sizeof(says));
	return done >= 0 && says != SH_WITNESS ? -ESRCH : done;
}

long sh_witness_writev(int pid, uint64_t witness, struct iovec *local, unsigned long nlocal,
		       struct iovec *remote, unsigned long nremote)
{
	static char nothing;

	local[0] = (struct iovec){.iov_base = &nothing, .iov_len = 1};
	remote[0] = (struct iovec){.iov_base = (void *)(uintptr_t)(witness + SH_WITNESS_BYTE),
				   .iov_len = 1};
	return verdict(try(sh_reach_writev, pid, local, nlocal + 1, remote, nremote + 1), 1);
}

int sh_witness_open(int pid, uint64_t witness)
{
	int number = pid;

	/* The number of a process, then those of its threads: see above. */
	for (int i = 0; number && i < 10; i++, number = another_thread(pid)) {
		uint64_t says = 0;
		char path[32];
		long done;
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/mem", number);
		fd = sh_open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return fd;
		done = sh_witness_move(fd, witness, &says, sizeof(says), false);
		if (done == sizeof(says) && says == SH_WITNESS)
			return fd;
		sh_close(fd);
	}
	return -ESRCH;
}

long sh_witness_move(int fd, uint64_t addr, void *buf, size_t len, bool out)
{
	const long call = out ? SYS_pwrite64 : SYS_pread64;
	long done;

	do
		done = sh_sys(syscall(call, fd, buf, len, addr));
	while (done == -EINTR);
	if (!done && len)
		return -ESRCH;
	return done < 0 ? -EFAULT : done;
}
