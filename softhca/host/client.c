// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Sends requests to the daemon over its control socket, and receives descriptors with the replies.
 * Keeps no state of its own.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "client.h"
#include "descriptors.h"
#include "witness.h"

int sh_client_connect(const char *dir)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int dirfd, fd, err = 0;

	/*
	 * Through a descriptor of the directory: a socket's path has room for 107 characters only.
	 */
	dirfd = sh_open_own(dir, O_PATH | O_DIRECTORY);
	if (dirfd < 0)
		return dirfd;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/thread-self/fd/%d/control", dirfd);
	sh_section_begin();
	fd = sh_sys(syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	if (fd >= 0)
		fd = sh_fd_high(fd);
	sh_section_end();
	if (fd >= 0) {
		do
			err = sh_sys(syscall(SYS_connect, fd, &addr, sizeof(addr)));
		while (err == -EINTR);
		if (err) {
			sh_close(fd);
			if (err == -ENOENT &&
			    sh_sys(syscall(SYS_faccessat, AT_FDCWD, "/proc/self/fd", F_OK)))
				err = -ESRCH;
			fd = err;
		}
	}
	sh_close(dirfd);
	return fd;
}

/* Takes the descriptors in a message, and closes those that do not fit. */
static void take_fds(struct msghdr *msg, int *fds, unsigned int *nfds)
{
	unsigned int room = nfds ? SH_CLIENT_FDS : 0, n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		unsigned int got;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		got = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (unsigned int i = 0; i < got; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (n < room)
				fds[n++] = fd;
			else
				sh_close(fd);
		}
	}
	if (nfds)
		*nfds = n;
}

/* Is the reply as long as it must be? Replies to commands differ in how many actions they have. */
static bool is_whole(const void *req, size_t len, const void *reply, size_t rlen, size_t got)
{
	const struct sh_command_reply *r = reply;
	uint32_t type = 0;

	if (len >= sizeof(type))
		memcpy(&type, req, sizeof(type));
	if (type != SH_MSG_COMMAND || rlen != sizeof(*r))
		return got == rlen;
	return got >= SH_COMMAND_REPLY(0) && r->nactions <= SH_MAX_ACTIONS &&
	       got == SH_COMMAND_REPLY(r->nactions);
}

int sh_client_request(int fd, const void *req, size_t len, void *reply, size_t rlen, int *fds,
		      unsigned int *nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(SH_CLIENT_FDS * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = (void *)req, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	long done;

	if (nfds)
		*nfds = 0;
	do
		done = sh_sys(syscall(SYS_sendmsg, fd, &msg, MSG_NOSIGNAL));
	while (done == -EINTR);
	if (done < 0)
		return done == -EPIPE ? -ECONNRESET : done == -EAGAIN ? -ETIMEDOUT : (int)done;

	iov = (struct iovec){.iov_base = reply, .iov_len = rlen};
	msg.msg_control = control.space;
	msg.msg_controllen = sizeof(control.space);
	do
		done = sh_sys(syscall(SYS_recvmsg, fd, &msg, MSG_CMSG_CLOEXEC));
	while (done == -EINTR);
	if (done < 0)
		return done == -EAGAIN ? -ETIMEDOUT : (int)done;
	take_fds(&msg, fds, nfds);
	if (!done)
		return -ECONNRESET;
	if (!is_whole(req, len, reply, rlen, (size_t)done) || (msg.msg_flags & MSG_TRUNC)) {
		for (unsigned int i = 0; nfds && i < *nfds; i++)
			sh_close(fds[i]);
		if (nfds)
			*nfds = 0;
		return -EPROTO;
	}
	/* The kernel sets MSG_CTRUNC if this process has no room for a descriptor that comes. */
	return msg.msg_flags & MSG_CTRUNC ? -EMFILE : 0;
}

int sh_client_hello(int fd, unsigned int host, uint32_t again, struct sh_hello_reply *reply,
		    int *memfd)
{
	struct sh_hello hello = {
		.type = SH_MSG_HELLO,
		.version = SH_WIRE_VERSION,
		.pid = (uint32_t)getpid(),
		.host = host,
		.client = memfd ? 1 : 0,
		.again = again,
	};
	int fds[SH_CLIENT_FDS];
	unsigned int nfds;
	int err = 0;

	if (memfd)
		hello.witness = sh_witness(&err);
	if (err)
		return err;
	err = sh_client_request(fd, &hello, sizeof(hello), reply, sizeof(*reply), fds, &nfds);
	if (!err)
		err = -reply->error;
	if (!err && memfd && !nfds)
		err = -EPROTO;
	for (unsigned int i = 0; i < nfds; i++) {
		if (!err && memfd && i == 0)
			*memfd = sh_fd_high(fds[i]);
		else
			sh_close(fds[i]);
	}
	return err;
}

int sh_client_give(int fd, int number)
{
	struct sh_descriptor m = {.type = SH_MSG_DESCRIPTOR, .number = number};
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {.hdr = {.cmsg_level = SOL_SOCKET,
			     .cmsg_type = SCM_RIGHTS,
			     .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf)};
	struct sh_status st;
	long done;

	memcpy(CMSG_DATA(&control.hdr), &number, sizeof(int));
	do
		done = sh_sys(syscall(SYS_sendmsg, fd, &msg, MSG_NOSIGNAL));
	while (done == -EINTR);
	if (done == -EBADF) { /* the kernel asks for the connection first, which is in order */
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
		do
			done = sh_sys(syscall(SYS_sendmsg, fd, &msg, MSG_NOSIGNAL));
		while (done == -EINTR);
	}
	if (done < 0)
		return done == -EPIPE ? -ECONNRESET : (int)done;
	do
		done = sh_read(fd, &st, sizeof(st));
	while (done == -EINTR);
	return done == sizeof(st) ? 0 : done < 0 ? (int)done : -ECONNRESET;
}
