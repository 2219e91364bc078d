/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A verb on its way: call_begin() with its name, call_say() and call_work() for its arguments,
 * call_enter() just before the library's function, call_left() just behind it, call_say() for what
 * it gave, call_end(). No function changes errno.
 *
 * A verb that another verb calls is part of that one, and is not written: on is false, and the
 * others do nothing then. Those of librdmacm's functions are written.
 */
#ifndef SOFTHCA_TRACE_CALL_H
#define SOFTHCA_TRACE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "records.h"

struct call {
	bool on;
	bool counted; /* in the depth of the thread */
	int saved;    /* errno */
	struct trace_record *record;
};

/* shallow: verbs that this function calls are written, too. */
void call_begin(struct call *c, const char *name, bool shallow);
void call_say(struct call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void call_work(struct call *c, enum trace_work_kind kind, const void *context, uint32_t qpn,
	       uint64_t wr_id);
void call_enter(struct call *c);
/* failed: what the verb returned says that it has failed; error: its errno. */
void call_left(struct call *c, bool failed, int error);
void call_end(struct call *c);

/*
 * The library's function returns an error number, -1 and errno, or NULL and errno: call_left() and
 * "= ...".
 */
void call_returned(struct call *c, int ret);
void call_returned_errno(struct call *c, int ret);
void call_returned_object(struct call *c, const void *object);

/*
 * A poll found nothing: counts it with those before it. handle: the CQ's. Otherwise the caller
 * writes a call, which began at `began`.
 */
void call_idle(const void *cq, uint32_t handle, int entries, uint64_t began);
/* Begins a record as of an earlier time, of call_now(). */
void call_began(struct call *c, uint64_t when);
uint64_t call_now(void);
/* Is this thread inside of another verb that is written? */
bool call_inside(void);

/*
 * The function of the program's libibverbs (librdmacm), or NULL: for what stands in front of it.
 */
void *call_real(const char *library, const char *name, const char *version);

#endif
