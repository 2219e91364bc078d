/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The client's end of the control connection, for the preloaded library and for the command. Functions return
 * 0 or -errno; -ECONNRESET: the daemon is gone. The caller serializes: a connection carries one request at a time.
 */
#ifndef SOFTHCA_HOST_CLIENT_H
#define SOFTHCA_HOST_CLIENT_H

#include <stddef.h>

#include "softhca/wire.h"

#define SH_CLIENT_FDS 4

/* Connect to the daemon of the instance directory: a descriptor (close-on-exec), or -errno. */
int sh_client_connect(const char *dir);

/*
 * Say hello on it, as a shim when memfd is not NULL: it gets a descriptor of the device memory then. again: 1 + the slot
 * of a process that lost its connection, else 0.
 */
int sh_client_hello(int fd, unsigned int host, uint32_t again, struct sh_hello_reply *reply, int *memfd);

/* One request and its reply of exactly rlen bytes (-EPROTO else; -ETIMEDOUT where the caller gave fd a limit); *nfds
 * descriptors come in fds[SH_CLIENT_FDS]. -EMFILE: the reply is there, and a descriptor of it is lost. */
int sh_client_request(int fd, const void *req, size_t len, void *reply, size_t rlen, int *fds,
		      unsigned int *nfds);

#endif
