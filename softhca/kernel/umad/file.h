/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Open umad files and what waits in them.
 */
#ifndef SOFTHCA_KERNEL_UMAD_FILE_H
#define SOFTHCA_KERNEL_UMAD_FILE_H

#include "umad.h"

/* flags: of open(). *fd: the program's end, which the caller hands on and closes. 0 or -errno. */
int umad_open(struct umad *u, struct kproc *p, uint32_t minor, uint32_t flags,
	      struct umad_file **out, int *fd);
/* The last user has closed the file, or the instance ends. */
void umad_free(struct umad_file *f);
/* Of one in doubt (fifo.h): frees it if it has no user any more. */
void umad_check(struct umad_file *f);
struct umad_file *umad_get(struct umad *u, uint32_t index, uint32_t generation);
/* Makes the FIFO as full as there are messages. */
void umad_level(struct umad_file *f);
/* A message of that length, or NULL: no memory, or the file has as much as it may. */
struct umad_msg *umad_msg_new(struct umad_file *f, size_t len);
/* Where `of`, which is about to be freed, was: its room counts as free. */
struct umad_msg *umad_msg_instead(struct umad_file *f, const struct umad_msg *of, size_t len);
void umad_msg_free(struct umad_file *f, struct umad_msg *m);
/* Frees a message that was sent: its file does not wait for the answer any more. */
void umad_sent_drop(struct umad_file *f, struct umad_msg *m);
void umad_queue(struct umad_file *f, struct umad_msg *m);

/*
 * read(): how many bytes were written to the program's memory, or -errno. -EAGAIN: there is
 * nothing to read.
 */
long umad_read(struct umad_file *f, struct kproc *p, uint64_t addr, uint64_t len);

#endif
