// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rdma_cm. An open file is a FIFO with a byte for each unread event, so that the kernel's own
 * poll() and O_NONBLOCK work. Its name tells the daemon which channel it is: duplicates, inherited
 * and passed descriptors all have it. Nothing is kept here.
 */
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "softhca/host/sys.h"
#include "softhca/protocol.h"
#include "attach.h"
#include "command.h"
#include "rdmacm.h"

bool shim_fifo_of_stat(int fd, const struct stat *st, const char *dir, struct shim_cm *cm)
{
	size_t len = strlen(shim.dir), dir_len = strlen(dir);
	char link[64], path[PATH_MAX];
	long n;

	if (!S_ISFIFO(st->st_mode) || st->st_dev != shim.files_dev)
		return false;
	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", fd);
	n = sh_sys(syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof(path) - 1));
	if (n < 0)
		return false;
	path[n] = '\0';
	return !strncmp(path, shim.dir, len) && !strncmp(path + len, dir, dir_len) &&
	       sscanf(path + len + dir_len, "%u.%u", &cm->channel, &cm->generation) == 2;
}

bool shim_cm_of_stat(int fd, const struct stat *st, struct shim_cm *cm)
{
	return shim_fifo_of_stat(fd, st, "/channels/", cm);
}

bool shim_cm_of_fd(int fd, struct shim_cm *cm)
{
	struct stat st;

	return fd >= 0 && sh_fstat(fd, &st) >= 0 && shim_cm_of_stat(fd, &st, cm);
}

int shim_cm_open(int flags)
{
	struct sh_cm_open req = {.type = SH_MSG_CM_OPEN};
	struct sh_cm_reply reply;
	unsigned int nfds = 0;
	int fds[4], err;

	err = shim_control_to_open();
	if (err)
		return err;
	err = shim_request(&req, sizeof(req), &reply, sizeof(reply), fds, &nfds);
	shim_control_put();
	if (!err)
		err = -reply.error;
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
	return fds[0];
}

/*
 * The byte that it takes away is the daemon's to make good (kernel/rdmacm/channel.c). The end of
 * the FIFO is the daemon's end.
 */
long shim_fifo_sleep(int fd)
{
	int type, ignored;
	char byte;
	long n;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	n = sh_sys(syscall(SYS_read, fd, &byte, sizeof(byte)));
	pthread_setcanceltype(type, &ignored);
	return n ? n : -EIO;
}

struct request {
	struct sh_cm_command cmd;
	char text[SH_COMMAND_MAX];
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
static const struct sh_cm_header *take_command(struct request *req, const struct shim_cm *cm,
					       const void *buf, size_t len)
{
	uint32_t here = len < SH_COMMAND_MAX ? (uint32_t)len : SH_COMMAND_MAX;
	const struct sh_cm_header *h;

	if (here && sh_peek(req->text, (uintptr_t)buf, here))
		here = 0;
	h = here < sizeof(*h) ? NULL : (const void *)req->text;
	req->cmd = (struct sh_cm_command){
		.type = SH_MSG_CM_COMMAND,
		.tid = (uint32_t)syscall(SYS_gettid),
		.channel = cm->channel,
		.generation = cm->generation,
		.privileged = may_bind(h) && shim_has_cap(CAP_NET_BIND_SERVICE),
		.here = here,
		.addr = (uintptr_t)buf,
		.len = len,
	};
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

static long ask(const struct request *req, size_t len)
{
	struct sh_cm_reply reply;
	int err = shim_control_get();

	if (err)
		return err == -EMFILE || err == -ENFILE || err == -ENOMEM ? err : -EIO;
	err = shim_request(req, sizeof(req->cmd) + req->cmd.here, &reply, sizeof(reply), NULL,
			   NULL);
	shim_control_put();
	if (!err)
		err = -reply.error;
	return err ? err : (long)len;
}

static long wait_and_ask(int fd, const struct request *req, size_t len)
{
	long err;

	do {
		err = shim_fifo_sleep(fd);
		if (err < 0)
			return err;
		err = ask(req, len);
	} while (err == -EAGAIN);
	return err;
}

static void close_twin(void *fd)
{
	sh_close(*(int *)fd);
}

static bool is_still(int fd, const struct shim_cm *cm)
{
	struct shim_cm now = {0};

	return shim_cm_of_fd(fd, &now) && now.channel == cm->channel &&
	       now.generation == cm->generation;
}

/*
 * As a kernel does, a thread that sleeps holds the file: another thread may close the descriptor, or
 * open another file under its number.
 */
long shim_cm_write(int fd, const struct shim_cm *cm, const void *buf, size_t len)
{
	struct request req;
	const struct sh_cm_header *h = take_command(&req, cm, buf, len);
	long ret = must_wait(fd, h, len) ? -EAGAIN : ask(&req, len);
	int twin;

	/* Closed in the meantime, as if it had been before. */
	if (ret == -ENODEV && !is_still(fd, cm))
		return -EBADF;
	if (ret != -EAGAIN)
		return ret;
	twin = sh_fd_twin(fd);
	if (twin == -EBADF)
		return twin;
	if (twin < 0)
		return wait_and_ask(fd, &req, len);
	pthread_cleanup_push(close_twin, &twin);
	if (is_still(twin, cm))
		ret = wait_and_ask(twin, &req, len);
	else
		ret = -EBADF;
	pthread_cleanup_pop(1);
	return ret;
}
