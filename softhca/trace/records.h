/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a traced program leaves for `softhca trace`. Each thread writes files of its own, called
 * PID.TID.N, through memory that it shares with the file: no descriptor stays open that the program
 * could close, and no call is needed for a record. A file begins with struct trace_file, and
 * records follow each other. `used` grows when a record is whole, so a program may be killed at any
 * point.
 *
 * A verb is a record TRACE_BEGIN with its name and arguments, and a record TRACE_END with what it
 * returned. Polls that find nothing are one record, TRACE_IDLE, which changes as long as it is the
 * thread's last.
 */
#ifndef SOFTHCA_TRACE_RECORDS_H
#define SOFTHCA_TRACE_RECORDS_H

#include <stdint.h>

#define TRACE_DIRECTORY                                                                            \
	"SOFTHCA_TRACE" /* the environment variable that names the place of the files */
/*
 * The command makes this file there before it starts the program: a uint64_t, the verbs of threads
 * that have no file, since there was no room or no descriptor for one.
 */
#define TRACE_LOST  "0"
#define TRACE_MAGIC 0x72746873
#define TRACE_TEXT  2000 /* bytes of a record's text */
#define TRACE_WORKS 256	 /* requests or completions of a record */

struct trace_file {
	uint32_t magic;
	uint32_t reserved;
	uint64_t used; /* bytes of whole records, which begin behind this structure */
	uint64_t lost; /* verbs that could not be written */
	char name[16]; /* of the thread */
};

enum trace_kind { TRACE_BEGIN = 1, TRACE_END, TRACE_IDLE };

/* Followed by `works` of struct trace_work, and by the text. */
struct trace_record {
	uint32_t size; /* with what follows; a multiple of 8 */
	uint16_t kind;
	uint16_t works;
	uint16_t text;	/* bytes */
	uint16_t depth; /* verbs that the thread was in when it called this one */
	int32_t error;	/* TRACE_END: errno, or 0 if the verb succeeded */
	uint64_t when;	/* CLOCK_MONOTONIC, ns; TRACE_IDLE: of the first poll */
	uint64_t until; /* TRACE_IDLE: of the last poll */
	uint64_t count; /* TRACE_IDLE: polls */
};

enum trace_work_kind {
	TRACE_POST_SEND, /* that a completion follows if the QP does not signal all */
	TRACE_POST_UNSIGNALED,
	TRACE_POST_RECV,
	TRACE_POST_SRQ, /* qpn is 0 */
	TRACE_DONE_SEND,
	TRACE_DONE_RECV,
	TRACE_DONE_EITHER, /* in error: the completion does not say of which queue */
};

struct trace_work {
	uint64_t wr_id;
	uint32_t qpn;
	uint16_t kind;
	uint16_t context; /* tells the contexts of a process apart */
};
_Static_assert(sizeof(struct trace_file) % 8 == 0, "records are aligned");
_Static_assert(sizeof(struct trace_record) == 40, "a record's head");
_Static_assert(sizeof(struct trace_work) == 16, "a request");

#define TRACE_LARGEST                                                                              \
	(sizeof(struct trace_record) + TRACE_WORKS * sizeof(struct trace_work) + TRACE_TEXT + 8)

#endif
