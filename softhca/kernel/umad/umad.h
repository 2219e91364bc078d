/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What this room keeps: open umad files with their agents, what they have sent and not got an
 * answer to, and what they have not read.
 */
#ifndef SOFTHCA_KERNEL_UMAD_UMAD_H
#define SOFTHCA_KERNEL_UMAD_UMAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "softhca/device/memory/layout.h"
#include "softhca/kernel/fifo.h"
#include "umad-abi.h"

struct kernel;
struct khca;
struct kproc;
struct rdmacm;
struct sh_config;
struct sh_dev;
struct umad;

#define UMAD_AGENTS 32
#define UMAD_MINORS 64	      /* of one host; from there on those of issm files */
#define UMAD_PORTS  254	      /* of a switch */
#define UMAD_BYTES  (1 << 24) /* that wait in a file, unread or for an answer, at most */

struct umad_agent {
	bool used;
	uint8_t qpn, mgmt_class, version, rmpp_version;
	uint32_t oui;
	uint64_t methods[2];
	uint32_t hi_tid; /* of its requests */
};

/* A MAD as a file has it: unread, or sent. */
struct umad_msg {
	struct umad_msg *prev, *next;
	struct umad_hdr hdr;
	uint64_t due;	 /* of one that was sent */
	uint64_t number; /* the same: no other has it, whatever its transaction */
	uint32_t retries;
	size_t len;
	uint8_t mad[];
};
struct umad_file {
	struct umad_file *prev, *next;
	struct umad *u;
	struct fifo fifo; /* its index is the minor number */
	uint32_t host, hca, port;
	bool pkey, registered;
	bool issm; /* it says that its port has a subnet manager, and is good for nothing else */
	struct umad_agent agent[UMAD_AGENTS];
	struct umad_msg *unread, *sent;
	struct umad_msg *next_sent; /* that the timer looks at; it may end before */
	uint32_t nunread;
	size_t bytes;
	pid_t pid;
};
struct umad {
	/* Of the daemon, whose functions get k: only room.c and requests.c look into that. */
	struct kernel *k;
	struct sh_dev *dev;
	const struct sh_config *cfg;
	struct khca *hcas;
	struct rdmacm *cm; /* the room that has the groups and the paths of the subnet */
	struct umad_file *files;
	uint32_t generation, hi_tid;
	uint64_t sent_number; /* of the last request that was kept */
	bool off;	      /* the fabric is too large for one switch */
	int timer;
	int gsi;		 /* FIFO of what programs' QPs send to QP 1; -1: there is none */
	struct leaving *leavers; /* datagrams to programs' QPs that are not delivered yet */
	uint32_t leaving;	 /* how many */
	uint32_t late;		 /* of these, that wait for locks: the helper thread's */
	uint64_t due;
	uint64_t activity;	     /* of the subnet manager */
	uint32_t managers;	     /* open issm files: while there are any, it has given way */
	uint32_t sm_lid[UMAD_PORTS]; /* of each port before that */
	uint32_t sm_at[UMAD_PORTS];  /* 1 + the port that had this LID then; 0: none had */
	struct umad_written *written;
	bool port_state_change; /* of the switch: since its manager has cleared it */
	struct notice *notices; /* that wait for an answer */
	uint32_t notice_tid, reports;
	uint16_t reports_to[SH_MAX_LIDS]; /* of these, to each LID */
	struct inform *informs;		  /* subscriptions */
	uint32_t ninforms;
	uint16_t inform_number;
	struct service *services; /* that programs have registered */
	uint32_t nservices;
	struct segments *segments; /* long messages that programs acknowledge themselves */
	uint32_t nsegments;
	size_t segment_bytes;
	struct assembly *assemblies; /* long messages that come in segments */
	uint32_t nassemblies;
	size_t assembly_bytes;
};

static inline uint16_t mad16(const uint8_t *mad, size_t at)
{
	return (uint16_t)(mad[at] << 8 | mad[at + 1]);
}
static inline uint32_t mad32(const uint8_t *mad, size_t at)
{
	return (uint32_t)mad16(mad, at) << 16 | mad16(mad, at + 2);
}
static inline uint64_t mad64(const uint8_t *mad, size_t at)
{
	return (uint64_t)mad32(mad, at) << 32 | mad32(mad, at + 4);
}
static inline void mad_put16(uint8_t *mad, size_t at, uint32_t v)
{
	mad[at] = (uint8_t)(v >> 8);
	mad[at + 1] = (uint8_t)v;
}
static inline void mad_put32(uint8_t *mad, size_t at, uint32_t v)
{
	mad_put16(mad, at, v >> 16);
	mad_put16(mad, at + 2, v);
}
static inline void mad_put64(uint8_t *mad, size_t at, uint64_t v)
{
	mad_put32(mad, at, (uint32_t)(v >> 32));
	mad_put32(mad, at + 4, (uint32_t)v);
}
static inline bool mad_is_response(const uint8_t *mad)
{
	return mad[AT_METHOD] & METHOD_RESPONSE || mad[AT_METHOD] == METHOD_TRAP_REPRESS;
}
static inline bool mad_is_get(const uint8_t *mad)
{
	return mad[AT_METHOD] == METHOD_GET;
}
static inline bool mad_is_smp(const uint8_t *mad)
{
	return mad[AT_CLASS] == CLASS_SMP || mad[AT_CLASS] == CLASS_DIRECTED;
}

#endif
