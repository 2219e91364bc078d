/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A command on its way.
 */
#ifndef SOFTHCA_KERNEL_RDMACM_COMMAND_H
#define SOFTHCA_KERNEL_RDMACM_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rdmacm-abi.h"

struct cm_channel;
struct cm_id;
struct kproc;
struct rdmacm;

struct cm_call {
	struct rdmacm *cm;
	struct kproc *proc; /* of the caller */
	pid_t tid;
	bool privileged; /* may use ports below 1024 */
	struct cm_channel *ch;
	const void
		*text; /* the first bytes of what was written, if the shim has sent them; or NULL */
	uint32_t text_len;
	uint32_t in_len, out_len;
	unsigned char in[512] __attribute__((aligned(8))); /* zeros behind what came */
};

/* One write(). 0, or -errno; -EAGAIN: there is no event. */
int cm_command(struct cm_call *c, uint64_t addr, uint64_t len);
bool cm_ofed(const struct cm_call *c); /* does the program see a kernel of OFED's time? */
/* What the program has there. 0, -EFAULT */
int cm_read(struct cm_call *c, uint64_t addr, void *to, size_t len);
int cm_respond(struct cm_call *c, uint64_t where, const void *what, size_t len); /* 0, -EFAULT */
int cm_call_id(struct cm_call *c, uint32_t number, struct cm_id **out);

/* cmd_id.c */
int cm_cmd_create_id(struct cm_call *c);
int cm_cmd_destroy_id(struct cm_call *c);
int cm_cmd_migrate_id(struct cm_call *c);
int cm_cmd_set_option(struct cm_call *c);
int cm_cmd_get_event(struct cm_call *c);

/* cmd_address.c */
int cm_cmd_bind_ip(struct cm_call *c);
int cm_cmd_bind(struct cm_call *c);
int cm_cmd_resolve_ip(struct cm_call *c);
int cm_cmd_resolve_addr(struct cm_call *c);
int cm_cmd_resolve_route(struct cm_call *c);
int cm_cmd_join_ip_mcast(struct cm_call *c);
int cm_cmd_join_mcast(struct cm_call *c);
int cm_cmd_leave_mcast(struct cm_call *c);

/* cmd_query.c */
int cm_cmd_query_route(struct cm_call *c);
int cm_cmd_query(struct cm_call *c);
int cm_cmd_init_qp_attr(struct cm_call *c);

/* cmd_connect.c */
int cm_cmd_connect(struct cm_call *c);
int cm_cmd_listen(struct cm_call *c);
int cm_cmd_accept(struct cm_call *c);
int cm_cmd_reject(struct cm_call *c);
int cm_cmd_disconnect(struct cm_call *c);
int cm_cmd_notify(struct cm_call *c);

#endif
