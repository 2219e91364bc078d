// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How datagram rsockets find each other's QPs: by headers in UDP, which is read whenever the
 * program calls. The address of one that the program sends to is resolved to a device and a path
 * once.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "rs_dgram.h"

enum { UDP_MAX = 65536 };

bool ds_same_addr(const union ds_addr *a, const union ds_addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->v4.sin_port == b->v4.sin_port &&
		       a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return a->v6.sin6_port == b->v6.sin6_port &&
	       !memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(a->v6.sin6_addr));
}

bool ds_is_mapped(const union ds_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&addr->v6.sin6_addr);
}

void ds_unmap(union ds_addr *addr)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};

	if (!ds_is_mapped(addr))
		return;
	v4.sin_port = addr->v6.sin6_port;
	memcpy(&v4.sin_addr, addr->v6.sin6_addr.s6_addr + 12, sizeof(v4.sin_addr));
	addr->v4 = v4;
}

void ds_map(union ds_addr *addr, int domain)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

	if (domain != AF_INET6 || addr->sa.sa_family != AF_INET)
		return;
	v6.sin6_port = addr->v4.sin_port;
	v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(v6.sin6_addr.s6_addr + 12, &addr->v4.sin_addr, sizeof(addr->v4.sin_addr));
	addr->v6 = v6;
}

static bool is_any(const union ds_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return !addr->v4.sin_addr.s_addr;
	return IN6_IS_ADDR_UNSPECIFIED(&addr->v6.sin6_addr);
}

static void set_port(union ds_addr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET)
		addr->v4.sin_port = port;
	else
		addr->v6.sin6_port = port;
}

/* The port that answers come to: the first datagram gives a socket one, if it has none. */
static int own_port(const struct rs *rs, union ds_addr *own)
{
	socklen_t len = sizeof(*own);

	if (getsockname(rs->fd, &own->sa, &len))
		return -errno;
	if (own->sa.sa_family == AF_INET ? own->v4.sin_port : own->v6.sin6_port)
		return 0;
	if (bind(rs->fd, &own->sa, ds_addr_len(own)))
		return -errno;
	len = sizeof(*own);
	return getsockname(rs->fd, &own->sa, &len) ? -errno : 0;
}

/* An id resolved to the peer; of its own address *source, if the socket is bound to none. */
static int resolve(const union ds_addr *to, union ds_addr *source, struct rdma_cm_id **result)
{
	union ds_addr dst = *to, src = *source;
	struct rdma_cm_id *id;
	int ret;

	ds_unmap(&dst);
	ds_unmap(&src);
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP))
		return -errno;
	/* The port of the UDP socket is not one of the connection manager's. */
	set_port(&src, 0);
	ret = rdma_resolve_addr(id, is_any(&src) ? NULL : &src.sa, &dst.sa, RS_RESOLVE_MS);
	if (!ret)
		ret = rdma_resolve_route(id, RS_RESOLVE_MS);
	if (ret) {
		ret = -errno;
		rdma_destroy_id(id);
		return ret;
	}
	if (is_any(source)) {
		int domain = source->sa.sa_family;
		uint16_t port = domain == AF_INET ? source->v4.sin_port : source->v6.sin6_port;

		memcpy(source, rdma_get_local_addr(id), ds_addr_len(&dst));
		ds_map(source, domain);
		set_port(source, port);
	}
	*result = id;
	return 0;
}

