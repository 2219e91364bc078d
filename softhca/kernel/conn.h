/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Control connections.
 */
#ifndef SOFTHCA_KERNEL_CONN_H
#define SOFTHCA_KERNEL_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "softhca/protocol.h"
#include "user.h"

struct kproc;
struct server;

/* Bytes of a request that is tried again: the longest is a command. */
#define KEPT_MAX (sizeof(struct sh_command) + sizeof(struct sh_pin_result) + SH_COMMAND_MAX)

struct conn {
	int fd;
	bool greeted;
	uint32_t host;
	pid_t pid;
	struct kproc *proc; /* NULL: the command */
	struct given given; /* for its next request */
	/*
	 * A request that was tried in vain, its length (0: there is none), and when it came: by the
	 * clock, and for sh_grace_over().
	 */
	uint64_t kept[KEPT_MAX / 8];
	size_t kept_len;
	uint64_t since, moment;
	struct conn *prev, *next; /* among connections that have such a request */
};

void conn_accept(struct server *s);
/*
 * Receives a request and has it served. Closes a connection whose client does not follow the
 * protocol, or has ended.
 */
void conn_serve(struct server *s, struct conn *c);
/*
 * Sends a reply. -EPIPE: it does not go out at once, so the client does not follow the protocol, or
 * has ended.
 */
int conn_reply(struct conn *c, const void *data, size_t len, const int *fds, unsigned int nfds);
int conn_status(struct conn *c, int err); /* the same with a struct sh_status; err: 0 or -errno */
void conn_close(struct server *s, struct conn *c);
/* Takes a descriptor for the next request, and drops the one before. */
void conn_given(struct conn *c, struct given given);
/*
 * A descriptor may be free again. Every tick tries this, too, since not only connections use
 * descriptors.
 */
void conn_listen_again(struct server *s);

#endif
