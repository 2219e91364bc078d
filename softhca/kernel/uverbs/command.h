/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A command on its way, and the faces that have commands.
 */
#ifndef SOFTHCA_KERNEL_UVERBS_COMMAND_H
#define SOFTHCA_KERNEL_UVERBS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "softhca/kernel/aside.h"
#include "softhca/protocol.h"

struct kctx;
struct kernel;
struct kproc;

struct call {
	struct kernel *k;
	struct kctx *ctx;
	struct kproc *proc; /* of the caller */
	pid_t tid;
	bool cap_ipc_lock;
	uint64_t memlock_limit;
	/*
	 * The command waits no longer: if it takes something away it succeeds, else it fails with
	 * EBUSY.
	 */
	bool late;
	bool vain;   /* what is in its way is a thread that is stopped: waits_in_vain() */
	bool pinned; /* second pass */
	int pin_error;
	uint32_t share; /* enum sh_share: what the shim found */
	uint64_t have_off;
	/* The command's first bytes, which came with it; NULL: they are to be read */
	const char *here;
	uint64_t resp; /* address of the response */
	/* Bytes of the command (with header and driver data) and of the response. */
	uint32_t in_len, out_len;
	uint32_t core_in, core_out; /* where driver data begins in each */
	struct sh_command_reply *r;
	int fds[2];
	/* The command, as far as the daemon looks at it. */
	unsigned char in[SH_COMMAND_MAX] __attribute__((aligned(8)));
};

/*
 * Does a command that takes something away do without what it waits for, where that guards only
 * what the daemon sets aside (a queue in device memory)?
 */
static inline bool gives_up(const struct call *c)
{
	return c->late || c->vain;
}

/*
 * The same where the thread in the way may be storing a message into memory that is the program's
 * again after the answer. Late, or a command before has waited long enough for that thread.
 */
static inline bool gives_up_data(const struct call *c)
{
	return c->late || (c->vain && waited_for_all(c->k));
}

struct command {
	int (*fn)(struct call *c); /* NULL: the face does not have it */
	uint16_t in, out;	   /* core sizes; out 0: no response */
	uint16_t drv;		   /* out: where driver data begins, if not there */
	const char *name;
};
struct face {
	const char *name;
	const struct command *commands, *extended;
	uint32_t ncommands, nextended;
	/* Error for a known command that the device does not have. */
	int absent;
	int truncated; /* for a command shorter than its structure */
	/* For a command that destroys something, if its handle names nothing. */
	int no_object;
	bool has_extended;
};
extern const struct face face_ofed, face_mainline;

/*
 * command.c. Fills the reply (error included) and c->fds. False: a client is in the way. The
 * command has changed nothing that the next try would not find so, and is to be run again soon.
 * Never false if c->late.
 */
bool command_run(struct call *c, uint64_t addr, uint64_t len);
void command_reply_clear(struct sh_command_reply *r); /* but for the actions: there are none */
/* Writes the response: core, then driver data as far as there is room. */
int call_respond(struct call *c, const void *core, size_t len, const void *drv, size_t drv_len);
int call_driver(struct call *c, void *drv, size_t len); /* 0 or -EFAULT */
void call_fd(struct call *c, int fd, uint64_t where);
/*
 * Has each thread left that was in device code before this moment, and may still store into memory
 * that is the program's after the answer? 0, or -EINPROGRESS. If the call is late they are given
 * up: 0.
 */
int call_left(struct call *c, uint64_t moment);
/* 0, or -EINVAL if the caller is not the process whose memory the context means. */
int call_owner(struct call *c);

#endif
