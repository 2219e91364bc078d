// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Commands: what an id has. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "softhca/device/memory/dev.h"
#include "softhca/kernel/ports.h"
#include "address.h"
#include "attr.h"
#include "command.h"
#include "id.h"
#include "path.h"
#include "rdmacm.h"

static uint64_t guid_of(const struct cm_id *id)
{
	return htobe64(sh_hca(id->cm->dev, id->hca)->node_guid);
}

static const struct sh_port *port_of(const struct cm_id *id)
{
	return &sh_hca(id->cm->dev, id->hca)->port[id->port - 1];
}

int cm_cmd_query_route(struct cm_call *c)
{
	const struct cm_of_id *cmd = (const void *)c->in;
	struct cm_query_route_resp r = {0};
	struct cm_path path = {0};
	struct cm_id *id;
	int err;

	err = cm_call_id(c, cmd->id, &id);
	if (err)
		return err;
	memcpy(&r.src, &id->src, sizeof(r.src));
	memcpy(&r.dst, &id->dst, sizeof(r.dst));
	if (!id->device)
		return cm_respond(c, cmd->response, &r, sizeof(r));
	r.node_guid = guid_of(id);
	r.port = (uint8_t)id->port;
	r.ibdev_index = id->cm->hcas[id->hca].unit;
	if (id->has_path) {
		r.num_paths = 1;
		cm_path_user(&id->path, &r.path[0]);
		return cm_respond(c, cmd->response, &r, sizeof(r));
	}
	memcpy(path.sgid, port_of(id)->gid[0], 16);
	memcpy(path.dgid, id->path.dgid, 16);
	memcpy(r.path[0].sgid, path.sgid, 16);
	memcpy(r.path[0].dgid, path.dgid, 16);
	r.path[0].pkey = htobe16(port_of(id)->pkey[0]);
	return cm_respond(c, cmd->response, &r, sizeof(r));
}

/* Of the partition that an AF_IB address names, or else of the first key of the port. */
static uint16_t pkey_of(const struct cm_id *id)
{
	if (id->src.family == CM_AF_IB && id->src.ib.pkey)
		return id->src.ib.pkey;
	return htobe16(port_of(id)->pkey[0]);
}

static int query_addr(struct cm_call *c, const struct cm_id *id, uint64_t response)
{
	struct cm_query_addr_resp r;

	memset(&r, 0, sizeof(r));
	r.src_size = (uint16_t)cm_addr_size(id->src.family);
	r.dst_size = (uint16_t)cm_addr_size(id->dst.family);
	memcpy(&r.src, &id->src, sizeof(r.src));
	memcpy(&r.dst, &id->dst, sizeof(r.dst));
	if (id->device) {
		r.node_guid = guid_of(id);
		r.port = (uint8_t)id->port;
		r.pkey = pkey_of(id);
		r.ibdev_index = id->cm->hcas[id->hca].unit;
	}
	return cm_respond(c, response, &r, sizeof(r));
}

/* An address as AF_IB has it. */
static void as_ib(const struct cm_id *id, const union cm_sockaddr *a, const uint8_t gid[16],
		  uint16_t pkey, union cm_sockaddr *out)
{
	if (a->family == CM_AF_IB) {
		memcpy(out, a, sizeof(*out));
		return;
	}
	out->family = CM_AF_IB;
	out->ib.pkey = pkey;
	memcpy(out->ib.gid, gid, 16);
	out->ib.sid = htobe64((uint64_t)id->service << 16 | (a->family ? cm_addr_port(a) : 0));
	out->ib.sid_mask = UINT64_MAX;
}

static int query_gid(struct cm_call *c, const struct cm_id *id, uint64_t response)
{
	static const uint8_t zero[16];
	struct cm_query_addr_resp r;
	union cm_sockaddr a;
	uint16_t pkey = 0;

	memset(&r, 0, sizeof(r));
	r.src_size = r.dst_size = sizeof(struct cm_sockaddr_ib);
	if (id->device) {
		r.node_guid = guid_of(id);
		r.port = (uint8_t)id->port;
		r.pkey = pkey = pkey_of(id);
		r.ibdev_index = id->cm->hcas[id->hca].unit;
	}
	memset(&a, 0, sizeof(a));
	as_ib(id, &id->src, id->device ? port_of(id)->gid[0] : zero, pkey, &a);
	memcpy(&r.src, &a, sizeof(r.src));
	memset(&a, 0, sizeof(a));
	as_ib(id, &id->dst, id->path.dgid, pkey, &a);
	memcpy(&r.dst, &a, sizeof(r.dst));
	return cm_respond(c, response, &r, sizeof(r));
}

static int query_path(struct cm_call *c, const struct cm_id *id, uint64_t response)
{
	struct cm_query_path_resp r;

	memset(&r, 0, sizeof(r));
	if (id->has_path) {
		r.num_paths = c->out_len >= sizeof(r);
		r.path[0].flags = CM_PATH_FLAGS;
		cm_path_record(&id->path, &r.path[0].record);
	}
	return cm_respond(c, response, &r,
			  r.num_paths ? sizeof(r) : offsetof(struct cm_query_path_resp, path));
}

int cm_cmd_query(struct cm_call *c)
{
	const struct cm_of_id *cmd = (const void *)c->in;
	struct cm_id *id;
	int err;

	err = cm_call_id(c, cmd->id, &id);
	if (err)
		return err;
	if (cmd->value == CM_QUERY_PATH)
		return query_path(c, id, cmd->response);
	if (cmd->value != CM_QUERY_ADDRESS && cmd->value != CM_QUERY_GID)
		return -ENOSYS;
	if (c->out_len < offsetof(struct cm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	return cmd->value == CM_QUERY_GID ? query_gid(c, id, cmd->response)
					  : query_addr(c, id, cmd->response);
}

int cm_cmd_init_qp_attr(struct cm_call *c)
{
	const struct cm_of_id *cmd = (const void *)c->in;
	struct cm_qp_attr attr;
	struct cm_id *id;
	int err;

	err = cm_call_id(c, cmd->id, &id);
	if (!err)
		err = cm_attr(id, cmd->value, &attr);
	return err ? err : cm_respond(c, cmd->response, &attr, sizeof(attr));
}
