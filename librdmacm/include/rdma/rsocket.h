// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Sockets over RDMA: rsocket(7). Each call takes what the call of that name without r takes, and
 * returns what that returns: -1 with errno, if it fails. An rsocket's number is that of a
 * descriptor that this library holds; only these calls may get it.
 */

#ifndef RDMA_RSOCKET_H
#define RDMA_RSOCKET_H

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Connections
 */

/* An rsocket of AF_INET or AF_INET6, of SOCK_STREAM or SOCK_DGRAM, with SOCK_NONBLOCK and
 * SOCK_CLOEXEC if wanted. errno: EAFNOSUPPORT, ESOCKTNOSUPPORT, EPROTONOSUPPORT, ENODEV where there
 * is no device, EMFILE, ENOMEM. */
int rsocket(int domain, int type, int protocol);

/* errno: EADDRINUSE, EADDRNOTAVAIL, EACCES, EINVAL for an rsocket that has an address. */
int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen);

/* errno: EADDRINUSE, EINVAL for an rsocket that is connected, EOPNOTSUPP for datagrams. */
int rlisten(int socket, int backlog);

/* The number of a connection's own rsocket. addr may be NULL. errno: EAGAIN, if the listener does
 * not block and no connection waits; EINVAL for an rsocket that does not listen. */
int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen);

/* Connects; for datagrams sets the peer. errno: EINPROGRESS, if the rsocket does not block: rpoll()
 * then tells the end by POLLOUT and SO_ERROR the result; ECONNREFUSED, ETIMEDOUT, ENETUNREACH,
 * EISCONN, EALREADY. */
int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen);

/* how is SHUT_RD, SHUT_WR or SHUT_RDWR. What was sent still arrives. errno: ENOTCONN. */
int rshutdown(int socket, int how);

/* Ends the connection, after what was sent has been delivered, and frees the number. */
int rclose(int socket);

/*
 * Data. flags: MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL, MSG_NOSIGNAL. No call raises SIGPIPE.
 */

/* Bytes received; 0 when the peer will send no more. errno: EAGAIN, ENOTCONN, ECONNRESET when the
 * connection broke. */
ssize_t rrecv(int socket, void *buf, size_t len, int flags);
/* addr, which may be NULL, gets the sender of a datagram, or the peer. */
ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *addr,
		  socklen_t *addrlen);
/* Takes no control data; msg_controllen is 0 afterwards. */
ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags);
ssize_t rread(int socket, void *buf, size_t count);
ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt);

/* Bytes taken over, which may be fewer than given if the rsocket does not block. errno: EAGAIN,
 * ENOTCONN, EPIPE after the sending direction has been shut down, ECONNRESET when the connection
 * broke, EMSGSIZE for a datagram that is too long. */
ssize_t rsend(int socket, const void *buf, size_t len, int flags);
/* On a connection addr is not looked at. */
ssize_t rsendto(int socket, const void *buf, size_t len, int flags, const struct sockaddr *addr,
		socklen_t addrlen);
/* Takes no control data: EINVAL. */
ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags);
ssize_t rwrite(int socket, const void *buf, size_t count);
ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt);

/*
 * Waiting. The descriptors may be rsockets and others.
 */

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout);
int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
	    struct timeval *timeout);

/*
 * Addresses and options
 */

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen);
int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen);

/* The level of the options below */
#ifndef SOL_RDMA
#define SOL_RDMA 0x10000
#endif

/* int, but for RDMA_ROUTE. All are set before the connection is made. */
enum {
	RDMA_SQSIZE,	/* entries of the send queue */
	RDMA_RQSIZE,	/* entries of the receive queue */
	RDMA_INLINE,	/* longest data that goes into the send queue itself */
	RDMA_IOMAPSIZE, /* buffers that the peer may map for us */
	RDMA_ROUTE	/* struct ibv_path_data[]: the path to take */
};

/* errno: ENOPROTOOPT, EINVAL. rsocket(7) lists the options. */
int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen);
int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen);

/* F_GETFL and F_SETFL, of which O_NONBLOCK counts. errno: EINVAL for others. */
int rfcntl(int socket, int cmd, ... /* arg */);

/*
 * Writing into the memory of the peer
 */

/* Maps memory for the peer's riowrite() (prot PROT_WRITE), or registers it for one's own data
 * (PROT_NONE). offset -1: the library chooses. flags is 0. The offset, by which the peer reaches it
 * after it has received data that were sent after this call; -1 and errno: ENOTCONN, EINVAL, ENOMEM
 * when the peer has no room for it. */
off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset);
/* Ends a mapping of this address and length. errno: EINVAL. */
int riounmap(int socket, void *buf, size_t len);
/* Writes into what the peer has mapped at this offset. The peer learns nothing of it, but has it
 * before it gets what is sent later. Bytes written, or (size_t)-1 with errno, as rsend(); EFAULT
 * where nothing is mapped. */
size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags);

#ifdef __cplusplus
}
#endif

#endif
