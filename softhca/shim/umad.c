// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * umad. An open file is a FIFO with a byte for each unread datagram, as that of rdma_cm is
 * (rdmacm.c): the daemon has the datagrams, and knows the file by its name.
 */
#include <pthread.h>

#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "attach.h"
#include "names.h"
#include "sandbox.h"
#include "umad.h"

/* Has this process, or one that it was forked from, opened, written to or controlled one? */
static bool seen;

bool shim_umad_of_stat(int fd, const struct stat *st, struct shim_cm *file)
{
	if (!shim_fifo_of_stat(fd, st, "/mads/", file))
		return false;
	__atomic_store_n(&seen, true, __ATOMIC_RELAXED);
	return true;
}

bool shim_umad_to_read(int fd, struct shim_cm *file)
{
	return __atomic_load_n(&seen, __ATOMIC_RELAXED) && shim_umad_of_fd(fd, file);
}

bool shim_umad_of_fd(int fd, struct shim_cm *file)
{
	struct stat st;

	return fd >= 0 && !sandbox_told() && sh_fstat(fd, &st) >= 0 &&
	       shim_umad_of_stat(fd, &st, file);
}

static int open_once(unsigned int minor, int flags)
{
	struct sh_mad_open req = {.type = SH_MSG_MAD_OPEN, .minor = minor};
	struct sh_mad_reply reply;
	unsigned int nfds = 0;
	int fds[4], err;

	err = shim_control_to_open();
	if (err)
		return err;
	err = shim_request(&req, sizeof(req), &reply, sizeof(reply), fds, &nfds);
	shim_control_put();
	if (!err)
		err = (int)reply.result;
	if (!err && nfds != 1)
		err = -EIO;
	if (err) {
		while (nfds)
			sh_close(fds[--nfds]);
		return err;
	}
	if (!(flags & O_CLOEXEC))
		sh_fcntl(fds[0], F_SETFD, 0);
	if (flags & O_NONBLOCK)
		sh_fcntl(fds[0], F_SETFL, O_NONBLOCK);
	__atomic_store_n(&seen, true, __ATOMIC_RELAXED);
	return fds[0];
}

/* Another program may have said that it is the port's subnet manager: until when, nothing tells. */
int shim_umad_open(unsigned int minor, int flags)
{
	struct timespec nap = {.tv_nsec = 20000000};
	int fd, err;

	for (;;) {
		fd = open_once(minor, flags);
		if (fd != -EAGAIN || minor < UMAD_MINORS || flags & O_NONBLOCK)
			return fd;
		err = (int)sh_sys(syscall(SYS_nanosleep, &nap, NULL));
		if (err < 0)
			return err;
	}
}

static long call(const struct shim_cm *file, enum sh_mad_what what, uint64_t request, void *addr,
		 size_t len)
{
	struct sh_mad_call req = {
		.type = SH_MSG_MAD_CALL,
		.what = what,
		.index = file->channel,
		.generation = file->generation,
		.request = request,
		.addr = (uintptr_t)addr,
		.len = len,
	};
	struct sh_mad_reply reply;
	int err = shim_control_get();

	if (err)
		return err == -EMFILE || err == -ENFILE || err == -ENOMEM ? err : -EIO;
	err = shim_request(&req, sizeof(req), &reply, sizeof(reply), NULL, NULL);
	shim_control_put();
	return err ? err : reply.result;
}

long shim_umad_write(const struct shim_cm *file, const void *buf, size_t len)
{
	return call(file, SH_MAD_WRITE, 0, (void *)buf, len);
}

static long read_on(int fd, const struct shim_cm *file, void *buf, size_t len)
{
	long ret;

	while ((ret = call(file, SH_MAD_READ, 0, buf, len)) == -EAGAIN) {
		ret = shim_fifo_sleep(fd);
		if (ret < 0)
			return ret;
	}
	return ret;
}

static void close_twin(void *fd)
{
	sh_close(*(int *)fd);
}

/*
 * As a kernel does, a thread that sleeps holds the file: another thread may close the descriptor,
 * or open another file under its number.
 */
long shim_umad_read(int fd, const struct shim_cm *file, void *buf, size_t len)
{
	long ret = call(file, SH_MAD_READ, 0, buf, len);
	struct shim_cm same = {0};
	int twin;

	if (ret != -EAGAIN)
		return ret;
	twin = sh_fd_twin(fd);
	if (twin == -EBADF)
		return twin;
	if (twin < 0)
		return read_on(fd, file, buf, len);
	pthread_cleanup_push(close_twin, &twin);
	if (shim_umad_of_fd(twin, &same) && same.channel == file->channel &&
	    same.generation == file->generation)
		ret = read_on(twin, file, buf, len);
	else
		ret = -EBADF;
	pthread_cleanup_pop(1);
	return ret;
}

long shim_umad_ioctl(const struct shim_cm *file, unsigned long request, void *arg)
{
	return call(file, SH_MAD_IOCTL, request, arg, 0);
}
