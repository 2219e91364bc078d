/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The daemon's own state: where it keeps what it knows of processes, of open device files and of
 * the objects behind their handles. Only softhca/kernel includes this file; of rdmacm and umad
 * room.c and requests.c alone. One thread runs all of it, so nothing here has a lock; device memory
 * is touched through softhca/device. Functions return 0 or -errno and change nothing when they
 * fail, unless they say otherwise.
 */
#ifndef SOFTHCA_KERNEL_KERN_H
#define SOFTHCA_KERNEL_KERN_H

#include <limits.h>

#include "softhca/device/memory/dev.h"
#include "softhca/host/instdir.h"
#include "kernel.h"
#include "pool.h"
#include "user.h"
#include "wire_engine.h"

struct aside;
struct counters;
struct khca;
struct kproc;
struct rdmacm;
struct umad;
struct uverbs;

struct kernel {
	struct sh_kernel_config cfg;
	char dir[PATH_MAX];
	struct sh_instdir at; /* the directory, with its lock */
	int dir_fd, lease_fd; /* dir_fd: that of at */
	int memfd;
	uint64_t mem_size;
	struct sh_dev dev;
	const struct user_ops *user;
	void *user_arg;
	/*
	 * What the client has handed over for the request that is being served, and the number of
	 * what it is to hand over: -1: none.
	 */
	struct given given;
	int wanted;
	struct pool pool, shared; /* for queues; for registered memory */
	/* What is set aside: until threads have left; until locks are free. */
	struct aside *graced, *locked;
	/*
	 * Threads that have been in device code since before these moments are not waited for any
	 * more: before stale, while they are stopped; before stuck, in any case.
	 */
	uint64_t stale, stuck;
	/* When a thread was last given up, as a moment and by the clock. 0: never. */
	uint64_t gave_up, gave_up_at;
	bool ending;
	struct khca *hcas;
	/* What each room keeps, which that room alone follows. */
	struct uverbs *uverbs;
	struct rdmacm *rdmacm;
	struct umad *umad;
	struct kproc *proc[SH_MAX_PROC];
	struct wire wire; /* link -1: there is none */
	struct counters *counters;
	uint32_t fault_seed;  /* for future rules of faults */
	uint32_t died_inside; /* as of the last orphans_free() */
	uint32_t switch_lid;  /* 0: there is no switch */
	uint32_t loud;	      /* HCAs to silence in another try */
	uint32_t doubted;     /* files of fifo.h that may have been closed */
	struct fifo_owner *fifo_owners;
	uint64_t doubt_soon; /* until then each request looks at them; later, the tick alone does */
	int epoll;	     /* -1 in tests */
	bool stop;
	struct {
		uint64_t commands, failed, late, queues_shared, queues_copied, maps_failed;
		uint64_t regions_shared, regions_private, regions_revoked;
		uint64_t copies_made; /* kernel/ferry.c */
	} count;
};

/*
 * Everything but the sockets. Returns -errno with what went wrong in text. kern_publish()
 * gives the directory its name, which is the last step, when clients can connect.
 */
int kern_init(struct kernel *k, const struct sh_kernel_config *cfg, char *text, size_t text_len);
int kern_publish(struct kernel *k, char *text, size_t text_len);
void kern_exit(struct kernel *k);

#endif
