// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: connections by address, as the daemon has them: what each end of an exchange hears,
 * which states follow, and what is left.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "softhca/kernel/ports.h"
#include "softhca/kernel/rdmacm/exchange.h"
#include "softhca_cm_rig.h"

static void connection(void **state)
{
	struct rig r;
	struct cm_qp_attr a, b;
	uint32_t l, id, passive;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	l = listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
	id = routed(&r, 1, CM_PS_TCP, "127.128.0.1");
	assert_int_equal(connect_len(&r, 1, id, 57), EINVAL);
	assert_int_equal(connect_len(&r, 1, id, 3), 0);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
	assert_true(r.ev.uid == 0x1000);
	passive = r.ev.id;
	assert_int_not_equal(passive, l);
	assert_int_equal(r.ev.param.conn.len, 56);
	assert_int_equal(r.ev.param.conn.data[2], 0x5a);
	assert_int_equal(r.ev.param.conn.data[3], 0);
	assert_int_equal(r.ev.param.conn.qp_num, 0x123);
	assert_int_equal(r.ev.param.conn.responder_resources, 1);
	assert_int_equal(r.ev.param.conn.initiator_depth, 3);
	assert_int_equal(r.ev.param.conn.retry_count, 5);
	assert_int_equal(r.ev.param.conn.rnr_retry_count, 6);
	assert_int_equal(attr(&r, 1, id, 2, &a), EINVAL);
	assert_int_equal(attr(&r, 0, passive, 2, &b), 0);
	assert_int_equal(b.dest_qp_num, 0x123);
	assert_int_equal(b.path_mtu, 5);
	assert_int_equal(accept_len(&r, 0, passive, 196, 1), 0);
	assert_int_equal(event(&r, 1), CM_EV_CONNECT_RESPONSE);
	assert_int_equal(r.ev.param.conn.len, 196);
	assert_int_equal(r.ev.param.conn.data[195], 0xa5);
	assert_int_equal(r.ev.param.conn.responder_resources, 2);
	assert_int_equal(r.ev.param.conn.initiator_depth, 1);
	assert_int_equal(event(&r, 0), -1);
	/* PSNs agree crosswise. */
	assert_int_equal(attr(&r, 1, id, 2, &a), 0);
	assert_int_equal(a.dest_qp_num, 0x456);
	assert_int_equal(attr(&r, 0, passive, 3, &b), 0);
	assert_int_equal(a.rq_psn, b.sq_psn);
	assert_int_equal(b.retry_cnt, 5);
	assert_int_equal(b.rnr_retry, 6);
	assert_int_equal(b.max_rd_atomic, 2);
	assert_int_equal(attr(&r, 1, id, 3, &a), 0);
	assert_int_equal(a.rnr_retry, 4);
	assert_int_equal(a.max_rd_atomic, 1);
	assert_int_equal(accept_len(&r, 1, id, 0, 0), 0);
	assert_int_equal(event(&r, 0), CM_EV_ESTABLISHED);
	assert_true(r.ev.uid == 0x2000);
	assert_int_equal(destroy(&r, 0, l), 1); /* the request's event */
	end(&r);
}

static void too_much_to_accept(void **state)
{
	struct rig r;
	uint32_t passive;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
	ask(&r, &passive);
	assert_int_equal(accept_len(&r, 0, passive, 197, 1), EINVAL);
	assert_int_equal(event(&r, 1), CM_EV_REJECTED);
	assert_int_equal(r.ev.status, 28);
	end(&r);
}

static void rejects(void **state)
{
	struct rig r;
	uint32_t id, passive, l;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	id = routed(&r, 1, CM_PS_TCP, "127.128.0.1");
	assert_int_equal(connect_len(&r, 1, id, 0), 0);
	assert_int_equal(event(&r, 1), CM_EV_REJECTED);
	assert_int_equal(r.ev.status, 8);
	assert_int_equal(r.ev.param.conn.len, 148);
	l = listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
	ask(&r, &passive);
	assert_int_equal(reject(&r, 0, passive, 149), EINVAL);
	assert_int_equal(reject(&r, 0, passive, 148), 0);
	assert_int_equal(event(&r, 1), CM_EV_REJECTED);
	assert_int_equal(r.ev.status, 28);
	assert_int_equal(r.ev.param.conn.data[147], 0x77);
	destroy(&r, 0, l);
	/* Its port is not reachable at another address of the host, nor from another port space. */
	listener(&r, 0, CM_PS_TCP, "127.128.0.2", 10);
	id = routed(&r, 1, CM_PS_TCP, "127.128.0.1");
	assert_int_equal(connect_len(&r, 1, id, 0), 0);
	assert_int_equal(event(&r, 1), CM_EV_REJECTED);
	id = routed(&r, 1, CM_PS_UDP, "127.128.0.2");
	assert_int_equal(connect_len(&r, 1, id, 0), 0);
	assert_int_equal(event(&r, 1), CM_EV_UNREACHABLE);
	assert_int_equal(r.ev.status, 1);
	end(&r);
}

