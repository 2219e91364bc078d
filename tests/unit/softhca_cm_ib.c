// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: addresses of AF_IB within an instance, as a kernel takes them: partitions, GIDs that
 * nobody has, and requests between ids of which one alone has IP addresses.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "softhca/kernel/rdmacm/address.h"
#include "softhca_cm_rig.h"

#define KEY    0x8123 /* of a partition beside the usual one */
#define PLACE  3      /* in the tables */
#define HEADER 36
#define SENDER 4711 /* the port in a header */

static const uint8_t nowhere[16] = {0xfe, 0x80, [15] = 0x77}, elsewhere[16] = {0xfd, 1, [15] = 1};
static const uint8_t any[16];

static struct sh_port *port_at(struct rig *r, uint32_t hca)
{
	return &sh_hca(&r->t->k.dev, hca)->port[0];
}

/* Of host 0; each host has two HCAs. */
static uint32_t hca_of(int host)
{
	return (uint32_t)host * 2;
}

static const uint8_t *gid_of(struct rig *r, int host)
{
	return port_at(r, hca_of(host))->gid[0];
}

static union cm_sockaddr ib(const uint8_t gid[16], uint16_t pkey)
{
	union cm_sockaddr a = {.family = CM_AF_IB};

	a.ib.pkey = htobe16(pkey);
	memcpy(a.ib.gid, gid, 16);
	a.ib.sid = htobe64(0x01060000 + PORT);
	a.ib.sid_mask = UINT64_MAX;
	return a;
}

static int resolve_ib(struct rig *r, uint32_t id, const uint8_t gid[16], uint16_t pkey)
{
	struct cm_resolve_addr c = {
		.id = id,
		.timeout_ms = 1000,
		.dst_size = sizeof(struct cm_sockaddr_ib),
		.dst = ib(gid, pkey),
	};

	return cmd(r, 1, CM_RESOLVE_ADDR, &c, sizeof(c), 0);
}

static struct cm_query_addr_resp query(struct rig *r, int host, uint32_t id, uint32_t what)
{
	struct cm_query_addr_resp q;
	struct cm_of_id c = {.response = (uintptr_t)&q, .id = id, .value = what};

	assert_int_equal(cmd(r, host, CM_QUERY, &c, sizeof(c), sizeof(q)), 0);
	return q;
}

static void has_key(const union cm_sockaddr *a, const uint8_t gid[16], uint16_t pkey)
{
	assert_int_equal(a->family, CM_AF_IB);
	assert_memory_equal(a->ib.gid, gid, 16);
	assert_int_equal(be16toh(a->ib.pkey), pkey);
}

/* What both queries say of the ends of the id */
static void ends_are(struct rig *r, int host, uint32_t id, const uint8_t own[16],
		     const uint8_t peer[16], uint16_t pkey)
{
	uint32_t what[] = {CM_QUERY_ADDRESS, CM_QUERY_GID};

	for (int i = 0; i < 2; i++) {
		struct cm_query_addr_resp q = query(r, host, id, what[i]);

		has_key(&q.src, own, pkey);
		has_key(&q.dst, peer, pkey);
		assert_int_equal(be16toh(q.pkey), pkey);
	}
}

static void resolving(void **state)
{
	struct rig r;
	uint32_t id;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	id = create(&r, 1, CM_PS_TCP);
	/* No port is in that partition, or in that subnet: said at once, and nothing is found. */
	assert_int_equal(resolve_ib(&r, id, gid_of(&r, 0), KEY), ENODEV);
	assert_int_equal(resolve_ib(&r, id, elsewhere, 0xffff), ENODEV);
	assert_int_equal(event(&r, 1), -1);
	/* In the subnet nobody may have the GID: that the path tells. */
	assert_int_equal(resolve_ib(&r, id, nowhere, 0xffff), 0);
	assert_int_equal(event(&r, 1), CM_EV_ADDR_RESOLVED);
	assert_int_equal(two(&r, 1, CM_RESOLVE_ROUTE, id, 1000), 0);
	assert_int_equal(event(&r, 1), CM_EV_ROUTE_ERROR);
	assert_int_equal((int)r.ev.status, -EINVAL);
	destroy(&r, 1, id);

	/* A key that is not said, and a limited one, of which the port is a full member */
	for (int i = 0; i < 3; i++) {
		uint16_t keys[] = {0xffff, 0x7fff, 0};

		id = create(&r, 1, CM_PS_TCP);
		assert_int_equal(resolve_ib(&r, id, gid_of(&r, 0), keys[i]), 0);
		assert_int_equal(event(&r, 1), CM_EV_ADDR_RESOLVED);
		if (keys[i])
			ends_are(&r, 1, id, gid_of(&r, 1), gid_of(&r, 0), keys[i]);
		assert_int_equal(two(&r, 1, CM_RESOLVE_ROUTE, id, 1000), 0);
		assert_int_equal(event(&r, 1), CM_EV_ROUTE_RESOLVED);
		destroy(&r, 1, id);
	}
	end(&r);
}

