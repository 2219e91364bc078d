// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: connections by address in their thousands, on devices that fail, with messages that
 * are lost; and the end of the files that they are made through: whoever else looks into such a
 * file, and whatever the daemon misses, an open one lives and a closed one goes.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "softhca/device/memory/fault_rule.h"
#include "softhca/host/address.h"
#include "softhca/kernel/faults.h"
#include "softhca/kernel/files.h"
#include "softhca/kernel/ports.h"
#include "softhca/kernel/rdmacm/channel.h"
#include "softhca/kernel/rdmacm/command.h"
#include "softhca/kernel/rdmacm/due.h"
#include "softhca/kernel/rdmacm/id.h"
#include "softhca/kernel/rdmacm/rdmacm.h"
#include "softhca/kernel/rdmacm/room.h"
#include "softhca/kernel/rdmacm/timer.h"
#include "softhca/kernel/server.h"
#include "softhca_kernel.h"

#define MANY	  10000
#define QUEUED	  16384 /* events that inotify keeps, by default */
#define LOOPBACK  0x7f000001u
#define FIRST_QPN 0x100

static struct kt *t;
static struct cm_channel *ch[2]; /* of a server, of its clients */
static int fd[2];
static struct cm_event_resp ev;

static int setup(void **state)
{
	(void)state;
	t = kt_start(SH_FACE_MAINLINE, 1, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(cm_channel_open(t->k.rdmacm, t->proc, O_RDWR, &ch[i], &fd[i]), 0);
	return 0;
}

static int teardown(void **state)
{
	const struct rdmacm *r = t->k.rdmacm;

	(void)state;
	for (int i = 0; i < 2; i++) {
		if (ch[i])
			cm_channel_free(ch[i]);
		close(fd[i]);
	}
	while (r->messages)
		cm_timer_ready(t->k.rdmacm);
	assert_int_equal(r->channels.used, 0);
	assert_null(r->by_ino);
	assert_null(r->ids);
	assert_null(r->asked);
	assert_int_equal(r->due_ids.used, 0);
	assert_int_equal(r->hosts[0].ids.used, 0);
	assert_null(r->hosts[0].ports[CM_TCP]);
	kt_stop(t);
	return 0;
}

static int cmd(int side, uint32_t number, const void *body, uint16_t len, uint16_t out)
{
	struct cm_call c = {.cm = t->k.rdmacm, .proc = t->proc, .tid = getpid(), .ch = ch[side]};
	struct {
		struct cm_hdr hdr;
		uint8_t body[512];
	} buf = {.hdr = {.number = number, .in = len, .out = out}};

	memcpy(buf.body, body, len);
	return -cm_command(&c, (uintptr_t)&buf, sizeof(buf.hdr) + len);
}

static uint32_t create(int side)
{
	struct cm_number_resp resp = {0};
	struct cm_create_id c = {
		.response = (uintptr_t)&resp, .ps = CM_PS_TCP, .qp_type = CM_QPT_RC};

	assert_int_equal(cmd(side, CM_CREATE_ID, &c, sizeof(c), sizeof(resp)), 0);
	return resp.value;
}

static void destroy(int side, uint32_t id)
{
	struct cm_number_resp resp = {0};
	struct cm_of_id c = {.response = (uintptr_t)&resp, .id = id};

	assert_int_equal(cmd(side, CM_DESTROY_ID, &c, sizeof(c), sizeof(resp)), 0);
}

static int two(int side, uint32_t number, uint32_t id, uint32_t value)
{
	struct cm_two c = {.id = id, .value = value};

	return cmd(side, number, &c, sizeof(c), 0);
}

/* Its type, or -1. */
static int event(int side)
{
	uint64_t response = (uintptr_t)&ev;
	int err = cmd(side, CM_GET_EVENT, &response, sizeof(response), sizeof(ev));

	assert_true(!err || err == EAGAIN);
	return err ? -1 : (int)ev.event;
}

static uint32_t listener(uint32_t backlog)
{
	uint32_t id = create(0);
	struct cm_bind_ip c = {.id = id};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(7471)};

	memcpy(&c.addr, &in, sizeof(in));
	assert_int_equal(cmd(0, CM_BIND_IP, &c, sizeof(c), 0), 0);
	assert_int_equal(two(0, CM_LISTEN, id, backlog), 0);
	return id;
}

