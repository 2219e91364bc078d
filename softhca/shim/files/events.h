/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * read() of completion channels and async files, which are FIFOs of records. A kernel gives one
 * record with each call, and none to a buffer that is too short for it. The FIFO gives what fits,
 * which may be half a record. Programs that ask for as much as a record has, as libibverbs does, go
 * to the FIFO.
 */
#ifndef SOFTHCA_SHIM_EVENTS_H
#define SOFTHCA_SHIM_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "softhca/shim/compiler.h"

#define SHIM_EVENT_FDS 4096
/*
 * The numbers under which such files were opened here, and may be open still: records of 8, of 16.
 */
extern uint64_t shim_event_fds[2][SHIM_EVENT_FDS / 64];

/* The process has got it in answer to a command. */
void shim_event_note(int fd);

size_t shim_event_of_fd(int fd, int of16);
/*
 * The size of the file's records, if it is one and a read() of len octets does not fit them; else
 * 0.
 */
static inline size_t shim_event_to_read(int fd, size_t len)
{
	int of16 = len == 8;

	if (fd < 0 || fd >= SHIM_EVENT_FDS)
		return 0;
	if (!of16 &&
	    __atomic_load_n(&shim_event_fds[0][fd / 64], __ATOMIC_RELAXED) >> (fd % 64) & 1)
		return shim_event_of_fd(fd, 0);
	if (len != 16 &&
	    unlikely(__atomic_load_n(&shim_event_fds[1][fd / 64], __ATOMIC_RELAXED) >> (fd % 64) &
		     1))
		return shim_event_of_fd(fd, 1);
	return 0;
}

/* What read() returns, or -errno. It is a cancellation point. */
long shim_event_read(int fd, size_t record, void *buf, size_t len);

#endif
