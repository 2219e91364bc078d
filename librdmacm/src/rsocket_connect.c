// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections of streams. Each rsocket has an id with a channel of its own, which does not block. The
 * side that connects takes one step with each event; the other one is connected when it has accepted.
 */

#include <fcntl.h>
#include <string.h>

#include "rs.h"

void rs_fail(struct rs *rs, int error)
{
	rs->state = RS_FAILED;
	rs->error = error;
	rs_teardown(rs);
}

/* The connection is over, or does not come about. */
static void end(struct rs *rs, int error)
{
	if (rs_is_connecting(rs)) {
		rs_fail(rs, error);
	} else if (rs->state == RS_CONNECTED) {
		/* What arrived before still counts. */
		rs_poll_queue(rs);
		rs_break(rs, ECONNRESET);
	}
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
		ret = rs_ask_route(rs);
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
	if (ret)
		end(rs, -ret);
}

void rs_progress(struct rs *rs)
{
	uint8_t data[RDMA_MAX_PRIVATE_DATA];
	struct rdma_cm_event *event;
	int state = cm_hold_cancel();
	bool some = false;

	rs->event_waits = false;
	errno = EAGAIN;
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
		errno = EAGAIN;
	}
	/* What could not be read is there still. */
	if (errno == ENOMEM) {
		rs->event_waits = true;
	} else if (errno != EAGAIN && errno != EINTR) {
		/* No event will tell of the end if the device is gone. */
		end(rs, errno);
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
	struct rs *rs = rs_hold(socket);
	int ret;

	if (!rs)
		return cm_return(-EBADF);
	if (rs->ds)
		ret = ds_connect(rs, addr, addrlen);
	else if (!cm_addr_len(addr) || addrlen < cm_addr_len(addr))
		ret = -EINVAL;
	else
		ret = connect_stream(rs, addr);
	pthread_mutex_unlock(&rs->lock);
	return cm_return(ret);
}

/* ---- The passive side ---- */

static int bind_stream(struct rs *rs, const struct sockaddr *addr, socklen_t addrlen)
{
	if (!cm_addr_len(addr) || addrlen < cm_addr_len(addr))
		return -EINVAL;
	if (rs->state != RS_NEW || rs->bound)
		return -EINVAL;
	if (rdma_bind_addr(rs->id, (struct sockaddr *)addr))
		return -errno;
	addr = rdma_get_local_addr(rs->id);
	memcpy(&rs->local, addr, cm_addr_len(addr));
	rs->bound = true;
	return 0;
}

PUBLIC int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	int ret = -EBADF, state = cm_hold_cancel();
	struct rs *rs = rs_hold(socket);

	if (rs) {
		ret = rs->ds ? ds_bind(rs, addr, addrlen) : bind_stream(rs, addr, addrlen);
		pthread_mutex_unlock(&rs->lock);
	}
	cm_let_cancel(state);
	return cm_return(ret);
}

static int listen_stream(struct rs *rs, int backlog)
{
	if (rs->ds)
		return -EOPNOTSUPP;
	if (rs->state == RS_LISTENING)
		return 0;
	if (rs->state != RS_NEW)
		return -EINVAL;
	if (rdma_listen(rs->id, backlog))
		return -errno;
	rs->state = RS_LISTENING;
	rs->bound = true;
	rs_wake(rs);
	return 0;
}

PUBLIC int rlisten(int socket, int backlog)
{
	int ret = -EBADF, state = cm_hold_cancel();
	struct rs *rs = rs_hold(socket);

	if (rs) {
		ret = listen_stream(rs, backlog);
		pthread_mutex_unlock(&rs->lock);
	}
	cm_let_cancel(state);
	return cm_return(ret);
}

/* The private data of a request. */
struct request_data {
	uint8_t data[RDMA_MAX_PRIVATE_DATA];
	size_t len;
};

/* The next request; -EAGAIN: there is none. */
static int next_request(struct rs *listener, struct rdma_cm_id **id, struct request_data *said)
{
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(listener->channel, &event)) {
		bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;

		if (request) {
			*id = event->id;
			said->len = event->param.conn.private_data_len;
			if (event->param.conn.private_data)
				memcpy(said->data, event->param.conn.private_data, said->len);
			else
				said->len = 0;
		}
		rdma_ack_cm_event(event);
		if (request)
			return 0;
	}
	return -errno;
}

/* The rsocket of a request's id, which it takes over, with a channel of its own. */
static int take_id(const struct rs *listener, struct rdma_cm_id *id, struct rs **out)
{
	struct rs *rs = rs_alloc(listener->domain, SOCK_STREAM, &listener->options);
	int ret;

	if (!rs) {
		rdma_destroy_id(id);
		return -ENOMEM;
	}
	rs->id = id;
	ret = rs_new_channel(rs);
	if (!ret && rdma_migrate_id(id, rs->channel))
		ret = -errno;
	if (ret) {
		rs_free(rs);
		return ret;
	}
	*out = rs;
	return 0;
}

/* Connects it, without the listener's lock. */
static int accept_one(struct rs *rs, const struct request_data *said)
{
	struct rdma_conn_param param;
	struct rs_hello hello;
	int ret;

	ret = rs_setup(rs);
	if (!ret)
		ret = rs_hear_hello(rs, said->data, said->len);
	if (!ret) {
		make_param(rs, &hello, &param);
		ret = rdma_accept(rs->id, &param) ? -errno : 0;
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

/*
 * With the lock: waits for a request, and makes an rsocket of it. Several threads may wait here: each request goes to
 * one of them. state: as cm_hold_cancel() has returned it.
 */
static int next_one(struct rs *listener, int64_t deadline, int state, struct rs **out,
		    struct request_data *said)
{
	struct rdma_cm_id *id = NULL;
	int ret;

	if (listener->ds)
		return -EOPNOTSUPP;
	if (listener->state != RS_LISTENING)
		return -EINVAL;
	for (;;) {
		ret = next_request(listener, &id, said);
		if (!ret) {
			ret = take_id(listener, id, out);
			/* The caller need not hear of a request that has gone. */
			if (ret != -EINVAL)
				return ret;
		} else if (ret == -EAGAIN && !listener->nonblock) {
			cm_let_cancel(state);
			ret = rs_sleep(listener, deadline);
			cm_hold_cancel();
			if (ret)
				return ret;
		} else {
			return ret;
		}
	}
}

static int accept_stream(int socket, int state)
{
	struct rs *listener, *fresh = NULL;
	struct request_data said;
	int64_t deadline = -2;
	int ret;

	do {
		listener = rs_hold(socket);
		if (!listener)
			return -EBADF;
		if (deadline == -2)
			deadline = rs_deadline(listener->options.recv_timeout);
		ret = next_one(listener, deadline, state, &fresh, &said);
		pthread_mutex_unlock(&listener->lock);
		if (ret)
			return ret;
		ret = accept_one(fresh, &said);
		/* Nor of one from a peer that this library cannot work with. */
	} while (ret == -EPROTO || ret == -EINVAL);
	return ret;
}

PUBLIC int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	int state = cm_hold_cancel(), ret = accept_stream(socket, state);

	if (ret >= 0 && addr && addrlen)
		rgetpeername(ret, addr, addrlen);
	cm_let_cancel(state);
	return cm_return(ret);
}
