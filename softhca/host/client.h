/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The client's end of the control connection, for the preloaded library and for the command.
 * Functions return 0 or -errno; -ECONNRESET: the daemon is gone. A connection carries one request
 * at a time, and the caller ensures that.
 */
#ifndef SOFTHCA_HOST_CLIENT_H
#define SOFTHCA_HOST_CLIENT_H

#include <stddef.h>

#include "softhca/protocol.h"

#define SH_CLIENT_FDS 4

/*
 * Connects to the daemon of the instance in that directory. Returns a close-on-exec descriptor or
 * -errno. -ESRCH: there is no /proc, by which a client reaches the daemon.
 */
int sh_client_connect(const char *dir);

/*
 * Says hello on fd. If memfd is not NULL, the caller is a shim and gets a descriptor of device
 * memory. again: 1 + the slot of a process that has lost its connection, else 0.
 */
int sh_client_hello(int fd, unsigned int host, uint32_t again, struct sh_hello_reply *reply,
		    int *memfd);

/*
 * Sends one request and waits for its reply. Returns -EPROTO if the reply does not have exactly
 * rlen bytes, and -ETIMEDOUT if the caller has given fd a time limit that runs out. *nfds
 * descriptors come in fds[SH_CLIENT_FDS]. -EMFILE: the reply has come, but a descriptor of it is
 * lost.
 */
int sh_client_request(int fd, const void *req, size_t len, void *reply, size_t rlen, int *fds,
		      unsigned int *nfds);

/* Hands the daemon the descriptor of that number, or says that there is none. */
int sh_client_give(int fd, int number);

#endif
