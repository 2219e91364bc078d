/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What this room keeps: channels, which are open rdma_cm files; ids, ports and groups of each host;
 * messages on their way.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_RDMACM_H
#define SOFTHCA_KERNEL_RDMACM_RDMACM_H

#include <stdbool.h>
#include <stdint.h>

#include "due.h"
#include "fault.h"
#include "rdmacm-abi.h"
#include "table.h"

struct cm_channel;
struct cm_farewell;
struct cm_group;
struct cm_id;
struct cm_message;
struct cm_port;
struct kernel;
struct khca;
struct sh_config;
struct sh_dev;

enum cm_space { CM_TCP, CM_UDP, CM_IPOIB, CM_IB, CM_SDP, CM_SPACES };

enum { CM_MLIDS = 0x4000 };

struct cm_host {
	struct cm_table ids, members;
	struct cm_port *ports[CM_SPACES];
	uint16_t last_port, next_port;
};

struct rdmacm {
	/* Of the daemon, whose functions get k: only room.c and requests.c look into that. */
	struct kernel *k;
	struct sh_dev *dev;
	const struct sh_config *cfg;
	const struct khca *hcas;
	struct cm_table channels;
	uint32_t generation; /* of the next channel */
	struct cm_host *hosts;
	struct cm_channel *by_ino; /* channels, by the inode of their FIFO */
	struct cm_id *ids;	   /* all, by the number that messages carry */
	struct cm_id *asked;	   /* those of requests, by that of their peer */
	uint64_t next_comm;	   /* the last that was given */
	struct cm_message *messages;
	struct cm_farewell *farewells; /* by the number of the id that has ended */
	struct cm_group *groups;
	uint64_t mlids[CM_MLIDS / 64]; /* a bit for each that a group has */
	struct cm_due due_ids;
	int timer;
	bool held;	      /* the timer is set when the command has been answered */
	uint64_t due;	      /* what the timer is set to; 0: it is not set */
	uint64_t response_ns; /* how long a message waits for its answer before it is sent again */
	struct cm_faults faults;
	struct {
		uint64_t sent;		     /* messages */
		uint64_t dropped, faults;    /* lost: a port was down; by a fault */
		uint64_t repeated;	     /* sent again, because no answer had come */
		uint64_t given_up;	     /* no answer came to the last of them either */
		uint64_t event[CM_EV_TYPES]; /* that programs were told */
	} count;
};

#endif
