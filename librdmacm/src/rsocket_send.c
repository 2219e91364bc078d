// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Sending on a stream: data are copied into a ring and written from there into the peer's, or go in
 * the entry of the queue itself if they are short. */

#include <limits.h>
#include <string.h>

#include "rs.h"

/*
 * Pieces grow, so that the receiver soon has something to do. It polls for 10 us before it sleeps
 * (rs_config()): the largest piece must come sooner than that after the one before.
 */
enum { FIRST_PIECE = 2048 };

bool rs_writable(const struct rs *rs)
{
	return rs->send_down || rs->error || rs_can_send(rs);
}

/* Where a gathered source is read. */
struct source {
	const struct iovec *iov;
	size_t offset;
	size_t left;
};

static void gather(struct source *from, uint8_t *to, size_t len)
{
	while (len) {
		size_t n = from->iov->iov_len - from->offset;

		if (n > len)
			n = len;
		if (n)
			memcpy(to, (const uint8_t *)from->iov->iov_base + from->offset, n);
		to += n;
		len -= n;
		from->offset += n;
		if (from->offset == from->iov->iov_len) {
			from->iov++;
			from->offset = 0;
		}
	}
}

/* Writes at most so many bytes, as far as the ring has room in one place. op < 0: without a
 * message. Returns the bytes taken, or -errno. */
static int write_piece(struct rs *rs, struct source *from, uint32_t length, int op, uint64_t addr,
		       uint32_t key)
{
	uint32_t offset = rs->sbuf_offset;
	uint8_t small[RS_INLINE_MAX];
	struct ibv_sge sge;
	int64_t imm;
	int ret;

	if (length <= rs->inline_max) {
		gather(from, small, length);
		sge = (struct ibv_sge){.addr = (uintptr_t)small, .length = length};
		imm = op < 0 ? -1 : (int64_t)((uint32_t)op << RS_OP_SHIFT | length);
		ret = rs_post_write(rs, &sge, length, imm, addr, key);
		return ret ? ret : (int)length;
	}
	if (length > RS_PIECE)
		length = RS_PIECE;
	if (length > rs_sbuf_free(rs))
		length = rs_sbuf_free(rs);
	if (length > rs->sbuf_size - offset)
		length = rs->sbuf_size - offset;
	gather(from, rs->sbuf + offset, length);
	imm = op < 0 ? -1 : (int64_t)((uint32_t)op << RS_OP_SHIFT | length);
	ret = rs_post_piece(rs, offset, length, imm, addr, key);
	return ret ? ret : (int)length;
}

/* A piece of the stream that goes at once; rs_can_send() holds. */
static int send_piece(struct rs *rs, struct source *from, size_t len)
{
	uint32_t length = rs->target.length < len ? rs->target.length : (uint32_t)len;
	int ret;

	ret = write_piece(rs, from, length, RS_DATA, rs->target.addr, rs->target.key);
	if (ret < 0)
		return ret;
	rs->seq++;
	rs->target.addr += ret;
	rs->target.length -= ret;
	if (!rs->target.length)
		rs_next_target(rs);
	return ret;
}

static int check(struct rs *rs)
{
	if (rs->error)
		return -rs_take_error(rs);
	if (rs->send_down)
		return -EPIPE;
	return rs->state == RS_CONNECTED ? 0 : -ENOTCONN;
}

/* With the lock. */
static ssize_t send_all(struct rs *rs, struct source *from, int flags)
{
	bool wait = !rs->nonblock && !(flags & MSG_DONTWAIT);
	size_t total = from->left, piece = FIRST_PIECE;
	int64_t deadline = -2;
	int ret;

	if (rs_is_connecting(rs)) {
		rs_progress(rs);
		if (rs_is_connecting(rs))
			return wait ? -ENOTCONN : -EAGAIN;
	}
	ret = check(rs);
	if (ret)
		return ret;
	while (from->left) {
		if (!rs_can_send(rs))
			rs_poll_queue(rs);
		if (!wait && !rs_can_send(rs))
			rs_look_for_end(rs);
		if (!rs_can_send(rs)) {
			if (wait && deadline == -2)
				deadline = rs_deadline(rs->options.send_timeout);
			ret = wait ? rs_wait(rs, rs_writable, deadline) : -EAGAIN;
		}
		/* An error waits for the next call if some bytes went. */
		if (!ret && (rs->send_down || rs->error))
			ret = from->left < total ? -EPIPE : check(rs);
		if (!ret)
			ret = send_piece(rs, from, from->left < piece ? from->left : piece);
		if (ret < 0)
			break;
		from->left -= ret;
		ret = 0;
		if (piece < RS_PIECE)
			piece *= 2;
	}
	return from->left < total ? (ssize_t)(total - from->left) : ret;
}

