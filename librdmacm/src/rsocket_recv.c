// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receiving on a stream: out of the ring that the peer writes into. What was read is given back to
 * the peer in halves of the ring.
 */

#include <limits.h>
#include <string.h>

#include "rs.h"

bool rs_readable(const struct rs *rs)
{
	return rs->rbuf_bytes || rs->recv_down || rs->error;
}

/* Copies what is there, behind the bytes of iov that are filled already. */
static size_t scatter(const struct rs *rs, const struct iovec *iov, size_t n, size_t skip)
{
	size_t left = rs->rbuf_bytes, at = rs->rbuf_offset, total = 0, i;

	for (i = 0; i < n && left; i++) {
		size_t len = iov[i].iov_len, done = 0;
		uint8_t *to = iov[i].iov_base;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		to += skip;
		len -= skip;
		skip = 0;
		if (len > left)
			len = left;
		while (done < len) {
			size_t piece = rs->rbuf_size - at;

			if (piece > len - done)
				piece = len - done;
			memcpy(to + done, rs->rbuf + at, piece);
			done += piece;
			at = (at + piece) % rs->rbuf_size;
		}
		left -= len;
		total += len;
	}
	return total;
}

static void consume(struct rs *rs, size_t len)
{
	rs->rbuf_offset = (rs->rbuf_offset + len) % rs->rbuf_size;
	rs->rbuf_bytes -= len;
	rs->rbuf_free += len;
	rs_give_credits(rs);
}

/* With the lock. */
static ssize_t receive(struct rs *rs, const struct iovec *iov, size_t n, size_t wanted, int flags)
{
	bool wait = !rs->nonblock && !(flags & MSG_DONTWAIT), all = flags & MSG_WAITALL;
	size_t total = 0, got;
	int64_t deadline = -2;
	int ret;

	if (rs_is_connecting(rs)) {
		rs_progress(rs);
		if (rs_is_connecting(rs))
			return wait ? -ENOTCONN : -EAGAIN;
	}
	/* A connection that has ended still has data; one that was never made has not. */
	if (rs->state != RS_CONNECTED)
		return rs->error ? -rs_take_error(rs) : -ENOTCONN;
	while (total < wanted) {
		if (!rs->rbuf_bytes)
			rs_poll_queue(rs);
		if (!wait && !rs_readable(rs))
			rs_look_for_end(rs);
		if (!rs_readable(rs)) {
			if (wait && deadline == -2)
				deadline = rs_deadline(rs->options.recv_timeout);
			ret = wait ? rs_wait(rs, rs_readable, deadline) : -EAGAIN;
			if (ret)
				return total ? (ssize_t)total : ret;
		}
		if (!rs->rbuf_bytes) {
			if (!total && rs->error)
				return -rs_take_error(rs);
			break;
		}
		got = scatter(rs, iov, n, total);
		total += got;
		if (flags & MSG_PEEK)
			break;
		consume(rs, got);
		if (!all)
			break;
	}
	return (ssize_t)total;
}

static ssize_t receive_from(int socket, const struct iovec *iov, size_t n, int flags,
			    struct sockaddr *addr, socklen_t *addrlen, int *msg_flags)
{
	size_t wanted = 0, i;
	struct rs *rs;
	ssize_t ret;

	for (i = 0; i < n; i++) {
		if (iov[i].iov_len > SSIZE_MAX - wanted)
			return -EINVAL;
		wanted += iov[i].iov_len;
	}
	*msg_flags = 0;
	rs = rs_hold(socket);
	if (!rs)
		return -EBADF;
	/*
	 * There is never an error with its datagram, nor urgent data, of which UDP knows nothing.
	 */
	if (flags & MSG_ERRQUEUE || (flags & MSG_OOB && !rs->ds)) {
		pthread_mutex_unlock(&rs->lock);
		return flags & MSG_ERRQUEUE ? -EAGAIN : -EINVAL;
	}
	if (rs->ds) {
		ret = ds_recvv(rs, iov, n, flags, addr, addrlen, msg_flags);
		pthread_mutex_unlock(&rs->lock);
		return ret;
	}
	ret = receive(rs, iov, n, wanted, flags);
	pthread_mutex_unlock(&rs->lock);
	if (ret >= 0 && addr && addrlen && rgetpeername(socket, addr, addrlen))
		*addrlen = 0;
	return ret;
}

PUBLIC ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *addr,
			 socklen_t *addrlen)
{
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	int msg_flags;

	return rs_return(receive_from(socket, &iov, 1, flags, addr, addrlen, &msg_flags));
}

PUBLIC ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return rrecvfrom(socket, buf, len, flags, NULL, NULL);
}

PUBLIC ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	ssize_t ret;

	ret = receive_from(socket, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name,
			   msg->msg_name ? &msg->msg_namelen : NULL, &msg->msg_flags);
	if (ret >= 0)
		msg->msg_controllen = 0;
	return rs_return(ret);
}

PUBLIC ssize_t rread(int socket, void *buf, size_t count)
{
	return rrecvfrom(socket, buf, count, 0, NULL, NULL);
}

PUBLIC ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	int msg_flags;

	return rs_return(
		iovcnt < 0 ? -EINVAL
			   : receive_from(socket, iov, (size_t)iovcnt, 0, NULL, NULL, &msg_flags));
}
