/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the device asks of the process that it runs in. The device knows addresses in contexts,
 * event queues and time. Processes, descriptors and threads are behind this table, which
 * softhca/host provides for the daemon and the shim. No operation may block on another process,
 * allocate on the data path, or take a device lock.
 */
#ifndef SOFTHCA_DEVICE_HOST_H
#define SOFTHCA_DEVICE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sh_dev;

/* A piece of a context's memory. */
struct sh_seg {
	/* In the context; with SH_SEG_SHARED: offset of its pages in device memory. */
	uint64_t addr;
	uint64_t len;
};
#define SH_SEG_SHARED  (UINT64_C(1) << 63) /* no user address has this bit */
#define SH_SEG_NOWHERE (UINT64_C(1) << 62) /* there is no memory */

enum sh_copy {
	SH_COPY_OK = 0,
	SH_COPY_SRC = 1,   /* the source is not mapped (or not readable) any more */
	SH_COPY_DST = 2,   /* the destination is not */
	SH_COPY_GONE = 3,  /* the other process has ended: neither side is at fault */
	SH_COPY_APART = 4, /* of seal(): the host cannot do that, and has done nothing */
};

struct sh_host_ops {
	/*
	 * Copies len bytes between memory of two contexts, either of which may be this process's.
	 * ctx 0: plain pointers to this process's own memory. A page that is gone is reported and
	 * never causes a fault; bytes before it may have been copied. The host completes
	 * destination segments in their order: the device gives a CQE as its body and, as a second
	 * segment, its last byte.
	 */
	enum sh_copy (*copy)(void *host, uint32_t dst_ctx, const struct sh_seg *dst,
			     unsigned int ndst, uint32_t src_ctx, const struct sh_seg *src,
			     unsigned int nsrc, uint64_t len);

	/*
	 * Copies to one segment as copy() does, and word to *commit, which is in device memory:
	 * both in one system call, and word last. A thread that is stopped has done nothing that
	 * others see, or all. If the copy fails, *commit is as before. SH_COPY_APART: copy() has to
	 * do it. May be NULL.
	 */
	enum sh_copy (*seal)(void *host, uint32_t dst_ctx, const struct sh_seg *dst,
			     uint32_t src_ctx, const struct sh_seg *src, unsigned int nsrc,
			     uint64_t len, uint64_t *commit, uint64_t word);

	/*
	 * For the daemon, whose copy() waits for no process: announces that this thread is about to
	 * copy to memory of that context, until reach_end(). A client's copy() does so by itself.
	 * False: the process is exchanging pages of its memory, and what is copied there meanwhile
	 * would be lost. Calls for the same process nest. Both may be NULL.
	 */
	bool (*reach)(void *host, uint32_t ctx);
	void (*reach_end)(void *host);

	/*
	 * Writes one record to the pipe of an event queue, whose lock the caller holds. Number 0 is
	 * no queue: its pipe is the daemon's own, takes records of QP 1 (gsi.h), and has no lock.
	 * event_begin(): 0; then the caller calls event(), which writes; or -EAGAIN, and no event()
	 * follows. event(): 0, or -EAGAIN: the pipe is full. event_written(): has a record been
	 * written since the last event_begin() that succeeded, by whatever thread that was? Where
	 * the file system does not tell, or this process does not see the pipe (it has another root
	 * directory), it is false. As long as a record is in flight, no other thread writes to the
	 * pipe. A thread can be thrown out of each of them.
	 */
	int (*event_begin)(void *host, uint32_t evq);
	int (*event)(void *host, uint32_t evq, const void *record, size_t len);
	bool (*event_written)(void *host, uint32_t evq);

	/*
	 * Has the helper thread of this process call fn(dev, a, b) at or after the deadline
	 * (CLOCK_MONOTONIC, ns). 0; 1: the caller has to wake the helper thread, by wake();
	 * -ENOMEM: fn will not be called. once: if the same call is to come already, that one is
	 * enough; it takes time to look.
	 */
	int (*defer)(void *host, uint64_t deadline_ns,
		     void (*fn)(struct sh_dev *, uint64_t, uint64_t), uint64_t a, uint64_t b,
		     bool once);

	/*
	 * Wakes the helper thread of another process, after the caller has incremented
	 * sh_proc.attention.
	 */
	void (*wake)(void *host, uint32_t proc);

	/*
	 * Wakes the threads of a process that doze until a CQE comes, after the caller has
	 * incremented sh_proc.roused.
	 */
	void (*rouse)(void *host, uint32_t proc);

	/*
	 * Makes a stopped thread go on at its landing and nowhere else (life.h). True: it will, and
	 * it has executed nothing since the call began. False: the thread is not stopped, has
	 * another word, or cannot be diverted. May be NULL.
	 */
	bool (*divert)(void *host, uint32_t pid, uint32_t tid, uint64_t self_at, uint64_t word);

	/* Is the thread stopped: by a signal, a tracer or a cgroup's freezer? May be NULL: no. */
	bool (*stands)(void *host, uint32_t pid, uint32_t tid);

	/*
	 * This thread was thrown (life.h), perhaps out of copy() or event(), or before it woke the
	 * helper thread. What copy() had announced is void, the host lets go what event_begin() has
	 * taken, and has the helper thread look. May be NULL.
	 */
	void (*gave_up)(void *host);

	uint64_t (*now)(void *host); /* CLOCK_MONOTONIC, ns */

	/*
	 * Maps [off, off + len) of the pool or of the shared area in this process. 0; -ENOMEM: this
	 * process cannot map it, but others may; -EINVAL: it is in neither.
	 */
	int (*extend)(void *host, uint64_t off, uint64_t len);

	/* Prints a line about damage found in device memory. The host limits how many. */
	void (*complain)(void *host, const char *what, uint32_t hca, uint32_t number);
};

#endif
