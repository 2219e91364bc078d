/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The daemon's loop. It serves one event at a time. The files beside it serve what they are named
 * after: files.h what programs close, conn.h connections, dispatch.h requests, retry.h requests
 * that could not be served at once.
 */
#ifndef SOFTHCA_KERNEL_SERVER_H
#define SOFTHCA_KERNEL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softhca/protocol.h"
#include "room.h"

struct conn;
struct kernel;

enum source {
	SRC_LISTEN,
	SRC_CONN,
	SRC_INOTIFY,
	SRC_SIGNAL,
	SRC_TICK,
	SRC_ATTENTION,
	SRC_PIDFD,
	SRC_AGAIN,
	SRC_WIRE,
	SRC_ROOM /* the first room's, then the others' */
};

struct server {
	struct kernel *k;
	struct conn **conns; /* by descriptor */
	int nconns;
	int listen_fd, inotify, signals, tick, attention;
	int again;	  /* a timer, for what was not possible yet */
	uint64_t nap;	  /* what it is set to; 0: it is not set */
	uint64_t suspect; /* a moment for sh_grace_suspect(); 0: none yet */
	struct conn *kept;
	struct conn *capturing;	      /* whose capture runs; NULL: none does */
	int wd[ROOMS_MAX][ROOM_DIRS]; /* of the rooms' directories */
	unsigned int ticks, idle;
	bool leased_once;
	/* No descriptor was left for another connection: new ones wait. */
	bool deaf;
	uint64_t message[SH_MSG_MAX / 8];
};

/*
 * Has the loop serve this descriptor when there is something to read. value tells those of a source
 * apart.
 */
int server_watch(struct server *s, int fd, enum source src, uint32_t value);
/*
 * What epoll is to say when a descriptor of the room is ready: then its operation ready gets the
 * value.
 */
uint64_t server_room_event(const struct room *room, uint32_t value);
/*
 * Makes the descriptors that the loop waits for. -errno: server_take_down() closes those that there
 * are.
 */
int server_set_up(struct server *s);
void server_take_down(struct server *s);
/* One event, as epoll brings it: the source in the upper half, the value in the lower. */
void server_serve(struct server *s, uint64_t what);
void server_tick(struct server *s); /* each second */

/*
 * Runs until the instance ends. Announces st when clients can connect. A failure is the caller's to
 * announce.
 */
int server_run(struct kernel *k, int ready_fd, struct sh_status *st);
/* Writes st to ready_fd, and closes it. False: no process reads it any more. */
bool server_announce(int ready_fd, const struct sh_status *st);

#endif
