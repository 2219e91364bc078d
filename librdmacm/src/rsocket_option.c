// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Options of rsockets and of level SOL_RDMA, and the flag of rfcntl(). */

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/time.h>

#include "kept.h"
#include "rs.h"

/* ---- Setting ---- */

static int get_int(const void *optval, socklen_t optlen, uint32_t *value)
{
	if (optlen < sizeof(*value))
		return -EINVAL;
	memcpy(value, optval, sizeof(*value));
	return 0;
}

static int get_ms(const void *optval, socklen_t optlen, int *ms)
{
	struct timeval time;
	int64_t all;

	if (optlen < sizeof(time))
		return -EINVAL;
	memcpy(&time, optval, sizeof(time));
	if (time.tv_usec < 0 || time.tv_usec > 999999)
		return -EDOM;
	all = time.tv_sec * INT64_C(1000) + (time.tv_usec + 999) / 1000;
	*ms = all <= 0 || all > INT32_MAX ? -1 : (int)all;
	return 0;
}

/* Sizes count when the queues are made. */
static int fixed(const struct rs *rs)
{
	return rs->qp ? -EINVAL : 0;
}

static int set_linger(struct rs *rs, const void *optval, socklen_t optlen)
{
	struct linger linger;

	if (optlen < sizeof(linger))
		return -EINVAL;
	memcpy(&linger, optval, sizeof(linger));
	rs->options.linger = linger.l_onoff;
	rs->options.linger_s = linger.l_linger;
	return 0;
}

static int set_reuse(struct rs *rs, bool reuse)
{
	int on = reuse;

	rs->options.reuse = reuse;
	/* Kernels that do not know it refuse the port when it is taken, as they always did. */
	if (rs->id &&
	    rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)) &&
	    errno != ENOSYS)
		return -errno;
	return 0;
}

