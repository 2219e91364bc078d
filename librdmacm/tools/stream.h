// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Connections by rsockets or by sockets, and the options of the tools that measure them. Functions
 * that return int return 0, or -1 after a message to standard error. */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>

#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

#include "figures.h"

/* The calls of one kind of sockets. */
struct stream_calls {
	const char *prefix; /* of their names, in messages */
	int (*socket)(int domain, int type, int protocol);
	int (*bind)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*listen)(int fd, int backlog);
	int (*accept)(int fd, struct sockaddr *addr, socklen_t *len);
	int (*connect)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*shutdown)(int fd, int how);
	int (*close)(int fd);
	ssize_t (*send)(int fd, const void *buf, size_t len, int flags);
	ssize_t (*recv)(int fd, void *buf, size_t len, int flags);
	ssize_t (*sendto)(int fd, const void *buf, size_t len, int flags,
			  const struct sockaddr *addr, socklen_t addrlen);
	ssize_t (*recvfrom)(int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
			    socklen_t *addrlen);
	int (*poll)(struct pollfd *fds, nfds_t n, int timeout);
	int (*set)(int fd, int level, int name, const void *value, socklen_t len);
	int (*get)(int fd, int level, int name, void *value, socklen_t *len);
	int (*fcntl)(int fd, int cmd, ...);
};

struct stream {
	const char *name; /* of the tool */
	const char *server, *bind, *port;
	struct rdma_addrinfo hints;
	const struct stream_calls *calls;
	bool async;    /* sleeps in poll() where a call would block */
	bool blocking; /* the calls themselves sleep */
	bool verify, resolve, fork, echo;
	bool datagrams;				  /* SOCK_DGRAM */
	bool io_maps;				  /* wants RDMA_IOMAPSIZE */
	bool custom;				  /* one test, of size, transfers and iterations */
	bool all;				  /* all sizes */
	long buffer_size, inline_size, keepalive; /* -1: as they are */
	long size, transfers, iterations;

	int fd;		   /* of the connection, or -1 */
	double idle_since; /* when a call that does not sleep first found nothing to do; 0: it did */
	unsigned char sent, received; /* the next byte of each direction, with verify */
	int (*run)(struct stream *stream, const struct figures *test, char *buf);
};

/* As a tool begins. */
#define STREAM_DEFAULTS(called, test)                                                              \
	{                                                                                          \
		.name = called, .port = "7471", .calls = &stream_rsockets,                         \
		.hints = {.ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC},                 \
		.buffer_size = 512 << 10, .inline_size = -1, .keepalive = -1, .size = 1000,        \
		.transfers = 1000, .iterations = 1, .run = test,                                   \
	}

extern const struct stream_calls stream_rsockets;

/* What the usage of rstream and riostream says alike. */
#define STREAM_USAGE                                                                               \
	"\t[-s server_address]\n"                                                                  \
	"\t[-b bind_address]\n"                                                                    \
	"\t[-f address_format]\n"                                                                  \
	"\t    name, ip, ipv6, or gid\n"                                                           \
	"\t[-B buffer_size]\n"                                                                     \
	"\t[-i inline_size]\n"                                                                     \
	"\t[-I iterations]\n"                                                                      \
	"\t[-C transfer_count]\n"                                                                  \
	"\t[-S transfer_size or all]\n"
/* And udpong's. */
#define STREAM_USAGE_TESTS                                                                         \
	"\t[-T test_option]\n"                                                                     \
	"\t    a|async - asynchronous operation (use poll)\n"                                      \
	"\t    b|blocking - use blocking calls\n"                                                  \
	"\t    n|nonblocking - use nonblocking calls\n"

/* Takes b, s, B, f, i, I, C, S, p, k or T of the command line. letters: those of T that the tool
 * has. */
int stream_option(struct stream *stream, int letter, const char *text, const char *letters);

/* For the flags of calls: none, if they are to sleep. */
int stream_flags(const struct stream *stream);

/*
 * After the call of this name has failed: 0 if it is to be repeated, when it has slept if it
 * should.
 */
int stream_again(struct stream *stream, short events, const char *call);

/* In which the other end does nothing that this one waits for, in s: it will not do it any more. */
enum { STREAM_PATIENCE = 30 };

/* Says so. Returns -1. */
int stream_idle(const struct stream *stream);

/* Says that the peer has ended. Returns -1. */
int stream_ended(const struct stream *stream);

/* All bytes, however many calls it takes. stream_receive() fails if the peer has ended. */
int stream_send(struct stream *stream, const char *buf, size_t len);
int stream_receive(struct stream *stream, char *buf, size_t len);

/* Writes the next bytes of the pattern; compares with them. */
void stream_fill(unsigned char *next, char *buf, size_t len);
int stream_check(unsigned char *next, const char *buf, size_t len);

/*
 * Both ends say that they are ready, by 16 bytes: of the pattern, with verify and without maps,
 * which have their own.
 */
int stream_sync(struct stream *stream);

/* Connects to stream->server. */
int stream_connect(struct stream *stream);

/* Returns an rsocket that listens, or one that is bound and takes datagrams, or -1. */
int stream_listen(struct stream *stream);

/* Waits for a connection; addr and len, which may be NULL, as of accept(). */
int stream_accept(struct stream *stream, int listener, struct sockaddr *addr, socklen_t *len);

/* Ends the connection, if there is one. */
void stream_close(struct stream *stream);

/* Names a test: 64_lat, 4k_bw. */
void stream_name_test(char *name, size_t len, long size, const char *kind);

/* Connects or accepts, runs the tests, disconnects. Returns what the tool exits with. */
int stream_run(struct stream *stream);

#endif
