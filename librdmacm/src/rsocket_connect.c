// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections of streams. Each rsocket has an id with a channel of its own, which does not block. The
 * side that connects takes one step with each event; the other one is connected when it has accepted.
 */

#include <fcntl.h>
#include <string.h>

#include "rs.h"

static void fail(struct rs *rs, int error)
{
	rs->state = RS_FAILED;
	rs->error = error;
	rs_teardown(rs);
}

static int event_error(enum rdma_cm_event_type event, int status)
{
	if (event == RDMA_CM_EVENT_REJECTED)
		return ECONNREFUSED;
	if (event == RDMA_CM_EVENT_UNREACHABLE)
		return ETIMEDOUT;
	if (!status)
		return ECONNRESET;
	return status < 0 ? -status : status;
}

static void make_param(const struct rs *rs, struct rs_hello *hello, struct rdma_conn_param *param)
{
	rs_say_hello(rs, hello);
	memset(param, 0, sizeof(*param));
	param->private_data = hello;
	param->private_data_len = sizeof(*hello);
	param->flow_control = 1;
	param->retry_count = 7;
	param->rnr_retry_count = 7;
}

static int ask_route(struct rs *rs)
{
	rs->state = RS_RESOLVING_ROUTE;
	if (rs->route)
		return rdma_set_option(rs->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, rs->route,
				       rs->route_len)
			       ? -errno
			       : 0;
	return rdma_resolve_route(rs->id, RS_RESOLVE_MS) ? -errno : 0;
}

static int ask_connection(struct rs *rs)
{
	struct rdma_conn_param param;
	struct rs_hello hello;
	int ret;

	rs->state = RS_CONNECTING;
	ret = rs_setup(rs);
	if (ret)
		return ret;
	make_param(rs, &hello, &param);
	return rdma_connect(rs->id, &param) ? -errno : 0;
}

static void step(struct rs *rs, enum rdma_cm_event_type event, int status, const void *data,
		 size_t len)
{
	int ret = 0;

	switch (event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = ask_route(rs);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = ask_connection(rs);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (rs->state != RS_CONNECTING)
			break;
		ret = rs_hear_hello(rs, data, len);
		if (ret)
			rdma_disconnect(rs->id);
		else
			rs->state = RS_CONNECTED;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		break;
	default:
		ret = -event_error(event, status);
		break;
	}
	if (!ret)
		return;
	if (rs_is_connecting(rs)) {
		fail(rs, -ret);
	} else if (rs->state == RS_CONNECTED) {
		/* What arrived before still counts. */
		rs_poll_queue(rs);
		rs_break(rs, ECONNRESET);
	}
}

void rs_progress(struct rs *rs)
{
	uint8_t data[RDMA_MAX_PRIVATE_DATA];
	struct rdma_cm_event *event;
	int state = cm_hold_cancel();
	bool some = false;

	while (rs->id && !rdma_get_cm_event(rs->channel, &event)) {
		enum rdma_cm_event_type type = event->event;
		size_t len = event->param.conn.private_data_len;
		int status = event->status;

		if (event->param.conn.private_data)
			memcpy(data, event->param.conn.private_data, len);
		else
			len = 0;
		rdma_ack_cm_event(event);
		step(rs, type, status, data, len);
		some = true;
	}
	if (some)
		rs_wake(rs);
	cm_let_cancel(state);
}

/* ---- The active side ---- */

static bool connect_done(const struct rs *rs)
{
	return !rs_is_connecting(rs);
}

static int start_connect(struct rs *rs, const struct sockaddr *addr)
{
	int ret;

	if (rs->state == RS_FAILED) {
		ret = rs_new_id(rs);
		if (ret)
			return ret;
	}
	rs->state = RS_RESOLVING_ADDR;
	if (!rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)addr, RS_RESOLVE_MS))
		return 0;
	ret = -errno;
	rs->state = RS_FAILED;
	return ret;
}

static int connect_stream(struct rs *rs, const struct sockaddr *addr)
{
	int ret = 0, state;

	if (rs_is_connecting(rs))
		rs_progress(rs);
	if (rs_is_connecting(rs)) {
		if (rs->nonblock)
			return -EALREADY;
	} else if (rs->state == RS_CONNECTED || rs->state == RS_LISTENING) {
		return -EISCONN;
	} else if (rs->error) {
		return -rs_take_error(rs);
	} else {
		state = cm_hold_cancel();
		ret = start_connect(rs, addr);
		cm_let_cancel(state);
		if (ret)
			return ret;
	}
	if (rs->nonblock)
		ret = rs_is_connecting(rs) ? -EINPROGRESS : 0;
	else
		ret = rs_wait(rs, connect_done, rs_deadline(rs->options.send_timeout));
	if (ret)
		return ret == -EAGAIN ? -EINPROGRESS : ret;
	return rs->state == RS_CONNECTED ? 0 : -rs_take_error(rs);
}

PUBLIC int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rs *rs = rs_get(socket);
	int ret;

	if (!rs)
		return cm_return(-EBADF);
	if (rs->ds)
		return cm_return(ds_connect(rs, addr, addrlen));
	if (!cm_addr_len(addr) || addrlen < cm_addr_len(addr))
		return cm_return(-EINVAL);
	pthread_mutex_lock(&rs->lock);
	ret = connect_stream(rs, addr);
	pthread_mutex_unlock(&rs->lock);
	return cm_return(ret);
}

