// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A device without a kernel: a provider that is linked into the test program. Each of its
 * operations calls the library's command of the same name, and a kernel in the same process
 * answers. This header names no verbs type, so a program of either ABI can use it.
 */
#ifndef FAKE_PROVIDER_H
#define FAKE_PROVIDER_H

#include <stdint.h>

#define FAKE_MAX_POSTED 128

struct fake_posted {
	uint64_t wr_id;
	void *sg_list;
	int num_sge;
	uint32_t opcode;
	uint32_t send_flags;
	uint32_t imm_data;
	void *ah;	      /* of a UD QP */
	uint64_t remote_addr; /* of any other, as those of an atomic */
	uint64_t compare_add;
	uint64_t swap;
	uint32_t rkey;
	uint32_t xrc_srq_num;
};

struct fake_hw {
	char sysfs[512];
	int async_write; /* the end of the context's event pipe that the test writes to */
	int comp_write;	 /* that of the latest completion channel */

	/* What the kernel reports of the events of an object that is destroyed. */
	uint32_t comp_reported;
	uint32_t async_reported;

	/*
	 * How many commands arrived, the number of the latest, and the errno that the next command
	 * of a number gets.
	 */
	unsigned int commands;
	int latest;
	int refuse_number;
	int refuse;

	/*
 * What was posted, in order; the index of the request that the provider refuses (-1: it refuses
 * none); and how often the provider was called.
 */
	struct fake_posted posted[FAKE_MAX_POSTED];
	int num_posted;
	int refuse_request;
	int post_calls;
	void *posted_to;

	/* Calls of the hooks for events. */
	int cq_events;
	int async_events;
	int notified;		/* what was asked of req_notify_cq, or -1 */
	int num_completions;	/* for the next poll_cq: their wr_id count from 100 on */
	uint64_t next_qp_state; /* what QUERY_QP answers */
	uint32_t device_cap_flags;
	int no_more_ops;     /* the next context has none */
	int no_optional_ops; /* nor create_srq and resize_cq */
};

extern struct fake_hw fake_hw;

/*
 * Makes sysfs and registers the provider; to be called once, before the device list is asked for.
 */
void fake_provider_start(void);

/* Removes what start made. */
void fake_provider_stop(void);

/* Start and stop for a group of tests, and the list of devices in between. */
extern struct ibv_device **fake_list;
int fake_group_setup(void **state);
int fake_group_teardown(void **state);

/* Writes an asynchronous event record, or a completion event record. */
void fake_async_event(uint64_t element, uint32_t type);
void fake_comp_event(uint64_t cq_handle);

#endif
