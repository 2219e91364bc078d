/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the device asks of the process it runs in. The device knows addresses of contexts, event queues and
 * time; processes, descriptors and threads are behind this table (softhca/host has it for daemon and shim).
 * No operation may block on another process, allocate on the data path, or take a device lock.
 */
#ifndef SOFTHCA_DEVICE_HOST_H
#define SOFTHCA_DEVICE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sh_dev;

/* A piece of a context's memory. */
struct sh_seg {
	uint64_t addr;			/* in the context; with SH_SEG_SHARED an offset in device memory, where its pages are */
	uint64_t len;
};
#define SH_SEG_SHARED (UINT64_C(1) << 63)	/* no address of a user has it */
#define SH_SEG_NOWHERE (UINT64_C(1) << 62)	/* nobody has anything there */

enum sh_copy {
	SH_COPY_OK = 0,
	SH_COPY_SRC = 1,		/* the source is not mapped (or not readable) any more */
	SH_COPY_DST = 2,		/* the destination is not */
	SH_COPY_GONE = 3,		/* the other process has ended: nobody is to blame */
};

struct sh_host_ops {
	/*
	 * Copy len bytes between memory of two contexts (either may be this process's). ctx 0 means this
	 * process's own memory given as a plain pointer. A page that is gone is reported, never a fault.
	 * Bytes before the failing page may have been copied. Destination segments are completed in their order: a CQE
	 * is given as its body and, as a second segment, its last byte.
	 */
	enum sh_copy (*copy)(void *host, uint32_t dst_ctx, const struct sh_seg *dst, unsigned int ndst,
			     uint32_t src_ctx, const struct sh_seg *src, unsigned int nsrc, uint64_t len);

	/* Write one record to the pipe of an event queue (its lock is held): 0, or -EAGAIN when it is full. */
	int (*event)(void *host, uint32_t evq, const void *record, size_t len);

	/*
	 * Have fn(dev, a, b) called from the helper thread of this process at or after deadline
	 * (CLOCK_MONOTONIC, ns). 0; 1: the caller wakes the helper thread, by wake(); -ENOMEM: it will not be called.
	 */
	int (*defer)(void *host, uint64_t deadline_ns,
		     void (*fn)(struct sh_dev *, uint64_t, uint64_t), uint64_t a, uint64_t b);

	/* Wake the helper thread of another process (proc.attention was incremented). */
	void (*wake)(void *host, uint32_t proc);

	/* Wake the threads of a process that doze until a CQE comes (proc.roused was incremented). */
	void (*rouse)(void *host, uint32_t proc);

	/*
	 * See to it that a thread that is stopped goes on at its landing, and nowhere else (life.h): true, and it has run
	 * nothing since the call began. false: it is not stopped, its word is another one, or it cannot be had. May be NULL.
	 */
	bool (*divert)(void *host, uint32_t pid, uint32_t tid, uint64_t self_at, uint64_t word);

	/*
	 * This thread was thrown (life.h), perhaps out of copy(), or before it woke the helper thread: what copy() had announced
	 * does not hold any more, and the helper thread looks. May be NULL.
	 */
	void (*gave_up)(void *host);

	uint64_t (*now)(void *host);	/* CLOCK_MONOTONIC, ns */

	/*
	 * Have [off, off + len) of the pool or of the shared area mapped in this process. 0; -ENOMEM:
	 * not here, but others may well have it; -EINVAL: it is in neither.
	 */
	int (*extend)(void *host, uint64_t off, uint64_t len);

	/* A line about damage found in device memory; rate-limited by the host. */
	void (*complain)(void *host, const char *what, uint32_t hca, uint32_t number);
};

#endif
