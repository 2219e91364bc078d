/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The sockets of the wire, one for each address. They need no privilege. The kernel drops what
 * comes from outside of the prefix and is of no peer.
 */
#ifndef SOFTHCA_WIRE_SOCKETS_H
#define SOFTHCA_WIRE_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

#include "softhca/device/memory/instance.h"

/*
 * Opens a socket for each address of *wire, at port 4791, in fd[], and sets the MTU to what all of
 * their interfaces can carry. 0; or -errno, with no socket open, and text[len] says what to do.
 */
int sh_wire_open(struct sh_wire_config *wire, int fd[SH_WIRE_MOST], char *text, size_t len);
void sh_wire_close(const struct sh_wire_config *wire, const int fd[SH_WIRE_MOST]);
/*
 * May other instances of the wire be on this machine? It has another address that is on the wire,
 * as all of 127/8 is.
 */
bool sh_wire_shared(const struct sh_wire_config *wire);
/*
 * The index of the interface that has the address now; 0: none has. An interface that is made again
 * has another one.
 */
unsigned int sh_wire_index(struct sh_ip address);
/*
 * The address is at another interface than when its socket was opened: there the socket sends to
 * groups. 0 or -1.
 */
int sh_wire_move(int fd, struct sh_ip address);

/*
 * Each group has a socket for each interface that has an address of the wire. What comes to it is
 * for members of that group, at the ports whose addresses that interface has. Several groups may
 * have the same group of IP: then each of their sockets gets what comes. Datagrams to groups leave
 * by the sockets of addresses, and routers do not pass them on. Other instances of this machine get
 * them, too.
 *
 * Opens the socket at the interface that has the address `number`, joins the group there, and says
 * in *ports which ports are there. -EALREADY: an address with a smaller number is at the same
 * interface. Or -errno: the kernel does not permit it.
 */
int sh_wire_open_group(const struct sh_wire_config *wire, uint32_t number, const uint8_t mgid[16],
		       uint64_t *ports);
/*
 * Leaves the group at once, even if another process has the socket too, and closes this descriptor.
 */
void sh_wire_close_group(const struct sh_wire_config *wire, uint32_t number, int fd,
			 const uint8_t mgid[16]);

/* Bytes of the receive buffer that the kernel has granted. */
unsigned int sh_wire_buffer(int fd);
/*
 * Packets that the kernel has dropped: the buffer was full, or they came from neither the network
 * nor a peer.
 */
unsigned int sh_wire_dropped(int fd);

#endif