static uint32_t listens(struct rig *r, const union cm_sockaddr *a)
{
	uint32_t id = create(r, 0, CM_PS_TCP);
	struct cm_bind c = {.id = id, .addr = *a, .addr_size = (uint16_t)cm_addr_size(a->family)};

	assert_int_equal(cmd(r, 0, CM_BIND, &c, sizeof(c), 0), 0);
	assert_int_equal(two(r, 0, CM_LISTEN, id, 10), 0);
	return id;
}

static uint32_t routed_to(struct rig *r, const uint8_t gid[16], uint16_t pkey)
{
	uint32_t id = create(r, 1, CM_PS_TCP);

	assert_int_equal(resolve_ib(r, id, gid, pkey), 0);
	assert_int_equal(event(r, 1), CM_EV_ADDR_RESOLVED);
	assert_int_equal(two(r, 1, CM_RESOLVE_ROUTE, id, 1000), 0);
	assert_int_equal(event(r, 1), CM_EV_ROUTE_RESOLVED);
	return id;
}

static int connect_with(struct rig *r, uint32_t id, const uint8_t *data, uint8_t len)
{
	struct cm_connect c = {.id = id, .param = {.qp_num = 0x123, .len = len, .valid = 1}};

	memcpy(c.param.data, data, len);
	return cmd(r, 1, CM_CONNECT, &c, sizeof(c), 0);
}

/* The second partition: of both ends' ports, at another place of the tables */
static void partition(void **state)
{
	union cm_sockaddr all = ib(any, 0);
	const uint8_t data[92] = {0xff, [91] = 7};
	struct cm_qp_attr a;
	uint32_t id, passive;
	struct rig r;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	/* The second port of the host is the first one that is in it. */
	port_at(&r, hca_of(1) + 1)->pkey[PLACE] = KEY;
	id = create(&r, 1, CM_PS_TCP);
	assert_int_equal(resolve_ib(&r, id, gid_of(&r, 0), KEY), 0);
	assert_int_equal(event(&r, 1), CM_EV_ADDR_RESOLVED);
	ends_are(&r, 1, id, port_at(&r, hca_of(1) + 1)->gid[0], gid_of(&r, 0), KEY);
	assert_int_equal(attr(&r, 1, id, 1, &a), 0);
	assert_int_equal(a.pkey_index, PLACE);
	/* The other end is not. */
	assert_int_equal(two(&r, 1, CM_RESOLVE_ROUTE, id, 1000), 0);
	assert_int_equal(event(&r, 1), CM_EV_ROUTE_ERROR);
	destroy(&r, 1, id);

	port_at(&r, hca_of(0))->pkey[PLACE + 1] = KEY & 0x7fff;
	listens(&r, &all);
	id = routed_to(&r, gid_of(&r, 0), KEY);
	assert_int_equal(connect_with(&r, id, data, sizeof(data)), 0);
	assert_int_equal(attr(&r, 1, id, 1, &a), 0);
	assert_int_equal(a.pkey_index, PLACE);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
	passive = r.ev.id;
	assert_memory_equal(r.ev.param.conn.data, data, sizeof(data));
	ends_are(&r, 0, passive, gid_of(&r, 0), port_at(&r, hca_of(1) + 1)->gid[0], KEY);
	assert_int_equal(attr(&r, 0, passive, 1, &a), 0);
	assert_int_equal(a.pkey_index, PLACE + 1);
	end(&r);
}

