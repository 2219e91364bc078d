// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One write() on rdma_cm: the header, the table of commands, the response. The daemon trusts
 * nothing of it. The checks are those of the kernel, in its order:
 *
 *	shorter than its header, unknown number, body longer than what was written	EINVAL
 *	GET_OPTION									ENOSYS
 *	header or body not there							EFAULT
 *	less room for the response than it has						ENOSPC
 */
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/device/memory/instance.h"
#include "softhca/kernel/process.h"
#include "softhca/kernel/user.h"
#include "softhca/protocol.h"
#include "channel.h"
#include "command.h"
#include "id.h"
#include "rdmacm.h"

static const struct {
	int (*fn)(struct cm_call *c);
	uint16_t out;
} table[CM_NUMBERS] = {
	[CM_CREATE_ID] = {cm_cmd_create_id, sizeof(struct cm_number_resp)},
	[CM_DESTROY_ID] = {cm_cmd_destroy_id, sizeof(struct cm_number_resp)},
	[CM_BIND_IP] = {cm_cmd_bind_ip, 0},
	[CM_RESOLVE_IP] = {cm_cmd_resolve_ip, 0},
	[CM_RESOLVE_ROUTE] = {cm_cmd_resolve_route, 0},
	[CM_QUERY_ROUTE] = {cm_cmd_query_route, offsetof(struct cm_query_route_resp, ibdev_index)},
	[CM_CONNECT] = {cm_cmd_connect, 0},
	[CM_LISTEN] = {cm_cmd_listen, 0},
	[CM_ACCEPT] = {cm_cmd_accept, 0},
	[CM_REJECT] = {cm_cmd_reject, 0},
	[CM_DISCONNECT] = {cm_cmd_disconnect, 0},
	[CM_INIT_QP_ATTR] = {cm_cmd_init_qp_attr, sizeof(struct cm_qp_attr)},
	[CM_GET_EVENT] = {cm_cmd_get_event, offsetof(struct cm_event_resp, reserved)},
	[CM_SET_OPTION] = {cm_cmd_set_option, 0},
	[CM_NOTIFY] = {cm_cmd_notify, 0},
	[CM_JOIN_IP_MCAST] = {cm_cmd_join_ip_mcast, sizeof(struct cm_number_resp)},
	[CM_LEAVE_MCAST] = {cm_cmd_leave_mcast, sizeof(struct cm_number_resp)},
	[CM_MIGRATE_ID] = {cm_cmd_migrate_id, sizeof(struct cm_number_resp)},
	[CM_QUERY] = {cm_cmd_query, offsetof(struct cm_query_path_resp, path)},
	[CM_BIND] = {cm_cmd_bind, 0},
	[CM_RESOLVE_ADDR] = {cm_cmd_resolve_addr, 0},
	[CM_JOIN_MCAST] = {cm_cmd_join_mcast, sizeof(struct cm_number_resp)},
};

_Static_assert((int)CM_BIND_IP == SH_CM_BIND_IP && (int)CM_RESOLVE_IP == SH_CM_RESOLVE_IP &&
		       (int)CM_LISTEN == SH_CM_LISTEN && (int)CM_GET_EVENT == SH_CM_GET_EVENT &&
		       (int)CM_BIND == SH_CM_BIND && (int)CM_RESOLVE_ADDR == SH_CM_RESOLVE_ADDR,
	       "commands that the shim knows");
_Static_assert(sizeof(struct cm_hdr) == sizeof(struct sh_cm_header), "the header");
_Static_assert(offsetof(struct cm_event_resp, ece) == SH_CM_EVENT_ROOM, "room for an event");

bool cm_ofed(const struct cm_call *c)
{
	return c->cm->cfg->face == SH_FACE_OFED;
}

int cm_read(struct cm_call *c, uint64_t addr, void *to, size_t len)
{
	return client_read(c->cm->k, &c->proc->user, addr, to, len);
}

int cm_respond(struct cm_call *c, uint64_t where, const void *what, size_t len)
{
	if (len > c->out_len)
		len = c->out_len;
	return client_write(c->cm->k, &c->proc->user, where, what, len);
}

int cm_call_id(struct cm_call *c, uint32_t number, struct cm_id **out)
{
	return cm_id_get(c->ch, number, out);
}

/* What was written, from this offset on. */
static int user_in(struct cm_call *c, uint64_t addr, size_t offset, void *to, size_t len)
{
	if (c->text && offset + len <= c->text_len) {
		memcpy(to, (const char *)c->text + offset, len);
		return 0;
	}
	return cm_read(c, addr + offset, to, len);
}

static int run(struct cm_call *c, uint64_t addr, uint64_t len)
{
	struct cm_hdr hdr;

	if (len < sizeof(hdr))
		return -EINVAL;
	if (user_in(c, addr, 0, &hdr, sizeof(hdr)) < 0)
		return -EFAULT;
	if (hdr.number >= (cm_ofed(c) ? CM_NUMBERS_OFED : CM_NUMBERS))
		return -EINVAL;
	if ((uint64_t)hdr.in + sizeof(hdr) > len)
		return -EINVAL;
	if (!table[hdr.number].fn)
		return -ENOSYS;
	if (hdr.out < table[hdr.number].out)
		return -ENOSPC;
	memset(c->in, 0, sizeof(c->in));
	c->in_len = hdr.in < sizeof(c->in) ? hdr.in : sizeof(c->in);
	c->out_len = hdr.out;
	if (c->in_len && user_in(c, addr, sizeof(hdr), c->in, c->in_len) < 0)
		return -EFAULT;
	return table[hdr.number].fn(c);
}

int cm_command(struct cm_call *c, uint64_t addr, uint64_t len)
{
	int err = run(c, addr, len);

	/* A program that waits asks in vain before it sleeps. */
	if (err != -EAGAIN)
		c->ch->commands++;
	return err;
}