/* Mainline kernels let a program say that it is the request's ECE; OFED's look at no reason. */
static void reasons(void **state)
{
	static const struct {
		enum sh_face face;
		uint8_t reason;
		int err, status;
	} cases[] = {
		{SH_FACE_MAINLINE, 28, 0, 28},	  {SH_FACE_MAINLINE, 35, 0, 35},
		{SH_FACE_MAINLINE, 8, EINVAL, 0}, {SH_FACE_MAINLINE, 255, EINVAL, 0},
		{SH_FACE_OFED, 35, 0, 28},	  {SH_FACE_OFED, 8, 0, 28},
	};
	struct rig r;
	uint32_t passive;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&r, cases[i].face);
		listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
		ask(&r, &passive);
		assert_int_equal(reject_for(&r, 0, passive, 0, cases[i].reason), cases[i].err);
		assert_int_equal(event(&r, 1), cases[i].err ? -1 : CM_EV_REJECTED);
		if (!cases[i].err)
			assert_int_equal(r.ev.status, cases[i].status);
		end(&r);
	}
}

static void full_backlog(void **state)
{
	struct rig r;
	uint32_t first, second;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	listener(&r, 0, CM_PS_TCP, "0.0.0.0", 1);
	first = routed(&r, 1, CM_PS_TCP, "127.128.0.1");
	second = routed(&r, 1, CM_PS_TCP, "127.128.0.1");
	assert_int_equal(connect_len(&r, 1, first, 0), 0);
	assert_int_equal(connect_len(&r, 1, second, 0), 0);
	assert_int_equal(event(&r, 1), -1);
	assert_int_equal(r.ch[0]->unread, 1);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
	assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
	end(&r);
}

/*
 * A program that has a request, and does not answer: its peer asks again from time to time, and
 * waits as long each time, whether the request was read or not.
 */
static void unanswered(void **state)
{
	const uint64_t long_time = UINT64_C(3600000000000);
	uint32_t number;
	struct cm_id *id;
	struct rig r;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	listener(&r, 0, CM_PS_TCP, "0.0.0.0", 1);
	r.t->k.rdmacm->response_ns = long_time;
	number = routed(&r, 1, CM_PS_TCP, "127.128.0.1");
	assert_int_equal(connect_len(&r, 1, number, 0), 0);
	assert_int_equal(cm_id_get(r.ch[1], number, &id), 0);
	for (int i = 0; i <= CM_TRIES; i++) {
		assert_int_equal(event(&r, 1), -1);
		assert_true(id->due > sh_now() + 15 * long_time);
		if (i == CM_TRIES / 2)
			assert_int_equal(event(&r, 0), CM_EV_CONNECT_REQUEST);
		cm_id_timer(id, 1);
	}
	assert_int_equal(event(&r, 1), CM_EV_UNREACHABLE);
	assert_int_equal(r.ev.status, -ETIMEDOUT);
	assert_int_equal(event(&r, 0), -1);
	end(&r);
}

static void disconnecting(void **state)
{
	struct rig r;
	uint32_t id, passive;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
	id = establish(&r, &passive);
	assert_int_equal(two(&r, 1, CM_DISCONNECT, id, 0), 0);
	assert_int_equal(event(&r, 0), CM_EV_DISCONNECTED);
	assert_int_equal(event(&r, 1), -1);
	assert_int_equal(two(&r, 0, CM_DISCONNECT, passive, 0), 0);
	assert_int_equal(event(&r, 1), CM_EV_DISCONNECTED);
	assert_int_equal(two(&r, 1, CM_DISCONNECT, id, 0), 0);
	for (int i = 0; i < 2; i++) {
		int got;

		while ((got = event(&r, i)) == -1)
			usleep(1000);
		assert_int_equal(got, CM_EV_TIMEWAIT_EXIT);
	}
	/* Both at once. */
	id = establish(&r, &passive);
	assert_int_equal(two(&r, 1, CM_DISCONNECT, id, 0), 0);
	assert_int_equal(two(&r, 0, CM_DISCONNECT, passive, 0), 0);
	assert_int_equal(event(&r, 0), CM_EV_DISCONNECTED);
	assert_int_equal(event(&r, 1), CM_EV_DISCONNECTED);
	assert_int_not_equal(event(&r, 0), CM_EV_DISCONNECTED);
	assert_int_not_equal(event(&r, 1), CM_EV_DISCONNECTED);
	end(&r);
}

