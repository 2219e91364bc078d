/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * softhca's kernel part in the test's own process: commands without sockets. The test itself is the
 * client. Its memory is really read and written, and accesses fail on demand. Functions end the
 * program if the machine refuses a resource.
 */
#ifndef TESTS_UNIT_SOFTHCA_KERNEL_H
#define TESTS_UNIT_SOFTHCA_KERNEL_H

#include "softhca/kernel/kern.h"
#include "softhca/kernel/process.h"
#include "softhca/kernel/uverbs/command.h"
#include "softhca/kernel/uverbs/context.h"
#include "softhca/kernel/uverbs/uverbs.h"

struct kt {
	struct kernel k;
	struct kproc *proc;
	char dir[64];
	struct sh_command_reply r; /* reply to the last command */
	int fds[2];		   /* descriptors that it made; the caller closes them */
	bool cap;		   /* does the client have CAP_IPC_LOCK? */
	uint64_t memlock;
	int pin_error;		       /* result of the second pass, normally 0 */
	bool no_map;		       /* do not carry out actions */
	int fault_reads, fault_writes; /* the n-th access from now fails; 0: no fault */
	uint64_t fault_addr;	       /* a page that is missing */
	unsigned int tries;	       /* how many times commands were run again */
};

struct kt *kt_start(enum sh_face face, uint32_t hosts, uint32_t hcas);
/* One host with one HCA of two ports, which are on a wire that has no engine. */
struct kt *kt_start_wire(enum sh_face face, const struct sh_wire_config *wire);
void kt_stop(struct kt *t);
struct kctx *kt_open(struct kt *t, uint32_t device);	 /* with GET_CONTEXT */
struct kctx *kt_open_raw(struct kt *t, uint32_t device); /* without GET_CONTEXT */
struct kctx *kt_open_host(struct kt *t, uint32_t host, uint32_t device);

/* One write(). Makes both passes of a registration. Returns 0 or a positive errno value. */
int kt_write(struct kt *t, struct kctx *ctx, const void *buf, size_t len);
/* Fills the header of a command of this size and writes it. */
int kt_cmd(struct kt *t, struct kctx *ctx, uint32_t number, void *cmd, size_t len, size_t out);

/* Create objects with all that they need. Return 0 and the handle, or a positive errno value. */
int kt_pd(struct kt *t, struct kctx *ctx, uint32_t *handle);
int kt_mr(struct kt *t, struct kctx *ctx, uint32_t pd, void *addr, uint64_t len, uint32_t access,
	  uint32_t *handle, uint32_t *key);
int kt_channel(struct kt *t, struct kctx *ctx, int *fd);
struct kt_queue {
	char *mem; /* the buffer, then a page of doorbell records */
	size_t len;
	uint32_t handle, number, user;
	uint64_t user_handle;
};
int kt_cq(struct kt *t, struct kctx *ctx, uint32_t cqe, int channel, struct kt_queue *q);
int kt_srq(struct kt *t, struct kctx *ctx, uint32_t pd, uint32_t max_wr, uint32_t max_sge,
	   struct kt_queue *q);
int kt_xsrq(struct kt *t, struct kctx *ctx, uint32_t pd, uint32_t xrcd, uint32_t cq,
	    struct kt_queue *q); /* either face */
/* srq: a handle, or -1. For OFED's XRC it is that of the domain. */
int kt_qp(struct kt *t, struct kctx *ctx, uint32_t type, uint32_t pd, uint32_t cq, int64_t srq,
	  struct kt_queue *q);
int kt_destroy(struct kt *t, struct kctx *ctx, uint32_t number, uint32_t handle); /* 24-byte kind */
int kt_dealloc(struct kt *t, struct kctx *ctx, uint32_t number, uint32_t handle); /* 12-byte kind */
void kt_queue_free(struct kt_queue *q);
int kt_xrcd(struct kt *t, struct kctx *ctx, int fd, int oflags, uint32_t *handle); /* either face */

/* State that a command must not change if it fails. */
struct kt_state {
	uint32_t objects[UO_TYPES], numbers, evqs, regs, domains, qps;
	uint64_t pool, locked;
};
struct kt_state kt_state(struct kt *t);
bool kt_same(const struct kt_state *a, const struct kt_state *b);

#endif
