// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections by rsockets or by sockets, for rstream, riostream, rcopy and udpong: how they come
 * about, and the bytes that go over them.
 */

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "stream.h"

enum { SYNC = 16 };

static int fail(const struct stream *stream, const char *call)
{
	/* Not between the words of standard output. */
	fflush(stdout);
	fprintf(stderr, "%s%s: %s\n", stream->calls->prefix, call, strerror(errno));
	return -1;
}

/* ---- Bytes ---- */

int stream_flags(const struct stream *stream)
{
	return stream->blocking ? 0 : MSG_DONTWAIT;
}

static int wait_for_ever(struct stream *stream, struct pollfd *fd)
{
	if (stream->async && stream->calls->poll(fd, 1, -1) < 0 && errno != EINTR)
		return fail(stream, "poll");
	return 0;
}

int stream_again(struct stream *stream, short events, const char *call)
{
	struct pollfd fd = {.fd = stream->fd, .events = events};
	int ret;

	if (errno == EINTR)
		return 0;
	if (errno != EAGAIN && errno != EWOULDBLOCK)
		return fail(stream, call);
	if (stream->datagrams)
		return wait_for_ever(stream, &fd);
	/* Its time-out is over. */
	if (stream->blocking)
		return stream_idle(stream);
	if (stream->async) {
		ret = stream->calls->poll(&fd, 1, STREAM_PATIENCE * 1000);
		if (ret < 0 && errno != EINTR)
			return fail(stream, "poll");
		return ret ? 0 : stream_idle(stream);
	}
	if (!stream->idle_since)
		stream->idle_since = clock_us();
	return clock_us() - stream->idle_since < STREAM_PATIENCE * 1e6 ? 0 : stream_idle(stream);
}

int stream_idle(const struct stream *stream)
{
	fflush(stdout);
	fprintf(stderr,
		"%s: the other end has done nothing for %d s; start both with the same options, or "
		"let it go on if it is stopped\n",
		stream->name, STREAM_PATIENCE);
	return -1;
}

int stream_ended(const struct stream *stream)
{
	fprintf(stderr,
		"%s: the peer has closed the connection; what it printed may say "
		"why\n",
		stream->name);
	return -1;
}

int stream_send(struct stream *stream, const char *buf, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = stream->calls->send(stream->fd, buf + done, len - done, stream_flags(stream));
		if (n > 0)
			stream->idle_since = 0;
		if (n > 0)
			done += n;
		else if (stream_again(stream, POLLOUT, "send"))
			return -1;
	}
	return 0;
}

int stream_receive(struct stream *stream, char *buf, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = stream->calls->recv(stream->fd, buf + done, len - done, stream_flags(stream));
		if (n > 0)
			stream->idle_since = 0;
		if (n > 0)
			done += n;
		else if (!n)
			return stream_ended(stream);
		else if (stream_again(stream, POLLIN, "recv"))
			return -1;
	}
	return 0;
}

void stream_fill(unsigned char *next, char *buf, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = (char)(*next)++;
}

int stream_check(unsigned char *next, const char *buf, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if ((unsigned char)buf[i] != (*next)++) {
			fprintf(stderr, "data verification failed byte %zu\n", i);
			return -1;
		}
	return 0;
}

int stream_sync(struct stream *stream)
{
	bool verify = stream->verify && !stream->io_maps;
	char buf[SYNC] = {0};
	int turn;

	for (turn = 0; turn < 2; turn++) {
		if (!stream->server == !turn) {
			if (stream_receive(stream, buf, SYNC) ||
			    (verify && stream_check(&stream->received, buf, SYNC)))
				return -1;
		} else {
			if (verify)
				stream_fill(&stream->sent, buf, SYNC);
			if (stream_send(stream, buf, SYNC))
				return -1;
		}
	}
	return 0;
}

/* ---- Connections ---- */

static int set_options(struct stream *stream, int fd)
{
	const struct stream_calls *calls = stream->calls;
	int value = stream->buffer_size, one = 1;

	if (value > 0 && (calls->set(fd, SOL_SOCKET, SO_SNDBUF, &value, sizeof(value)) ||
			  calls->set(fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value))))
		return fail(stream, "setsockopt of the buffers");
	if (stream->datagrams)
		return 0;
	if (calls->set(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		return fail(stream, "setsockopt TCP_NODELAY");
	if (stream->keepalive >= 0) {
		value = stream->keepalive;
		if (calls->set(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)))
			return fail(stream, "setsockopt SO_KEEPALIVE");
		if (calls->set(fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, sizeof(value)))
			return fail(stream, "setsockopt TCP_KEEPIDLE");
	}
	if (stream->io_maps && calls->set(fd, SOL_RDMA, RDMA_IOMAPSIZE, &one, sizeof(one)))
		return fail(stream, "setsockopt RDMA_IOMAPSIZE");
	value = stream->inline_size;
	if (value >= 0 && calls->fcntl == rfcntl &&
	    calls->set(fd, SOL_RDMA, RDMA_INLINE, &value, sizeof(value)))
		return fail(stream, "setsockopt RDMA_INLINE");
	return 0;
}

