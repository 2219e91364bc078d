// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See outgoing.h. */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "outgoing.h"

/* A datagram is a length of 16 bits; and Linux before 6.1 takes no more packets in one. */
#define DATAGRAM (65535 - SH_ROCE_HEAD6)
#define MOST	 SH_ROCE_MERGED
#define ROOM	 (64u << 10)

/*
 * Packets of one datagram have one length, but for the last one, which may be shorter and ends it.
 */
struct datagram {
	uint32_t first, n;
	size_t size; /* of each packet */
	size_t bytes;
	bool ended;
};

static __thread struct {
	struct sh_outgoing_way way;
	union sh_wire_at to;
	socklen_t to_len;
	uint32_t packets, datagrams;
	size_t used;
	struct iovec packet[MOST];
	struct datagram datagram[MOST];
	unsigned char bytes[ROOM + SH_ROCE_BYTES];
} out;

/*
 * Where nobody answers for an address, Linux keeps what was sent there for some seconds, and it
 * stays in the room of this socket: two such peers fill it. A thread that waited for room would
 * keep the packets of all the others waiting. So packets to a peer that has not been heard of late
 * have half of the room, and count as lost when they find it taken and it does not become free. Is
 * there room for so many, of so many bytes? merged: they are one datagram.
 */
static bool has_room(const struct sh_outgoing_way *way, uint32_t datagrams, size_t bytes,
		     bool merged)
{
	/* What the kernel takes for a datagram, at most. Those of several packets are in pages. */
	const uint64_t overhead = 768, more = merged ? bytes / 4 : bytes;
	int taken = 0, room = 0;
	socklen_t len = sizeof(room);

	if (way->heard || ioctl(way->fd, SIOCOUTQ, &taken) < 0 ||
	    getsockopt(way->fd, SOL_SOCKET, SO_SNDBUF, &room, &len) < 0)
		return true;
	/* A socket that has nothing to send takes any datagram, however small its room is. */
	if (datagrams == 1 && !taken)
		return true;
	return (uint64_t)taken + datagrams * overhead + bytes + more <= (uint64_t)room / 2;
}

/* How long a packet waits for room; and how long none does when a wait was in vain. */
#define WAIT_MS	 20
#define STUCK_NS UINT64_C(1000000000)

/*
 * An interface that is slower than the sender gives room again soon, as it would to packets of
 * peers that are heard. Packets for machines that do not answer give none for seconds. The kernel
 * calls a socket writable when half of its room is free.
 */
static bool room_comes(const struct sh_outgoing_way *way)
{
	static uint64_t stuck; /* until then */
	struct pollfd fd = {.fd = way->fd, .events = POLLOUT};
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	if (now < __atomic_load_n(&stuck, __ATOMIC_RELAXED))
		return false;
	if (poll(&fd, 1, WAIT_MS) > 0)
		return true;
	__atomic_store_n(&stuck, now + STUCK_NS, __ATOMIC_RELAXED);
	return false;
}

/* Behind others' packets a thread waits only on the way to a peer that has been heard. */
static int flags(const struct sh_outgoing_way *way)
{
	return way->heard ? 0 : MSG_DONTWAIT;
}

static int send_one(const struct sh_outgoing_way *way, struct iovec bytes, union sh_wire_at *to,
		    socklen_t len)
{
	const struct msghdr msg = {
		.msg_name = to, .msg_namelen = len, .msg_iov = &bytes, .msg_iovlen = 1};
	ssize_t done;

	if (!has_room(way, 1, bytes.iov_len, false) && !room_comes(way))
		return -1;
	do
		done = sendmsg(way->fd, &msg, flags(way));
	while (done < 0 && errno == EINTR);
	return done < 0 ? -1 : 0;
}

struct sh_outgoing_done sh_outgoing_send(const struct sh_outgoing_way *way,
					 const struct sh_packet *p, const unsigned char *payload,
					 bool spoilt)
{
	unsigned char bytes[SH_ROCE_BYTES];
	long n = sh_roce_encode(p, payload, &way->ip, bytes);
	size_t head = sh_roce_head(way->ip.to);
	union sh_wire_at to;
	socklen_t len = sh_wire_at(&to, way->ip.to, SH_ROCE_PORT);

	if (n < 0)
		return (struct sh_outgoing_done){.unsent = 1};
	if (spoilt)
		sh_roce_spoil(bytes, n, (uint32_t)p->payload.len);
	if (send_one(way, (struct iovec){bytes + head, (size_t)n - head}, &to, len))
		return (struct sh_outgoing_done){.unsent = 1};
	return (struct sh_outgoing_done){.sent = 1};
}

/* ---- what is gathered ---- */

void sh_outgoing_begin(void)
{
	out.packets = out.datagrams = 0;
	out.used = 0;
}

static bool goes_along(const struct sh_outgoing_way *way)
{
	return way->fd == out.way.fd && way->merge == out.way.merge &&
	       sh_ip_same(way->ip.to, out.way.ip.to) && out.packets < MOST && out.used < ROOM;
}

/* Into the last datagram, if it fits; otherwise it becomes the first of another one. */
static bool joins(const struct datagram *d, size_t n, const struct sh_packet *p)
{
	return !d->ended && d->bytes + n <= DATAGRAM &&
	       (n == d->size || (n < d->size && p->flags & SH_PKT_LAST));
}

/*
 * Writes the packet behind those that wait. Returns its length without the headers of IP and UDP,
 * or less than 0.
 */