static void resolve(uint32_t id)
{
	struct cm_resolve_ip c = {.id = id, .timeout_ms = 1000};
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_port = htons(7471), .sin_addr.s_addr = htonl(LOOPBACK)};

	memcpy(&c.dst, &in, sizeof(in));
	assert_int_equal(cmd(1, CM_RESOLVE_IP, &c, sizeof(c), 0), 0);
}

static void call(uint32_t id, uint32_t qpn)
{
	struct cm_connect c = {.id = id, .param = {.qp_num = qpn, .valid = 1}};

	assert_int_equal(cmd(1, CM_CONNECT, &c, sizeof(c), 0), 0);
}

static int take(int side, uint32_t id, uint8_t valid)
{
	struct cm_accept c = {.id = id, .uid = 1, .param = {.valid = valid}};

	return cmd(side, CM_ACCEPT, &c, sizeof(c), 0);
}

/* ---- thousands ---- */

static uint64_t due_of(const struct cm_id *ids, const struct cm_due *d, uint64_t after)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < 300; i++)
		if (ids[i].due && ids[i].due < least)
			least = ids[i].due;
	assert_int_equal(cm_due_first(d) ? cm_due_first(d)->due : UINT64_MAX, least);
	assert_true(least >= after);
	return least;
}

static void order(void **state)
{
	struct cm_id *ids = calloc(300, sizeof(*ids));
	struct cm_due d = {0};
	uint64_t last = 0;

	(void)state;
	assert_non_null(ids);
	assert_int_equal(cm_due_reserve(&d, 300), 0);
	for (int i = 0; i < 3000; i++) {
		/* Later, earlier, and not at all. */
		cm_due_set(&d, &ids[rand() % 300], rand() % 3 ? 1 + rand() % 1000 : 0);
		due_of(ids, &d, 0);
	}
	while (d.used) {
		last = due_of(ids, &d, last);
		cm_due_set(&d, cm_due_first(&d), 0);
	}
	due_of(ids, &d, 0);
	cm_due_exit(&d);
	free(ids);
}

static void drain(int side, int type, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(event(side), type);
	assert_int_equal(event(side), -1);
}

/*
 * All at once: each step of all of them before the next step, with a backlog that is far too small.
 */
static void at_once(void **state)
{
	static uint32_t id[MANY];
	uint32_t l = listener(128), requests = 0, opened = 0, established = 0;
	int type;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		id[i] = create(1);
		resolve(id[i]);
	}
	cm_timer_ready(t->k.rdmacm);
	drain(1, CM_EV_ADDR_RESOLVED, MANY);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(two(1, CM_RESOLVE_ROUTE, id[i], 1000), 0);
	cm_timer_ready(t->k.rdmacm);
	drain(1, CM_EV_ROUTE_RESOLVED, MANY);
	for (int i = 0; i < MANY; i++)
		call(id[i], FIRST_QPN + (uint32_t)i);
	while (established < MANY) {
		uint32_t before = requests + opened + established;

		cm_timer_ready(t->k.rdmacm);
		while ((type = event(0)) >= 0) {
			requests += type == CM_EV_CONNECT_REQUEST;
			established += type == CM_EV_ESTABLISHED;
			if (type == CM_EV_CONNECT_REQUEST)
				assert_int_equal(take(0, ev.id, 1), 0);
		}
		while ((type = event(1)) >= 0) {
			assert_int_equal(type, CM_EV_CONNECT_RESPONSE);
			opened++;
			assert_int_equal(take(1, ev.id, 0), 0);
		}
		/* Each round gets on, without any message being sent a second time. */
		assert_true(requests + opened + established > before);
	}
	assert_int_equal(requests, MANY);
	for (int i = 0; i < MANY; i++)
		destroy(1, id[i]);
	cm_timer_ready(t->k.rdmacm);
	drain(0, CM_EV_DISCONNECTED, MANY);
	destroy(0, l);
}

