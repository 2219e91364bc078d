/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The subnet: one switch, whose port N is cabled to the port that had LID N when the instance
 * began. A MAD travels on it from the port of a file to the receiver that answers it, and the
 * answer travels to the file.
 */
#ifndef SOFTHCA_KERNEL_UMAD_FABRIC_H
#define SOFTHCA_KERNEL_UMAD_FABRIC_H

#include "softhca/device/transport/packet.h"
#include "umad.h"

/* A place where MADs arrive, and the port by which they do. */
struct mad_node {
	bool is_switch;
	uint32_t hca, port; /* of a CA; hca counts over all hosts */
	uint32_t in;
};
/* The way of a MAD from a file, or from a UD QP to QP 1. */
struct mad_way {
	uint32_t hca, port; /* the sender, or the port beside the switch, if it is that */
	bool from_switch;
	uint16_t slid, dlid;
	uint32_t qpn;	 /* the sender's: above 1, a UD QP's */
	uint32_t to_qpn; /* the same of the receiver */
	uint8_t sl;
	uint16_t pkey;	     /* as the datagram has it */
	uint16_t pkey_index; /* once it has come to QP 1 of a port, in that port's table */
	uint64_t number; /* of what the sender keeps until it is acknowledged or answered; or 0 */
	bool whole;	 /* RMPP of the sender's kernel sends it: its segments travel together */
	bool grh;
	struct sh_grh route; /* with grh */
};

uint32_t fabric_ports(const struct umad *u); /* of the switch */
uint32_t fabric_port_of(const struct umad *u, uint32_t hca, uint32_t port);
/* Of 1 to fabric_ports(): what the port of the switch is cabled to. */
void fabric_end_of(const struct umad *u, uint32_t number, uint32_t *hca, uint32_t *port);
bool fabric_link(struct umad *u, uint32_t hca, uint32_t port); /* is it up? */
uint64_t fabric_switch_guid(void);
/* Of each GID that softhca gives a port or the switch. */
#define FABRIC_PREFIX UINT64_C(0xfe80000000000000)
uint16_t fabric_lid_of(const struct umad *u, const struct mad_node *n);
/* The port of the switch by which a LID is reached: 0 for its own, 255: none. */
uint8_t fabric_forward(struct umad *u, uint32_t lid);

/*
 * The P_Key of what a node sends to answer what has come by that way: the one in its own table,
 * which may be a full member's where the asker is a limited one. The switch is a full member of all
 * partitions.
 */
uint16_t fabric_pkey(struct umad *u, const struct mad_node *n, const struct mad_way *came);

/* Can a directed MAD leave that port? A kernel refuses to send the others. */
bool fabric_route_ok(const uint8_t *mad, uint32_t port);
/* Puts a MAD that came that way into a file, in that message. */
void fabric_give(struct umad_file *f, struct umad_msg *m, const struct mad_way *w, uint32_t id,
		 const uint8_t *mad);
/* Does a MAD that is sent to a port by a way that segments_begin() was told arrive there? */
bool fabric_arrives(struct umad *u, const struct mad_way *w);
/*
 * Carries a MAD to where it goes. It may be lost on its way, as on every fabric. Copies it first:
 * the answer may come at once, and end what the MAD is a part of.
 */
void fabric_send(struct umad *u, const struct mad_way *way, const uint8_t *mad, size_t len);

#endif
