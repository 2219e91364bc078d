// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Names to addresses: getaddrinfo() of the C library, and the route if ibacm knows one. */

#include <endian.h>
#include <netdb.h>
#include <string.h>

#include "cm.h"

PUBLIC void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
	}
}

/* ---- Types and port spaces ---- */

static int qp_type_of(int ps)
{
	return ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
}

static int port_space_of(int qp_type)
{
	switch (qp_type) {
	case IBV_QPT_UD:
		return RDMA_PS_UDP;
	case RDMA_XRC_SEND:
	case RDMA_XRC_RECV:
		/* A kernel without AF_IB has only one place for connections. */
		return cm_family() && cm_family()->has_ib ? RDMA_PS_IB : RDMA_PS_TCP;
	default:
		return RDMA_PS_TCP;
	}
}

static void set_type(struct rdma_addrinfo *res, const struct rdma_addrinfo *hints)
{
	res->ai_qp_type = hints ? hints->ai_qp_type : 0;
	res->ai_port_space = hints ? hints->ai_port_space : 0;
	if (!res->ai_qp_type)
		res->ai_qp_type = qp_type_of(res->ai_port_space);
	if (!res->ai_port_space)
		res->ai_port_space = port_space_of(res->ai_qp_type);
}

/* ---- Addresses ---- */

static int copy_addr(struct sockaddr **to, socklen_t *to_len, const struct sockaddr *from,
		     socklen_t len)
{
	/* A program may read it as any kind of address, so it is as long as the longest. */
	*to = calloc(1,
		     len > sizeof(struct sockaddr_storage) ? len : sizeof(struct sockaddr_storage));
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

static int copy_name(char **to, const char *from)
{
	if (!from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : -ENOMEM;
}

/* A GID is written as an IPv6 address is. */
static void to_gid(struct sockaddr_ib *to, const struct sockaddr_in6 *from, int ps)
{
	uint16_t port = ntohs(from->sin6_port);

	memset(to, 0, sizeof(*to));
	to->sib_family = AF_IB;
	to->sib_pkey = htons(0xffff);
	to->sib_flowinfo = from->sin6_flowinfo;
	memcpy(&to->sib_addr, &from->sin6_addr, sizeof(to->sib_addr));
	to->sib_sid = htobe64(((uint64_t)ps << 16) + port);
	to->sib_sid_mask = port ? ~0ULL : htobe64(RDMA_IB_IP_PS_MASK);
	to->sib_scope_id = from->sin6_scope_id;
}

static int take_result(struct rdma_addrinfo *res, const struct addrinfo *ai, bool gid)
{
	const struct sockaddr *addr = ai->ai_addr;
	socklen_t len = ai->ai_addrlen;
	struct sockaddr_ib ib;
	int ret;

	if (gid) {
		to_gid(&ib, (const struct sockaddr_in6 *)addr, res->ai_port_space);
		addr = (const struct sockaddr *)&ib;
		len = sizeof(ib);
	}
	res->ai_family = addr->sa_family;
	if (res->ai_flags & RAI_PASSIVE) {
		ret = copy_addr(&res->ai_src_addr, &res->ai_src_len, addr, len);
		return ret ? ret : copy_name(&res->ai_src_canonname, ai->ai_canonname);
	}
	ret = copy_addr(&res->ai_dst_addr, &res->ai_dst_len, addr, len);
	return ret ? ret : copy_name(&res->ai_dst_canonname, ai->ai_canonname);
}

static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints,
		   struct rdma_addrinfo *res)
{
	struct addrinfo wanted = {0}, *found;
	bool gid = false;
	int ret;

	wanted.ai_socktype = res->ai_qp_type == IBV_QPT_UD ? SOCK_DGRAM : SOCK_STREAM;
	if (res->ai_flags & RAI_PASSIVE)
		wanted.ai_flags |= AI_PASSIVE;
	if (res->ai_flags & RAI_NUMERICHOST)
		wanted.ai_flags |= AI_NUMERICHOST;
	if (res->ai_flags & RAI_FAMILY) {
		gid = hints->ai_family == AF_IB;
		wanted.ai_family = gid ? AF_INET6 : hints->ai_family;
		if (gid)
			wanted.ai_flags |= AI_NUMERICHOST;
	}
	ret = getaddrinfo(node, service, &wanted, &found);
	if (ret)
		return ret;
	ret = take_result(res, found, gid);
	freeaddrinfo(found);
	return ret == -ENOMEM ? EAI_MEMORY : 0;
}

/* The addresses that the hints bring along. */
static int take_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *res)
{
	int ret = 0;

	if (!hints)
		return 0;
	if (!res->ai_family)
		res->ai_family = hints->ai_family;
	if (hints->ai_src_len && hints->ai_src_addr && !res->ai_src_addr)
		ret = copy_addr(&res->ai_src_addr, &res->ai_src_len, hints->ai_src_addr,
				hints->ai_src_len);
	if (!ret && hints->ai_dst_len && hints->ai_dst_addr && !res->ai_dst_addr)
		ret = copy_addr(&res->ai_dst_addr, &res->ai_dst_len, hints->ai_dst_addr,
				hints->ai_dst_len);
	return ret;
}

static void ask_for_route(struct rdma_addrinfo *res)
{
	struct ibv_path_data *paths;
	size_t n;

	if (res->ai_flags & (RAI_PASSIVE | RAI_NOROUTE) || !res->ai_dst_addr)
		return;
	cm_acm_paths(res->ai_src_addr, res->ai_dst_addr, &paths, &n);
	if (!n)
		return;
	res->ai_route = paths;
	res->ai_route_len = n * sizeof(*paths);
}

static void free_res(void *res)
{
	rdma_freeaddrinfo(res);
}

PUBLIC int rdma_getaddrinfo(const char *node, const char *service,
			    const struct rdma_addrinfo *hints, struct rdma_addrinfo **result)
{
	struct rdma_addrinfo *res;
	int ret;

	if (!node && !service && !hints)
		return cm_return(-EINVAL);
	ret = cm_start();
	if (ret)
		return cm_return(ret);
	res = calloc(1, sizeof(*res));
	if (!res)
		return cm_return(-ENOMEM);

	res->ai_flags = hints ? hints->ai_flags : 0;
	set_type(res, hints);
	if (node || service) {
		/* To look up a name may take long, and the thread may be cancelled meanwhile. */
		pthread_cleanup_push(free_res, res);
		ret = look_up(node, service, hints, res);
		pthread_cleanup_pop(0);
		if (ret) {
			rdma_freeaddrinfo(res);
			return ret;
		}
	}
	ret = take_hints(hints, res);
	if (ret) {
		rdma_freeaddrinfo(res);
		return cm_return(ret);
	}
	ask_for_route(res);
	*result = res;
	return 0;
}
