// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: packets that leave by a socket of UDP, one by one or several to a datagram: the
 * receiver has the same bytes in the same order, whatever the kernel takes apart, and each ICRC is
 * right.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/wire/outgoing.h"

#define MOST	 200
#define NO_CHECK 11 /* SO_NO_CHECK, which headers name on Linux alone */
#define BTH	 12

/* Both ends, at addresses of the loopback that nobody else uses at that port. */
struct ends {
	int from, to;
	struct sh_outgoing_way way;
};

struct sent {
	struct sh_packet p;
	unsigned char payload[4096];
};

static struct sent sent[MOST];
static uint32_t count;

static int bound(struct sh_ip address)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = 4 << 20;
	union sh_wire_at at;
	socklen_t len = sh_wire_at(&at, address, SH_ROCE_PORT);

	assert_true(fd >= 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	assert_int_equal(bind(fd, &at.any, len), 0);
	return fd;
}

static struct sh_ip place(uint32_t number)
{
	return sh_ip4(127u << 24 | (uint32_t)getpid() % 60000 << 4 | 1u << 23 | number);
}

static struct ends begin(bool merge, bool whole)
{
	int on = 1, probe = IP_PMTUDISC_PROBE;
	struct ends e = {.from = bound(place(1)), .to = bound(place(2))};

	assert_int_equal(setsockopt(e.from, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)), 0);
	if (whole)
		assert_int_equal(setsockopt(e.to, IPPROTO_UDP, SH_UDP_GRO, &on, sizeof(on)), 0);
	e.way = (struct sh_outgoing_way){
		.ip = {.from = place(1), .to = place(2), .sport = SH_ROCE_PORT},
		.fd = e.from,
		.merge = merge,
	};
	count = 0;
	sh_outgoing_begin();
	return e;
}

static void end(struct ends *e)
{
	close(e->from);
	close(e->to);
}

static struct sent *next(uint8_t op, uint8_t flags, uint32_t len)
{
	struct sent *s = &sent[count];

	assert_true(count < MOST);
	memset(s, 0, sizeof(*s));
	sh_packet_init(&s->p);
	s->p.op = op;
	s->p.service = SH_SVC_RC;
	s->p.flags = flags;
	s->p.psn = count;
	s->p.dqpn = 0x48;
	s->p.pkey = 0xffff;
	s->p.payload.len = len;
	for (uint32_t i = 0; i < len; i++)
		s->payload[i] = (unsigned char)(i * 7 + count);
	count++;
	return s;
}

static bool in_place; /* payloads are put where they leave from, as far as there is room */
static uint32_t placed;

static struct sh_outgoing_done gather(struct ends *e, struct sent *s)
{
	unsigned char *room = in_place ? sh_outgoing_room(&e->way, &s->p) : NULL;

	if (!room)
		return sh_outgoing_gather(&e->way, &s->p, s->payload);
	placed++;
	memcpy(room, s->payload, s->p.payload.len);
	return sh_outgoing_gather(&e->way, &s->p, room);
}

/* A WRITE of n packets, the last one of which has that length. */
static void gather_write(struct ends *e, uint32_t n, uint32_t mtu, uint32_t last, uint8_t flags)
{
	struct sh_outgoing_done done = {0, 0, false};

	for (uint32_t i = 0; i < n; i++) {
		uint8_t f = (i ? 0 : SH_PKT_FIRST) | (i + 1 == n ? SH_PKT_LAST | flags : 0);
		struct sh_outgoing_done d =
			gather(e, next(SH_PKT_WRITE, f, i + 1 == n ? last : mtu));

		done.sent += d.sent;
		done.unsent += d.unsent;
	}
	assert_int_equal(done.unsent, 0);
}

static void flush(uint32_t due)
{
	struct sh_outgoing_done done = sh_outgoing_flush();

	assert_int_equal(done.sent, due);
	assert_int_equal(done.unsent, 0);
	assert_false(done.refused);
}

struct taken {
	uint32_t packets, datagrams;
};

/*
 * The identifications that ICRCs are for: as the kernel gives them to a datagram that it takes
 * apart, or 0.
 */
enum ids { IN_DATAGRAM, ZERO, ANY };

static void same_bytes(const struct ends *e, const unsigned char *bytes, size_t n,
		       const struct sent *s, uint16_t id)
{
	static unsigned char wanted[SH_ROCE_BYTES];
	struct sh_roce_way way = e->way.ip;

	way.id = id;
	assert_int_equal(sh_roce_encode(&s->p, s->payload, &way, wanted), SH_ROCE_HEAD + n);
	assert_memory_equal(bytes, wanted + SH_ROCE_HEAD, n);
}

