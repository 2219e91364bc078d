/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The wire's engine: a process of the instance, which the daemon forks. It is a client like any
 * other, but has the sockets: it sends what leaves the instance, and executes what comes. The
 * daemon itself never waits for a lock that a client may hold; the engine may.
 */
#ifndef SOFTHCA_WIRE_ENGINE_H
#define SOFTHCA_WIRE_ENGINE_H

#include <sys/types.h>

#include "softhca/device/memory/instance.h"

#define SH_WIRE_GO    'g' /* the daemon: clients can connect */
#define SH_WIRE_READY 'r' /* the engine: it sends and receives */

/*
 * From the daemon, with a group's socket (sockets.h): it takes the place of what was in that slot,
 * if anything was. Without a socket the slot becomes empty. The engine does not answer.
 */
#define SH_WIRE_GROUPS 128
struct sh_wire_slot {
	uint32_t slot;
	uint64_t ports; /* as in sh_wire_arrive_group() */
	uint8_t mgid[16];
};

/*
 * Forks the engine of the instance in that directory. fd: the sockets, which both processes have
 * afterwards. unwanted: a descriptor that the engine closes, or -1. Returns its number, with *link:
 * the daemon writes SH_WIRE_GO there, and reads SH_WIRE_READY. From then on management datagrams go
 * over it in both directions, each of them a message of a struct sh_wire_mad. Neither end waits for
 * room: what finds none is lost. The link ends when either process does. An engine whose daemon was
 * killed goes on for the programs of the instance, which do so, too, and ends with the last of
 * them. Or -errno. The caller has no thread yet.
 */
pid_t sh_wire_fork(const struct sh_wire_config *wire, const int fd[SH_WIRE_MOST], const char *dir,
		   int unwanted, int *link);

#endif
