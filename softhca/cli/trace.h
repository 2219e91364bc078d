/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* `softhca trace`: what its files share. One thread at a time uses all of it. */
#ifndef SOFTHCA_CLI_TRACE_H
#define SOFTHCA_CLI_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "softhca/device/memory/tap.h"
#include "softhca/trace/records.h"

struct run_options;

/* ---- trace.c ---- */

/*
 * Begins to trace what is run from here on: sets the environment of the command, and follows its
 * verbs in a thread. dir: the instance's directory. NULL after a message.
 */
struct trace *trace_begin(const struct run_options *opt, const char *dir);
/*
 * The command has ended, or could not be run (ran): writes what is left. Frees the trace, which may
 * be NULL. Returns 0, or EXIT_SELF after a message.
 */
int trace_end(struct trace *trace, bool ran);

/* ---- trace_read.c: what traced programs leave ---- */

/* A verb, or polls that found nothing. */
struct trace_event {
	const struct trace_record *begin;
	const struct trace_record *end; /* NULL: it has not returned, or it is polls */
	int pid, tid;
};

struct trace_thread {
	int pid, tid;
	char name[17];
};

struct trace_reader;

/* dir: where the files are. NULL: no memory. */
struct trace_reader *trace_reader_new(const char *dir);
/* Frees what the events refer to, too. */
void trace_reader_free(struct trace_reader *r);
/*
 * Reads what is new. last: no more will come, so verbs that have not returned are events as well.
 */
void trace_read(struct trace_reader *r, bool last);
/* All events so far, in the order in which they were read; the same for threads. */
const struct trace_event *trace_events(const struct trace_reader *r, size_t *n);
const struct trace_thread *trace_threads(const struct trace_reader *r, size_t *n);
/* Verbs that were not written. */
uint64_t trace_lost(const struct trace_reader *r);

const struct trace_work *trace_works(const struct trace_record *r);
const char *trace_text(const struct trace_record *r);
/* When it was over, ns. */
uint64_t trace_until(const struct trace_event *e);
/* How long the verb's name is, at the beginning of begin's text. */
int trace_name_len(const struct trace_event *e);

/* ---- trace_packets.c ---- */

struct trace_packets;

/* Captures the packets of the instance. NULL after a message. */
struct trace_packets *trace_packets_begin(const char *dir);
/* Takes what is there. */
void trace_packets_take(struct trace_packets *p);
/* Ends the capture. The packets stay until the next function. */
void trace_packets_end(struct trace_packets *p);
void trace_packets_free(struct trace_packets *p);
const struct sh_tapped *trace_packets(const struct trace_packets *p, size_t *n);
uint64_t trace_packets_lost(const struct trace_packets *p);

/* ---- trace_json.c ---- */

/*
 * Writes the time line, for Perfetto and chrome://tracing. began: CLOCK_MONOTONIC, ns; packets may
 * be NULL. 0 or -errno.
 */
int trace_json(FILE *out, const struct trace_reader *r, const struct trace_packets *packets,
	       uint64_t began);

#endif
