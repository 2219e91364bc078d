/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * QP 1 of every port, as the UD QPs of programs reach it. No program can make that QP: the daemon
 * is behind it. A datagram to it is one record in a FIFO that the daemon reads. A record is written
 * as a whole or not at all, so a sender that ends leaves nothing half-done. What is sent to the
 * daemon while the FIFO is full is lost, as datagrams are.
 */
#ifndef SOFTHCA_DEVICE_TRANSPORT_GSI_H
#define SOFTHCA_DEVICE_TRANSPORT_GSI_H

#include "packet.h"

#define SH_GSI_QPN  1
#define SH_GSI_QKEY 0x80010000u
#define SH_GSI_SIZE 256 /* of every management datagram */
/* Of these, those of the communication manager: the class, and where the byte is that says it. */
#define SH_GSI_CLASS	1
#define SH_GSI_CLASS_CM 7
/* The FIFO's place among those of event queues (host.h): no queue has number 0. */
#define SH_GSI_EVQ	  0
#define SH_GSI_GENERATION 1
/*
 * A management datagram between QP 1 of a port of this instance and QP 1 of another one on the
 * wire.
 */
struct sh_wire_mad {
	uint32_t hca, port; /* of this instance */
	uint16_t lid, pkey; /* lid: of the other end */
	uint8_t mad[SH_GSI_SIZE];
};

/* OFFSET of each field as in the structure; all numbers are in the order of the host. */
struct sh_gsi_record {
	uint32_t hca, port; /* of the sender */
	uint32_t srcqp;
	uint16_t slid, dlid, pkey;
	uint8_t sl, grh; /* grh: 1, the datagram has one */
	struct sh_grh route;
	uint8_t mad[SH_GSI_SIZE];
};
_Static_assert(sizeof(struct sh_gsi_record) == 316, "a record");
/* The kernel writes as much to a FIFO as a whole. */
_Static_assert(sizeof(struct sh_gsi_record) <= 4096, "a record");

/*
 * Does QP 1 of a port take a datagram with that P_Key? index, if it is not NULL: where the port's
 * table has the key that fits. False: there is none, and the port has counted the datagram.
 */
bool sh_gsi_let_in(struct sh_hca *at, uint32_t port, uint16_t pkey, uint16_t *index);

/*
 * A packet has come to that port, or to the LID of the switch (at NULL), where no QP of a program
 * has its number. Takes it if it is for QP 1, and counts it if it is lost. False: it is for another
 * QP.
 */
bool sh_gsi_take(struct sh_dev *dev, struct sh_hca *at, uint32_t port, const struct sh_packet *p);

/*
 * Sends a management datagram from QP 1 of a port, in the daemon. The payload is of this process.
 * The switch's have the HCA that they go to as src_hca, and src_port 0; of faults they meet those
 * that lose or damage them.
 *
 * Waits for no lock. -EINPROGRESS: another thread holds one that the receiver needs, or the
 * receiver's process is exchanging pages, and the receiver has got nothing. suspect: ends the life
 * of a thread that holds a lock, if it is stopped. 0: the datagram is on its way. To a group, or
 * under faults, it is lost and counted if a lock is taken only now.
 */
int sh_gsi_send(struct sh_dev *dev, const struct sh_packet *p, bool suspect);
/*
 * A packet for QP 1 of that port has come over the wire. Of management datagrams only those of the
 * communication manager go on (struct sh_wire_ops); what does not go on is counted as a drop.
 */
void sh_gsi_arrive(struct sh_dev *dev, struct sh_hca *at, uint32_t port, const struct sh_packet *p);
/*
 * Sends a management datagram from QP 1 of a port over the wire. In the engine, inside of device
 * code. A thread that is thrown sends it twice.
 */
void sh_gsi_leave(struct sh_dev *dev, const struct sh_wire_mad *m);
/* Counts a datagram that will not be sent. */
void sh_gsi_lost(struct sh_dev *dev, const struct sh_packet *p);

#endif
