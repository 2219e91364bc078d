/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Sends packets to one address with as few system calls as possible. Between instances of softhca
 * one datagram of the kernel's carries many packets of one length. The kernel or the network card
 * takes it apart (UDP_SEGMENT), and gives the packets the identifications 0, 1, 2 and so on. Not
 * all cards are known to do so. Receivers other than softhca may check the ICRC with the
 * identification, so they get datagrams of one packet each. Where the kernel refuses a datagram of
 * several packets, these leave one by one, with identification 0.
 */
#ifndef SOFTHCA_WIRE_OUTGOING_H
#define SOFTHCA_WIRE_OUTGOING_H

#include <sys/socket.h>

#include "address.h"
#include "roce.h"

#define SH_UDP_SEGMENT 103 /* headers of glibc before 2.30 do not have them */
#define SH_UDP_GRO     104

/* Where packets go. */
struct sh_outgoing_way {
	struct sh_roce_way ip;
	int fd;
	bool merge; /* may a datagram carry several? */
	bool heard; /* has the peer been heard of late? The others may not fill the socket */
};

/* What has become of packets, for their sender to count. */
struct sh_outgoing_done {
	uint32_t sent, unsent;
	bool refused; /* the system takes no datagrams apart: gather no more of them */
};

/*
 * Sends one packet at once. payload: p->payload.len bytes. spoilt: with a wrong bit behind the
 * ICRC.
 */
struct sh_outgoing_done sh_outgoing_send(const struct sh_outgoing_way *way,
					 const struct sh_packet *p, const unsigned char *payload,
					 bool spoilt);

/*
 * The same for a packet that may wait until its thread calls sh_outgoing_flush(). The packets that
 * wait belong to the calling thread. If the thread is thrown out of one of these functions, it has
 * to call sh_outgoing_begin(), which forgets them. In a turn (device/transport/wire.h) it gathers
 * and flushes pinned, and they stay.
 */
void sh_outgoing_begin(void);
struct sh_outgoing_done sh_outgoing_gather(const struct sh_outgoing_way *way,
					   const struct sh_packet *p, const unsigned char *payload);
struct sh_outgoing_done sh_outgoing_flush(void);
/*
 * Where to put the payload of the packet that is gathered next, up to 4096 bytes, so that it is not
 * copied again. NULL: it goes elsewhere.
 */
unsigned char *sh_outgoing_room(const struct sh_outgoing_way *way, const struct sh_packet *p);

#endif