static void put16(uint8_t *at, uint16_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

/* The header of IP addresses: of host 1 to host 0 */
static void put_header(uint8_t *at, int version)
{
	memset(at, 0, HEADER);
	at[1] = (uint8_t)(version << 4);
	put16(at + 2, SENDER);
	if (version == 4) {
		inet_pton(AF_INET, "127.128.1.1", at + 16);
		inet_pton(AF_INET, "127.128.0.1", at + 32);
	} else {
		struct in6_addr a;

		a = sh_host_address6(1, 1);
		memcpy(at + 4, &a, 16);
		a = sh_host_address6(0, 1);
		memcpy(at + 20, &a, 16);
	}
}

static union cm_sockaddr listener_address(int version, bool specific)
{
	union cm_sockaddr a = {.family = version == 4 ? AF_INET : AF_INET6};

	cm_addr_set_port(&a, 0, PORT);
	if (specific && version == 4)
		inet_pton(AF_INET, "127.128.0.1", &a.in.sin_addr);
	else if (specific)
		a.in6.sin6_addr = sh_host_address6(0, 1);
	return a;
}

/*
 * A program with addresses of AF_IB writes the header itself. Listeners with IP addresses read it.
 */
static void to_ip(void **state)
{
	uint8_t data[92];

	(void)state;
	for (int i = 0; i < 12; i++) {
		int listening = i & 1 ? 4 : 6, version = i / 2 % 3 == 0	  ? 4
							 : i / 2 % 3 == 1 ? 6
									  : 0;
		union cm_sockaddr l = listener_address(listening, i >= 6);
		bool fits = version && (version == listening || (listening == 6 && i < 6));
		struct cm_query_addr_resp q;
		struct rig r;
		uint32_t id;

		begin(&r, SH_FACE_MAINLINE);
		listens(&r, &l);
		id = routed_to(&r, gid_of(&r, 0), 0xffff);
		memset(data, 0xa5, sizeof(data));
		if (version)
			put_header(data, version);
		assert_int_equal(connect_with(&r, id, data, sizeof(data)), 0);
		if (!fits) {
			assert_int_equal(event(&r, 0), -1);
			assert_int_equal(event(&r, 1), CM_EV_REJECTED);
			assert_int_equal(r.ev.status, 28);
			end(&r);
			continue;
		}
		assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
		assert_int_equal(r.ev.param.conn.len, sizeof(data) - HEADER);
		assert_memory_equal(r.ev.param.conn.data, data + HEADER, sizeof(data) - HEADER);
		q = query(&r, 0, r.ev.id, CM_QUERY_ADDRESS);
		assert_int_equal(q.src.family, version == 4 ? AF_INET : AF_INET6);
		assert_int_equal(q.dst.family, q.src.family);
		assert_int_equal(cm_addr_port(&q.src), PORT);
		assert_int_equal(cm_addr_port(&q.dst), SENDER);
		if (version == 4)
			assert_memory_equal(&q.dst.in.sin_addr, data + 16, 4);
		else
			assert_memory_equal(&q.dst.in6.sin6_addr, data + 4, 16);
		end(&r);
	}
}

/*
 * A listener of AF_IB gets what a program with IP addresses has sent behind the header that the
 * kernel writes.
 */
static void from_ip(void **state)
{
	uint8_t header[HEADER], data[56];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct cm_query_addr_resp q;
		union cm_sockaddr l;
		struct rig r;
		uint32_t id;

		begin(&r, SH_FACE_MAINLINE);
		l = ib(i ? gid_of(&r, 0) : any, 0xffff);
		listens(&r, &l);
		id = routed(&r, 1, CM_PS_TCP, "127.128.0.1");
		memset(data, 0x5a, sizeof(data));
		assert_int_equal(connect_with(&r, id, data, sizeof(data)), 0);
		assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
		assert_int_equal(r.ev.param.conn.len, 92);
		put_header(header, 4);
		q = query(&r, 1, id, CM_QUERY_ADDRESS);
		put16(header + 2, cm_addr_port(&q.src));
		assert_memory_equal(r.ev.param.conn.data, header, HEADER);
		assert_memory_equal(r.ev.param.conn.data + HEADER, data, sizeof(data));
		ends_are(&r, 0, r.ev.id, gid_of(&r, 0), gid_of(&r, 1), 0xffff);
		q = query(&r, 0, r.ev.id, CM_QUERY_ADDRESS);
		assert_int_equal(be64toh(q.src.ib.sid), 0x01060000 + PORT);
		assert_true(q.src.ib.sid_mask == UINT64_MAX);
		end(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolving),
		cmocka_unit_test(partition),
		cmocka_unit_test(to_ip),
		cmocka_unit_test(from_ip),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
