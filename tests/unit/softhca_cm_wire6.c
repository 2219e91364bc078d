// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: connections by address to peers elsewhere on a wire of IPv6, by IP address and by
 * GID, and by GID on one of IPv4, as the daemon has them. Bytes are held against offsets of
 * InfiniBand's chapter 12, as numbers here. softhca_cm_wire.c has what does not depend on the kind
 * of address.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "softhca/device/transport/gsi.h"
#include "softhca/kernel/rdmacm/address.h"
#include "softhca/kernel/rdmacm/mad.h"
#include "softhca/kernel/rdmacm/wire.h"
#include "softhca_cm_rig.h"

#define FAR    9 /* the peer's LID */
#define THEIRS 0xabcd0001u
#define REQ    0x10
#define REJ    0x12

#define SIDR_REQ 0x17

static int wire = -1; /* the engine's end of the link */
static struct sh_wire_mad last;

static const uint8_t own6[16] = {0xfd, 0, 0, 1, [15] = 3}, far6[16] = {0xfd, 0, 0, 1, [15] = FAR};
static const uint8_t own4[16] = {[10] = 0xff, 0xff, 10, 1, 2, 3};
static const uint8_t far4[16] = {[10] = 0xff, 0xff, 10, 1, 2, FAR};

static void begin_wire(struct rig *r, const uint8_t own[16])
{
	struct sh_wire_config cfg = {.n = 2, .mtu = 4096, .last_lid = 254};
	int ends[2];

	cfg.address[0] = cfg.network = sh_ip_get(own);
	cfg.network.lo -= 3;
	cfg.address[1] = sh_ip_of_lid(cfg.network, 4);
	memset(r, 0, sizeof(*r));
	r->t = kt_start_wire(SH_FACE_MAINLINE, &cfg);
	r->ch[0] = channel(r, 0, &r->fd[0]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	r->t->k.wire.link = ends[0];
	wire = ends[1];
}

static void end_wire(struct rig *r)
{
	cm_channel_free(r->ch[0]);
	close(r->fd[0]);
	cm_timer_ready(r->t->k.rdmacm);
	close(r->t->k.wire.link);
	r->t->k.wire.link = -1;
	close(wire);
	kt_stop(r->t);
}

/* The attribute of the next datagram that leaves, which is then in `last`; 0: none does. */
static unsigned int leaves(struct rig *r)
{
	for (int i = 0; i < 8; i++)
		cm_timer_ready(r->t->k.rdmacm);
	if (recv(wire, &last, sizeof(last), MSG_DONTWAIT) != (ssize_t)sizeof(last))
		return 0;
	return (unsigned int)last.mad[16] << 8 | last.mad[17];
}

static void put(uint8_t *mad, size_t at, unsigned int bytes, uint64_t v)
{
	while (bytes--) {
		mad[at + bytes] = (uint8_t)v;
		v >>= 8;
	}
}

/* With the port of the rig. */
static union cm_sockaddr address(uint16_t family, const uint8_t bytes[16])
{
	union cm_sockaddr a = {.family = family};

	if (family == AF_INET) {
		memcpy(&a.in.sin_addr, bytes + 12, 4);
		a.in.sin_port = htons(PORT);
	} else if (family == AF_INET6) {
		memcpy(&a.in6.sin6_addr, bytes, 16);
		a.in6.sin6_port = htons(PORT);
	} else {
		memcpy(a.ib.gid, bytes, 16);
		a.ib.sid = htobe64(0x01060000 + PORT);
		a.ib.sid_mask = UINT64_MAX;
	}
	return a;
}

static struct cm_id *id_of(struct rig *r, uint32_t number)
{
	return cm_table_get(&r->t->k.rdmacm->hosts[0].ids, number);
}

static int binds(struct rig *r, uint32_t id, uint16_t family, const uint8_t bytes[16])
{
	struct cm_bind c = {.id = id,
			    .addr = address(family, bytes),
			    .addr_size = (uint16_t)cm_addr_size(family)};

	return cmd(r, 0, CM_BIND, &c, sizeof(c), 0);
}

/* Resolved to a peer that is elsewhere, and asked. */
static uint32_t asks(struct rig *r, uint16_t family, const uint8_t far[16], const uint8_t own[16])
{
	uint32_t id = create(r, 0, CM_PS_TCP);
	struct cm_resolve_addr c = {.id = id,
				    .timeout_ms = 100,
				    .dst = address(family, far),
				    .dst_size = (uint16_t)cm_addr_size(family)};

	assert_int_equal(cmd(r, 0, CM_RESOLVE_ADDR, &c, sizeof(c), 0), 0);
	assert_int_equal(event(r, 0), CM_EV_ADDR_RESOLVED);
	assert_int_equal(id_of(r, id)->far, FAR);
	assert_int_equal(id_of(r, id)->path.dlid, FAR);
	assert_memory_equal(id_of(r, id)->path.dgid, far, 16);
	assert_memory_equal(id_of(r, id)->path.sgid, own, 16);
	assert_int_equal(id_of(r, id)->src.family, family);
	assert_memory_equal(family == CM_AF_IB ? id_of(r, id)->src.ib.gid
					       : (uint8_t *)&id_of(r, id)->src.in6.sin6_addr,
			    own, 16);
	assert_int_equal(two(r, 0, CM_RESOLVE_ROUTE, id, 1000), 0);
	assert_int_equal(event(r, 0), CM_EV_ROUTE_RESOLVED);
	assert_int_equal(connect_len(r, 0, id, 3), 0);
	assert_int_equal(leaves(r), REQ);
	assert_int_equal(last.lid, FAR);
	assert_memory_equal(last.mad + 80, own, 16);
	assert_memory_equal(last.mad + 96, far, 16);
	return id;
}

/* The header of version 6 in front of the program's data, with both addresses in full. */
static void ipv6_leaves(void **state)
{
	struct rig r;
	uint32_t id;

	(void)state;
	begin_wire(&r, own6);
	id = asks(&r, AF_INET6, far6, own6);
	assert_memory_equal(last.mad + 164, "\0\x60", 2);
	assert_memory_equal(last.mad + 166, &id_of(&r, id)->src.in6.sin6_port, 2);
	assert_memory_equal(last.mad + 168, own6, 16);
	assert_memory_equal(last.mad + 184, far6, 16);
	assert_memory_equal(last.mad + 200, "\x5a\x5a\x5a\0", 4);
	end_wire(&r);
}

/* The program's data alone, on a wire of either version. */
static void gid_leaves(void **state)
{
	struct rig r;

	(void)state;
	begin_wire(&r, own6);
	asks(&r, CM_AF_IB, far6, own6);
	assert_memory_equal(last.mad + 32, "\0\0\0\0\1\6\x1d\x2f", 8);
	assert_memory_equal(last.mad + 164, "\x5a\x5a\x5a\0", 4);
	end_wire(&r);
	begin_wire(&r, own4);
	asks(&r, CM_AF_IB, far4, own4);
	assert_memory_equal(last.mad + 164, "\x5a\x5a\x5a\0", 4);
	end_wire(&r);
}

/* A request as Linux writes it, with that data. */
static void comes_with(struct rig *r, const uint8_t from[16], const uint8_t to[16],
		       const uint8_t data[92])
{
	struct sh_wire_mad w = {
		.hca = 0, .port = 1, .lid = FAR, .pkey = 0xffff, .mad = {1, 7, 2, 3}};

	put(w.mad, 16, 2, REQ);
	put(w.mad, 24, 4, THEIRS);
	put(w.mad, 32, 8, 0x01060000 + PORT);
	put(w.mad, 56, 3, 0x789);
	w.mad[74] = 3 << 4;
	memcpy(w.mad + 80, from, 16);
	memcpy(w.mad + 96, to, 16);
	memcpy(w.mad + 164, data, 92);
	cm_wire_came(r->t->k.rdmacm, &w);
}

/* The same of a UD QP. It has no GIDs in it, and 216 octets of data. */
static void asks_with(struct rig *r, const uint8_t data[216])
{
	struct sh_wire_mad w = {
		.hca = 0, .port = 1, .lid = FAR, .pkey = 0xffff, .mad = {1, 7, 2, 3}};

	put(w.mad, 16, 2, SIDR_REQ);
	put(w.mad, 24, 4, THEIRS);
	put(w.mad, 28, 2, 0xffff);
	put(w.mad, 32, 8, 0x01110000 + PORT);
	memcpy(w.mad + 40, data, 216);
	cm_wire_came(r->t->k.rdmacm, &w);
}

/* Addresses and GIDs are what the test says. */
static void comes(struct rig *r, uint16_t family, const uint8_t from[16], const uint8_t to[16])
{
	uint8_t data[92];

	memset(data, 0x3c, 92);
	if (family != CM_AF_IB) {
		memset(data, 0, 36);
		data[1] = family == AF_INET ? 0x40 : 0x60;
		put(data, 2, 2, 0x1234);
		memcpy(data + 4, from, 16);
		memcpy(data + 20, to, 16);
		if (family == AF_INET) {
			memset(data + 4, 0, 12);
			memset(data + 20, 0, 12);
		}
	}
	comes_with(r, from, to, data);
}

/* A program that listens gets the request, and the address that it came from, whatever it says. */
static void requests_come(void **state)
{
	static const struct {
		uint16_t family;
		const uint8_t *own, *far;
	} cases[] = {{AF_INET6, own6, far6}, {CM_AF_IB, own6, far6}, {CM_AF_IB, own4, far4}};
	static const uint8_t any[16], liar[16] = {0x20, 1, [15] = 1};

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int bound = 0; bound < 2; bound++)
			for (unsigned int lies = 0; lies < 2; lies++) {
				const uint8_t *far = cases[i].far, *own = cases[i].own, *dst;
				struct rig r;
				uint32_t id;

				begin_wire(&r, own);
				id = create(&r, 0, CM_PS_TCP);
				assert_int_equal(binds(&r, id, cases[i].family, bound ? own : any),
						 0);
				assert_int_equal(two(&r, 0, CM_LISTEN, id, 5), 0);
				comes(&r, cases[i].family, lies ? liar : far, own);
				assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
				assert_int_equal(r.ev.param.conn.qp_num, 0x789);
				id = r.ev.id;
				dst = cases[i].family == CM_AF_IB
					      ? id_of(&r, id)->dst.ib.gid
					      : (uint8_t *)&id_of(&r, id)->dst.in6.sin6_addr;
				assert_memory_equal(dst, far, 16);
				assert_int_equal(id_of(&r, id)->far, FAR);
				end_wire(&r);
			}
}

