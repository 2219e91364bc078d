/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The sockets of the wire, one for each address. They need no privilege. The kernel drops what comes
 * from outside of the prefix.
 */
#ifndef SOFTHCA_WIRE_SOCKETS_H
#define SOFTHCA_WIRE_SOCKETS_H

#include <stddef.h>

#include "softhca/device/memory/instance.h"

/*
 * Opens a socket for each address of *wire, at port 4791, in fd[], and sets the MTU to what all of
 * their interfaces can carry. 0; or -errno, with no socket open, and text[len] says what to do.
 */
int sh_wire_open(struct sh_wire_config *wire, int fd[SH_WIRE_MOST], char *text, size_t len);
void sh_wire_close(const struct sh_wire_config *wire, const int fd[SH_WIRE_MOST]);

/* Bytes of the receive buffer that the kernel has granted. */
unsigned int sh_wire_buffer(int fd);
/* Packets that the kernel has dropped: the buffer was full, or they came from outside of the prefix. */
unsigned int sh_wire_dropped(int fd);

#endif