static int set_socket(struct rs *rs, int name, const void *optval, socklen_t optlen)
{
	struct rs_options *options = &rs->options;
	uint32_t value = 0;
	int ret;

	if (name == SO_LINGER)
		return set_linger(rs, optval, optlen);
	if (name == SO_RCVTIMEO)
		return get_ms(optval, optlen, &options->recv_timeout);
	if (name == SO_SNDTIMEO)
		return get_ms(optval, optlen, &options->send_timeout);
	ret = get_int(optval, optlen, &value);
	if (ret)
		return ret;
	switch (name) {
	case SO_REUSEADDR:
		return set_reuse(rs, value);
	case SO_RCVBUF:
		ret = fixed(rs);
		if (!ret)
			options->recv_size = rs_fit_buffer(value);
		return ret;
	case SO_SNDBUF:
		ret = fixed(rs);
		if (!ret)
			options->send_size = rs_fit_buffer(value);
		return ret;
	case SO_KEEPALIVE:
		options->keepalive = value;
		rs->heard_us = 0;
		return 0;
	case SO_OOBINLINE:
		options->oob_inline = value;
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int set_tcp(struct rs *rs, int name, const void *optval, socklen_t optlen)
{
	struct rs_options *options = &rs->options;
	uint32_t value = 0;
	int ret;

	ret = get_int(optval, optlen, &value);
	if (ret)
		return ret;
	switch (name) {
	case TCP_NODELAY:
		options->no_delay = value;
		return 0;
	case TCP_MAXSEG:
		return 0; /* the path has its own */
	case TCP_KEEPIDLE:
	case TCP_KEEPINTVL:
		if (value < 1 || value > 32767)
			return -EINVAL;
		*(name == TCP_KEEPIDLE ? &options->keep_idle : &options->keep_interval) = value;
		return 0;
	case TCP_KEEPCNT:
		if (value < 1 || value > 127)
			return -EINVAL;
		options->keep_count = value;
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int set_route(struct rs *rs, const void *optval, socklen_t optlen)
{
	void *copy;

	if (!optlen || optlen % sizeof(struct ibv_path_data))
		return -EINVAL;
	copy = malloc(optlen);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, optval, optlen);
	free(rs->route);
	rs->route = copy;
	rs->route_len = optlen;
	return 0;
}

static int set_rdma(struct rs *rs, int name, const void *optval, socklen_t optlen)
{
	uint32_t value = 0;
	int ret;

	if (rs->state >= RS_CONNECTING)
		return -EINVAL;
	if (name == RDMA_ROUTE)
		return set_route(rs, optval, optlen);
	ret = get_int(optval, optlen, &value);
	if (ret)
		return ret;
	switch (name) {
	case RDMA_SQSIZE:
		rs->options.sq_size = rs_fit_queue(value);
		return 0;
	case RDMA_RQSIZE:
		rs->options.rq_size = rs_fit_queue(value);
		return 0;
	case RDMA_INLINE:
		rs->options.inline_size = value < RS_INLINE_MAX ? value : RS_INLINE_MAX;
		return 0;
	case RDMA_IOMAPSIZE:
		rs->options.iomap_size = rs_fit_iomap(value);
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int set_option(struct rs *rs, int level, int name, const void *optval, socklen_t optlen)
{
	uint32_t value = 0;
	int ret;

	switch (level) {
	case SOL_SOCKET:
		return set_socket(rs, name, optval, optlen);
	case IPPROTO_TCP:
		return rs->ds ? -ENOPROTOOPT : set_tcp(rs, name, optval, optlen);
	case IPPROTO_IPV6:
		if (name != IPV6_V6ONLY)
			return -ENOPROTOOPT;
		ret = get_int(optval, optlen, &value);
		if (!ret && rs->id &&
		    rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &value,
				    sizeof(value)))
			ret = -errno;
		if (!ret)
			rs->options.v6_only = value;
		return ret;
	case SOL_RDMA:
		return set_rdma(rs, name, optval, optlen);
	default:
		return -ENOPROTOOPT;
	}
}

PUBLIC int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	int ret, state = cm_hold_cancel();
	struct rs *rs = rs_hold(socket);

	if (!rs) {
		cm_let_cancel(state);
		return cm_return(-EBADF);
	}
	ret = set_option(rs, level, optname, optval, optlen);
	/* The descriptor of datagrams has options too. */
	if (rs->ds && (level == SOL_SOCKET || level == IPPROTO_IP || level == IPPROTO_IPV6))
		ret = setsockopt(rs->fd, level, optname, optval, optlen) ? -errno : 0;
	pthread_mutex_unlock(&rs->lock);
	cm_let_cancel(state);
	return cm_return(ret);
}

/* ---- Asking ---- */

static int put(void *optval, socklen_t *optlen, const void *value, size_t size)
{
	if (*optlen > size)
		*optlen = (socklen_t)size;
	memcpy(optval, value, *optlen);
	return 0;
}

static int put_int(void *optval, socklen_t *optlen, uint32_t value)
{
	return put(optval, optlen, &value, sizeof(value));
}

static int put_ms(void *optval, socklen_t *optlen, int ms)
{
	struct timeval time = {0};

	if (ms > 0) {
		time.tv_sec = ms / 1000;
		time.tv_usec = ms % 1000 * 1000;
	}
	return put(optval, optlen, &time, sizeof(time));
}

static int ask_socket(struct rs *rs, int name, void *optval, socklen_t *optlen)
{
	const struct rs_options *options = &rs->options;
	struct linger linger = {.l_onoff = options->linger, .l_linger = (int)options->linger_s};

	switch (name) {
	case SO_REUSEADDR:
		return put_int(optval, optlen, options->reuse);
	case SO_RCVBUF:
		return put_int(optval, optlen, options->recv_size);
	case SO_SNDBUF:
		return put_int(optval, optlen, options->send_size);
	case SO_LINGER:
		return put(optval, optlen, &linger, sizeof(linger));
	case SO_KEEPALIVE:
		return put_int(optval, optlen, options->keepalive);
	case SO_OOBINLINE:
		return put_int(optval, optlen, options->oob_inline);
	case SO_RCVTIMEO:
		return put_ms(optval, optlen, options->recv_timeout);
	case SO_SNDTIMEO:
		return put_ms(optval, optlen, options->send_timeout);
	case SO_TYPE:
		return put_int(optval, optlen, rs->type);
	case SO_DOMAIN:
		return put_int(optval, optlen, rs->domain);
	case SO_PROTOCOL:
		return put_int(optval, optlen, rs->ds ? IPPROTO_UDP : IPPROTO_TCP);
	case SO_ACCEPTCONN:
		return put_int(optval, optlen, rs->state == RS_LISTENING);
	case SO_ERROR:
		if (rs_is_connecting(rs))
			rs_progress(rs);
		return put_int(optval, optlen, rs_take_error(rs));
	default:
		return -ENOPROTOOPT;
	}
}

static int ask_tcp(const struct rs *rs, int name, void *optval, socklen_t *optlen)
{
	const struct rs_options *options = &rs->options;
	int mtu = IBV_MTU_2048;

	switch (name) {
	case TCP_NODELAY:
		return put_int(optval, optlen, options->no_delay);
	case TCP_MAXSEG:
		if (rs->id && rs->id->route.num_paths > 0)
			mtu = rs->id->route.path_rec->mtu;
		return put_int(optval, optlen, 128U << mtu);
	case TCP_KEEPIDLE:
		return put_int(optval, optlen, options->keep_idle);
	case TCP_KEEPINTVL:
		return put_int(optval, optlen, options->keep_interval);
	case TCP_KEEPCNT:
		return put_int(optval, optlen, options->keep_count);
	default:
		return -ENOPROTOOPT;
	}
}

static int ask_rdma(const struct rs *rs, int name, void *optval, socklen_t *optlen)
{
	switch (name) {
	case RDMA_SQSIZE:
		return put_int(optval, optlen, rs->qp ? rs->sq_room : rs->options.sq_size);
	case RDMA_RQSIZE:
		return put_int(optval, optlen, rs->qp ? rs->rq_size : rs->options.rq_size);
	case RDMA_INLINE:
		return put_int(optval, optlen, rs->qp ? rs->inline_max : rs->options.inline_size);
	case RDMA_IOMAPSIZE:
		return put_int(optval, optlen, rs->options.iomap_size);
	case RDMA_ROUTE:
		if (!rs->route)
			return -ENODATA;
		return put(optval, optlen, rs->route, rs->route_len);
	default:
		return -ENOPROTOOPT;
	}
}

static int ask_option(struct rs *rs, int level, int name, void *optval, socklen_t *optlen)
{
	if (rs->ds && level != SOL_RDMA)
		return getsockopt(rs->fd, level, name, optval, optlen) ? -errno : 0;
	switch (level) {
	case SOL_SOCKET:
		return ask_socket(rs, name, optval, optlen);
	case IPPROTO_TCP:
		return ask_tcp(rs, name, optval, optlen);
	case IPPROTO_IPV6:
		return name == IPV6_V6ONLY ? put_int(optval, optlen, rs->options.v6_only)
					   : -ENOPROTOOPT;
	case SOL_RDMA:
		return ask_rdma(rs, name, optval, optlen);
	default:
		return -ENOPROTOOPT;
	}
}

/* Programs may happen to ask for it, too. */
static int ask_kept(void *optval, socklen_t *optlen)
{
	int from;

	if (!optval || !optlen)
		return -EFAULT;
	if (*optlen < sizeof(from))
		return -EINVAL;
	memcpy(&from, optval, sizeof(from));
	return put_int(optval, optlen, (uint32_t)cm_next_kept(from));
}

PUBLIC int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct rs *rs;
	int ret;

	if (level == SOL_RDMA && optname == RS_OPTION_KEPT)
		return cm_return(ask_kept(optval, optlen));
	rs = rs_hold(socket);
	if (!rs)
		return cm_return(-EBADF);
	ret = ask_option(rs, level, optname, optval, optlen);
	pthread_mutex_unlock(&rs->lock);
	return cm_return(ret);
}

static int control(struct rs *rs, int cmd, long arg)
{
	int ret;

	switch (cmd) {
	case F_GETFL:
		return O_RDWR | (rs->nonblock ? O_NONBLOCK : 0);
	case F_SETFL:
		rs->nonblock = arg & O_NONBLOCK;
		return 0;
	case F_GETFD:
	case F_SETFD:
		ret = fcntl(rs->fd, cmd, arg);
		return ret < 0 ? -errno : ret;
	default:
		return -EINVAL;
	}
}

PUBLIC int rfcntl(int socket, int cmd, ...)
{
	struct rs *rs = rs_hold(socket);
	va_list args;
	long arg;
	int ret;

	if (!rs)
		return cm_return(-EBADF);
	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	ret = control(rs, cmd, arg);
	pthread_mutex_unlock(&rs->lock);
	return cm_return(ret);
}