/* An accepted connection has the listener's options, but not its flags. */
static int set_flags(struct stream *stream, int fd)
{
	if (!stream->blocking && stream->calls->fcntl(fd, F_SETFL, O_NONBLOCK))
		return fail(stream, "fcntl");
	return 0;
}

/* Of a connection that is there: a listener, and a side that connects, wait as long as it takes. */
static int set_patience(struct stream *stream)
{
	struct timeval time = {.tv_sec = STREAM_PATIENCE};

	if (stream->datagrams)
		return 0;
	if (stream->calls->set(stream->fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) ||
	    stream->calls->set(stream->fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)))
		return fail(stream, "setsockopt of the time-outs");
	return 0;
}

static int new_socket(const struct stream *stream, const struct rdma_addrinfo *res)
{
	return stream->calls->socket(res->ai_family, stream->datagrams ? SOCK_DGRAM : SOCK_STREAM,
				     0);
}

static int look_up(struct stream *stream, const char *node, const char *port, int more,
		   struct rdma_addrinfo **res)
{
	struct rdma_addrinfo hints = stream->hints;
	int ret;

	hints.ai_flags |= more;
	ret = rdma_getaddrinfo(node, port, &hints, res);
	if (!ret)
		return 0;
	fprintf(stderr, "getaddrinfo: %s (%s, port %s)\n",
		ret == -1 || ret == EAI_SYSTEM ? strerror(errno) : gai_strerror(ret),
		node ? node : "any address", port ? port : "any");
	return -1;
}

static int bind_to(struct stream *stream, int fd)
{
	struct rdma_addrinfo *res;
	int ret;

	if (look_up(stream, stream->bind, NULL, RAI_PASSIVE, &res))
		return -1;
	ret = stream->calls->bind(fd, res->ai_src_addr, res->ai_src_len);
	rdma_freeaddrinfo(res);
	return ret ? fail(stream, "bind") : 0;
}

