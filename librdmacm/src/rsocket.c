// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The life of an rsocket. The number of a stream is that of its id's channel. */

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "rs.h"

static struct rs *unused;
static pthread_mutex_t unused_lock = PTHREAD_MUTEX_INITIALIZER;

static struct rs *memory_for_one(void)
{
	struct rs *rs;

	pthread_mutex_lock(&unused_lock);
	rs = unused;
	if (rs)
		unused = rs->unused;
	pthread_mutex_unlock(&unused_lock);
	if (rs)
		return rs;
	rs = calloc(1, sizeof(*rs));
	if (!rs)
		return NULL;
	pthread_mutex_init(&rs->lock, NULL);
	rs->number = -1;
	return rs;
}

struct rs *rs_alloc(int domain, int type, const struct rs_options *options)
{
	struct rs *rs = memory_for_one();

	if (!rs)
		return NULL;
	rs->fd = -1;
	rs->pid = getpid();
	rs->domain = domain;
	rs->type = type;
	rs->options = *options;
	return rs;
}

/* Threads that were late, or asleep, may still take its lock, and look at its life. */
static void give_memory_back(struct rs *rs)
{
	pthread_mutex_lock(&rs->lock);
	memset(&rs->fd, 0, offsetof(struct rs, lock) - offsetof(struct rs, fd));
	memset(&rs->state, 0, sizeof(*rs) - offsetof(struct rs, state));
	pthread_mutex_unlock(&rs->lock);
	pthread_mutex_lock(&unused_lock);
	rs->unused = unused;
	unused = rs;
	pthread_mutex_unlock(&unused_lock);
}

void rs_free(struct rs *rs)
{
	if (rs->ds)
		ds_close(rs);
	rs_end_requests(rs, rs_free);
	rs_teardown(rs);
	if (rs->id)
		rdma_destroy_id(rs->id);
	rdma_destroy_event_channel(rs->channel);
	free(rs->route);
	give_memory_back(rs);
}

void rs_forget(struct rs *rs)
{
	if (rs->ds)
		ds_forget(rs);
	rs_end_requests(rs, rs_forget);
	rs_forget_queues(rs);
	if (rs->id)
		cm_id_forget(to_cm_id(rs->id));
	rdma_destroy_event_channel(rs->channel);
	free(rs->route);
	give_memory_back(rs);
}

int rs_new_channel(struct rs *rs)
{
	int flags;

	rs->channel = rdma_create_event_channel();
	if (!rs->channel)
		return -errno;
	cm_keep(rs->channel->fd);
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
	rs->broken = rs->recv_down = rs->send_down = false;
	if (rdma_create_id(rs->channel, &rs->id, rs, RDMA_PS_TCP)) {
		rs->id = NULL;
		rs->state = RS_FAILED;
		return -errno;
	}
	/* The oldest kernels do not know the option, and refuse the port then. */
	if (rs->options.reuse)
		rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on));
	if (rs->options.v6_only)
		rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on));
	/* Another attempt starts from where the program has bound the rsocket, or fails. */
	if (rs->bound && rdma_bind_addr(rs->id, (struct sockaddr *)&rs->local)) {
		rs->state = RS_FAILED;
		return -errno;
	}
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

	/*
	 * Other implementations put a header before the private data of AF_IB, and do not
	 * understand those without one.
	 */
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
static int await(struct rs *rs, rs_test *test, int64_t deadline)
{
	int ret;

	do
		ret = rs_wait(rs, test, deadline);
	while (ret == -EINTR);
	return ret;
}

/*
 * Tells the peer that no data follow, or that none are taken either. -ETIMEDOUT: there was no room
 * for that; -EBADF: another thread has closed it.
 */
static int say_end(struct rs *rs, uint32_t what, int64_t deadline)
{
	if (await(rs, control_room, deadline) == -EBADF)
		return -EBADF;
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
		if (ret == -EBADF)
			return ret;
		/* The caller can try again. */
		if (ret)
			rs->send_down = false;
	}
	rs_wake(rs);
	return ret;
}

PUBLIC int rshutdown(int socket, int how)
{
	struct rs *rs = rs_hold(socket);
	int ret;

	if (!rs)
		return cm_return(-EBADF);
	if (rs->ds)
		ret = shutdown(rs->fd, how) ? -errno : 0;
	else
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

/* Lets the peer know, and take what has been sent. -EBADF: another thread has closed it. */
static int say_farewell(struct rs *rs)
{
	int64_t deadline = close_deadline(rs);

	rs_poll_queue(rs);
	rs->send_down = rs->recv_down = true;
	if (!rs->said_disconnect && !rs->heard_disconnect &&
	    say_end(rs, RS_DISCONNECT, deadline) == -EBADF)
		return -EBADF;
	return await(rs, all_sent, deadline);
}

/*
 * With the lock: from now on only this thread uses it. Threads that sleep in it leave. A child has
 * none of them.
 */
static void take_out(struct rs *rs)
{
	rs_clear(rs);
	__atomic_store_n(&rs->life, rs->life + 1, __ATOMIC_RELEASE);
	if (rs->pid == getpid())
		rs_wake(rs);
	rs->waiters = NULL;
}

PUBLIC int rclose(int socket)
{
	struct rs *rs = rs_hold(socket);
	bool own;
	int state;

	if (!rs)
		return cm_return(-EBADF);
	/* A child that closes what it has inherited says nothing, as with a socket. */
	own = rs->pid == getpid();
	if (own && rs->state == RS_CONNECTED && say_farewell(rs) == -EBADF) {
		pthread_mutex_unlock(&rs->lock);
		return cm_return(-EBADF);
	}
	take_out(rs);
	state = cm_hold_cancel();
	pthread_mutex_unlock(&rs->lock);
	if (own && rs->state == RS_CONNECTED)
		rdma_disconnect(rs->id);
	if (own)
		rs_free(rs);
	else
		rs_forget(rs);
	rs_ended(socket);
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

static const struct sockaddr *own_address(const struct rs *rs)
{
	/* Where another rconnect() could not make an id, the rsocket has none. */
	return rs->id ? rdma_get_local_addr(rs->id) : (const struct sockaddr *)&rs->local;
}

PUBLIC int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_hold(socket);
	int ret;

	if (!rs)
		return cm_return(-EBADF);
	if (rs->ds)
		ret = getsockname(rs->fd, addr, addrlen) ? -errno : 0;
	else
		ret = give_address(own_address(rs), rs->domain, addr, addrlen);
	pthread_mutex_unlock(&rs->lock);
	return cm_return(ret);
}

PUBLIC int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_hold(socket);
	int ret;

	if (!rs)
		return cm_return(-EBADF);
	if (rs->ds)
		ret = getpeername(rs->fd, addr, addrlen) ? -errno : 0;
	else if (rs->state != RS_CONNECTED || rs->broken)
		ret = -ENOTCONN;
	else
		ret = give_address(rdma_get_peer_addr(rs->id), rs->domain, addr, addrlen);
	pthread_mutex_unlock(&rs->lock);
	return cm_return(ret);
}