static int make_ah(struct ds_peer *peer, const struct ibv_sa_path_rec *path)
{
	struct ibv_ah_attr attr = {
		.dlid = be16toh(path->dlid),
		.sl = path->sl,
		.src_path_bits = be16toh(path->slid) & 0x7f,
		.static_rate = path->rate,
		.port_num = peer->qp->id->port_num,
	};
	struct ibv_port_attr port;

	/* LIDs of this port differ in as many bits as its LMC says. */
	if (ibv_query_port(peer->qp->id->verbs, attr.port_num, &port))
		return -EIO;
	attr.src_path_bits &= (1U << port.lmc) - 1;
	if (path->hop_limit > 1) {
		attr.is_global = 1;
		attr.grh.dgid = path->dgid;
		attr.grh.flow_label = be32toh(path->flow_label);
		attr.grh.hop_limit = path->hop_limit;
		attr.grh.traffic_class = path->traffic_class;
	}
	errno = 0;
	peer->ah = ibv_create_ah(peer->qp->id->pd, &attr);
	return peer->ah ? 0 : errno ? -errno : -ENOMEM;
}

static void make_header(struct ds_peer *peer)
{
	struct ds_header *header = &peer->header;
	union ds_addr source = peer->source;

	ds_unmap(&source);
	if (source.sa.sa_family == AF_INET) {
		header->version = 4;
		header->length = offsetof(struct ds_header, addr) + sizeof(header->addr.ipv4);
		header->port = source.v4.sin_port;
		header->addr.ipv4 = source.v4.sin_addr.s_addr;
	} else {
		header->version = 6;
		header->length = sizeof(*header);
		header->port = source.v6.sin6_port;
		memcpy(header->addr.ipv6.addr, &source.v6.sin6_addr, 16);
	}
}

static struct ds_peer *find_peer(struct ds *ds, const union ds_addr *addr)
{
	struct ds_peer **at = &ds->peers, *peer;

	while (*at && !ds_same_addr(&(*at)->addr, addr))
		at = &(*at)->next;
	peer = *at;
	if (!peer)
		return NULL;
	*at = peer->next;
	peer->next = ds->peers;
	ds->peers = peer;
	return peer;
}

/* ---- What is known of addresses ---- */

static int known_failure(const struct ds *ds, const union ds_addr *addr)
{
	union ds_addr host = *addr;
	int i;

	set_port(&host, 0);
	for (i = 0; i < DS_FAILURES; i++)
		if (ds->failures[i].error && ds_same_addr(&ds->failures[i].addr, &host) &&
		    ds->failures[i].until_ms > rs_now_us() / 1000)
			return ds->failures[i].error;
	return 0;
}

/* A shortage on this host, or a signal, says nothing of the address. */
static void keep_failure(struct ds *ds, const union ds_addr *addr, int error)
{
	struct ds_failure *failure = &ds->failures[ds->next_failure % DS_FAILURES];

	if (error == -EINTR || error == -ENOMEM || error == -EMFILE || error == -ENFILE)
		return;
	ds->next_failure++;
	failure->addr = *addr;
	set_port(&failure->addr, 0);
	failure->error = error;
	failure->until_ms = rs_deadline(DS_FAILURE_MS);
}

static struct ds_heard *place_of(struct ds *ds, const union ds_addr *addr)
{
	uint32_t sum;
	int i;

	if (addr->sa.sa_family == AF_INET) {
		sum = be16toh(addr->v4.sin_port) + be32toh(addr->v4.sin_addr.s_addr);
	} else {
		sum = be16toh(addr->v6.sin6_port);
		for (i = 0; i < 16; i++)
			sum = sum * 31 + addr->v6.sin6_addr.s6_addr[i];
	}
	return &ds->heard[sum % DS_HEARD];
}

/* A peer, or one that may become one, has told the number of its QP. */
static void hear(struct ds *ds, const union ds_addr *from, uint32_t qpn)
{
	struct ds_peer *peer = find_peer(ds, from);

	if (peer)
		peer->qpn = qpn;
	else
		*place_of(ds, from) = (struct ds_heard){.addr = *from, .qpn = qpn};
}

/* ---- Peers ---- */

/* Nothing that was posted to it needs its address handle any more. */
static bool is_idle(const struct ds_peer *peer)
{
	return peer->sq_pos <= peer->qp->sq_done || peer->qp->broken;
}

