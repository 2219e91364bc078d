// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A descriptor goes from one process to another, by a socket of both. */
#ifndef PASS_FD_H
#define PASS_FD_H

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union pass_room {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static inline struct msghdr pass_message(struct iovec *data, union pass_room *room)
{
	return (struct msghdr){.msg_iov = data,
			       .msg_iovlen = 1,
			       .msg_control = room->bytes,
			       .msg_controllen = sizeof(room->bytes)};
}

/* Returns 0, or -1 and errno. */
static inline int pass_fd(int to, int fd)
{
	char byte = 'f';
	union pass_room room = {.bytes = {0}};
	struct iovec data = {&byte, 1};
	struct msghdr m = pass_message(&data, &room);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(to, &m, 0) == 1 ? 0 : -1;
}

/* Returns the descriptor that this process has now, or -1. */
static inline int take_fd(int from)
{
	char byte;
	union pass_room room = {.bytes = {0}};
	struct iovec data = {&byte, 1};
	struct msghdr m = pass_message(&data, &room);
	int fd;

	if (recvmsg(from, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

#endif
