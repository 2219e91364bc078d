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
struct sh_fault_msg;
struct sh_status;
struct sh_wire_mad;

#define ROOMS_MAX 4
#define ROOM_DIRS 2

/*
 * A directory of the instance, in which files that programs open are made. The daemon makes the
 * directory. It hears of each file that is closed in the way that closing (IN_CLOSE_WRITE or
 * IN_CLOSE_NOWRITE) says. protocol.h lists the names of such files.
 */
struct room_dir {
	const char *name;
	uint32_t closing;
};

enum port_event {
	PORT_ACTIVE,
	PORT_ERR,
	PORT_LID_CHANGE,
	PORT_PKEY_CHANGE,
	PORT_SM_CHANGE,
	PORT_CLIENT_REREGISTER,
	PORT_DEVICE_FATAL,
};

/*
 * A room keeps its state in a structure of its own, and sets a pointer to it in struct kernel. Each
 * operation but serve may be NULL. One thread calls them all, and no operation waits for a client.
 * Rooms are asked in the order of rooms[].
 */
struct room {
	struct room_dir dirs[ROOM_DIRS]; /* name NULL: there is none */

	/*
	 * init may fail half-way (-errno). exit follows in any case, even if init was not called,
	 * and frees what there is. Device memory is there in init, the directory of the instance is
	 * not.
	 */
	int (*init)(struct kernel *k);
	void (*exit)(struct kernel *k);
	/*
	 * Makes what /sys and /dev have of the room on a host, before the HCAs of the host are
	 * made. 0 or -errno.
	 */
	int (*files)(struct kernel *k, uint32_t host);
	/* Has the loop wait for descriptors of the room, which come to ready. 0 or -errno. */
	int (*watch)(struct kernel *k);
	/*
	 * The instance is to end, while its wire is still there: tells peers elsewhere, once more
	 * each time it is called. False: there is nothing to say, or all of them have heard it.
	 */
	bool (*leave)(struct kernel *k);
	/*
	 * The instance ends, while its memory is still there. Afterwards come dead, for each
	 * process that is left, and exit. Programs that still run keep their descriptors.
	 */
	void (*end)(struct kernel *k);

	/*
	 * As dispatch(). -ENOSYS: the request is none of this room's, and nothing has happened.
	 * -EINPROGRESS: a client's thread is in the way. The request has changed nothing that the
	 * next try would not find so, there is no reply, and the request is served again soon; it
	 * has KEPT_MAX (conn.h) bytes at most. Never so if late.
	 */
	int (*serve)(struct server *s, struct conn *c, const void *m, size_t len, bool late);
	/*
	 * A file in dirs[dir] was closed by its last user in this way. The name is any that was
	 * ever there: the file may belong to something that has ended meanwhile. A request that
	 * comes after a close is served after this.
	 */
	void (*closed)(struct kernel *k, unsigned int dir, const char *name);
	/* Files may have been closed that closed was not called for: the room is to look itself. */
	void (*missed)(struct kernel *k);
	/*
	 * Looks again at the files that fifo_doubt() was called for. Before each request, as long
	 * as the doubt is fresh; tick does it later.
	 */
	void (*doubted)(struct kernel *k);
	/*
	 * A descriptor is ready that the room has the loop wait for, by server_room_event() with
	 * this value. It may have been closed meanwhile.
	 */
	void (*ready)(struct kernel *k, uint32_t value);
	/* Once a second, and when device memory may have something for the daemon. */
	void (*spill)(struct kernel *k);
	/* Is there anything to try again? Then retry is called soon, and less and less often. */
	bool (*unfinished)(const struct kernel *k);
	void (*retry)(struct kernel *k);
	void (*tick)(struct kernel *k); /* once a second */

	/*
	 * The process's connection has closed. It may make another one, and so go on.
	 */
	void (*detached)(struct kernel *k, struct kproc *p);
	/*
	 * The process, or its image, has ended, or the instance ends. Called once. A room that
	 * still refers to p has counted that in p->refs, and calls proc_put() later. Descriptors of
	 * p may live on in other processes.
	 */
	void (*dead)(struct kernel *k, struct kproc *p);
	/*
	 * Is all of this range of the process's addresses memory that the device may read, or write
	 * if out?
	 */
	bool (*reachable)(struct kernel *k, const struct kproc *p, uint64_t addr, uint64_t len,
			  bool out);
	/* Frees locks that dead threads held: of QPs of one HCA; of everything else. */
	void (*orphans_of_hca)(struct kernel *k, uint32_t hca);
	void (*orphans)(struct kernel *k);

	/*
	 * A management datagram has come over the wire. Its port exists; nothing else is checked.
	 */
	void (*mad)(struct kernel *k, const struct sh_wire_mad *m);

	/* Tells every open file of the HCA. */
	void (*port_event)(struct kernel *k, uint32_t hca, uint32_t port, enum port_event event);
	/* A multicast group of the subnet has got its first member, or has lost its last. */
	void (*group)(struct kernel *k, const uint8_t mgid[16], bool there);
	/*
	 * Makes the QPs of an HCA that has failed silent. -EINPROGRESS: not yet all of them; it is
	 * called again, also if it was another room that said so.
	 */
	int (*silence)(struct kernel *k, uint32_t hca);
	/*
	 * A fault of a kind that is the room's, or one that concerns all kinds (SH_FAULT_SEED,
	 * SH_FAULT_OFF). Its hosts exist. Adds to *ended how many faults of the room it has ended.
	 * True: it was the room's alone, and st says how it went.
	 */
	bool (*fault)(struct kernel *k, const struct sh_fault_msg *m, unsigned int *ended,
		      struct sh_status *st);
	/*
	 * The QPs of an HCA, one after the other. *at is NULL at first. False: there are no more.
	 */
	bool (*next_qp)(struct kernel *k, uint32_t hca, const void **at, uint32_t *qpn);

	/*
	 * Calls fn for each port that gets what is sent to a multicast LID: of groups that ports
	 * have joined, or that QPs are attached to. Of one group it may come more than once.
	 */
	void (*group_ports)(struct kernel *k,
			    void (*fn)(void *arg, uint16_t mlid, uint32_t hca, uint32_t port),
			    void *arg);

	/* Members of the whole object, of the daemon's, of an HCA's, and of its counters'. */
	void (*show)(struct kernel *k, struct out *o);
	void (*show_faults)(struct kernel *k, struct out *o); /* elements of the array */
	void (*show_daemon)(struct kernel *k, struct out *o);
	void (*show_hca)(struct kernel *k, uint32_t hca, struct out *o);
	void (*show_counters)(struct kernel *k, uint32_t hca, struct out *o);
};

/* Has the daemon been told to end the instance? */
bool kern_ends(const struct kernel *k);

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