static ssize_t send_stream(struct rs *rs, const struct iovec *iov, size_t n, int flags)
{
	struct source from = {.iov = iov};
	size_t i;

	for (i = 0; i < n; i++) {
		if (iov[i].iov_len > (size_t)(SSIZE_MAX - from.left))
			return -EINVAL;
		from.left += iov[i].iov_len;
	}
	return send_all(rs, &from, flags);
}

/* The address is of datagrams alone. */
static ssize_t send_to(int socket, const struct iovec *iov, size_t n, int flags,
		       const struct sockaddr *addr, socklen_t len)
{
	struct rs *rs = rs_hold(socket);
	ssize_t ret;

	if (!rs)
		return -EBADF;
	/* Data would not be urgent. */
	if (flags & MSG_OOB)
		ret = -EOPNOTSUPP;
	else
		ret = rs->ds ? ds_sendv(rs, iov, n, flags, addr, len)
			     : send_stream(rs, iov, n, flags);
	pthread_mutex_unlock(&rs->lock);
	return ret;
}

PUBLIC ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return rs_return(send_to(socket, &iov, 1, flags, NULL, 0));
}

PUBLIC ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
		       const struct sockaddr *addr, socklen_t addrlen)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return rs_return(send_to(socket, &iov, 1, flags, addr, addrlen));
}

PUBLIC ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	if (msg->msg_control && msg->msg_controllen)
		return rs_return(-EINVAL);
	return rs_return(send_to(socket, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name,
				 msg->msg_namelen));
}

/* ---- Into mapped memory ---- */

/* The peer's entry for an offset, with what is left of it behind the offset. */
static uint32_t find_mapping(const struct rs *rs, uint64_t offset, uint64_t *addr, uint32_t *key)
{
	uint32_t i;

	for (i = 0; i < rs->iomap_size; i++) {
		volatile const struct rs_mapping *entry = &rs->iomap[i];
		uint32_t length = entry->buffer.length;

		if (offset < entry->offset || offset - entry->offset >= length)
			continue;
		*addr = entry->buffer.addr + (offset - entry->offset);
		*key = entry->buffer.key;
		return (uint32_t)(length - (offset - entry->offset));
	}
	return 0;
}

static bool direct_writable(const struct rs *rs)
{
	return rs->send_down || rs->error || rs_has_room(rs);
}

static ssize_t write_mapped(struct rs *rs, const uint8_t *buf, size_t count, uint64_t offset,
			    bool wait)
{
	int64_t deadline = rs_deadline(rs->options.send_timeout);
	size_t left = count;
	uint64_t addr;
	uint32_t key;
	int ret;

	ret = check(rs);
	if (ret)
		return ret;
	rs_poll_queue(rs);
	while (left) {
		struct iovec iov = {.iov_base = (void *)buf, .iov_len = left};
		struct source from = {.iov = &iov, .left = left};
		uint32_t length = find_mapping(rs, offset, &addr, &key);

		if (!length)
			ret = -EFAULT;
		else if (!rs_has_room(rs))
			ret = wait ? rs_wait(rs, direct_writable, deadline) : -EAGAIN;
		if (!ret && (rs->send_down || rs->error))
			ret = left < count ? -EPIPE : check(rs);
		if (!ret) {
			if (length > left)
				length = (uint32_t)left;
			ret = write_piece(rs, &from, length, -1, addr, key);
		}
		if (ret < 0)
			break;
		buf += ret;
		offset += ret;
		left -= ret;
		ret = 0;
	}
	return left < count ? (ssize_t)(count - left) : ret;
}

PUBLIC size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct rs *rs = rs_hold(socket);
	ssize_t ret;

	if (!rs)
		return (size_t)rs_return(-EBADF);
	if (rs->ds)
		ret = -EOPNOTSUPP;
	else
		ret = write_mapped(rs, buf, count, (uint64_t)offset,
				   !rs->nonblock && !(flags & MSG_DONTWAIT));
	pthread_mutex_unlock(&rs->lock);
	return (size_t)rs_return(ret);
}

PUBLIC ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsend(socket, buf, count, 0);
}

PUBLIC ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return rs_return(iovcnt < 0 ? -EINVAL : send_to(socket, iov, (size_t)iovcnt, 0, NULL, 0));
}
