// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Socket addresses: binding, resolving, listening, and the ports in them. */

#include <arpa/inet.h>
#include <endian.h>

#include "cm.h"

size_t cm_addr_len(const struct sockaddr *addr)
{
	switch (addr ? addr->sa_family : 0) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return cm_family() && cm_family()->has_ib ? sizeof(struct sockaddr_ib) : 0;
	default:
		return 0;
	}
}

PUBLIC int rdma_bind_addr(struct rdma_cm_id *rdma_id, struct sockaddr *addr)
{
	struct cm_id *id = to_cm_id(rdma_id);
	size_t len = cm_addr_len(addr);
	int ret, state;

	if (!len)
		return cm_return(-EINVAL);
	state = cm_begin();
	ret = cm_family()->bind(id, addr, len);
	if (!ret)
		ret = cm_family()->query_addr(id);
	cm_let_cancel(state);
	return cm_return(ret);
}

PUBLIC int rdma_resolve_addr(struct rdma_cm_id *rdma_id, struct sockaddr *src, struct sockaddr *dst,
			     int timeout_ms)
{
	struct cm_id *id = to_cm_id(rdma_id);
	size_t dst_len = cm_addr_len(dst), src_len = src ? cm_addr_len(src) : 0;
	int ret;

	if (!dst_len || (src && !src_len))
		return cm_return(-EINVAL);
	cm_forget_event(id);
	ret = cm_family()->resolve(id, src, src_len, dst, dst_len, timeout_ms);
	if (!ret)
		ret = cm_complete(id);
	return cm_return(ret);
}

PUBLIC int rdma_listen(struct rdma_cm_id *rdma_id, int backlog)
{
	struct cm_id *id = to_cm_id(rdma_id);
	struct ucma_abi_listen cmd = {.id = id->handle, .backlog = backlog};
	int state = cm_begin(), ret;

	ret = CM_COMMAND(cm_fd(to_cm_id(rdma_id)), UCMA_CMD_LISTEN, &cmd);
	/* Without a bind before, the kernel has chosen the port. */
	if (!ret)
		ret = cm_family()->query_addr(id);
	cm_let_cancel(state);
	return cm_return(ret);
}

static uint16_t port_of(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)addr)->sin_port;
	case AF_INET6:
		return ((const struct sockaddr_in6 *)addr)->sin6_port;
	case AF_IB:
		return htons((uint16_t)be64toh(((const struct sockaddr_ib *)addr)->sib_sid));
	default:
		return 0;
	}
}

PUBLIC uint16_t rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_addr);
}

PUBLIC uint16_t rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
}
