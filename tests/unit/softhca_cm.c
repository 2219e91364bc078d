// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the daemon's room for connections by address, command by command, without sockets:
 * addresses, ports, routes and options of ids, and how a channel tells its readers.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "softhca_cm_rig.h"

static void framing(void **state)
{
	struct rig r;
	uint64_t zero[64] = {0};
	struct cm_create_id c = {.ps = 0x4711, .response = 8};
	uint32_t a, b;
	int fd;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	assert_int_equal(cmd(&r, 0, CM_NUMBERS, zero, 8, 8), EINVAL);
	assert_int_equal(cmd(&r, 0, CM_GET_OPTION, zero, 8, 8), ENOSYS);
	assert_int_equal(cmd(&r, 0, CM_CREATE_ID, &c, sizeof(c), 3), ENOSPC);
	assert_int_equal(cmd(&r, 0, CM_CREATE_ID, &c, sizeof(c), 4), EINVAL);
	c.ps = CM_PS_TCP;
	assert_int_equal(cmd(&r, 0, CM_CREATE_ID, &c, sizeof(c), 4), EFAULT);
	assert_null(r.t->k.rdmacm->ids);
	a = create(&r, 0, CM_PS_TCP);
	b = create(&r, 0, CM_PS_TCP);
	assert_int_equal(a, 0);
	assert_int_equal(b, 1);
	destroy(&r, 0, a);
	assert_int_equal(create(&r, 0, CM_PS_UDP), 0);
	assert_int_equal(two(&r, 0, CM_LISTEN, 7, 0), ENOENT);
	{
		struct cm_channel *other = channel(&r, 0, &fd);
		struct cm_two t = {.id = b};

		assert_int_equal(cmd_on(&r, other, CM_LISTEN, &t, sizeof(t), 0), EINVAL);
		cm_channel_free(other);
		close(fd);
	}
	end(&r);
	begin(&r, SH_FACE_OFED);
	assert_int_equal(cmd(&r, 0, CM_QUERY, zero, 16, 280), EINVAL);
	c.ps = 0x4711;
	c.response = (uintptr_t)zero;
	assert_int_equal(cmd(&r, 0, CM_CREATE_ID, &c, sizeof(c), 4), 0);
	assert_int_equal(bind_to(&r, 0, 0, "0.0.0.0", 0), EPROTONOSUPPORT);
	end(&r);
}

static void addresses(void **state)
{
	struct rig r;
	uint32_t id, other;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_to(&r, 0, id, "127.128.1.1", PORT), EADDRNOTAVAIL);
	assert_int_equal(bind_to(&r, 0, id, "127.128.0.5", PORT), EADDRNOTAVAIL);
	assert_int_equal(bind_to(&r, 0, id, "192.0.2.1", PORT), EADDRNOTAVAIL);
	assert_int_equal(bind_to(&r, 0, id, "127.128.0.4", 80), EACCES);
	assert_int_equal(bind_to(&r, 0, id, "127.128.0.4", PORT), 0);
	assert_int_equal(bind_to(&r, 0, id, "127.128.0.4", PORT), EINVAL);
	other = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_to(&r, 0, other, "127.128.0.4", PORT), EADDRINUSE);
	assert_int_equal(bind_to(&r, 0, other, "0.0.0.0", PORT), EADDRNOTAVAIL);
	assert_int_equal(bind_to(&r, 0, other, "127.0.0.1", PORT), EADDRNOTAVAIL);
	assert_int_equal(bind_to(&r, 0, other, "127.128.0.1", PORT), 0);
	assert_int_equal(bind_to(&r, 0, create(&r, 0, CM_PS_UDP), "127.128.0.4", PORT), 0);
	assert_int_equal(bind_to(&r, 1, create(&r, 1, CM_PS_TCP), "0.0.0.0", PORT), 0);
	/* 17 */
	destroy(&r, 0, id);
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_to(&r, 0, id, "127.128.0.4", PORT), 0);
	end(&r);
}