static void free_peer(struct ds *ds, struct ds_peer **at)
{
	struct ds_peer *peer = *at;

	*at = peer->next;
	ds->n_peers--;
	ibv_destroy_ah(peer->ah);
	free(peer);
}

/*
 * Makes room for a peer. Who answers clients at ever new ports would keep all of them until
 * rclose(). A peer that was given up is resolved again when a datagram goes there.
 */
static void give_one_up(struct ds *ds)
{
	struct ds_peer **at, **last = NULL;

	for (at = &ds->peers; *at; at = &(*at)->next)
		if (is_idle(*at))
			last = at;
	if (!last)
		return;
	*place_of(ds, &(*last)->addr) =
		(struct ds_heard){.addr = (*last)->addr, .qpn = (*last)->qpn};
	free_peer(ds, last);
}

/* Takes the id over. */
static int make_peer(struct rs *rs, struct rdma_cm_id *id, const union ds_addr *addr,
		     const union ds_addr *source)
{
	const struct ds_heard *heard = place_of(rs->ds, addr);
	struct ibv_sa_path_rec path = *id->route.path_rec;
	struct ds_peer *peer = calloc(1, sizeof(*peer));
	int ret = -ENOMEM;

	if (peer) {
		peer->addr = *addr;
		peer->source = *source;
		if (heard->qpn && ds_same_addr(&heard->addr, addr))
			peer->qpn = heard->qpn;
		ret = ds_get_qp(rs, &id, &peer->qp);
	}
	if (!ret)
		ret = make_ah(peer, &path);
	if (id)
		rdma_destroy_id(id);
	if (ret) {
		free(peer);
		return ret;
	}
	make_header(peer);
	if (rs->ds->n_peers >= DS_PEERS)
		give_one_up(rs->ds);
	peer->next = rs->ds->peers;
	rs->ds->peers = peer;
	rs->ds->n_peers++;
	return 0;
}

static int new_peer(struct rs *rs, const union ds_addr *addr)
{
	const uint32_t life = rs->life;
	struct rdma_cm_id *id = NULL;
	union ds_addr source;
	int ret;

	ret = own_port(rs, &source);
	if (ret)
		return ret;
	pthread_mutex_unlock(&rs->lock);
	ret = resolve(addr, &source, &id);
	pthread_mutex_lock(&rs->lock);
	if (rs->life == life && !ret && !find_peer(rs->ds, addr))
		return make_peer(rs, id, addr, &source);
	if (id)
		rdma_destroy_id(id);
	if (rs->life != life)
		return -EBADF;
	if (ret)
		keep_failure(rs->ds, addr, ret);
	return ret;
}

int ds_get_peer(struct rs *rs, const union ds_addr *addr, struct ds_peer **result)
{
	int ret = 0;

	*result = find_peer(rs->ds, addr);
	if (*result)
		return 0;
	ret = known_failure(rs->ds, addr);
	if (!ret)
		ret = new_peer(rs, addr);
	if (!ret)
		*result = find_peer(rs->ds, addr);
	return ret;
}

void ds_free_peers(struct rs *rs)
{
	while (rs->ds->peers)
		free_peer(rs->ds, &rs->ds->peers);
}

void ds_forget_peers(struct rs *rs)
{
	struct ds_peer *peer;

	while ((peer = rs->ds->peers)) {
		rs->ds->peers = peer->next;
		free(peer);
	}
}

/* ---- UDP ---- */