/* A listener that ends, and senders that end, while requests wait for room in its backlog. */
static void waiting(void **state)
{
	uint32_t l = listener(1), id[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		id[i] = create(1);
		resolve(id[i]);
		cm_timer_ready(t->k.rdmacm);
		assert_int_equal(event(1), CM_EV_ADDR_RESOLVED);
		assert_int_equal(two(1, CM_RESOLVE_ROUTE, id[i], 1000), 0);
		cm_timer_ready(t->k.rdmacm);
		assert_int_equal(event(1), CM_EV_ROUTE_RESOLVED);
		call(id[i], FIRST_QPN);
	}
	cm_timer_ready(t->k.rdmacm);
	destroy(1, id[1]);
	assert_int_equal(event(0), CM_EV_CONNECT_REQUEST);
	cm_timer_ready(t->k.rdmacm);
	/* The next one of those that still wait. */
	assert_int_equal(event(0), CM_EV_CONNECT_REQUEST);
	assert_int_equal(event(0), -1);
	destroy(0, l);
	destroy(1, id[3]);
}

/* ---- devices that fail ---- */

static int set_fatal(void)
{
	struct sh_port_msg m = {.type = SH_MSG_PORT, .port = 1, .what = SH_PORT_FATAL};
	struct sh_status st;

	while (!port_change(&t->k, &m, false, &st))
		;
	return st.error;
}

static int query(int side, uint32_t id)
{
	uint8_t resp[336];
	struct cm_of_id c = {.response = (uintptr_t)resp, .id = id};

	return cmd(side, CM_QUERY_ROUTE, &c, sizeof(c), 208);
}

static uint32_t routed(void)
{
	uint32_t id = create(1);

	resolve(id);
	cm_timer_ready(t->k.rdmacm);
	assert_int_equal(event(1), CM_EV_ADDR_RESOLVED);
	assert_int_equal(two(1, CM_RESOLVE_ROUTE, id, 1000), 0);
	cm_timer_ready(t->k.rdmacm);
	assert_int_equal(event(1), CM_EV_ROUTE_RESOLVED);
	return id;
}

