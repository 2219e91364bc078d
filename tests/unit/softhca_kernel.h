/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The kernel of softhca in the test's own process: commands without sockets. The client is the test itself; its memory
 * is read and written for real, and faults on demand. Functions end the program when the machine refuses.
 */
#ifndef TESTS_UNIT_SOFTHCA_KERNEL_H
#define TESTS_UNIT_SOFTHCA_KERNEL_H

#include "softhca/kernel/kern.h"

struct kt {
	struct kernel k;
	struct kproc *proc;
	char dir[64];
	struct sh_command_reply r;	/* of the last command */
	int fds[2];			/* it made; the caller closes them */
	bool cap;			/* CAP_IPC_LOCK */
	uint64_t memlock;
	int pin_error;			/* of the second pass; 0 */
	bool no_map;			/* leave actions undone */
	int fault_reads, fault_writes;	/* the n-th access from now fails; 0 = none */
	uint64_t fault_addr;		/* a page that is not there */
	unsigned int tries;		/* of commands that were run again, in all */
};

struct kt *kt_start(enum sh_face face, uint32_t hosts, uint32_t hcas);
void kt_stop(struct kt *t);
struct kctx *kt_open(struct kt *t, uint32_t device);		/* and GET_CONTEXT */
struct kctx *kt_open_raw(struct kt *t, uint32_t device);	/* without */
struct kctx *kt_open_host(struct kt *t, uint32_t host, uint32_t device);

/* One write(): a positive errno, or 0. Both passes of a registration. */
int kt_write(struct kt *t, struct kctx *ctx, const void *buf, size_t len);
/* Fill the header of a command of this size and send it. */
int kt_cmd(struct kt *t, struct kctx *ctx, uint32_t number, void *cmd, size_t len, size_t out);

/* Objects, made whole: a positive errno or 0 and the handle. */
int kt_pd(struct kt *t, struct kctx *ctx, uint32_t *handle);
int kt_mr(struct kt *t, struct kctx *ctx, uint32_t pd, void *addr, uint64_t len, uint32_t access, uint32_t *handle, uint32_t *key);
int kt_channel(struct kt *t, struct kctx *ctx, int *fd);
struct kt_queue {
	char *mem;			/* pages of buffer, then one of doorbell records */
	size_t len;
	uint32_t handle, number, user;
	uint64_t user_handle;
};
int kt_cq(struct kt *t, struct kctx *ctx, uint32_t cqe, int channel, struct kt_queue *q);
int kt_srq(struct kt *t, struct kctx *ctx, uint32_t pd, uint32_t max_wr, uint32_t max_sge, struct kt_queue *q);
int kt_xsrq(struct kt *t, struct kctx *ctx, uint32_t pd, uint32_t xrcd, uint32_t cq, struct kt_queue *q);	/* either face */
/* srq: a handle, or -1. For OFED's XRC it is the domain. */
int kt_qp(struct kt *t, struct kctx *ctx, uint32_t type, uint32_t pd, uint32_t cq, int64_t srq, struct kt_queue *q);
int kt_destroy(struct kt *t, struct kctx *ctx, uint32_t number, uint32_t handle);	/* 24-byte kind */
int kt_dealloc(struct kt *t, struct kctx *ctx, uint32_t number, uint32_t handle);	/* 12-byte kind */
void kt_queue_free(struct kt_queue *q);
int kt_xrcd(struct kt *t, struct kctx *ctx, int fd, int oflags, uint32_t *handle);	/* either face */

/* What must not change when a command fails. */
struct kt_state {
	uint32_t objects[UO_TYPES], numbers, evqs, regs, domains, qps;
	uint64_t pool, locked;
};
struct kt_state kt_state(struct kt *t);
bool kt_same(const struct kt_state *a, const struct kt_state *b);

#endif
