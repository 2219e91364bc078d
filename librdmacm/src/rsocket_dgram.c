// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Datagram rsockets: their life, sending and receiving. */

#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rs_dgram.h"

int ds_create(struct rs *rs)
{
	struct epoll_event event = {.events = EPOLLIN};
	const int on = 1;
	struct ds *ds;

	if (rs->domain != AF_INET && rs->domain != AF_INET6)
		return -EAFNOSUPPORT;
	ds = calloc(1, sizeof(*ds));
	if (!ds)
		return -ENOMEM;
	ds->end = &ds->first;
	ds->events = -1;
	rs->ds = ds;
	rs->fd = cm_keep(socket(rs->domain, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (rs->fd < 0)
		return -errno;
	/*
	 * The kernel tells the address that a datagram came to. Where it does not, the address in
	 * the header counts.
	 */
	(void)setsockopt(rs->fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
	if (rs->domain == AF_INET6)
		(void)setsockopt(rs->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
	ds->events = cm_keep(epoll_create1(EPOLL_CLOEXEC));
	if (ds->events < 0 || epoll_ctl(ds->events, EPOLL_CTL_ADD, rs->fd, &event))
		return -errno;
	return 0;
}

static void drop_first(struct ds *ds)
{
	struct ds_datagram *datagram = ds->first;

	ds->first = datagram->next;
	if (!ds->first)
		ds->end = &ds->first;
	ds->waiting -= sizeof(*datagram) + datagram->length;
	free(datagram);
}

static void free_rest(struct rs *rs)
{
	struct ds *ds = rs->ds;

	while (ds->first)
		drop_first(ds);
	cm_give_up(ds->events);
	if (ds->events >= 0)
		close(ds->events);
	cm_give_up(rs->fd);
	if (rs->fd >= 0)
		close(rs->fd);
	free(ds);
	rs->ds = NULL;
}

void ds_close(struct rs *rs)
{
	ds_free_peers(rs);
	ds_free_qps(rs);
	free_rest(rs);
}

void ds_forget(struct rs *rs)
{
	ds_forget_peers(rs);
	ds_forget_qps(rs);
	free_rest(rs);
}

int ds_bind(struct rs *rs, const struct sockaddr *addr, socklen_t len)
{
	return bind(rs->fd, addr, len) ? -errno : 0;
}

static int copy_addr(const struct rs *rs, union ds_addr *to, const struct sockaddr *addr,
		     socklen_t len)
{
	memset(to, 0, sizeof(*to));
	if (!addr || addr->sa_family != rs->domain)
		return -EAFNOSUPPORT;
	to->sa.sa_family = addr->sa_family;
	if (len < ds_addr_len(to))
		return -EINVAL;
	memcpy(to, addr, ds_addr_len(to));
	return 0;
}

int ds_connect(struct rs *rs, const struct sockaddr *addr, socklen_t len)
{
	union ds_addr peer;
	int ret;

	if (addr && addr->sa_family == AF_UNSPEC) {
		rs->ds->connected = false;
		return connect(rs->fd, addr, len) ? -errno : 0;
	}
	ret = copy_addr(rs, &peer, addr, len);
	if (ret)
		return ret;
	if (connect(rs->fd, addr, len))
		return -errno;
	rs->ds->peer = peer;
	rs->ds->connected = true;
	return 0;
}

/* ---- Waiting ---- */

bool ds_poll(struct rs *rs)
{
	struct ds_qp *qp;
	bool some = false;

	for (qp = rs->ds->qps; qp; qp = qp->next)
		some |= ds_poll_qp(qp);
	if (some)
		rs_wake(rs);
	return some;
}

void ds_arm(struct rs *rs)
{
	struct ds_qp *qp;

	for (qp = rs->ds->qps; qp; qp = qp->next)
		if (!qp->armed)
			qp->armed = !ibv_req_notify_cq(qp->cq, 0);
}

int ds_poll_fds(const struct rs *rs, struct pollfd *fds)
{
	fds[0] = (struct pollfd){.fd = rs->ds->events, .events = POLLIN};
	return 1;
}

void ds_advance(struct rs *rs)
{
	bool some = false;
	struct ds_qp *qp;
	struct ibv_cq *cq;
	void *context;
	int state = cm_hold_cancel();

	for (qp = rs->ds->qps; qp; qp = qp->next) {
		while (!qp->broken && !ibv_get_cq_event(qp->comp, &cq, &context)) {
			qp->armed = false;
			ibv_ack_cq_events(qp->cq, 1);
			some = true;
		}
		/* No completion will tell of the end if the device is gone. */
		if (!qp->broken && errno != EAGAIN && errno != EINTR)
			qp->broken = some = true;
	}
	some |= ds_take_udp(rs);
	if (!ds_poll(rs) && some)
		rs_wake(rs);
	cm_let_cancel(state);
}

static struct ds_qp *ready_qp(const struct rs *rs)
{
	struct ds_qp *qp;

	for (qp = rs->ds->qps; qp; qp = qp->next)
		if (qp->ready_head != qp->ready_tail)
			return qp;
	return NULL;
}

static bool broken(const struct rs *rs)
{
	const struct ds_qp *qp;

	for (qp = rs->ds->qps; qp; qp = qp->next)
		if (qp->broken)
			return true;
	return false;
}

static bool has_datagram(const struct rs *rs)
{
	return rs->ds->first || ready_qp(rs);
}

/* A call would not sleep. */
static bool readable(const struct rs *rs)
{
	return has_datagram(rs) || broken(rs);
}

static bool has_room(const struct ds_qp *qp)
{
	return qp->sq_pos - qp->sq_done < qp->send_slots || qp->broken;
}

static bool writable(const struct rs *rs)
{
	const struct ds_qp *qp;

	for (qp = rs->ds->qps; qp; qp = qp->next)
		if (!has_room(qp))
			return false;
	return true;
}

short ds_events(const struct rs *rs)
{
	return (short)((readable(rs) ? POLLIN | POLLRDNORM : 0) |
		       (writable(rs) ? POLLOUT | POLLWRNORM : 0) | (broken(rs) ? POLLERR : 0));
}

/* ---- Sending ---- */

static int post(struct ds_peer *peer, const struct iovec *iov, size_t n, uint32_t length)
{
	struct ds_qp *qp = peer->qp;
	uint8_t *slot =
		(uint8_t *)qp->send_mem.at + (size_t)(qp->sq_pos % qp->send_slots) * qp->mtu;
	struct ibv_sge sge = {.addr = (uintptr_t)slot,
			      .length = peer->header.length + length,
			      .lkey = qp->send_mem.mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .wr_id = qp->sq_pos + 1,
					   .opcode = IBV_WR_SEND,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .wr.ud = {.ah = peer->ah,
						     .remote_qpn = peer->qpn,
						     .remote_qkey = RDMA_UDP_QKEY},
				   },
			   *bad;
	size_t i;

	memcpy(slot, &peer->header, peer->header.length);
	slot += peer->header.length;
	for (i = 0; i < n; i++) {
		memcpy(slot, iov[i].iov_base, iov[i].iov_len);
		slot += iov[i].iov_len;
	}
	if (sge.length <= qp->inline_max)
		wr.send_flags = IBV_SEND_INLINE;
	if (qp->sq_pos + 1 - qp->sq_signaled >= qp->send_slots / 4) {
		wr.send_flags |= IBV_SEND_SIGNALED;
		qp->sq_signaled = qp->sq_pos + 1;
	}
	if (ibv_post_send(qp->id->qp, &wr, &bad))
		return -EIO;
	peer->sq_pos = ++qp->sq_pos;
	return 0;
}

/* The peer, whose QP is known; or 1 with *sent: UDP took the datagram. */
static int find_peer(struct rs *rs, const struct iovec *iov, size_t n, size_t length,
		     const union ds_addr *to, struct ds_peer **peer, ssize_t *sent)
{
	int ret = ds_get_peer(rs, to, peer);

	if (ret)
		return ret;
	if ((*peer)->header.length + length > (*peer)->qp->mtu)
		return -EMSGSIZE;
	/* The answer may have come, and more, which a thread that sleeps does not see. */
	if (!(*peer)->qpn && ds_take_udp(rs))
		rs_wake(rs);
	if ((*peer)->qpn)
		return 0;
	*sent = ds_send_udp(rs, &(*peer)->addr, &(*peer)->source, (*peer)->qp, RS_DATA, iov, n);
	return 1;
}

static ssize_t send_one(struct rs *rs, const struct iovec *iov, size_t n, size_t length, bool wait,
			const union ds_addr *to)
{
	bool waits = false;
	int64_t deadline = 0;
	struct ds_peer *peer;
	ssize_t sent = 0;
	int ret;

	/* The peer may be given up while this thread waits. */
	for (;;) {
		int state = cm_hold_cancel();

		ret = find_peer(rs, iov, n, length, to, &peer, &sent);
		cm_let_cancel(state);
		if (ret)
			return ret < 0 ? ret : sent;
		if (!has_room(peer->qp))
			ds_poll_qp(peer->qp);
		if (has_room(peer->qp))
			break;
		if (!waits)
			deadline = rs_deadline(rs->options.send_timeout);
		waits = true;
		ret = wait ? rs_wait(rs, writable, deadline) : -EAGAIN;
		if (ret)
			return ret;
	}
	ret = peer->qp->broken ? -EIO : post(peer, iov, n, (uint32_t)length);
	return ret ? ret : (ssize_t)length;
}

ssize_t ds_sendv(struct rs *rs, const struct iovec *iov, size_t n, int flags,
		 const struct sockaddr *addr, socklen_t len)
{
	bool wait = !rs->nonblock && !(flags & MSG_DONTWAIT);
	size_t length = 0, i;
	union ds_addr to;
	ssize_t ret = 0;

	if (n > DS_PIECES)
		return -EMSGSIZE;
	for (i = 0; i < n; i++) {
		if (iov[i].iov_len > UINT16_MAX - length)
			return -EMSGSIZE;
		length += iov[i].iov_len;
	}
	if (addr)
		ret = copy_addr(rs, &to, addr, len);
	if (ret)
		return ret;
	if (!addr && !rs->ds->connected)
		return -EDESTADDRREQ;
	/* A copy: send_one() may give the lock away, and an rclose() meanwhile frees rs->ds. */
	if (!addr)
		to = rs->ds->peer;
	return send_one(rs, iov, n, length, wait, &to);
}

/* ---- Receiving ---- */

/* Reads the datagram in a slot: where it comes from, and its contents. False: it is none. */
static bool parse(const struct rs *rs, const uint8_t *slot, size_t length, union ds_addr *from,
		  const uint8_t **data, size_t *data_length)
{
	struct ds_header header;

	memset(from, 0, sizeof(*from));
	if (length < DS_GRH + offsetof(struct ds_header, addr) + sizeof(header.addr.ipv4))
		return false;
	length -= DS_GRH;
	memcpy(&header, slot + DS_GRH, length < sizeof(header) ? length : sizeof(header));
	if (header.length > length)
		return false;
	if (header.version == 4) {
		from->v4.sin_family = AF_INET;
		from->v4.sin_port = header.port;
		from->v4.sin_addr.s_addr = header.addr.ipv4;
		ds_map(from, rs->domain);
	} else if (header.version == 6 && rs->domain == AF_INET6 &&
		   header.length >= sizeof(header)) {
		from->v6.sin6_family = AF_INET6;
		from->v6.sin6_port = header.port;
		memcpy(&from->v6.sin6_addr, header.addr.ipv6.addr, 16);
	} else {
		return false;
	}
	*data = slot + DS_GRH + header.length;
	*data_length = length - header.length;
	return true;
}

static size_t scatter(const struct iovec *iov, size_t n, const uint8_t *data, size_t length)
{
	size_t done = 0, i;

	for (i = 0; i < n && done < length; i++) {
		size_t piece = length - done < iov[i].iov_len ? length - done : iov[i].iov_len;

		memcpy(iov[i].iov_base, data + done, piece);
		done += piece;
	}
	return done;
}

static bool welcome(const struct ds *ds, const union ds_addr *from)
{
	return !ds->connected || ds_same_addr(&ds->peer, from);
}

/* With something readable. -EAGAIN: it was nothing for the program. */
static ssize_t take(struct rs *rs, const struct iovec *iov, size_t n, int flags,
		    union ds_addr *from, int *msg_flags)
{
	struct ds *ds = rs->ds;
	struct ds_qp *qp = NULL;
	const uint8_t *data = NULL;
	size_t length = 0, done;
	ssize_t ret = -EAGAIN;
	uint32_t slot = 0;
	bool good;

	if (ds->first) {
		*from = ds->first->from;
		data = ds->first->data;
		length = ds->first->length;
		good = true;
	} else {
		qp = ready_qp(rs);
		slot = qp->ready[qp->ready_head % qp->recv_slots].slot;
		good = parse(rs, ds_slot(qp, slot),
			     qp->ready[qp->ready_head % qp->recv_slots].length, from, &data,
			     &length);
	}
	good = good && welcome(ds, from);
	if (good) {
		done = scatter(iov, n, data, length);
		if (done < length)
			*msg_flags |= MSG_TRUNC;
		ret = (ssize_t)(flags & MSG_TRUNC ? length : done);
		if (flags & MSG_PEEK)
			return ret;
	}
	if (!qp) {
		drop_first(ds);
	} else {
		qp->ready_head++;
		ds_post_receive(qp, slot);
	}
	return ret;
}

static ssize_t receive(struct rs *rs, const struct iovec *iov, size_t n, int flags,
		       union ds_addr *from, int *msg_flags)
{
	int64_t deadline = rs_deadline(rs->options.recv_timeout);
	bool wait = !rs->nonblock && !(flags & MSG_DONTWAIT);
	ssize_t ret;

	for (;;) {
		if (!readable(rs))
			ds_poll(rs);
		if (!readable(rs))
			ds_advance(rs);
		if (!readable(rs)) {
			ret = wait ? rs_wait(rs, readable, deadline) : -EAGAIN;
			if (ret)
				return ret;
		}
		/* What arrived before still counts. */
		if (!has_datagram(rs))
			return -EIO;
		ret = take(rs, iov, n, flags, from, msg_flags);
		if (ret != -EAGAIN)
			return ret;
	}
}

ssize_t ds_recvv(struct rs *rs, const struct iovec *iov, size_t n, int flags, struct sockaddr *addr,
		 socklen_t *len, int *msg_flags)
{
	union ds_addr from;
	socklen_t from_len;
	ssize_t ret;

	ret = receive(rs, iov, n, flags, &from, msg_flags);
	if (ret < 0 || !addr || !len)
		return ret;
	from_len = ds_addr_len(&from);
	memcpy(addr, &from, *len < from_len ? *len : from_len);
	*len = from_len;
	return ret;
}