static void removal(void **state)
{
	uint32_t l = listener(2), read_request, idle = create(1), id[4];
	struct cm_channel *other;
	struct cm_of_id m = {.value = (uint32_t)fd[1]};
	int own;

	(void)state;
	/* Resolved; asking, and its request is read, or is not; unbound. */
	for (int i = 0; i < 3; i++)
		id[i] = routed();
	call(id[1], FIRST_QPN);
	cm_timer_ready(t->k.rdmacm);
	assert_int_equal(event(0), CM_EV_CONNECT_REQUEST);
	read_request = ev.id;
	call(id[2], FIRST_QPN);
	cm_timer_ready(t->k.rdmacm);
	id[3] = create(1);
	resolve(id[3]); /* under way */
	assert_int_equal(set_fatal(), 0);
	cm_timer_ready(t->k.rdmacm);
	cm_timer_ready(t->k.rdmacm);
	drain(1, CM_EV_DEVICE_REMOVAL, 4);
	/* The listener of all addresses has no device, and the read request no known id. */
	assert_int_equal(event(0), -1);
	assert_int_equal(two(1, CM_RESOLVE_ROUTE, id[0], 1000), ENXIO);
	assert_int_equal(query(1, id[1]), ENXIO);
	assert_int_equal(two(1, CM_DISCONNECT, id[2], 0), ENXIO);
	assert_int_equal(take(0, read_request, 1), ENXIO);
	assert_int_equal(query(1, idle), 0);
	assert_int_equal(query(0, l), 0);
	assert_int_equal(cm_channel_open(t->k.rdmacm, t->proc, O_RDWR, &other, &own), 0);
	m.id = id[0];
	m.response = (uintptr_t)&m;
	{
		struct cm_call c = {
			.cm = t->k.rdmacm, .proc = t->proc, .tid = getpid(), .ch = other};
		struct {
			struct cm_hdr hdr;
			struct cm_of_id m;
		} buf = {{CM_MIGRATE_ID, sizeof(m), 4}, m};

		assert_int_equal(-cm_command(&c, (uintptr_t)&buf, sizeof(buf)), ENXIO);
	}
	cm_channel_free(other);
	close(own);
	for (int i = 0; i < 4; i++)
		destroy(1, id[i]);
	assert_int_equal(query(1, id[0]), ENOENT);
	destroy(0, read_request);
	/* No device is left that an address could mean. */
	resolve(idle);
	cm_timer_ready(t->k.rdmacm);
	assert_int_equal(event(1), CM_EV_ADDR_ERROR);
	assert_int_equal((int)ev.status, -ENODEV);
}

/* ---- addresses, service ---- */

static void by_ipv6(void **state)
{
	struct in6_addr host = sh_host_address6(0, 1), bad = sh_host_address6(0, 9);
	struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(7471), .sin6_addr = host};
	struct cm_query_route_resp q;
	struct cm_of_id ask = {.response = (uintptr_t)&q};
	struct cm_resolve_ip r = {.timeout_ms = 1};
	struct cm_bind_ip b;
	unsigned int k, n;

	(void)state;
	assert_true(sh_address6_host(&host, &k, &n) && k == 0 && n == 1);
	assert_false(sh_address6_host(&in6addr_loopback, &k, &n));
	b.id = create(0);
	memcpy(&b.addr, &in6, sizeof(in6));
	in6.sin6_addr = bad;
	memcpy(&r.dst, &in6, sizeof(in6));
	r.id = create(1);
	assert_int_equal(cmd(0, CM_BIND_IP, &b, sizeof(b), 0), 0);
	assert_int_equal(two(0, CM_LISTEN, b.id, 1), 0);
	ask.id = b.id;
	assert_int_equal(cmd(0, CM_QUERY_ROUTE, &ask, sizeof(ask), sizeof(q)), 0);
	assert_int_equal(q.port, 1);
	/* An address that no port has. */
	assert_int_equal(cmd(1, CM_RESOLVE_IP, &r, sizeof(r), 0), 0);
	while (event(1) < 0) {
		usleep(1000);
		cm_timer_ready(t->k.rdmacm);
	}
	assert_int_equal(ev.event, CM_EV_ADDR_ERROR);
	assert_int_equal((int)ev.status, -ETIMEDOUT);
	in6.sin6_addr = host;
	memcpy(&r.dst, &in6, sizeof(in6));
	assert_int_equal(cmd(1, CM_RESOLVE_IP, &r, sizeof(r), 0), 0);
	cm_timer_ready(t->k.rdmacm);
	assert_int_equal(event(1), CM_EV_ADDR_RESOLVED);
	ask.id = r.id;
	assert_int_equal(cmd(1, CM_QUERY_ROUTE, &ask, sizeof(ask), sizeof(q)), 0);
	assert_memory_equal(&((struct sockaddr_in6 *)&q.src)->sin6_addr, &host, 16);
	assert_int_equal(two(1, CM_RESOLVE_ROUTE, r.id, 1000), 0);
	cm_timer_ready(t->k.rdmacm);
	assert_int_equal(event(1), CM_EV_ROUTE_RESOLVED);
	call(r.id, FIRST_QPN);
	cm_timer_ready(t->k.rdmacm);
	assert_int_equal(event(0), CM_EV_CONNECT_REQUEST);
}