/* The datagram has the source that the peer can resolve, whatever the socket is bound to. */
static void set_source(struct msghdr *msg, const union ds_addr *source)
{
	struct cmsghdr *cmsg = msg->msg_control;

	if (source->sa.sa_family == AF_INET) {
		struct in_pktinfo info = {.ipi_spec_dst = source->v4.sin_addr};

		cmsg->cmsg_level = IPPROTO_IP;
		cmsg->cmsg_type = IP_PKTINFO;
		cmsg->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(cmsg), &info, sizeof(info));
		msg->msg_controllen = CMSG_SPACE(sizeof(info));
	} else {
		struct in6_pktinfo info = {.ipi6_addr = source->v6.sin6_addr};

		cmsg->cmsg_level = IPPROTO_IPV6;
		cmsg->cmsg_type = IPV6_PKTINFO;
		cmsg->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(cmsg), &info, sizeof(info));
		msg->msg_controllen = CMSG_SPACE(sizeof(info));
	}
}

ssize_t ds_send_udp(struct rs *rs, const union ds_addr *to, const union ds_addr *source,
		    const struct ds_qp *qp, uint8_t op, const struct iovec *iov, size_t n)
{
	struct ds_udp_header header = {.tag = htobe32(DS_TAG), .op = op};
	union {
		struct cmsghdr align;
		uint8_t space[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control = {.space = {0}};
	struct iovec all[n + 1];
	struct msghdr msg = {
		.msg_name = (void *)to,
		.msg_namelen = ds_addr_len(to),
		.msg_iov = all,
		.msg_iovlen = n + 1,
		.msg_control = &control,
	};
	union ds_addr plain = *to;
	ssize_t ret;

	ds_unmap(&plain);
	header.qpn = htobe32(qp->id->qp->qp_num);
	if (plain.sa.sa_family == AF_INET) {
		header.version = 4;
		header.length = offsetof(struct ds_udp_header, addr) + sizeof(header.addr.ipv4);
		header.addr.ipv4 = plain.v4.sin_addr.s_addr;
	} else {
		header.version = 6;
		header.length = sizeof(header);
		memcpy(header.addr.ipv6, &plain.v6.sin6_addr, 16);
	}
	all[0] = (struct iovec){.iov_base = &header, .iov_len = header.length};
	if (n)
		memcpy(&all[1], iov, n * sizeof(*iov));
	set_source(&msg, source);
	ret = sendmsg(rs->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	return ret < 0 ? -errno : ret - header.length;
}

static void keep(struct ds *ds, const union ds_addr *from, const uint8_t *data, size_t length)
{
	struct ds_datagram *datagram = malloc(sizeof(*datagram) + length);

	if (!datagram)
		return;
	datagram->from = *from;
	datagram->length = length;
	datagram->next = NULL;
	memcpy(datagram->data, data, length);
	*ds->end = datagram;
	ds->end = &datagram->next;
	ds->waiting += sizeof(*datagram) + length;
}

/* The address of this host that it came to, without a port. False: the kernel has not told. */
static bool came_to(struct msghdr *msg, union ds_addr *own)
{
	struct in6_pktinfo v6;
	struct in_pktinfo v4;
	struct cmsghdr *c;

	memset(own, 0, sizeof(*own));
	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&v6, CMSG_DATA(c), sizeof(v6));
			own->v6.sin6_family = AF_INET6;
			own->v6.sin6_addr = v6.ipi6_addr;
			if (IN6_IS_ADDR_LINKLOCAL(&v6.ipi6_addr))
				own->v6.sin6_scope_id = v6.ipi6_ifindex;
			ds_unmap(own);
			return true;
		}
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&v4, CMSG_DATA(c), sizeof(v4));
			own->v4.sin_family = AF_INET;
			own->v4.sin_addr = v4.ipi_addr;
			return true;
		}
	}
	return false;
}

/*
 * The address that it was sent to, if its header says so. Ours does; the header of other
 * implementations has the sender's address there. False: there is none.
 */
static bool sent_to(const struct ds_udp_header *header, union ds_addr *own)
{
	memset(own, 0, sizeof(*own));
	if (header->version == 4 &&
	    header->length >= offsetof(struct ds_udp_header, addr) + sizeof(header->addr.ipv4)) {
		own->v4.sin_family = AF_INET;
		own->v4.sin_addr.s_addr = header->addr.ipv4;
		return true;
	}
	if (header->version != 6 || header->length < sizeof(*header))
		return false;
	own->v6.sin6_family = AF_INET6;
	memcpy(&own->v6.sin6_addr, header->addr.ipv6, 16);
	return true;
}

