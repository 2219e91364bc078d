/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The instance that this process belongs to, and the control connection.
 *
 * Everything in the preloaded library may run in any program, in any thread, and before the
 * library's own constructor. Internal functions return 0 or -errno.
 */
#ifndef SOFTHCA_SHIM_ATTACH_H
#define SOFTHCA_SHIM_ATTACH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "softhca/device/memory/dev.h"
#include "softhca/host/address.h"
#include "compiler.h"

struct shim {
	bool active;		 /* this process belongs to an instance */
	bool several;		 /* the instance has more than one host */
	char name[SH_WIRE_NAME]; /* of the host; empty: the machine's */
	unsigned int host;
	char dir[PATH_MAX];  /* directory of the instance */
	char root[PATH_MAX]; /* dir/host<K>: replaces / in redirected paths */
	size_t root_len;
	dev_t files_dev; /* file system of the contexts' files */
	ino_t root_ino;
	/*
	 * The way of doorbells is trap, by SOFTHCA_MMIO or else by the instance; known once
	 * connected.
	 */
	bool trap;
};
extern struct shim shim;
extern struct sh_dev shim_dev; /* inst is NULL before the first connection */

/*
 * What a thread that is about to enter the device has to heed, in one word, because it looks at
 * every post. SHIM_STALE: this is a forked child that has no connection of its own yet. And for
 * each thread that runs a handler of the program on an alternate stack, SHIM_ALTERNATE
 * (signals/alternate.h).
 */
#define SHIM_STALE     1u
#define SHIM_ALTERNATE 2u
extern uint32_t shim_unusual;

static inline bool shim_stale(void)
{
	return __atomic_load_n(&shim_unusual, __ATOMIC_ACQUIRE) & SHIM_STALE;
}

void shim_init(void);
bool shim_host_exists(unsigned int host); /* by the instance's files; shim.dir is set */
static inline bool shim_active(void)
{
	extern bool shim_ready;

	if (unlikely(!__atomic_load_n(&shim_ready, __ATOMIC_ACQUIRE)))
		shim_init();
	return shim.active;
}

/* Take the control connection, making it first if needed. Nothing is held on failure. */
int shim_control_get(void);
/*
 * The same for an open() of a device file. Says once why that is not possible. If there is no
 * daemon any more, or it ends now, the error is -ENXIO, as of a device that has gone.
 */
int shim_control_to_open(void);
int shim_request(const void *req, size_t len, void *reply, size_t rlen, int *fds,
		 unsigned int *nfds);
/*
 * The same directly after shim_control_get(), which has just seen that the descriptor is still the
 * connection's. A second look would take two system calls and find the same.
 */
int shim_request_now(const void *req, size_t len, void *reply, size_t rlen, int *fds,
		     unsigned int *nfds);
void shim_control_put(void);
/*
 * Of the connection; another one has another number. 0: this process and those it was forked from
 * had none.
 */
uint32_t shim_control_number(void);
/*
 * The same without connecting, whatever the connection's state: for moments in which nothing else
 * may happen.
 */
void shim_control_hold(void);
/*
 * The same, making the connection if needed and possible. A program may have closed it, and the
 * daemon may have ended: shim_control_gone() tells the two apart where a request fails with -EIO.
 */
void shim_control_reach(void);
/* The same for a caller that has the connection, which may have been closed since. */
void shim_control_again(void);
/*
 * Does this process use the memory of its parent, which has a connection and lives? So does a child
 * by vfork() or clone(CLONE_VM). It uses that connection, and never makes another one: what it
 * stored about that would be its parent's.
 */
bool shim_borrowed(void);
/* There is no connection, and no daemon. The control connection is held. */
bool shim_control_gone(void);
bool shim_control_mine(void); /* this thread has the connection */
/*
 * The descriptor of device memory, or -1 if it no longer refers to it. The control connection is
 * held.
 */
int shim_memory_fd(void);
/*
 * The program is about to give this number to another file: what this process has under it, of the
 * connection or an event queue, gets another one. Waits for uses of it to end. False: there is
 * nothing of that, this thread is in the middle of a use, or no descriptor is left.
 */
bool shim_control_move(int fd);
/* Is that file device memory? */
bool shim_memory_is(dev_t dev, ino_t ino);
/* First of all in a forked child. */
void shim_forked(void);
/* For the data path of a forked child: makes a connection of its own. */
bool shim_refresh(void);

#endif
