// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Routes: of ibacm where it answers, else of the kernel. And the options of an id, of which the path
 * is one. */

#include "cm.h"

int cm_set_paths(struct cm_id *id, size_t n, struct ibv_sa_path_rec **first)
{
	struct ibv_sa_path_rec *paths = calloc(n, sizeof(*paths));

	if (!paths)
		return -ENOMEM;
	free(id->id.route.path_rec);
	id->id.route.path_rec = paths;
	id->id.route.num_paths = (int)n;
	*first = paths;
	return 0;
}

static int set_option(struct cm_id *id, int level, int optname, const void *optval, size_t optlen)
{
	struct ucma_abi_set_option cmd = {
		.optval = (uintptr_t)optval,
		.id = id->handle,
		.level = level,
		.optname = optname,
		.optlen = optlen,
	};

	if (optlen > UINT32_MAX)
		return -EINVAL;
	return CM_COMMAND(id->id.channel->fd, UCMA_CMD_SET_OPTION, &cmd);
}

PUBLIC int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
			   size_t optlen)
{
	return cm_return(set_option(to_cm_id(id), level, optname, optval, optlen));
}

static int route_of_acm(struct cm_id *id)
{
	struct ibv_path_data *paths;
	size_t n;
	int ret;

	cm_acm_paths(&id->id.route.addr.src_addr, &id->id.route.addr.dst_addr, &paths, &n);
	if (!n)
		return -ENODATA;
	ret = set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths, n * sizeof(*paths));
	free(paths);
	return ret;
}

PUBLIC int rdma_resolve_route(struct rdma_cm_id *rdma_id, int timeout_ms)
{
	struct cm_id *id = to_cm_id(rdma_id);
	struct ucma_abi_resolve_route cmd = {.id = id->handle, .timeout_ms = timeout_ms};
	int ret;

	cm_forget_event(id);
	ret = route_of_acm(id);
	if (ret)
		ret = CM_COMMAND(rdma_id->channel->fd, UCMA_CMD_RESOLVE_ROUTE, &cmd);
	if (!ret)
		ret = cm_complete(id);
	return cm_return(ret);
}
