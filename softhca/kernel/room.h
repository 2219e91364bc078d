/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A room of the daemon is what stands behind one kind of file that programs open: uverbs. The rest
 * of the daemon (its loop, connections, processes, ports) knows rooms by this table alone, and each
 * room knows the rest by its headers. Nothing here is on the way of a message.
 */
#ifndef SOFTHCA_KERNEL_ROOM_H
#define SOFTHCA_KERNEL_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct kernel;
struct kproc;
struct out;
struct server;

/* The directory of a file that has been closed: for writing, or an end of an event queue. */
enum room_dir { ROOM_FILES, ROOM_EVENTS };

enum port_event {
	PORT_ACTIVE,
	PORT_ERR,
	PORT_LID_CHANGE,
	PORT_PKEY_CHANGE,
	PORT_SM_CHANGE,
	PORT_CLIENT_REREGISTER,
	PORT_DEVICE_FATAL,
};

struct room {
	/* What the room keeps in struct kernel. init may fail half-way (-errno): exit follows. */
	int (*init)(struct kernel *k);
	void (*exit)(struct kernel *k);
	/* The instance ends, while its memory is still there. */
	void (*end)(struct kernel *k);

	/* As dispatch(). -ENOSYS: the request is none of this room's. */
	int (*serve)(struct server *s, struct conn *c, const void *m, size_t len, bool late);
	void (*closed)(struct kernel *k, enum room_dir dir, const char *name);
	/* An event queue's pipe, or device memory, may have room for what was spilled. */
	void (*writable)(struct kernel *k, uint32_t evq);
	void (*spill)(struct kernel *k);
	/* Tries again what threads of clients were in the way of. */
	void (*retry)(struct kernel *k);

	void (*detached)(struct kernel *k, struct kproc *p); /* its connection has closed */
	void (*dead)(struct kernel *k, struct kproc *p); /* the process, or its image, has ended */
	/* Frees locks that dead threads held: of QPs of one HCA; of everything else. */
	void (*orphans_of_hca)(struct kernel *k, uint32_t hca);
	void (*orphans)(struct kernel *k);

	/* Tells every open file of the HCA. */
	void (*port_event)(struct kernel *k, uint32_t hca, uint32_t port, enum port_event event);
	/* Makes the QPs of an HCA silent. -EINPROGRESS: not yet all of them. */
	int (*silence)(struct kernel *k, uint32_t hca);
	/*
	 * The QPs of an HCA, one after the other. *at is NULL at first. False: there are no more.
	 */
	bool (*next_qp)(struct kernel *k, uint32_t hca, const void **at, uint32_t *qpn);

	/* Members of the object of an HCA, and of its counters. */
	void (*show_hca)(struct kernel *k, uint32_t hca, struct out *o);
	void (*show_counters)(struct kernel *k, uint32_t hca, struct out *o);
};

/* All rooms; the last is NULL. */
extern const struct room *const rooms[];

/* Calls an operation of each room that has it. */
#define ROOMS(op, ...)                                                                             \
	do {                                                                                       \
		for (const struct room *const *room_ = rooms; *room_; room_++)                     \
			if ((*room_)->op)                                                          \
				(*room_)->op(__VA_ARGS__);                                         \
	} while (0)

#endif
