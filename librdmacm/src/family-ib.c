// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The commands of kernels that know AF_IB, which take addresses of any family. */

#include <arpa/inet.h>
#include <string.h>

#include "cm.h"

static int bind_any(struct cm_id *id, const struct sockaddr *addr, size_t len)
{
	struct ucma_abi_bind cmd = {.id = id->handle, .addr_size = len};

	memcpy(&cmd.addr, addr, len);
	return CM_COMMAND(cm_fd(id), UCMA_CMD_BIND, &cmd);
}

static int resolve_any(struct cm_id *id, const struct sockaddr *src, size_t src_len,
		       const struct sockaddr *dst, size_t dst_len, int timeout_ms)
{
	struct ucma_abi_resolve_addr cmd = {
		.id = id->handle,
		.timeout_ms = timeout_ms,
		.src_size = src_len,
		.dst_size = dst_len,
	};

	if (src)
		memcpy(&cmd.src_addr, src, src_len);
	memcpy(&cmd.dst_addr, dst, dst_len);
	return CM_COMMAND(cm_fd(id), UCMA_CMD_RESOLVE_ADDR, &cmd);
}

static int query(struct cm_id *id, unsigned int option, struct ucma_abi_query_addr_resp *resp)
{
	struct ucma_abi_query cmd = {.id = id->handle, .option = option};
	int ret;

	memset(resp, 0, sizeof(*resp));
	ret = CM_COMMAND_RESP(cm_fd(id), UCMA_CMD_QUERY, &cmd, resp);
	if (!ret &&
	    (resp->src_size > sizeof(resp->src_addr) || resp->dst_size > sizeof(resp->dst_addr)))
		ret = -EINVAL;
	return ret;
}

static int query_gids(struct cm_id *id)
{
	struct rdma_ib_addr *ib = &id->id.route.addr.addr.ibaddr;
	struct ucma_abi_query_addr_resp resp;
	struct sockaddr_ib gid;
	int ret;

	ret = query(id, UCMA_QUERY_GID, &resp);
	if (ret)
		return ret;
	memcpy(&gid, &resp.src_addr, sizeof(gid));
	memcpy(&ib->sgid, &gid.sib_addr, sizeof(ib->sgid));
	memcpy(&gid, &resp.dst_addr, sizeof(gid));
	memcpy(&ib->dgid, &gid.sib_addr, sizeof(ib->dgid));
	ib->pkey = resp.pkey;
	return 0;
}

static int query_addr(struct cm_id *id)
{
	struct rdma_addr *addr = &id->id.route.addr;
	struct ucma_abi_query_addr_resp resp;
	int ret;

	ret = query(id, UCMA_QUERY_ADDR, &resp);
	if (ret)
		return ret;
	memset(&addr->src_storage, 0, sizeof(addr->src_storage));
	memset(&addr->dst_storage, 0, sizeof(addr->dst_storage));
	memcpy(&addr->src_storage, &resp.src_addr, resp.src_size);
	memcpy(&addr->dst_storage, &resp.dst_addr, resp.dst_size);

	if (resp.node_guid) {
		ret = cm_device_attach(id, resp.node_guid);
		if (ret)
			return ret;
		id->id.port_num = resp.port_num;
		addr->addr.ibaddr.pkey = resp.pkey;
	}
	return query_gids(id);
}

/* Values of two bits say how the other six are meant. */
static void convert(struct ibv_sa_path_rec *to, const struct ibv_path_record *from)
{
	uint32_t label = ntohl(from->flowlabel_hoplimit);

	memset(to, 0, sizeof(*to));
	to->dgid = from->dgid;
	to->sgid = from->sgid;
	to->dlid = from->dlid;
	to->slid = from->slid;
	to->flow_label = htonl(label >> 8);
	to->hop_limit = (uint8_t)label;
	to->traffic_class = from->tclass;
	to->reversible = from->reversible_numpath >> 7;
	to->numb_path = 1;
	to->pkey = from->pkey;
	to->sl = ntohs(from->qosclass_sl) & 0xf;
	to->mtu_selector = from->mtu >> 6;
	to->mtu = from->mtu & 0x3f;
	to->rate_selector = from->rate >> 6;
	to->rate = from->rate & 0x3f;
	to->packet_life_time_selector = from->packetlifetime >> 6;
	to->packet_life_time = from->packetlifetime & 0x3f;
	to->preference = from->preference;
}

enum { MAX_PATHS = 6 };

static int query_path(struct cm_id *id)
{
	struct ucma_abi_query cmd = {.id = id->handle, .option = UCMA_QUERY_PATH};
	union {
		struct ucma_abi_query_path_resp head;
		uint8_t bytes[sizeof(struct ucma_abi_query_path_resp) +
			      MAX_PATHS * sizeof(struct ibv_path_data)];
	} resp;
	struct ibv_sa_path_rec *paths;
	struct ibv_path_data data;
	unsigned int i;
	int ret;

	memset(&resp, 0, sizeof(resp));
	ret = CM_COMMAND_RESP(cm_fd(id), UCMA_CMD_QUERY, &cmd, &resp);
	if (ret)
		return ret;
	if (resp.head.num_paths > MAX_PATHS)
		return -EINVAL;
	if (!resp.head.num_paths)
		return 0;
	ret = cm_set_paths(id, resp.head.num_paths, &paths);
	if (ret)
		return ret;
	for (i = 0; i < resp.head.num_paths; i++) {
		memcpy(&data, resp.bytes + sizeof(resp.head) + i * sizeof(data), sizeof(data));
		convert(&paths[i], &data.path);
	}
	return 0;
}

static int join_any(struct cm_id *id, const struct sockaddr *addr, size_t len, uint64_t uid,
		    uint32_t *handle)
{
	struct ucma_abi_join_mcast cmd = {.uid = uid, .id = id->handle, .addr_size = len};
	struct ucma_abi_create_id_resp resp = {0};
	int ret;

	memcpy(&cmd.addr, addr, len);
	ret = CM_COMMAND_RESP(cm_fd(id), UCMA_CMD_JOIN_MCAST, &cmd, &resp);
	if (!ret)
		*handle = resp.id;
	return ret;
}

const struct cm_family cm_family_ib = {
	.bind = bind_any,
	.resolve = resolve_any,
	.query_addr = query_addr,
	.query_path = query_path,
	.join = join_any,
	.has_ib = true,
};