/*
 * A program with addresses of AF_IB gets all of the peer's data, even if it begins as the header of
 * IP addresses does.
 */
static void data_is_no_header(void **state)
{
	static const uint8_t any[16], *const own[] = {own6, own4}, *const far[] = {far6, far4};
	uint8_t data[216];
	struct rig r;
	uint32_t id;

	(void)state;
	for (unsigned int i = 0; i < 128; i++) {
		const uint8_t *to = own[i & 1];
		bool ud = i & 64;
		struct cm_bind c = {.addr = address(CM_AF_IB, i & 2 ? any : to),
				    .addr_size = (uint16_t)cm_addr_size(CM_AF_IB)};

		begin_wire(&r, to);
		id = create(&r, 0, ud ? CM_PS_UDP : CM_PS_TCP);
		c.id = id;
		c.addr.ib.sid = htobe64((ud ? 0x01110000 : 0x01060000) + PORT);
		assert_int_equal(cmd(&r, 0, CM_BIND, &c, sizeof(c), 0), 0);
		assert_int_equal(two(&r, 0, CM_LISTEN, id, 5), 0);
		memset(data, (int)i, sizeof(data));
		data[0] = 0;
		data[1] = (uint8_t)((i & 4 ? 0x40 : 0x60) | (i >> 2 & 0xf));
		/* As getaddrinfo() of that library puts it there itself. */
		if (i & 32)
			memcpy(data + 20, to, 16);
		if (ud)
			asks_with(&r, data);
		else
			comes_with(&r, far[i & 1], to, data);
		assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
		if (ud) {
			assert_int_equal(r.ev.param.ud.len, 216);
			assert_memory_equal(r.ev.param.ud.data, data, 216);
		} else {
			assert_int_equal(r.ev.param.conn.len, 92);
			assert_memory_equal(r.ev.param.conn.data, data, 92);
		}
		assert_int_equal(id_of(&r, r.ev.id)->dst.family, CM_AF_IB);
		assert_memory_equal(id_of(&r, r.ev.id)->dst.ib.gid, far[i & 1], 16);
		end_wire(&r);
	}
}