static void ends(void **state)
{
	struct rig r;
	uint32_t id, passive, l;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	/* The asking end goes: an accept fails, and nothing is told. */
	l = listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
	id = ask(&r, &passive);
	destroy(&r, 1, id);
	assert_int_equal(event(&r, 0), -1);
	assert_int_equal(accept_len(&r, 0, passive, 0, 1), EINVAL);
	/* The listener goes with a request that nobody has read. */
	id = routed(&r, 1, CM_PS_TCP, "127.128.0.1");
	assert_int_equal(connect_len(&r, 1, id, 0), 0);
	cm_timer_ready(r.t->k.rdmacm);
	destroy(&r, 0, l);
	assert_int_equal(event(&r, 1), CM_EV_REJECTED);
	assert_int_equal(r.ev.status, 28);
	/* With a request that was read, that lives on. */
	l = listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
	id = ask(&r, &passive);
	destroy(&r, 0, l);
	assert_int_equal(accept_len(&r, 0, passive, 0, 1), 0);
	assert_int_equal(event(&r, 1), CM_EV_CONNECT_RESPONSE);
	assert_int_equal(accept_len(&r, 1, id, 0, 0), 0);
	assert_int_equal(event(&r, 0), CM_EV_ESTABLISHED);
	/* The file is closed for the last time. */
	cm_channel_free(r.ch[1]);
	r.ch[1] = NULL;
	assert_int_equal(event(&r, 0), CM_EV_DISCONNECTED);
	end(&r);
}

static void port_down(void **state)
{
	struct rig r;
	struct sh_port_msg down = {.port = 1, .what = SH_PORT_DOWN};
	struct sh_status st;
	uint32_t id, own, passive;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	r.t->k.rdmacm->response_ns = 1000000;
	listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
	id = routed(&r, 1, CM_PS_TCP, "127.128.0.1");
	assert_true(port_change(&r.t->k, &down, true, &st));
	assert_int_equal(connect_len(&r, 1, id, 0), 0);
	while (event(&r, 1) == -1)
		usleep(1000);
	assert_int_equal(r.ev.event, CM_EV_UNREACHABLE);
	assert_int_equal(r.ev.status, -ETIMEDOUT);
	assert_int_equal(event(&r, 0), -1);
	/* Its own port is down: there is no path to it, and none from it. */
	own = create(&r, 0, CM_PS_TCP);
	assert_int_equal(bind_to(&r, 0, own, "127.128.0.1", 0), 0);
	assert_int_equal(resolve(&r, 0, own, "127.128.1.1", 1000), 0);
	assert_int_equal(event(&r, 0), CM_EV_ADDR_RESOLVED);
	assert_int_equal(two(&r, 0, CM_RESOLVE_ROUTE, own, 10), 0);
	while (event(&r, 0) == -1)
		usleep(1000);
	assert_int_equal(r.ev.event, CM_EV_ROUTE_ERROR);
	assert_int_equal(r.ev.status, -ETIMEDOUT);
	down.what = SH_PORT_UP;
	assert_true(port_change(&r.t->k, &down, true, &st));
	assert_int_equal(two(&r, 0, CM_RESOLVE_ROUTE, own, 1000), 0);
	assert_int_equal(event(&r, 0), CM_EV_ROUTE_RESOLVED);
	/* Up again: a connection stands, and ends. */
	id = establish(&r, &passive);
	assert_int_equal(two(&r, 1, CM_DISCONNECT, id, 0), 0);
	assert_int_equal(event(&r, 0), CM_EV_DISCONNECTED);
	end(&r);
}

/* The CM sees nothing of it: data are the QP's, which tries again. */
static void port_down_while_connected(void **state)
{
	struct sh_port_msg down = {.port = 1, .what = SH_PORT_DOWN};
	uint32_t l, id, passive;
	struct sh_status st;
	struct rig r;

	(void)state;
	begin(&r, SH_FACE_MAINLINE);
	l = listener(&r, 0, CM_PS_TCP, "0.0.0.0", 10);
	id = establish(&r, &passive);
	for (int up = 0; up < 2; up++) {
		down.what = up ? SH_PORT_UP : SH_PORT_DOWN;
		assert_true(port_change(&r.t->k, &down, true, &st));
		assert_int_equal(event(&r, 0), -1);
		assert_int_equal(event(&r, 1), -1);
	}
	assert_int_equal(two(&r, 1, CM_DISCONNECT, id, 0), 0);
	assert_int_equal(event(&r, 0), CM_EV_DISCONNECTED);
	assert_int_equal(r.ev.status, 0);
	assert_int_equal(two(&r, 0, CM_DISCONNECT, passive, 0), 0);
	assert_int_equal(event(&r, 1), CM_EV_DISCONNECTED);
	assert_int_equal(r.ev.status, 0);
	destroy(&r, 0, l);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connection),	 cmocka_unit_test(too_much_to_accept),
		cmocka_unit_test(rejects),	 cmocka_unit_test(reasons),
		cmocka_unit_test(full_backlog),	 cmocka_unit_test(unanswered),
		cmocka_unit_test(disconnecting), cmocka_unit_test(ends),
		cmocka_unit_test(port_down),	 cmocka_unit_test(port_down_while_connected),
	};

	alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