static long write_packet(const struct sh_packet *p, const unsigned char *payload, uint16_t id)
{
	struct sh_roce_way way = out.way.ip;
	long n;

	way.id = id;
	n = sh_roce_encode(p, payload, &way, out.bytes + out.used);
	return n < 0 ? n : n - (long)sh_roce_head(way.to);
}

unsigned char *sh_outgoing_room(const struct sh_outgoing_way *way, const struct sh_packet *p)
{
	size_t head = sh_roce_before(p, way->ip.to);

	/* Its place is that of others, which have to leave first. */
	if (out.packets && !goes_along(way))
		return NULL;
	return head ? out.bytes + out.used + head : NULL;
}

struct sh_outgoing_done sh_outgoing_gather(const struct sh_outgoing_way *way,
					   const struct sh_packet *p, const unsigned char *payload)
{
	struct sh_outgoing_done done = {0, 0, false};
	struct datagram *d;
	size_t head = sh_roce_head(way->ip.to);
	long n;

	if (out.packets && !goes_along(way))
		done = sh_outgoing_flush();
	if (!out.packets) {
		out.way = *way;
		out.to_len = sh_wire_at(&out.to, way->ip.to, SH_ROCE_PORT);
	}
	d = out.datagrams && way->merge ? &out.datagram[out.datagrams - 1] : NULL;
	n = write_packet(p, payload, d ? (uint16_t)d->n : 0);
	if (n >= 0 && d && !joins(d, (size_t)n, p)) {
		d = NULL;
		n = write_packet(p, payload, 0);
	}
	if (n < 0) {
		done.unsent++;
		return done;
	}
	if (!d) {
		d = &out.datagram[out.datagrams++];
		*d = (struct datagram){.first = out.packets, .size = (size_t)n};
	}
	d->ended = (size_t)n < d->size;
	d->bytes += (size_t)n;
	d->n++;
	out.packet[out.packets++] = (struct iovec){out.bytes + out.used + head, (size_t)n};
	out.used += head + (size_t)n;
	return done;
}

/*
 * One by one: the kernel, or the network card, does not take datagrams apart. Packet i has the ICRC
 * of identification i, but a datagram of one packet has identification 0, and a receiver may
 * compare.
 */
static uint32_t send_apart(const struct datagram *d)
{
	size_t head = sh_roce_head(out.way.ip.to);
	uint32_t sent = 0;

	for (uint32_t i = 0; i < d->n; i++) {
		struct iovec packet = out.packet[d->first + i];

		if (i)
			sh_roce_renumber((unsigned char *)packet.iov_base - head,
					 head + packet.iov_len, 0);
		sent += !send_one(&out.way, packet, &out.to, out.to_len);
	}
	return sent;
}

/*
 * Will the system never take a datagram apart on this way? Other errors pass, or concern one
 * packet.
 */
static bool is_refusal(int err)
{
	return err == EIO || err == EINVAL || err == EOPNOTSUPP;
}

/*
 * Sends datagrams from that one on, up to the one before end, until one fails. Returns how many
 * have gone. 0: errno says why.
 */
static uint32_t send_from(uint32_t first, uint32_t end)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(uint16_t))];
	} control[MOST];
	struct mmsghdr msg[MOST];
	int n;

	for (uint32_t i = first; i < end; i++) {
		const struct datagram *d = &out.datagram[i];
		struct msghdr *m = &msg[i - first].msg_hdr;
		struct cmsghdr *c = &control[i - first].align;
		uint16_t size = (uint16_t)d->size;

		*m = (struct msghdr){.msg_name = &out.to,
				     .msg_namelen = out.to_len,
				     .msg_iov = &out.packet[d->first],
				     .msg_iovlen = d->n};
		if (d->n == 1)
			continue;
		memset(&control[i - first], 0, sizeof(control[0]));
		m->msg_control = c;
		m->msg_controllen = sizeof(control[0].bytes);
		c->cmsg_level = IPPROTO_UDP;
		c->cmsg_type = SH_UDP_SEGMENT;
		c->cmsg_len = CMSG_LEN(sizeof(size));
		memcpy(CMSG_DATA(c), &size, sizeof(size));
	}
	do
		n = sendmmsg(out.way.fd, msg, end - first, flags(&out.way));
	while (n < 0 && errno == EINTR);
	return n < 0 ? 0 : (uint32_t)n;
}

struct sh_outgoing_done sh_outgoing_flush(void)
{
	struct sh_outgoing_done done = {0, 0, false};
	/* One after the other, so that each finds room again when those before it have left. */
	const bool alone = !has_room(&out.way, out.packets, out.used, false);
	uint32_t next = 0;

	while (next < out.datagrams) {
		const struct datagram *d = &out.datagram[next];
		uint32_t n, sent;
		bool refusal;

		if (alone && !has_room(&out.way, 1, d->bytes, d->n > 1) && !room_comes(&out.way)) {
			done.unsent += d->n;
			next++;
			continue;
		}
		n = send_from(next, alone ? next + 1 : out.datagrams);
		refusal = !n && d->n > 1 && is_refusal(errno);
		for (uint32_t i = 0; i < n; i++)
			done.sent += d[i].n;
		next += n;
		/* The next one failed. The kernel says why when that is the first of a call. */
		if (n)
			continue;
		sent = send_apart(d);
		done.sent += sent;
		done.unsent += d->n - sent;
		done.refused |= refusal && sent == d->n;
		next++;
	}
	sh_outgoing_begin();
	return done;
}
