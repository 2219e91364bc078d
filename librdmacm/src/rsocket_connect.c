// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections of streams. Each rsocket has an id with a channel of its own, which does not block.
 * The side that connects takes one step with each event; the other one is connected when it has
 * accepted.
 */

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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

/* A request that has been read. */
struct rs_request {
	struct rs *rs; /* that is to accept it, with a channel of its own */
	uint8_t data[RDMA_MAX_PRIVATE_DATA];
	size_t len;
	struct rs_request *next;
};

static struct rs_request *make_request(const struct rs *listener, int *error)
{
	struct rs_request *request = calloc(1, sizeof(*request));

	*error = -ENOMEM;
	if (!request)
		return NULL;
	request->rs = rs_alloc(listener->domain, SOCK_STREAM, &listener->options);
	if (request->rs) {
		*error = rs_new_channel(request->rs);
		if (!*error)
			return request;
		rs_free(request->rs);
	}
	free(request);
	return NULL;
}

void rs_end_requests(struct rs *listener, void (*end)(struct rs *rs))
{
	struct rs_request *request;

	while (listener->requests) {
		request = listener->requests;
		listener->requests = request->next;
		end(request->rs);
		free(request);
	}
}

bool rs_has_requests(const struct rs *listener)
{
	return listener->requests && listener->pid == getpid();
}

static bool has_event(const struct rs *rs)
{
	struct pollfd fd = {.fd = rs->channel->fd, .events = POLLIN};

	return poll(&fd, 1, 0) > 0;
}

/* The next request; -EAGAIN: there is none. */
static int read_request(struct rs *listener, struct rs_request *request)
{
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(listener->channel, &event)) {
		bool is_one = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;

		if (is_one) {
			request->rs->id = event->id;
			request->len = event->param.conn.private_data_len;
			if (event->param.conn.private_data)
				memcpy(request->data, event->param.conn.private_data, request->len);
			else
				request->len = 0;
		}
		rdma_ack_cm_event(event);
		if (is_one)
			return 0;
	}
	return -errno;
}

/*
 * What the request needs is made before it is read: without memory, or a descriptor, it stays where
 * it is. -EAGAIN: there is none; -ESTALE: it has gone.
 */
static int take_request(struct rs *listener, struct rs_request **out)
{
	struct rs_request *request;
	int ret;

	if (rs_has_requests(listener)) {
		*out = listener->requests;
		listener->requests = (*out)->next;
		if (!has_event((*out)->rs))
			return 0;
		rs_free((*out)->rs);
		free(*out);
		return -ESTALE;
	}
	if (!has_event(listener))
		return -EAGAIN;
	request = make_request(listener, &ret);
	if (!request)
		return ret;
	ret = read_request(listener, request);
	if (!ret && rdma_migrate_id(request->rs->id, request->rs->channel))
		ret = errno == EINVAL ? -ESTALE : -errno;
	if (ret) {
		rs_free(request->rs);
		free(request);
		return ret;
	}
	*out = request;
	return 0;
}

/*
 * There may be more memory, or descriptors, later: then the request is for a later raccept(), as a
 * socket's would be.
 * False: it is not, and the caller's.
 */
static bool put_back(struct rs *listener, uint32_t life, struct rs_request *request, int error)
{
	struct rs *rs = request->rs;
	bool same;

	if ((error != -ENOMEM && error != -EMFILE && error != -ENFILE) || rs->state == RS_CONNECTED)
		return false;
	rs_teardown(rs);
	rs->broken = false;
	pthread_mutex_lock(&listener->lock);
	same = listener->life == life;
	if (same) {
		request->next = listener->requests;
		listener->requests = request;
		rs_wake(listener);
	}
	pthread_mutex_unlock(&listener->lock);
	return same;
}

/* Connects it, without the listener's lock. */
static int accept_one(const struct rs_request *request)
{
	struct rs *rs = request->rs;
	struct rdma_conn_param param;
	struct rs_hello hello;
	int ret;

	ret = rs_setup(rs);
	if (!ret)
		ret = rs_hear_hello(rs, request->data, request->len);
	if (ret)
		return ret;
	make_param(rs, &hello, &param);
	if (rdma_accept(rs->id, &param))
		return -errno;
	rs->state = RS_CONNECTED;
	rs->bound = true;
	rs->fd = rs->channel->fd;
	ret = rs_set(rs->fd, rs);
	return ret ? ret : rs->fd;
}

/*
 * With the lock: waits for a request. Several threads may wait here: each request goes to one of
 * them. state: as cm_hold_cancel() has returned it.
 */
static int next_one(struct rs *listener, int64_t deadline, int state, struct rs_request **out)
{
	int ret;

	if (listener->ds)
		return -EOPNOTSUPP;
	if (listener->state != RS_LISTENING)
		return -EINVAL;
	for (;;) {
		ret = take_request(listener, out);
		if (ret == -EAGAIN && !listener->nonblock) {
			cm_let_cancel(state);
			ret = rs_sleep(listener, deadline);
			cm_hold_cancel();
			if (ret)
				return ret;
		} else if (ret != -ESTALE) {
			/* The caller need not hear of a request that has gone. */
			return ret;
		}
	}
}

static int accept_stream(int socket, int state)
{
	struct rs_request *request = NULL;
	int64_t deadline = -2;
	struct rs *listener;
	uint32_t life;
	int ret;

	do {
		listener = rs_hold(socket);
		if (!listener)
			return -EBADF;
		if (deadline == -2)
			deadline = rs_deadline(listener->options.recv_timeout);
		life = listener->life;
		ret = next_one(listener, deadline, state, &request);
		pthread_mutex_unlock(&listener->lock);
		if (ret)
			return ret;
		ret = accept_one(request);
		if (ret < 0) {
			if (put_back(listener, life, request, ret))
				return ret;
			rs_free(request->rs);
		}
		free(request);
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
