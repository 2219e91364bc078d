/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A software ConnectX without processes, for unit tests: an instance in a memfd, and a host whose
 * contexts are plain memory of the test. Forked children share all state that they may change.
 *
 * All functions end the test program if the machine refuses a resource (memory, memfd).
 */
#ifndef TESTS_UNIT_SOFTHCA_MOCK_H
#define TESTS_UNIT_SOFTHCA_MOCK_H

#include <sys/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softhca/device/memory/dev.h"

#define MOCK_RECORDS 1024
#define MOCK_RANGES  256
#define MOCK_DEFERS  256

struct mock_record {
	uint32_t evq, len;
	uint64_t element;
	uint32_t type, reserved; /* 0 in completion records */
};

struct mock_shared {	    /* MAP_SHARED: children change it, too */
	uint32_t nrecords;  /* incremented after the record is complete */
	uint32_t room;	    /* how many records the pipes take before they are full */
	uint32_t wakes[16]; /* by process */
	uint32_t rouses[16];
	uint32_t complaints;
	uint64_t now;
	uint32_t begun[16]; /* by event queue: its records at the last event_begin() */
	uint32_t refuses;   /* nonzero: event_begin() fails, as where no descriptor is left */
	uint64_t copies;
	struct mock_record record[MOCK_RECORDS];
};

struct mock {
	int fd;
	struct sh_instance *inst;
	size_t size;
	struct sh_dev dev;    /* a client: process 1 */
	struct sh_dev daemon; /* process 0 */
	struct mock_shared *shared;
	uint64_t pool_used;
	uint32_t nctx, nevq;
	struct {
		uint32_t ctx;
		uint64_t addr, len;
		bool own; /* made by mock_umem() */
	} range[MOCK_RANGES];
	unsigned int nranges;
	struct {
		uint64_t deadline;
		void (*fn)(struct sh_dev *dev, uint64_t a, uint64_t b);
		uint64_t a, b;
	} defer[MOCK_DEFERS];
	unsigned int ndefers;
	bool no_timers;				/* defer() finds no room */
	uint64_t copy_ns;			/* how long a copy takes */
	void (*on_complaint)(const char *what); /* NULL: complaints are only counted */
	bool no_room;				/* no more device memory can be mapped */
	unsigned int extends;			/* how often more was mapped */
	bool exchanges;				/* the process exchanges pages: reach() fails */
	void (*on_reach)(struct mock *m);	/* called by reach(); NULL: nothing is */
	unsigned int reaches;			/* announced by reach() at present */
	uint32_t reached;			/* the context of the last one */
	unsigned int unannounced;		/* copies to a context that was not announced */
};

struct mock_config {
	uint32_t hosts, hcas_per_host, ports, cqe_size; /* 0: 1, 1, 1, 32 */
};

struct mock *mock_new(const struct mock_config *cfg); /* cfg NULL: all defaults */
void mock_free(struct mock *m);

/* Makes a live context of process 1 on an HCA; and an event queue for its asynchronous events. */
uint32_t mock_ctx(struct mock *m, uint32_t hca);
uint32_t mock_evq(struct mock *m, uint32_t ctx, uint32_t record_size);
/*
 * Allocates zeroed page-aligned memory of a context: in device memory, or memory that the host's
 * copy() reaches. Its address is uaddr.
 */
struct sh_umem mock_umem(struct mock *m, uint32_t ctx, size_t len, bool shared);
static inline void *mock_ptr(const struct sh_umem *mem)
{
	return (void *)(uintptr_t)mem->uaddr;
}
/* Lets a context use memory of the test (registered memory). */
void mock_map(struct mock *m, uint32_t ctx, void *addr, size_t len);
void mock_unmap(struct mock *m, uint32_t ctx, void *addr);
/*
 * Lets time pass and runs the deferred calls that are due, in order of deadlines. Calls that these
 * defer within ns are run too.
 */
void mock_advance(struct mock *m, uint64_t ns);
/* The number of records written to an event queue so far; and the i-th of them. */
unsigned int mock_records(const struct mock *m, uint32_t evq);
const struct mock_record *mock_record(const struct mock *m, uint32_t evq, unsigned int i);

/*
 * Forks a child that calls what(arg) and then waits until it is killed. It ends with the test at
 * the latest.
 */
pid_t mock_child(void (*what)(void *arg), void *arg);
/* Kills the child and waits for its end. */
void mock_kill(pid_t pid);

#endif