static void resolving(void **state)
{
	struct rig r;
	struct cm_query_route_resp q;
	uint32_t id;
	struct cm_of_id c = {.response = (uintptr_t)&q};
	uint64_t before;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(two(&r, 0, CM_RESOLVE_ROUTE, id, 100), EINVAL);
	before = sh_now();
	assert_int_equal(resolve(&r, 0, id, "127.128.7.1", 20), 0);
	while (event(&r, 0) != CM_EV_ADDR_ERROR)
		;
	assert_true(sh_now() - before >= 20000000);
	assert_int_equal(r.ev.status, -ETIMEDOUT);
	assert_int_equal(resolve(&r, 0, id, "192.0.2.1", 20), 0);
	assert_int_equal(event(&r, 0), CM_EV_ADDR_ERROR);
	assert_int_equal(r.ev.status, -ENODEV);
	assert_int_equal(resolve(&r, 0, id, "127.0.0.1", 20), 0);
	assert_int_equal(event(&r, 0), CM_EV_ADDR_RESOLVED);
	assert_int_equal(two(&r, 0, CM_RESOLVE_ROUTE, id, 0), EINVAL);
	assert_int_equal(connect_len(&r, 0, id, 0), EINVAL); /* 25 */
	assert_int_equal(two(&r, 0, CM_RESOLVE_ROUTE, id, 100), 0);
	assert_int_equal(event(&r, 0), CM_EV_ROUTE_RESOLVED);
	c.id = id;
	assert_int_equal(cmd(&r, 0, CM_QUERY_ROUTE, &c, sizeof(c), sizeof(q)), 0);
	assert_int_equal(q.num_paths, 1);
	assert_int_equal(((struct sockaddr_in *)&q.src)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	assert_memory_equal(q.path[0].sgid, q.path[0].dgid, 16);
	assert_int_equal(q.path[0].dlid, q.path[0].slid);
	assert_int_equal(q.path[0].pkey, 0xffff);
	assert_int_equal(q.path[0].mtu, 5);
	end(&r);
}

static void level(void **state)
{
	struct rig r;
	uint32_t id;
	char byte;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	assert_int_equal(event(&r, 0), -1);
	assert_false(readable(&r, 0));
	id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(resolve(&r, 0, id, "127.0.0.1", 20), 0);
	cm_timer_ready(r.t->k.rdmacm);
	assert_true(readable(&r, 0));
	/* A thread that has slept, and ended before it asked. */
	assert_int_equal(read(r.fd[0], &byte, 1), 1);
	assert_false(readable(&r, 0));
	cm_channel_level(r.ch[0]);
	assert_true(readable(&r, 0));
	/* Unread events vanish with their id. */
	assert_int_equal(destroy(&r, 0, id), 0);
	assert_false(readable(&r, 0));
	end(&r);
}

static int option(struct rig *r, uint32_t id, uint32_t name, const void *value, uint32_t len)
{
	struct cm_set_option c = {.optval = (uintptr_t)value,
				  .id = id,
				  .level = CM_LEVEL_ID,
				  .name = name,
				  .len = len};

	return cmd(r, 0, CM_SET_OPTION, &c, sizeof(c), 0);
}

static void options(void **state)
{
	struct rig r;
	uint32_t a, b, one = 1;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	a = create(&r, 0, CM_PS_TCP);
	b = create(&r, 0, CM_PS_TCP);
	assert_int_equal(option(&r, a, CM_ID_TOS, &one, 4), EINVAL);
	assert_int_equal(option(&r, a, CM_ID_TOS, &one, 1), 0);
	assert_int_equal(option(&r, a, CM_ID_REUSEADDR, &one, 1), EINVAL);
	assert_int_equal(option(&r, a, 77, &one, 4), ENOSYS);
	assert_int_equal(option(&r, a, CM_ID_REUSEADDR, &one, 4), 0);
	assert_int_equal(option(&r, b, CM_ID_REUSEADDR, &one, 4), 0);
	assert_int_equal(bind_to(&r, 0, a, "0.0.0.0", PORT), 0);
	assert_int_equal(bind_to(&r, 0, b, "0.0.0.0", PORT), 0);
	assert_int_equal(two(&r, 0, CM_LISTEN, a, 0), EADDRNOTAVAIL);
	destroy(&r, 0, b);
	assert_int_equal(two(&r, 0, CM_LISTEN, a, 0), 0);
	assert_int_equal(two(&r, 0, CM_LISTEN, a, 0), EINVAL); /* 18 */
	assert_int_equal(option(&r, a, CM_ID_REUSEADDR, &one, 4), EINVAL);
	end(&r);
}

static void migration(void **state)
{
	struct cm_number_resp resp;
	struct rig r;
	struct cm_of_id m = {.response = (uintptr_t)&resp};
	struct cm_channel *other;
	int fd;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	other = channel(&r, 0, &fd);
	m.id = create(&r, 0, CM_PS_TCP);
	assert_int_equal(resolve(&r, 0, m.id, "127.0.0.1", 20), 0);
	cm_timer_ready(r.t->k.rdmacm);
	m.value = 999;
	assert_int_equal(cmd_on(&r, other, CM_MIGRATE_ID, &m, sizeof(m), 4), ENOENT);
	m.value = (uint32_t)r.t->k.memfd;
	assert_int_equal(cmd_on(&r, other, CM_MIGRATE_ID, &m, sizeof(m), 4), EINVAL);
	m.value = (uint32_t)r.fd[0];
	assert_int_equal(cmd_on(&r, other, CM_MIGRATE_ID, &m, sizeof(m), 4), 0);
	assert_false(readable(&r, 0));
	assert_int_equal(other->unread, 1);
	assert_int_equal(two(&r, 0, CM_LISTEN, m.id, 1), EINVAL);
	cm_channel_free(other);
	close(fd);
	end(&r);
}

/*
 * Unread events move in their order, behind those that are there, and a listener's requests go with
 * it.
 */
static void unread_events(void **state)
{
	static const enum cm_event_type order[] = {CM_EV_ADDR_RESOLVED, CM_EV_CONNECT_REQUEST,
						   CM_EV_CONNECT_REQUEST};
	struct cm_number_resp resp;
	struct rig r;
	struct cm_of_id m = {.response = (uintptr_t)&resp};
	uint32_t fresh[2], id, passive, own;
	struct cm_channel *other;
	int fd;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	other = channel(&r, 0, &fd);
	m.id = listener(&r, 0, CM_PS_TCP, "0.0.0.0", 5);
	m.value = (uint32_t)r.fd[0];
	/* The first request is read where it came, the next two on the way. */
	id = ask(&r, &passive);
	for (int i = 0; i < 2; i++)
		assert_int_equal(connect_len(&r, 1, routed(&r, 1, CM_PS_TCP, "127.128.0.1"),
					     (uint8_t)(10 + i)),
				 0);
	for (int i = 0; i < 8; i++)
		cm_timer_ready(r.t->k.rdmacm);
	assert_int_equal(r.ch[0]->unread, 2);
	/* One of the new channel's own is there before. */
	{
		struct cm_channel *old = r.ch[0];

		r.ch[0] = other;
		own = create(&r, 0, CM_PS_TCP);
		assert_int_equal(resolve(&r, 0, own, "127.0.0.1", 20), 0);
		cm_timer_ready(r.t->k.rdmacm);
		assert_int_equal(cmd(&r, 0, CM_MIGRATE_ID, &m, sizeof(m), 4), 0);
		/* How many were read of it so far. */
		assert_int_equal(resp.value, 1);
		assert_int_equal(old->unread, 0);
		assert_false(readable(&r, 0));
		for (int i = 0; i < 3; i++) {
			assert_int_equal(event(&r, 0), order[i]);
			if (!i)
				continue;
			fresh[i - 1] = r.ev.id;
			/* The length of its data says which one it is. */
			assert_int_equal(r.ev.param.conn.data[8 + i], 0x5a);
			assert_int_equal(r.ev.param.conn.data[9 + i], 0);
		}
		assert_int_equal(event(&r, 0), -1);
		/* The ids of these requests are the new channel's, that of the first one is not. */
		for (int i = 0; i < 2; i++)
			assert_int_equal(accept_len(&r, 0, fresh[i], 0, 1), 0);
		assert_int_equal(accept_len(&r, 0, passive, 0, 1), EINVAL);
		r.ch[0] = old;
	}
	assert_int_equal(accept_len(&r, 0, passive, 0, 1), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(event(&r, 1), CM_EV_CONNECT_RESPONSE);
	destroy(&r, 1, id);
	cm_channel_free(other);
	close(fd);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(framing),	 cmocka_unit_test(addresses),
		cmocka_unit_test(resolving),	 cmocka_unit_test(level),
		cmocka_unit_test(options),	 cmocka_unit_test(migration),
		cmocka_unit_test(unread_events),
	};

	alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