/* Takes one datagram. Its packets are those from `at` on. */
static uint32_t take(struct ends *e, uint32_t at, enum ids ids)
{
	static unsigned char bytes[SH_ROCE_HEAD + 65536];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {bytes + SH_ROCE_HEAD, 65536};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct pollfd p = {.fd = e->to, .events = POLLIN};
	const struct cmsghdr *c;
	uint32_t n = 0;
	int size;
	ssize_t len;

	assert_int_equal(poll(&p, 1, 10000), 1);
	len = recvmsg(e->to, &m, 0);
	assert_true(len > 0);
	size = (int)len;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_type == SH_UDP_GRO)
		memcpy(&size, CMSG_DATA(c), sizeof(size));
	for (ssize_t off = 0; off < len; off += size, n++) {
		struct sh_roce_way way = e->way.ip;
		const struct sent *s = &sent[at + n];
		struct sh_packet got;
		struct sh_seg seg;
		size_t bytes_of = (size_t)(len - off < size ? len - off : size);

		way.id = ids == IN_DATAGRAM ? (uint16_t)n : 0;
		assert_true(at + n < count);
		if (ids != ANY)
			same_bytes(e, bytes + SH_ROCE_HEAD + off, bytes_of, s, way.id);
		assert_int_equal(sh_roce_decode(bytes + off, bytes_of, &way, &got, &seg),
				 SH_ROCE_OK);
		assert_int_equal(got.psn, s->p.psn);
		assert_int_equal(got.op, s->p.op);
		assert_int_equal(got.flags, s->p.flags);
		assert_int_equal(got.payload.len, s->p.payload.len);
		if (seg.len)
			assert_memory_equal((void *)(uintptr_t)seg.addr, s->payload, seg.len);
	}
	return n;
}

static struct taken take_all(struct ends *e, enum ids ids)
{
	struct pollfd p = {.fd = e->to, .events = POLLIN};
	struct taken t = {0, 0};

	while (t.packets < count) {
		t.packets += take(e, t.packets, ids);
		t.datagrams++;
	}
	assert_int_equal(poll(&p, 1, 0), 0);
	return t;
}

/* The first packet has more headers, and the last one is shorter. */
static void test_merged(void **state)
{
	struct ends e = begin(true, true);
	struct taken t;

	(void)state;
	gather_write(&e, 16, 4096, 100, 0);
	flush(16);
	t = take_all(&e, IN_DATAGRAM);
	assert_int_equal(t.datagrams, 2);
	end(&e);
}

/* A receiver that has not asked for whole datagrams gets packets. */
static void test_apart(void **state)
{
	struct ends e = begin(true, false);
	struct taken t;

	(void)state;
	gather_write(&e, 16, 1024, 1024, 0);
	flush(16);
	t = take_all(&e, ANY);
	assert_int_equal(t.datagrams, 16);
	end(&e);
}

/* One that is not an instance gets each packet with identification 0. */
static void test_foreign(void **state)
{
	struct ends e = begin(false, true);
	struct taken t;

	(void)state;
	gather_write(&e, 16, 1024, 1024, 0);
	flush(16);
	t = take_all(&e, ZERO);
	assert_int_equal(t.datagrams, 16);
	end(&e);
}

/*
 * Lengths and headers that do not fit together, packets without payload, and more than a datagram
 * holds.
 */
static void test_mixed(void **state)
{
	struct ends e = begin(true, true);
	uint32_t before = 0, flushes = 0;

	(void)state;
	gather_write(&e, 5, 1024, 1024, SH_PKT_IMM); /* longer than those before it */
	gather(&e, next(SH_PKT_ACK, SH_PKT_FIRST | SH_PKT_LAST, 0));
	gather(&e, next(SH_PKT_ACK, SH_PKT_FIRST | SH_PKT_LAST, 0));
	gather(&e, next(SH_PKT_SEND, SH_PKT_FIRST | SH_PKT_LAST, 3));
	gather(&e, next(SH_PKT_SEND, SH_PKT_FIRST | SH_PKT_LAST, 0));
	gather(&e, next(SH_PKT_SEND, SH_PKT_FIRST | SH_PKT_LAST, 3));
	flush(10);
	take_all(&e, IN_DATAGRAM);
	/* More packets than fit are sent meanwhile. */
	for (int i = 0; i < 150; i++) {
		uint32_t done = gather(&e, next(SH_PKT_READ_RESP, 0, i < 75 ? 256 : 4096)).sent;

		before += done;
		flushes += done > 0;
	}
	assert_in_range(before, 1, 149);
	/* 64 short ones, and of 4 KiB what fits into 64 KiB. */
	assert_int_equal(flushes, 5);
	flush(150 - before);
	sent[0] = sent[10];
	memmove(sent, sent + 10, 150 * sizeof(sent[0]));
	count = 150;
	take_all(&e, IN_DATAGRAM);
	end(&e);
}

