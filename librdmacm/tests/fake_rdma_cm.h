// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A kernel and a device inside one process, for tests of librdmacm: a sysfs tree,
 * /dev/infiniband/rdma_cm whose commands this part writes down and answers, and a provider that
 * writes down what it is asked. The program's own open() and write() come before the C library's.
 * Fields are read by their offsets in the kernel's interface, not by the headers.
 */
#ifndef FAKE_RDMA_CM_H
#define FAKE_RDMA_CM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <rdma/rdma_cma.h>
#include <infiniband/driver.h>

struct fake_cm {
	char log[32768]; /* what was asked since the last look, a line each */
	int has_ib;	 /* the commands of AF_IB */
	int with_device; /* queries tell of the device */
	int num_paths;
	int pads_zero;	  /* all bytes that mean nothing were 0 */
	uint32_t next_id; /* the number that the next id gets */
	int fail_command; /* this command fails once, with fail_errno; -1: none */
	int fail_errno;
	int cancel_at_event;	  /* a thread is cancelled when it has got an event, once */
	int cancel_at;		  /* likewise after this command; -1: none */
	uint32_t events_reported; /* the answer of the next destruction, departure or move */
	int fail_modify;	  /* the errno of the modification to this state, once */
	int fail_modify_state;
	int fail_attach;
	/* Called once, in the thread that attaches a QP, or whose JOIN_MCAST was carried out. */
	void (*at_attach)(void);
	void (*at_join)(void);
	int left;	       /* LEAVE_MCAST commands that were answered; atomic */
	uint32_t attr_mask[7]; /* what INIT_QP_ATTR says for each state */
	int objects;	       /* PDs, CQs, SRQs and QPs that exist */
	int channels;	       /* open descriptors of the connection manager */
	uint8_t last[1024];    /* the last command */
	size_t last_len;
};

extern struct fake_cm fake;

/*
 * For a group of tests: makes the tree, with this version of the interface, before the library
 * looks; and removes it.
 */
int fake_start(int abi, int has_ib);
void fake_stop(void);

/* At the beginning of a test. */
void fake_reset(void);

/* An event that waits, for any channel. Fields beyond the head are put by offset. */
struct fake_field {
	size_t offset, size;
	uint64_t value;
};
void fake_event_(uint64_t uid, uint32_t id, uint32_t event, int status,
		 const struct fake_field *fields, size_t n);
#define fake_event(uid, id, event, status, ...)                                                    \
	fake_event_((uint64_t)(uintptr_t)(uid), id, event, status,                                 \
		    (const struct fake_field[]){{0, 0, 0}, ##__VA_ARGS__},                         \
		    sizeof((const struct fake_field[]){{0, 0, 0}, ##__VA_ARGS__}) /                \
			    sizeof(struct fake_field))

/* Checks what was asked since the last look. */
void fake_expect(const char *log);

/* Forgets what was asked. */
void fake_ignore(void);

/* Objects that the library must have given back when a test ends. */
int fake_setup(void **state);
int fake_teardown(void **state);

#endif