/* ---- The passive side ---- */

PUBLIC int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rs *rs = rs_get(socket);
	int ret, state;

	if (!rs)
		return cm_return(-EBADF);
	if (rs->ds)
		return cm_return(ds_bind(rs, addr, addrlen));
	if (!cm_addr_len(addr) || addrlen < cm_addr_len(addr))
		return cm_return(-EINVAL);
	state = cm_hold_cancel();
	pthread_mutex_lock(&rs->lock);
	ret = rs->state != RS_NEW || rs->bound ? -EINVAL : 0;
	if (!ret && rdma_bind_addr(rs->id, (struct sockaddr *)addr))
		ret = -errno;
	if (!ret)
		rs->bound = true;
	pthread_mutex_unlock(&rs->lock);
	cm_let_cancel(state);
	return cm_return(ret);
}

PUBLIC int rlisten(int socket, int backlog)
{
	struct rs *rs = rs_get(socket);
	int ret, state;

	if (!rs)
		return cm_return(-EBADF);
	if (rs->ds)
		return cm_return(-EOPNOTSUPP);
	state = cm_hold_cancel();
	pthread_mutex_lock(&rs->lock);
	ret = rs->state == RS_LISTENING ? 0 : rs->state == RS_NEW ? 1 : -EINVAL;
	if (ret > 0) {
		ret = rdma_listen(rs->id, backlog) ? -errno : 0;
		if (!ret) {
			rs->state = RS_LISTENING;
			rs->bound = true;
		}
	}
	pthread_mutex_unlock(&rs->lock);
	cm_let_cancel(state);
	return cm_return(ret);
}

/* The rsocket of a request's id, which it takes over. */
static int accept_id(const struct rs *listener, struct rdma_cm_id *id, const void *data, size_t len)
{
	struct rdma_conn_param param;
	struct rs_hello hello;
	struct rs *rs;
	int ret;

	rs = rs_alloc(listener->domain, SOCK_STREAM, &listener->options);
	if (!rs) {
		rdma_destroy_id(id);
		return -ENOMEM;
	}
	rs->id = id;
	ret = rs_new_channel(rs);
	if (!ret && rdma_migrate_id(id, rs->channel))
		ret = -errno;
	if (!ret)
		ret = rs_setup(rs);
	if (!ret)
		ret = rs_hear_hello(rs, data, len);
	if (!ret) {
		make_param(rs, &hello, &param);
		ret = rdma_accept(id, &param) ? -errno : 0;
	}
	if (!ret) {
		rs->state = RS_CONNECTED;
		rs->bound = true;
		rs->fd = rs->channel->fd;
		ret = rs_set(rs->fd, rs);
	}
	if (ret) {
		rs_free(rs);
		return ret;
	}
	return rs->fd;
}

/* The next request; -EAGAIN: there is none. */
static int next_request(struct rs *rs, struct rdma_cm_id **id, void *data, size_t *len)
{
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(rs->channel, &event)) {
		bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;

		if (request) {
			*id = event->id;
			*len = event->param.conn.private_data_len;
			if (event->param.conn.private_data)
				memcpy(data, event->param.conn.private_data, *len);
			else
				*len = 0;
		}
		rdma_ack_cm_event(event);
		if (request)
			return 0;
	}
	return -errno;
}

/* 0: look for one. */
static int wait_request(const struct rs *rs, int64_t deadline)
{
	struct pollfd fd = {.fd = rs->channel->fd, .events = POLLIN};
	int64_t left = deadline < 0 ? -1 : deadline - rs_now_us() / 1000;

	if (deadline >= 0 && left <= 0)
		return -EAGAIN;
	return poll(&fd, 1, left > INT32_MAX ? INT32_MAX : (int)left) < 0 ? -errno : 0;
}

PUBLIC int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_get(socket);
	uint8_t data[RDMA_MAX_PRIVATE_DATA];
	struct rdma_cm_id *id = NULL;
	int64_t deadline;
	bool found;
	size_t len = 0;
	int ret, state;

	if (!rs)
		return cm_return(-EBADF);
	if (rs->ds)
		return cm_return(-EOPNOTSUPP);
	if (rs->state != RS_LISTENING)
		return cm_return(-EINVAL);
	/* No lock: several threads may wait here, and events go to one each. */
	deadline = rs_deadline(rs->options.recv_timeout);
	for (;;) {
		state = cm_hold_cancel();
		ret = next_request(rs, &id, data, &len);
		found = !ret;
		if (found)
			ret = accept_id(rs, id, data, len);
		cm_let_cancel(state);
		if (found) {
			if (ret >= 0)
				break;
			/* One that is no peer for us, or has gone, is nobody's business. */
			if (ret == -EPROTO || ret == -EINVAL)
				ret = 0;
		} else if (ret == -EAGAIN && !rs->nonblock) {
			ret = wait_request(rs, deadline);
		}
		if (ret)
			return cm_return(ret);
	}
	if (addr && addrlen)
		rgetpeername(ret, addr, addrlen);
	return ret;
}