static void type_of_service(void **state)
{
	struct cm_query_path_resp p;
	struct cm_of_id ask = {.response = (uintptr_t)&p, .value = CM_QUERY_PATH};
	struct cm_set_option o = {.level = CM_LEVEL_ID, .name = CM_ID_TOS, .len = 1};
	uint8_t tos = 0x20;

	(void)state;
	o.id = ask.id = create(1);
	o.optval = (uintptr_t)&tos;
	assert_int_equal(cmd(1, CM_SET_OPTION, &o, sizeof(o), 0), 0);
	resolve(o.id);
	cm_timer_ready(t->k.rdmacm);
	assert_int_equal(event(1), CM_EV_ADDR_RESOLVED);
	assert_int_equal(two(1, CM_RESOLVE_ROUTE, o.id, 1000), 0);
	cm_timer_ready(t->k.rdmacm);
	assert_int_equal(event(1), CM_EV_ROUTE_RESOLVED);
	assert_int_equal(cmd(1, CM_QUERY, &ask, sizeof(ask), sizeof(p)), 0);
	/* Its class of service, on service level 0. */
	assert_int_equal(be16toh(p.path[0].record.qosclass_sl), 0x20 << 4);
}

/* ---- messages that are lost ---- */

static int fault(uint32_t kind, uint32_t rate, uint32_t count, uint32_t from, uint32_t seed)
{
	struct sh_fault_msg m = {.type = SH_MSG_FAULT,
				 .kind = kind,
				 .rate = rate,
				 .count = count,
				 .from = from,
				 .to = SH_FAULT_ANY,
				 .qpn = SH_FAULT_ANY,
				 .seeded = 1,
				 .seed = seed};
	struct sh_status st;

	fault_set(&t->k, &m, &st);
	return st.error;
}

/* Which of 64 messages a rate of one half loses. */
static uint64_t lost(void)
{
	uint64_t which = 0;

	for (int i = 0; i < 64; i++)
		which = which << 1 | cm_fault_hits(t->k.rdmacm, 0, 0);
	return which;
}

static void faults(void **state)
{
	uint32_t l = listener(8), id;
	uint64_t first;

	(void)state;
	assert_int_equal(fault(SH_FAULT_CM_DROP, 500000, 0, SH_FAULT_ANY, 7), 0);
	first = lost();
	assert_true(first != 0 && first != UINT64_MAX);
	assert_int_equal(fault(SH_FAULT_CM_DROP, 500000, 0, SH_FAULT_ANY, 7), 0);
	assert_true(lost() == first);
	assert_int_equal(fault(SH_FAULT_SEED, 0, 0, SH_FAULT_ANY, 7), 0);
	assert_true(lost() == first);
	assert_int_equal(fault(SH_FAULT_SEED, 0, 0, SH_FAULT_ANY, 8), 0);
	assert_true(lost() != first);
	assert_int_equal(fault(SH_FAULT_OFF, 0, 0, SH_FAULT_ANY, 0), 0);
	assert_true(lost() == 0);
	assert_int_equal(fault(SH_FAULT_CM_DROP, 0, 1, 9, 0), ENOENT);
	/* A request that is lost is sent again; all of them lost: the peer is not reachable. */
	t->k.rdmacm->response_ns = 1000000;
	id = routed();
	assert_int_equal(fault(SH_FAULT_CM_DROP, 0, 3, 0, 0), 0);
	call(id, FIRST_QPN);
	while (event(0) < 0)
		cm_timer_ready(t->k.rdmacm);
	assert_int_equal(ev.event, CM_EV_CONNECT_REQUEST);
	assert_int_equal(t->k.rdmacm->count.faults, 3);
	id = routed();
	assert_int_equal(fault(SH_FAULT_CM_DROP, 1000000, 0, SH_FAULT_ANY, 0), 0);
	call(id, FIRST_QPN);
	while (event(1) < 0)
		cm_timer_ready(t->k.rdmacm);
	assert_true(ev.event == CM_EV_UNREACHABLE || ev.event == CM_EV_REJECTED);
	assert_int_equal(fault(SH_FAULT_CM_DROP, 0, 0, SH_FAULT_ANY, 0), 0);
	destroy(0, l);
}