static int finish_connect(struct stream *stream, int fd)
{
	struct pollfd one = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int error = 0;

	if (errno != EINPROGRESS)
		return fail(stream, "connect");
	while (stream->calls->poll(&one, 1, -1) < 0)
		if (errno != EINTR)
			return fail(stream, "poll");
	if (stream->calls->get(fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return fail(stream, "getsockopt SO_ERROR");
	errno = error;
	return error ? fail(stream, "connect") : 0;
}

static int connect_to(struct stream *stream, int fd, struct rdma_addrinfo *res)
{
	if (set_options(stream, fd) || set_flags(stream, fd) ||
	    (stream->bind && bind_to(stream, fd)))
		return -1;
	if (stream->resolve && res->ai_route_len &&
	    stream->calls->set(fd, SOL_RDMA, RDMA_ROUTE, res->ai_route, res->ai_route_len))
		return fail(stream, "setsockopt RDMA_ROUTE");
	if (!stream->calls->connect(fd, res->ai_dst_addr, res->ai_dst_len))
		return 0;
	return finish_connect(stream, fd);
}

int stream_connect(struct stream *stream)
{
	struct rdma_addrinfo *res;
	int ret;

	if (look_up(stream, stream->server, stream->port, stream->resolve ? 0 : RAI_NOROUTE, &res))
		return -1;
	stream->fd = new_socket(stream, res);
	ret = stream->fd < 0 ? fail(stream, "socket") : connect_to(stream, stream->fd, res);
	rdma_freeaddrinfo(res);
	return ret ? ret : set_patience(stream);
}

static int listen_at(struct stream *stream, int fd, const struct rdma_addrinfo *res)
{
	int one = 1;

	if (stream->calls->set(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)))
		return fail(stream, "setsockopt SO_REUSEADDR");
	if (set_options(stream, fd))
		return -1;
	if (stream->calls->bind(fd, res->ai_src_addr, res->ai_src_len)) {
		fail(stream, "bind");
		fprintf(stderr, "%s: it was %s, port %s\n", stream->name,
			stream->bind ? stream->bind : "any address", stream->port);
		return -1;
	}
	if (stream->datagrams)
		return 0;
	return stream->calls->listen(fd, 1) ? fail(stream, "listen") : 0;
}

int stream_listen(struct stream *stream)
{
	const char *node = stream->bind;
	struct rdma_addrinfo *res;
	int ret, fd;

	if (!node && !(stream->hints.ai_flags & RAI_FAMILY))
		node = "0.0.0.0";
	if (look_up(stream, node, stream->port, RAI_PASSIVE, &res))
		return -1;
	fd = new_socket(stream, res);
	ret = fd < 0 ? fail(stream, "socket") : listen_at(stream, fd, res);
	rdma_freeaddrinfo(res);
	if (!ret)
		return fd;
	if (fd >= 0)
		stream->calls->close(fd);
	return -1;
}

int stream_accept(struct stream *stream, int listener, struct sockaddr *addr, socklen_t *len)
{
	/* The listener blocks, whatever the connection does. */
	do
		stream->fd = stream->calls->accept(listener, addr, len);
	while (stream->fd < 0 && errno == EINTR);
	if (stream->fd < 0)
		return fail(stream, "accept");
	return set_flags(stream, stream->fd) ? -1 : set_patience(stream);
}

static int server(struct stream *stream)
{
	int ret, listener = stream_listen(stream);

	if (listener < 0)
		return -1;
	ret = stream_accept(stream, listener, NULL, NULL);
	stream->calls->close(listener);
	return ret;
}

void stream_close(struct stream *stream)
{
	if (stream->fd < 0)
		return;
	stream->calls->shutdown(stream->fd, SHUT_RDWR);
	stream->calls->close(stream->fd);
	stream->fd = -1;
}

/* ---- Tests ---- */

static long count_for(long size)
{
	if (size >= 1 << 20)
		return 100;
	if (size >= 1 << 16)
		return 1000;
	return size >= 1 << 10 ? 10000 : 100000;
}

void stream_name_test(char *name, size_t len, long size, const char *kind)
{
	if (size >= 1 << 20 && !(size & ((1 << 20) - 1)))
		snprintf(name, len, "%ldm_%s", size >> 20, kind);
	else if (size >= 1 << 10 && !(size & ((1 << 10) - 1)))
		snprintf(name, len, "%ldk_%s", size >> 10, kind);
	else
		snprintf(name, len, "%ld_%s", size, kind);
}

static int measure(struct stream *stream, const struct figures *test)
{
	char *buf = calloc(1, test->size);
	double start;
	int ret;

	if (!buf) {
		fprintf(stderr, "%s: no memory for %ld bytes; a smaller -S helps\n", stream->name,
			test->size);
		return -1;
	}
	start = clock_us();
	ret = stream->run(stream, test, buf);
	if (!ret)
		figures_print(test, clock_us() - start);
	free(buf);
	return ret;
}

static int measure_all(struct stream *stream, bool latency)
{
	struct figures test;
	char name[32];
	long size;
	int step;

	/* Powers of two, and what is halfway to the next; a few of them unless all are wanted. */
	for (size = 64; size < 8 << 20; size *= 2) {
		for (step = 0; step < (stream->all && size > 64 ? 2 : 1); step++) {
			test.size = size + step * size / 2;
			if (!stream->all && test.size != 64 && test.size != 1 << 12 &&
			    test.size != 1 << 16 && test.size != 1 << 20)
				continue;
			stream_name_test(name, sizeof(name), test.size, latency ? "lat" : "bw");
			test.name = name;
			test.transfers = latency ? 1 : count_for(test.size);
			test.iterations = latency ? count_for(test.size) : 1;
			if (measure(stream, &test))
				return -1;
		}
	}
	return 0;
}

static int run_tests(struct stream *stream)
{
	const struct figures custom = {"custom", stream->size, stream->transfers,
				       stream->iterations};

	figures_head(true);
	if (stream->custom)
		return measure(stream, &custom);
	return measure_all(stream, true) || measure_all(stream, false) ? -1 : 0;
}

static int run_one(struct stream *stream)
{
	int ret = stream->server ? stream_connect(stream) : server(stream);

	if (!ret)
		ret = run_tests(stream);
	stream_close(stream);
	return ret ? 1 : 0;
}

int stream_run(struct stream *stream)
{
	int status;
	pid_t pid;

	stream->fd = -1;
	if (!stream->fork || stream->server)
		return run_one(stream);
	/* The child opens the device itself, because it must not use what its parent has opened. */
	pid = fork();
	if (pid < 0)
		return fail(stream, "fork") ? 1 : 0;
	if (!pid)
		exit(run_one(stream));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
