/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The daemon's part of the wire (softhca/wire): opens its sockets, starts its engine, and sees the
 * engine end.
 */
#ifndef SOFTHCA_KERNEL_WIRE_ENGINE_H
#define SOFTHCA_KERNEL_WIRE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "softhca/device/memory/instance.h"
#include "softhca/device/transport/gsi.h"
#include "softhca/protocol.h"

struct kernel;
struct out;
struct server;

struct wire {
	pid_t pid; /* of the engine; 0: there is no wire */
	int link;  /* to the engine */
	int fd[SH_WIRE_MOST];
	bool ready, lost;
	struct wire_groups *groups; /* wire_groups.h */
};

/*
 * Opens the sockets and forks the engine, if *cfg asks for a wire. In the daemon, before it has a
 * thread or holds anything. Sets cfg's MTU. 0; or -errno, and text[len] says what to do.
 */
int wire_begin(struct wire *w, struct sh_wire_config *cfg, const char *dir, int ready_fd,
	       char *text, size_t len);
/* Ends the engine and closes the sockets. */
void wire_end(struct wire *w, const struct sh_wire_config *cfg);

/* Clients can connect: lets the engine do so. 0 or -errno. */
int wire_go(struct kernel *k, struct server *s);
/* Each second: a group is joined anew, where the interface of an address was made again. */
void wire_tick(struct kernel *k);
/*
 * The link has something to say. The engine is ready; or management datagrams have come, for the
 * rooms; or the engine has ended, and with it every card of the instance: programs get a fatal
 * event.
 */
void wire_event(struct kernel *k);
/*
 * Has the engine send a management datagram. False: it is lost, because too many wait or the engine
 * has ended.
 */
bool wire_send(struct kernel *k, const struct sh_wire_mad *m);

/*
 * The instance is to end: lets the rooms tell peers elsewhere, until these have heard it, but for a
 * second at most. Call it before wire_end().
 */
void wire_leave(struct kernel *k);

/* What addresses mean on the wire. */
uint16_t wire_lid(const struct kernel *k, struct sh_ip address); /* 0: it is not on the wire */
/* The port of this instance that has the address. False: none has, or there is no wire. */
bool wire_own(const struct kernel *k, struct sh_ip address, uint32_t *hca, uint32_t *port);
/* The address of a port of this instance; of a port that has that LID on the wire. */
struct sh_ip wire_address(const struct kernel *k, uint32_t hca, uint32_t port);
struct sh_ip wire_address_of(const struct kernel *k, uint16_t lid);

void wire_show(struct kernel *k, struct out *o);

#endif
