// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The life of an rsocket. The number of a stream is that of its id's channel. */

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "rs.h"

struct rs *rs_alloc(int domain, int type, const struct rs_options *options)
{
	struct rs *rs = calloc(1, sizeof(*rs));

	if (!rs)
		return NULL;
	rs->fd = -1;
	rs->domain = domain;
	rs->type = type;
	rs->options = *options;
	pthread_mutex_init(&rs->lock, NULL);
	return rs;
}

void rs_free(struct rs *rs)
{
	if (rs->fd >= 0)
		rs_clear(rs->fd);
	if (rs->ds)
		ds_close(rs);
	rs_teardown(rs);
	if (rs->id)
		rdma_destroy_id(rs->id);
	rdma_destroy_event_channel(rs->channel);
	free(rs->route);
	pthread_mutex_destroy(&rs->lock);
	free(rs);
}

int rs_new_channel(struct rs *rs)
{
	int flags;

	rs->channel = rdma_create_event_channel();
	if (!rs->channel)
		return -errno;
	flags = fcntl(rs->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(rs->channel->fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	return 0;
}

int rs_new_id(struct rs *rs)
{
	int on = 1;

	if (rs->id)
		rdma_destroy_id(rs->id);
	rs->id = NULL;
	rs->bound = rs->broken = rs->recv_down = rs->send_down = false;
	if (rdma_create_id(rs->channel, &rs->id, rs, RDMA_PS_TCP)) {
		rs->id = NULL;
		rs->state = RS_FAILED;
		return -errno;
	}
	/* The oldest kernels do not know the option: then the port is refused. */
	if (rs->options.reuse)
		rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on));
	rs->state = RS_NEW;
	return 0;
}

static int create_stream(struct rs *rs)
{
	int ret;

	ret = rs_new_channel(rs);
	if (!ret)
		ret = rs_new_id(rs);
	if (!ret)
		rs->fd = rs->channel->fd;
	return ret;
}

static int create(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), ret;
	struct rs *rs;

	/* Others put a header before the private data of AF_IB: without it they would not understand. */
	if (domain != AF_INET && domain != AF_INET6)
		return -EAFNOSUPPORT;
	if (kind != SOCK_STREAM && kind != SOCK_DGRAM)
		return -ESOCKTNOSUPPORT;
	if (protocol && protocol != (kind == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))
		return -EPROTONOSUPPORT;
	rs = rs_alloc(domain, kind, &rs_config()->options);
	if (!rs)
		return -ENOMEM;
	rs->nonblock = type & SOCK_NONBLOCK;
	ret = kind == SOCK_STREAM ? create_stream(rs) : ds_create(rs);
	if (!ret)
		ret = rs_set(rs->fd, rs);
	if (ret) {
		rs_free(rs);
		return ret;
	}
	return rs->fd;
}

PUBLIC int rsocket(int domain, int type, int protocol)
{
	int state = cm_hold_cancel(), ret = create(domain, type, protocol);

	cm_let_cancel(state);
	return cm_return(ret);
}

int rs_take_error(struct rs *rs)
{
	int error = rs->error;

	rs->error = 0;
	return error;
}

/* ---- Its end ---- */

static bool control_room(const struct rs *rs)
{
	return rs->broken || rs->controls - rs->controls_done < RS_CONTROLS;
}

/* rs_wait(), which signals do not end. */
static void await(struct rs *rs, rs_test *test, int64_t deadline)
{
	while (rs_wait(rs, test, deadline) == -EINTR)
		;
}

/* Says that no data follow, or that none are taken either. -ETIMEDOUT: there was no room for that. */
static int say_end(struct rs *rs, uint32_t what, int64_t deadline)
{
	await(rs, control_room, deadline);
	if (!control_room(rs))
		return -ETIMEDOUT;
	if (!rs->broken)
		rs_post_control(rs, RS_CONTROL, what, NULL, 0, 0, 0);
	rs->said_end = true;
	if (what == RS_DISCONNECT)
		rs->said_disconnect = true;
	return 0;
}

static int shut_down(struct rs *rs, int how)
{
	int ret = 0;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (rs->state != RS_CONNECTED)
		return -ENOTCONN;
	if (how != SHUT_WR)
		rs->recv_down = true;
	if (how != SHUT_RD && !rs->send_down) {
		rs->send_down = true;
		ret = say_end(rs, rs->recv_down ? RS_DISCONNECT : RS_SHUTDOWN,
			      rs_deadline(RS_CLOSE_MS));
		/* The caller can try again. */
		if (ret)
			rs->send_down = false;
	}
	rs_wake(rs);
	return ret;
}

PUBLIC int rshutdown(int socket, int how)
{
	struct rs *rs = rs_get(socket);
	int ret;

	if (!rs)
		return cm_return(-EBADF);
	if (rs->ds)
		return cm_return(shutdown(rs->fd, how) ? -errno : 0);
	pthread_mutex_lock(&rs->lock);
	ret = shut_down(rs, how);
	pthread_mutex_unlock(&rs->lock);
	return cm_return(ret);
}

static bool all_sent(const struct rs *rs)
{
	return rs_all_sent(rs) || rs->heard_disconnect;
}

/* As SO_LINGER says, of 0 s as well; without it a peer that lives has time enough. */
static int64_t close_deadline(const struct rs *rs)
{
	const struct rs_options *options = &rs->options;

	if (!options->linger)
		return rs_deadline(RS_CLOSE_MS);
	return rs_deadline(options->linger_s < INT_MAX / 1000 ? (int)options->linger_s * 1000
							      : INT_MAX);
}

PUBLIC int rclose(int socket)
{
	struct rs *rs = rs_get(socket);
	int64_t deadline;
	int state;

	if (!rs)
		return cm_return(-EBADF);
	if (rs->state == RS_CONNECTED) {
		pthread_mutex_lock(&rs->lock);
		deadline = close_deadline(rs);
		rs_poll_queue(rs);
		rs->send_down = rs->recv_down = true;
		if (!rs->said_disconnect && !rs->heard_disconnect)
			(void)say_end(rs, RS_DISCONNECT, deadline);
		await(rs, all_sent, deadline);
		rs_wake(rs);
		pthread_mutex_unlock(&rs->lock);
	}
	state = cm_hold_cancel();
	if (rs->state == RS_CONNECTED)
		rdma_disconnect(rs->id);
	rs_free(rs);
	cm_let_cancel(state);
	return 0;
}

/* ---- Its names ---- */

static int give_address(const struct sockaddr *from, int domain, struct sockaddr *addr,
			socklen_t *addrlen)
{
	struct sockaddr_storage none = {.ss_family = (sa_family_t)domain};
	socklen_t len;

	if (!from->sa_family)
		from = (struct sockaddr *)&none;
	len = (socklen_t)cm_addr_len(from);
	memcpy(addr, from, *addrlen < len ? *addrlen : len);
	*addrlen = len;
	return 0;
}

PUBLIC int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_get(socket);

	if (!rs)
		return cm_return(-EBADF);
	if (rs->ds)
		return getsockname(rs->fd, addr, addrlen);
	return cm_return(give_address(rdma_get_local_addr(rs->id), rs->domain, addr, addrlen));
}

PUBLIC int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_get(socket);

	if (!rs)
		return cm_return(-EBADF);
	if (rs->ds)
		return getpeername(rs->fd, addr, addrlen);
	if (rs->state != RS_CONNECTED || rs->broken)
		return cm_return(-ENOTCONN);
	return cm_return(give_address(rdma_get_peer_addr(rs->id), rs->domain, addr, addrlen));
}
