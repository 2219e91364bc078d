// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The commands that every kernel has: IPv4 and IPv6 addresses only. */

#include <string.h>
#include <infiniband/marshall.h>

#include "cm.h"

static int bind_ip(struct cm_id *id, const struct sockaddr *addr, size_t len)
{
	struct ucma_abi_bind_ip cmd = {.id = id->handle};

	memcpy(&cmd.addr, addr, len);
	return CM_COMMAND(cm_fd(id), UCMA_CMD_BIND_IP, &cmd);
}

static int resolve_ip(struct cm_id *id, const struct sockaddr *src, size_t src_len,
		      const struct sockaddr *dst, size_t dst_len, int timeout_ms)
{
	struct ucma_abi_resolve_ip cmd = {.id = id->handle, .timeout_ms = timeout_ms};

	if (src)
		memcpy(&cmd.src_addr, src, src_len);
	memcpy(&cmd.dst_addr, dst, dst_len);
	return CM_COMMAND(cm_fd(id), UCMA_CMD_RESOLVE_IP, &cmd);
}

/* An IPv4 address stands at the beginning of the larger structure. */
static void copy_address(struct sockaddr_storage *to, const struct sockaddr_in6 *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, from->sin6_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(*from));
}

static int query(struct cm_id *id)
{
	struct ucma_abi_query cmd = {.id = id->handle};
	struct ucma_abi_query_route_resp resp = {0};
	struct rdma_addr *addr = &id->id.route.addr;
	struct ibv_sa_path_rec *paths;
	unsigned int i;
	int ret;

	ret = CM_COMMAND_RESP(cm_fd(id), UCMA_CMD_QUERY_ROUTE, &cmd, &resp);
	if (ret)
		return ret;
	if (resp.num_paths > 2)
		return -EINVAL;

	if (resp.num_paths) {
		ret = cm_set_paths(id, resp.num_paths, &paths);
		if (ret)
			return ret;
		for (i = 0; i < resp.num_paths; i++)
			ibv_copy_path_rec_from_kern(&paths[i], &resp.ib_route[i]);
	}
	memcpy(&addr->addr.ibaddr.sgid, resp.ib_route[0].sgid, sizeof(union ibv_gid));
	memcpy(&addr->addr.ibaddr.dgid, resp.ib_route[0].dgid, sizeof(union ibv_gid));
	addr->addr.ibaddr.pkey = resp.ib_route[0].pkey;
	copy_address(&addr->src_storage, &resp.src_addr);
	copy_address(&addr->dst_storage, &resp.dst_addr);

	if (resp.node_guid) {
		ret = cm_device_attach(id, resp.node_guid);
		if (ret)
			return ret;
		id->id.port_num = resp.port_num;
	}
	return 0;
}

static int join_ip(struct cm_id *id, const struct sockaddr *addr, size_t len, uint64_t uid,
		   uint32_t *handle)
{
	struct ucma_abi_join_ip_mcast cmd = {.uid = uid, .id = id->handle};
	struct ucma_abi_create_id_resp resp = {0};
	int ret;

	memcpy(&cmd.addr, addr, len);
	ret = CM_COMMAND_RESP(cm_fd(id), UCMA_CMD_JOIN_IP_MCAST, &cmd, &resp);
	if (!ret)
		*handle = resp.id;
	return ret;
}

const struct cm_family cm_family_ip = {
	.bind = bind_ip,
	.resolve = resolve_ip,
	.query_addr = query,
	.query_path = query,
	.join = join_ip,
};
