// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Routes: of ibacm where it answers, else of the kernel. And the options of an id, of which the
 * path is one.
 */

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
	return CM_COMMAND(cm_fd(id), UCMA_CMD_SET_OPTION, &cmd);
}

PUBLIC int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
			   size_t optlen)
{
	return cm_return(set_option(to_cm_id(id), level, optname, optval, optlen));
}

int cm_ask_route(struct cm_id *id, int timeout_ms, const struct ibv_path_data *paths, size_t n)
{
	struct ucma_abi_resolve_route cmd = {.id = id->handle, .timeout_ms = timeout_ms};

	if (n && !set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths, n * sizeof(*paths)))
		return 0;
	return CM_COMMAND(cm_fd(id), UCMA_CMD_RESOLVE_ROUTE, &cmd);
}

/* A thread that is cancelled here either has asked, or has not. */
static int ask_route(struct cm_id *id, int timeout_ms)
{
	int state = cm_begin(), ret;
	struct ibv_path_data *paths;
	size_t n;

	cm_acm_paths(&id->id.route.addr.src_addr, &id->id.route.addr.dst_addr, &paths, &n);
	ret = cm_ask_route(id, timeout_ms, paths, n);
	free(paths);
	cm_let_cancel(state);
	return ret;
}

PUBLIC int rdma_resolve_route(struct rdma_cm_id *rdma_id, int timeout_ms)
{
	struct cm_id *id = to_cm_id(rdma_id);
	int ret;

	cm_forget_event(id);
	ret = ask_route(id, timeout_ms);
	if (!ret)
		ret = cm_complete(id);
	return cm_return(ret);
}