/*
 * The QP of the port that this address of the host belongs to. No question leaves the host. NULL:
 * there is none.
 */
static const struct ds_qp *own_qp(struct rs *rs, union ds_addr *own)
{
	struct ds *ds = rs->ds;
	struct rdma_cm_id *id;
	struct ds_qp *qp;
	unsigned int i;
	int ret;

	for (i = 0; i < ds->n_ports; i++)
		if (ds_same_addr(&ds->ports[i].addr, own))
			return ds->ports[i].qp;
	if (is_any(own) || rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP))
		return NULL;
	ret = rdma_bind_addr(id, &own->sa);
	/* The loopback address belongs to a port, too, but only where it leads to. */
	if (!ret && !id->verbs)
		ret = rdma_resolve_addr(id, NULL, &own->sa, RS_RESOLVE_MS);
	if (!ret)
		ret = id->verbs ? ds_get_qp(rs, &id, &qp) : -ENODEV;
	if (id)
		rdma_destroy_id(id);
	if (ret)
		return NULL;
	if (ds->n_ports < DS_PORTS)
		ds->ports[ds->n_ports++] = (struct ds_port){.addr = *own, .qp = qp};
	return qp;
}

/* Without an answer the datagram still counts; the sender goes on by UDP. */
static void answer(struct rs *rs, struct msghdr *msg, const struct ds_udp_header *header)
{
	const union ds_addr *from = msg->msg_name;
	const struct ds_qp *qp = NULL;
	union ds_addr own;

	if (came_to(msg, &own) || sent_to(header, &own))
		qp = own_qp(rs, &own);
	if (!qp)
		return;
	ds_map(&own, rs->domain);
	ds_send_udp(rs, from, &own, qp, RS_CONTROL, NULL, 0);
}

static void take(struct rs *rs, struct msghdr *msg, size_t length)
{
	const union ds_addr *from = msg->msg_name;
	const uint8_t *data = msg->msg_iov->iov_base;
	size_t least = offsetof(struct ds_udp_header, addr);
	struct ds_udp_header header = {0};

	if (length < least)
		return;
	memcpy(&header, data, length < sizeof(header) ? length : sizeof(header));
	if (header.tag != htobe32(DS_TAG) || header.length < least || header.length > length)
		return;
	hear(rs->ds, from, be32toh(header.qpn) & 0xffffff);
	if (header.op != RS_DATA)
		return;
	answer(rs, msg, &header);
	if (rs->ds->waiting <= rs->options.recv_size)
		keep(rs->ds, from, data + header.length, length - header.length);
}

bool ds_take_udp(struct rs *rs)
{
	char control[CMSG_SPACE(sizeof(struct in6_pktinfo)) +
		     CMSG_SPACE(sizeof(struct in_pktinfo))];
	uint8_t *data = NULL;
	bool some = false;
	union ds_addr from;
	ssize_t length;
	int i;

	for (i = 0; i < DS_AT_ONCE; i++) {
		struct iovec iov;
		struct msghdr msg = {
			.msg_name = &from,
			.msg_namelen = sizeof(from),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};

		/* Most often there is nothing. */
		length = recv(rs->fd, NULL, 0, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC);
		if (length < 0)
			break;
		if (!data)
			data = malloc(UDP_MAX);
		if (!data)
			break;
		iov = (struct iovec){.iov_base = data, .iov_len = UDP_MAX};
		length = recvmsg(rs->fd, &msg, MSG_DONTWAIT);
		some = true;
		if (length >= 0)
			take(rs, &msg, (size_t)length);
	}
	free(data);
	return some;
}
