// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * umad. An open file is a FIFO (fifo.h) with a byte for each unread datagram: the daemon has the
 * datagrams.
 */
#include <sys/ioctl.h>

#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "softhca/shim/compiler.h"
#include "names.h"
#include "softhca/shim/sandbox.h"
#include "touch.h"
#include "umad.h"

/* Has this process, or one that it was forked from, opened, written to or controlled one? */
static bool seen;
static bool issm_seen;

bool shim_umad_of_stat(int fd, const struct stat *st, struct shim_fifo *file)
{
	if (!shim_fifo_of_stat(fd, st, "mads", file))
		return false;
	__atomic_store_n(&seen, true, __ATOMIC_RELAXED);
	if (shim_umad_is_issm(file))
		__atomic_store_n(&issm_seen, true, __ATOMIC_RELAXED);
	return true;
}

bool shim_umad_known(void)
{
	return unlikely(__atomic_load_n(&seen, __ATOMIC_RELAXED)) && shim_active();
}

bool shim_issm_known(void)
{
	return __atomic_load_n(&issm_seen, __ATOMIC_RELAXED);
}

bool shim_umad_is_issm(const struct shim_fifo *file)
{
	return file->index >= UMAD_MINORS;
}

bool shim_umad_to_read(int fd, struct shim_fifo *file)
{
	return __atomic_load_n(&seen, __ATOMIC_RELAXED) && shim_umad_of_fd(fd, file);
}

bool shim_umad_of_fd(int fd, struct shim_fifo *file)
{
	struct stat st;

	return fd >= 0 && !sandbox_told() && sh_fstat(fd, &st) >= 0 &&
	       shim_umad_of_stat(fd, &st, file);
}

static int error_of(const void *reply)
{
	return (int)((const struct sh_mad_reply *)reply)->result;
}

static int open_once(unsigned int minor, int flags)
{
	struct sh_mad_open req = {
		.type = SH_MSG_MAD_OPEN, .minor = minor, .flags = (uint32_t)flags};
	struct sh_mad_reply reply;
	int fd = shim_fifo_open(flags, &req, sizeof(req), &reply, sizeof(reply), error_of);

	if (fd >= 0)
		__atomic_store_n(&seen, true, __ATOMIC_RELAXED);
	if (fd >= 0 && minor >= UMAD_MINORS)
		__atomic_store_n(&issm_seen, true, __ATOMIC_RELAXED);
	return fd;
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

static long call(void *arg)
{
	const struct sh_mad_call *req = arg;
	struct sh_mad_reply reply;
	int err = shim_fifo_ask(req->generation, 0, req, sizeof(*req), &reply, sizeof(reply));

	return err ? err : reply.result;
}

static struct sh_mad_call request(const struct shim_fifo *file, enum sh_mad_what what,
				  const void *addr, size_t len)
{
	return (struct sh_mad_call){
		.type = SH_MSG_MAD_CALL,
		.what = what,
		.index = file->index,
		.generation = file->generation,
		.addr = (uintptr_t)addr,
		.len = len,
	};
}

long shim_umad_write(const struct shim_fifo *file, const void *buf, size_t len)
{
	struct sh_mad_call req = request(file, SH_MAD_WRITE, buf, len);

	touch((uintptr_t)buf, len, false);
	return call(&req);
}

long shim_umad_read(int fd, const struct shim_fifo *file, void *buf, size_t len)
{
	struct sh_mad_call req = request(file, SH_MAD_READ, buf, len);
	long ret;

	touch((uintptr_t)buf, len, true);
	ret = shim_fifo_reads(file) ? call(&req) : -EBADF;

	return ret == -EAGAIN ? shim_fifo_wait(fd, file, call, &req) : ret;
}

long shim_umad_ioctl(const struct shim_fifo *file, unsigned long number, void *arg)
{
	struct sh_mad_call req = request(file, SH_MAD_IOCTL, arg, 0);

	req.request = number;
	touch((uintptr_t)arg, _IOC_SIZE(number), true);
	return call(&req);
}