/*
 * The same packets from where payloads are best put. Only those that find no room there are copied.
 */
static void test_in_place(void **state)
{
	placed = 0;
	in_place = true;
	test_merged(state);
	assert_int_equal(placed, 16);
	test_mixed(state);
	assert_in_range(placed, 16 + 10 + 140, 16 + 10 + 149);
	test_foreign(state);
	in_place = false;
}

/* Two peers, one after the other: none gets what is the other's. */
static void test_two_ways(void **state)
{
	struct ends e = begin(true, true);
	struct sh_outgoing_way other = e.way;
	struct sent *s;
	int third = bound(place(3));
	struct pollfd p = {.fd = third, .events = POLLIN};
	unsigned char byte[8192];

	(void)state;
	other.ip.to = place(3);
	gather(&e, next(SH_PKT_READ_RESP, 0, 1024));
	gather(&e, next(SH_PKT_READ_RESP, 0, 1024));
	s = next(SH_PKT_READ_RESP, 0, 1024);
	count--;
	assert_int_equal(sh_outgoing_gather(&other, &s->p, s->payload).sent, 2);
	take_all(&e, IN_DATAGRAM);
	assert_int_equal(poll(&p, 1, 0), 0);
	flush(1);
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(recv(third, byte, sizeof(byte), 0), BTH + 1024 + SH_ICRC_BYTES);
	close(third);
	end(&e);
}

/*
 * A kernel that does not take this datagram apart: the packets go one by one, with identification
 * 0, as any receiver accepts them. The caller learns of it, and merges no more.
 */
static void test_refused(void **state)
{
	struct ends e = begin(true, true);
	struct sh_outgoing_done done;
	struct taken t;
	int on = 1;

	(void)state;
	assert_int_equal(setsockopt(e.from, SOL_SOCKET, NO_CHECK, &on, sizeof(on)), 0);
	gather_write(&e, 16, 1024, 1000, 0);
	done = sh_outgoing_flush();
	assert_int_equal(done.sent, 16);
	assert_int_equal(done.unsent, 0);
	assert_true(done.refused);
	t = take_all(&e, ZERO);
	assert_int_equal(t.datagrams, 16);
	/* Behind one that it takes. */
	count = 0;
	gather(&e, next(SH_PKT_ACK, SH_PKT_FIRST | SH_PKT_LAST, 0));
	gather_write(&e, 8, 1024, 1024, 0);
	done = sh_outgoing_flush();
	assert_int_equal(done.sent, 9);
	assert_true(done.refused);
	take_all(&e, ZERO);
	/* Nothing is wrong with single ones. */
	count = 0;
	gather(&e, next(SH_PKT_ACK, SH_PKT_FIRST | SH_PKT_LAST, 0));
	flush(1);
	take_all(&e, ZERO);
	end(&e);
}

/* What cannot be sent is counted, packet by packet, and does not come later. */
static void test_unsent(void **state)
{
	struct ends e = begin(true, true);
	struct sh_outgoing_done done;

	(void)state;
	gather_write(&e, 8, 1024, 1024, 0);
	assert_int_equal(shutdown(e.from, SHUT_WR), -1);
	close(e.from);
	done = sh_outgoing_flush();
	assert_int_equal(done.sent, 0);
	assert_int_equal(done.unsent, 8);
	/* That is no matter of merging. */
	assert_false(done.refused);
	e.from = bound(place(1));
	e.way.fd = e.from;
	flush(0);
	end(&e);
}

/* A thread that was thrown begins anew. */
static void test_begin(void **state)
{
	struct ends e = begin(true, true);

	(void)state;
	gather_write(&e, 8, 1024, 1024, 0);
	sh_outgoing_begin();
	flush(0);
	count = 0;
	gather_write(&e, 3, 1024, 1024, 0);
	flush(3);
	take_all(&e, IN_DATAGRAM);
	end(&e);
}

/* Alone: as gathered. */
static void test_alone(void **state)
{
	struct ends e = begin(true, true);
	struct sent *s = next(SH_PKT_SEND, SH_PKT_FIRST | SH_PKT_LAST, 9);

	(void)state;
	assert_int_equal(sh_outgoing_send(&e.way, &s->p, s->payload, false).sent, 1);
	take_all(&e, ZERO);
	end(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merged),	 cmocka_unit_test(test_apart),
		cmocka_unit_test(test_foreign),	 cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_two_ways), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_unsent),	 cmocka_unit_test(test_begin),
		cmocka_unit_test(test_alone),	 cmocka_unit_test(test_in_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