/* ---- files ---- */

static void name_of(const struct cm_channel *c, char name[32])
{
	snprintf(name, 32, "%u.%u", c->fifo.index, c->fifo.generation);
}

static int peep(const struct cm_channel *c)
{
	char path[64];
	int own;

	snprintf(path, sizeof(path), "channels/%u.%u.%u", c->fifo.index, c->fifo.generation,
		 c->fifo.mode);
	own = openat(t->k.dir_fd, path, O_RDONLY | O_NONBLOCK);
	assert_true(own >= 0);
	return own;
}

static bool ends(int end)
{
	char byte;

	fcntl(end, F_SETFL, O_NONBLOCK);
	return read(end, &byte, 1) == 0;
}

static void looked_into(void **state)
{
	uint32_t id = create(1);
	char name[32];
	int own;

	(void)state;
	name_of(ch[1], name);
	own = peep(ch[1]);
	close(own);
	rdmacm_room.closed(&t->k, 0, name);
	assert_int_equal(t->k.rdmacm->channels.used, 2);
	assert_false(ends(fd[1]));
	/* What waits in it stays there. */
	resolve(id);
	cm_timer_ready(t->k.rdmacm);
	rdmacm_room.closed(&t->k, 0, name);
	assert_int_equal(event(1), CM_EV_ADDR_RESOLVED);
	assert_int_equal(event(1), -1);
	assert_false(ends(fd[1]));
	/* It lives as long as anybody has it. */
	own = dup(fd[1]);
	close(fd[1]);
	rdmacm_room.closed(&t->k, 0, name);
	assert_int_equal(t->k.rdmacm->channels.used, 2);
	fd[1] = own;
	rdmacm_room.tick(&t->k);
	assert_int_equal(t->k.rdmacm->channels.used, 2);
	/* Kernels may tell of the close before it is done, and do not tell a second time. */
	close(fd[1]);
	rdmacm_room.tick(&t->k);
	assert_int_equal(t->k.rdmacm->channels.used, 1);
	ch[1] = NULL;
	fd[1] = -1;
}

static void missed(void **state)
{
	struct server s = {.k = &t->k,
			   .listen_fd = -1,
			   .inotify = -1,
			   .signals = -1,
			   .tick = -1,
			   .again = -1,
			   .attention = -1};
	uint32_t id = create(1);

	(void)state;
	(void)id;
	assert_int_equal(server_set_up(&s), 0);
	/* One after the other, since the same event is not queued twice in a row. */
	for (int i = 0; i < QUEUED; i++)
		close(peep(ch[i % 2]));
	close(fd[1]);
	fd[1] = -1;
	files_drain(&s);
	assert_int_equal(t->k.rdmacm->channels.used, 1);
	ch[1] = NULL;
	assert_int_equal(create(0), 0);
	server_take_down(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order),
		cmocka_unit_test_setup_teardown(at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(waiting, setup, teardown),
		cmocka_unit_test_setup_teardown(removal, setup, teardown),
		cmocka_unit_test_setup_teardown(by_ipv6, setup, teardown),
		cmocka_unit_test_setup_teardown(type_of_service, setup, teardown),
		cmocka_unit_test_setup_teardown(faults, setup, teardown),
		cmocka_unit_test_setup_teardown(looked_into, setup, teardown),
		cmocka_unit_test_setup_teardown(missed, setup, teardown),
	};

	alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
