/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What programs send.
 */
#ifndef SOFTHCA_KERNEL_UMAD_IO_H
#define SOFTHCA_KERNEL_UMAD_IO_H

#include "umad.h"

/*
 * write(): len, or -errno. mad is what the program has written, header and MAD, len bytes.
 */
long umad_write(struct umad_file *f, const uint8_t *what, size_t len);
/* What each segment of a message of that class begins with. */
size_t umad_rmpp_header(uint8_t mgmt_class);
/* Longest message. */
#define UMAD_WRITE_MAX (1u << 22)

/* The room's clock: one timer of the daemon's loop, for requests and notices without an answer. */
int umad_timer_init(struct umad *u);
void umad_timer_exit(struct umad *u);
/* Sets the timer to that time, unless it is set to an earlier one. */
void umad_timer_at(struct umad *u, uint64_t due);
void umad_timer_ready(struct umad *u);

/*
 * RMPP knows that the message kept under that number has arrived as a whole: it is not sent again,
 * and without a time limit the wait is over.
 */
void umad_acked(struct umad *u, uint64_t number);

#endif
