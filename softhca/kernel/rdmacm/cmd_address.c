// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Commands: addresses, routes, multicast groups. */
#include <errno.h>
#include <string.h>

#include "address.h"
#include "channel.h"
#include "command.h"
#include "id.h"
#include "mcast.h"
#include "rdmacm.h"
#include "resolve.h"

/* An IPv4 address comes in the same room. */
static void from_in6(union cm_sockaddr *a, const struct sockaddr_in6 *in6)
{
	memset(a, 0, sizeof(*a));
	memcpy(a, in6, sizeof(*in6));
}

int cm_cmd_bind_ip(struct cm_call *c)
{
	const struct cm_bind_ip *cmd = (const void *)c->in;
	union cm_sockaddr a;
	struct cm_id *id;
	int err;

	err = cm_call_id(c, cmd->id, &id);
	if (err)
		return err;
	from_in6(&a, &cmd->addr);
	if (a.family == CM_AF_IB)
		return -EINVAL;
	return cm_bind(id, &a, c->privileged);
}

int cm_cmd_bind(struct cm_call *c)
{
	const struct cm_bind *cmd = (const void *)c->in;
	union cm_sockaddr a;
	struct cm_id *id;
	int err;

	memcpy(&a, &cmd->addr, sizeof(a));
	if (cmd->reserved || !cmd->addr_size || cmd->addr_size != cm_addr_size(a.family))
		return -EINVAL;
	err = cm_call_id(c, cmd->id, &id);
	return err ? err : cm_bind(id, &a, c->privileged);
}

int cm_cmd_resolve_ip(struct cm_call *c)
{
	const struct cm_resolve_ip *cmd = (const void *)c->in;
	union cm_sockaddr src, dst;
	struct cm_id *id;
	int err;

	err = cm_call_id(c, cmd->id, &id);
	if (err)
		return err;
	from_in6(&src, &cmd->src);
	from_in6(&dst, &cmd->dst);
	if (dst.family == CM_AF_IB || src.family == CM_AF_IB)
		return -EINVAL;
	return cm_resolve(id, &src, &dst, cmd->timeout_ms, c->privileged);
}

int cm_cmd_resolve_addr(struct cm_call *c)
{
	const struct cm_resolve_addr *cmd = (const void *)c->in;
	union cm_sockaddr none = {.family = 0};
	struct cm_id *id;
	int err;

	if (cmd->reserved || (cmd->src_size && cmd->src_size != cm_addr_size(cmd->src.family)) ||
	    !cmd->dst_size || cmd->dst_size != cm_addr_size(cmd->dst.family))
		return -EINVAL;
	err = cm_call_id(c, cmd->id, &id);
	if (err)
		return err;
	return cm_resolve(id, cmd->src_size ? &cmd->src : &none, &cmd->dst, cmd->timeout_ms,
			  c->privileged);
}

int cm_cmd_resolve_route(struct cm_call *c)
{
	const struct cm_two *cmd = (const void *)c->in;
	struct cm_id *id;
	int err = cm_call_id(c, cmd->id, &id);

	return err ? err : cm_resolve_route(id, cmd->value);
}

/* ---- groups ---- */

static int join(struct cm_call *c, uint32_t number, const union cm_sockaddr *a, uint64_t uid,
		uint64_t response)
{
	struct cm_number_resp resp;
	struct cm_member *m;
	struct cm_id *id;
	uint32_t reported;
	int err;

	err = cm_call_id(c, number, &id);
	if (err)
		return err;
	err = cm_join(id, a, uid, &m);
	if (err)
		return err;
	resp.value = m->number;
	err = cm_respond(c, response, &resp, sizeof(resp));
	if (err)
		cm_leave(m, &reported);
	return err;
}

int cm_cmd_join_ip_mcast(struct cm_call *c)
{
	const struct cm_join_ip_mcast *cmd = (const void *)c->in;
	union cm_sockaddr a;

	from_in6(&a, &cmd->addr);
	if (a.family != AF_INET && a.family != AF_INET6)
		return -EINVAL;
	return join(c, cmd->id, &a, cmd->uid, cmd->response);
}

int cm_cmd_join_mcast(struct cm_call *c)
{
	const struct cm_join_mcast *cmd = (const void *)c->in;
	union cm_sockaddr a;

	memcpy(&a, &cmd->addr, sizeof(a));
	if (!cmd->addr_size || cmd->addr_size != cm_addr_size(a.family) || cmd->flags > 1)
		return -EINVAL;
	return join(c, cmd->id, &a, cmd->uid, cmd->response);
}

int cm_cmd_leave_mcast(struct cm_call *c)
{
	const struct cm_of_id *cmd = (const void *)c->in;
	struct cm_member *m = cm_table_get(&c->cm->hosts[c->ch->host].members, cmd->id);
	struct cm_number_resp resp;
	struct cm_id *id;
	int err;

	if (!m)
		return -ENOENT;
	err = cm_call_id(c, m->id->number, &id);
	if (err)
		return err;
	cm_leave(m, &resp.value);
	return cm_respond(c, cmd->response, &resp, sizeof(resp));
}
