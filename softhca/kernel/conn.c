// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Control connections: accepts them, receives requests, sends replies, closes. A send that would
 * block ends the connection. Owns server.conns, server.nconns and server.deaf.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture.h"
#include "conn.h"
#include "dispatch.h"
#include "files.h"
#include "kern.h"
#include "process.h"
#include "retry.h"
#include "server.h"

void conn_listen_again(struct server *s)
{
	if (s->deaf && server_watch(s, s->listen_fd, SRC_LISTEN, 0) == 0)
		s->deaf = false;
}

void conn_given(struct conn *c, struct given given)
{
	if (c->given.asked && c->given.fd >= 0)
		close(c->given.fd);
	c->given = given;
}

void conn_close(struct server *s, struct conn *c)
{
	retry_forget(s, c);
	capture_end(s, c);
	conn_given(c, (struct given){0});
	s->conns[c->fd] = NULL;
	close(c->fd);
	conn_listen_again(s);
	if (c->proc)
		proc_detach(s->k, c->proc);
	free(c);
}

void conn_accept(struct server *s)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct conn *c, **grown;
	int fd;

	fd = accept4(s->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		/*
		 * The connection stays in the socket's queue, where the loop would see it for ever.
		 */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			s->deaf = epoll_ctl(s->k->epoll, EPOLL_CTL_DEL, s->listen_fd, NULL) == 0;
		return;
	}
	if (fd >= s->nconns) {
		grown = realloc(s->conns, (fd + 64) * sizeof(*grown));
		if (!grown) {
			close(fd);
			return;
		}
		memset(grown + s->nconns, 0, (fd + 64 - s->nconns) * sizeof(*grown));
		s->conns = grown;
		s->nconns = fd + 64;
	}
	c = calloc(1, sizeof(*c));
	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
	    (cred.uid != geteuid() && cred.uid != 0) || server_watch(s, fd, SRC_CONN, fd) < 0) {
		free(c);
		close(fd);
		return;
	}
	c->fd = fd;
	c->pid = cred.pid;
	s->conns[fd] = c;
}

int conn_reply(struct conn *c, const void *data, size_t len, const int *fds, unsigned int nfds)
{
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (nfds) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		control.hdr.cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(&control.hdr), fds, nfds * sizeof(int));
	}
	n = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n == (ssize_t)len ? 0 : -EPIPE;
}

int conn_status(struct conn *c, int err)
{
	struct sh_status st = {.error = -err};

	return conn_reply(c, &st, sizeof(st), NULL, 0);
}

/*
 * The descriptor that came with a message; -EBADF: none; -ENOMEM: this process had no room for it.
 * The room for one has, being aligned, room for two.
 */
static int received(struct msghdr *msg)
{
	struct cmsghdr *h = CMSG_FIRSTHDR(msg);
	size_t n = 0;
	int fd[2];

	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
		n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(*fd);
	if (!n)
		return msg->msg_flags & MSG_CTRUNC ? -ENOMEM : -EBADF;
	memcpy(fd, CMSG_DATA(h), n < 2 ? sizeof(*fd) : sizeof(fd));
	if (n > 1)
		close(fd[1]);
	return fd[0];
}

static ssize_t receive(struct server *s, const struct conn *c, int *fd)
{
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = s->message, .iov_len = sizeof(s->message)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf)};
	ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);

	*fd = n < 0 ? -EBADF : received(&msg);
	return n;
}

static int do_descriptor(struct conn *c, const struct sh_descriptor *m, int fd)
{
	conn_given(c, (struct given){.asked = true, .number = m->number, .fd = fd});
	return conn_status(c, 0);
}

void conn_serve(struct server *s, struct conn *c)
{
	const struct sh_descriptor *m = (const void *)s->message;
	ssize_t n;
	int err, fd;

	n = receive(s, c, &fd);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	files_drain(s);
	/* The client has ended, or asks before it has its answer. */
	if (n <= 0 || n > (ssize_t)sizeof(s->message) || c->kept_len) {
		if (fd >= 0)
			close(fd);
		conn_close(s, c);
		return;
	}
	if (n == sizeof(*m) && m->type == SH_MSG_DESCRIPTOR && c->greeted) {
		if (do_descriptor(c, m, fd) < 0)
			conn_close(s, c);
		return;
	}
	if (fd >= 0)
		close(fd);
	err = dispatch(s, c, s->message, n, false);
	if (err == -EINPROGRESS)
		err = retry_keep(s, c, n);
	if (err < 0)
		conn_close(s, c);
}