/*
 * Others' addresses are not to bind to, and those of the other version mean nothing on this wire.
 */
static void foreign(void **state)
{
	static const uint8_t any[16];
	struct rig r;
	uint32_t id;

	(void)state;
	begin_wire(&r, own6);
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(binds(&r, id, AF_INET6, far6), EADDRNOTAVAIL);
	assert_int_equal(binds(&r, id, CM_AF_IB, far6), ENODEV);
	assert_int_equal(binds(&r, id, AF_INET6, own4), EADDRNOTAVAIL);
	assert_int_equal(binds(&r, id, AF_INET6, any), 0);
	assert_int_equal(two(&r, 0, CM_LISTEN, id, 5), 0);
	comes(&r, AF_INET, far4, own4);
	assert_int_equal(leaves(&r), REJ);
	assert_int_equal(event(&r, 0), -1);
	end_wire(&r);
	begin_wire(&r, own4);
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(binds(&r, id, AF_INET6, any), 0);
	assert_int_equal(two(&r, 0, CM_LISTEN, id, 5), 0);
	comes(&r, AF_INET6, far6, own6);
	assert_int_equal(leaves(&r), REJ);
	assert_int_equal(event(&r, 0), -1);
	end_wire(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv6_leaves),	 cmocka_unit_test(gid_leaves),
		cmocka_unit_test(requests_come), cmocka_unit_test(data_is_no_header),
		cmocka_unit_test(foreign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
