// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rdma_cm. An open file is a FIFO (fifo.h) with a byte for each unread event. A program gets events
 * with commands: a kernel's file has no read.
 */
#include <linux/capability.h>
#include <sys/ioctl.h>

#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "softhca/shim/attach.h"
#include "command.h"
#include "context.h"
#include "fifo_known.h"
#include "rdmacm.h"
#include "touch.h"

static bool by_name(int fd, const struct stat *st, struct shim_fifo *cm)
{
	uint32_t connection = shim_control_number();

	if (!shim_fifo_of_stat(fd, st, "channels", cm))
		return false;
	fifo_known_add(st, cm, connection);
	return true;
}

bool shim_cm_of_stat(int fd, const struct stat *st, struct shim_fifo *cm)
{
	cm->dir = "channels";
	return fifo_known_find(st, cm) || by_name(fd, st, cm);
}

static int error_of(const void *reply)
{
	return -((const struct sh_cm_reply *)reply)->error;
}

int shim_cm_open(int flags)
{
	struct sh_cm_open req = {.type = SH_MSG_CM_OPEN, .flags = (uint32_t)flags};
	struct sh_cm_reply reply;
	int fd = shim_fifo_open(flags, &req, sizeof(req), &reply, sizeof(reply), error_of);

	if (fd >= 0)
		shim_file_note(fd);
	return fd;
}

struct request {
	struct sh_cm_command cmd;
	char text[SH_COMMAND_MAX];
	uint32_t known; /* as in struct shim_fifo */
};

/* May it give an id a port? So may what the shim could not read. */
static bool may_bind(const struct sh_cm_header *h)
{
	return !h || h->number == SH_CM_BIND_IP || h->number == SH_CM_RESOLVE_IP ||
	       h->number == SH_CM_LISTEN || h->number == SH_CM_BIND ||
	       h->number == SH_CM_RESOLVE_ADDR;
}

/*
 * Reads the command from the application's memory, as a kernel does. If not all of it is there, the
 * daemon finds out what is wrong.
 */
static const struct sh_cm_header *take_command(struct request *req, const struct shim_fifo *cm,
					       const void *buf, size_t len)
{
	uint32_t here = len < SH_COMMAND_MAX ? (uint32_t)len : SH_COMMAND_MAX;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	const struct sh_cm_header *h;

	if (here && sh_peek_as(tid, req->text, (uintptr_t)buf, here))
		here = 0;
	if (len > here)
		touch((uintptr_t)buf, len, false);
	h = here < sizeof(*h) ? NULL : (const void *)req->text;
	if (h)
		touch_answer(req->text, here, h->out);
	req->cmd = (struct sh_cm_command){
		.type = SH_MSG_CM_COMMAND,
		.tid = tid,
		.channel = cm->index,
		.generation = cm->generation,
		.privileged = may_bind(h) && shim_has_cap(CAP_NET_BIND_SERVICE),
		.here = here,
		.addr = (uintptr_t)buf,
		.len = len,
	};
	req->known = cm->known;
	return h;
}

/*
 * Would the daemon find no event, and the thread wait for one? A byte that another thread has taken
 * is missing until that thread has asked, or for a second if it never asks (kernel/rdmacm).
 * The descriptor may be another file by now: that counts when the thread holds it.
 */
static bool must_wait(int fd, const struct sh_cm_header *h, size_t len)
{
	int held, flags;

	if (!h || h->number != SH_CM_GET_EVENT || h->in < sizeof(uint64_t) ||
	    sizeof(*h) + h->in > len || h->out < SH_CM_EVENT_ROOM)
		return false;
	if (sh_sys(syscall(SYS_ioctl, fd, FIONREAD, &held)) < 0 || held)
		return false;
	flags = sh_fcntl(fd, F_GETFL, 0);
	return flags >= 0 && !(flags & O_NONBLOCK);
}

static long ask(void *arg)
{
	const struct request *req = arg;
	struct sh_cm_reply reply;
	int err;

	err = shim_fifo_ask(req->cmd.generation, req->known, req, sizeof(req->cmd) + req->cmd.here,
			    &reply, sizeof(reply));
	if (!err)
		err = error_of(&reply);
	return err ? err : (long)req->cmd.len;
}

int shim_cm_read(const struct shim_fifo *cm)
{
	return shim_fifo_reads(cm) ? -EINVAL : -EBADF;
}

/*
 * What is known of the file is not enough where the thread would sleep, and if the daemon does not
 * know the channel, or it was known to another connection, as to the parent's of a forked child.
 * Then its name is read.
 */
static bool look_again(int fd, const struct shim_fifo *cm, struct shim_fifo *named)
{
	struct stat st;

	return cm->known && sh_fstat(fd, &st) == 0 && by_name(fd, &st, named);
}

long shim_cm_write(int fd, const struct shim_fifo *cm, const void *buf, size_t len)
{
	struct request req;
	struct shim_fifo named;
	const struct sh_cm_header *h = take_command(&req, cm, buf, len);
	bool wait = must_wait(fd, h, len);
	long ret = wait ? -EAGAIN : ask(&req);
	int gone;

	if ((wait || ret == -ENODEV) && look_again(fd, cm, &named)) {
		if (!shim_fifo_writes(&named))
			return -EBADF;
		h = take_command(&req, &named, buf, len);
		ret = must_wait(fd, h, len) ? -EAGAIN : ask(&req);
		cm = &named;
	}
	gone = ret == -ENODEV ? shim_fifo_still(fd, cm) : 0;
	/* Closed or removed in the meantime, as if it had been before. */
	if (gone)
		return gone;
	return ret == -EAGAIN ? shim_fifo_wait(fd, cm, ask, &req) : ret;
}
