/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * States of ports and HCAs, and what a status of the daemon says.
 */
#ifndef SOFTHCA_KERNEL_PORTS_H
#define SOFTHCA_KERNEL_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "softhca/protocol.h"

struct kernel;

/* An HCA, as the daemon knows it beside device memory. */
struct khca {
	uint32_t host, unit; /* unit counts per host */
	/* It has failed, and takes only commands that end something. */
	bool fatal;
	/* It has failed, and a stopped client holds a QP that is not silent yet. */
	bool loud;
	uint32_t sm_ports;  /* bit N: a subnet manager has said that it is at port N */
	uint32_t cut_ports; /* bit N: the switch has disabled its end of the cable of port N */
};

/*
 * For the softhca command. The text of a status says what to do about a failure.
 */
void status_say(struct sh_status *st, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The CapabilityMask of a port. */
uint32_t port_capabilities(const struct kernel *k, uint32_t hca, uint32_t port);
/* A port of a card that has failed is not. */
bool port_active(struct kernel *k, uint32_t hca, uint32_t port);
enum port_physical { PORT_POLLING = 2, PORT_DISABLED = 3, PORT_LINK_UP = 5 };
/* As PortInfo and verbs number it: of what is down, the end that has been disabled is Disabled. */
enum port_physical port_physical(struct kernel *k, uint32_t hca, uint32_t port);
void hcas_retry(struct kernel *k); /* silences failed HCAs that are still loud */
/* False: a client is in the way, try again. Never false if late. */
bool port_change(struct kernel *k, const struct sh_port_msg *m, bool late, struct sh_status *st);
#define PORT_PKEYS 32 /* of a block */
/*
 * Sets a block of P_Keys: the port has one event, if any changes. -EIO, -EBUSY: nothing has
 * changed.
 */
int port_pkeys(struct kernel *k, uint32_t hca, uint32_t port, uint32_t first,
	       const uint16_t pkey[PORT_PKEYS]);
/* The active MTU of each port, as verbs number them: the wire may carry less than the instance. */
uint8_t port_mtu(const struct kernel *k);
/* A subnet manager gives the switch a LID, which may be a port's until that gets another one. */
int port_switch_lid(struct kernel *k, uint32_t lid);
uint32_t switch_lid(const struct kernel *k); /* 0: there is no switch */
void ports_fail(struct kernel *k);	     /* each card fails for good */
void ports_end(struct kernel *k); /* the instance ends: a fatal event for every open file */

#endif
