/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the tests of commands expect to read: the texts of commands that every kernel has (HAS_IB
 * 0) or of those of AF_IB (1); an id, its channel and its events.
 */
#ifndef COMMANDS_H
#define COMMANDS_H

#include <arpa/inet.h>
#include <errno.h>

#include "fake_rdma_cm.h"

#if HAS_IB
#define PROBE                                                                                      \
	"CREATE_ID 24 4 ps 13f type 2\nBIND 136 0 id 5 size 48 ib(..00) sid 01060000\n"            \
	"DESTROY_ID 16 4 id 5\n"
#define Q_ADDR	      "QUERY 16 272 id 6 option 0\nQUERY 16 272 id 6 option 2\n"
#define Q_PATH	      "QUERY 16 440 id 6 option 1\n"
#define Q_NEW	      "QUERY 16 272 id 9 option 0\nQUERY 16 272 id 9 option 2\nQUERY 16 440 id 9 option 1\n"
#define BIND(addr)    "BIND 136 0 id 6 size 16 " addr "\n"
#define RESOLVE(addr) "RESOLVE_ADDR 272 0 id 6 sizes 0 16 family 0 " addr " 2000 ms\n"
#define JOIN(addr)    "JOIN_MCAST 152 4 id 6 size 16 flags 0 " addr "\n"
#else
#define PROBE                                                                                      \
	"CREATE_ID 24 4 ps 13f type 2\nBIND 136 0 id 5 size 48 ib(..00) sid 01060000\n"            \
	"DESTROY_ID 16 4 id 5\n"
#define Q_ADDR	      "QUERY_ROUTE 16 200 id 6 option 0\n"
#define Q_PATH	      "QUERY_ROUTE 16 200 id 6 option 0\n"
#define Q_NEW	      "QUERY_ROUTE 16 200 id 9 option 0\n"
#define BIND(addr)    "BIND_IP 40 0 id 6 " addr "\n"
#define RESOLVE(addr) "RESOLVE_IP 64 0 id 6 family 0 " addr " 2000 ms\n"
#define JOIN(addr)    "JOIN_IP_MCAST 48 4 id 6 " addr "\n"
#endif

#define CREATE	    "CREATE_ID 24 4 ps 106 type 2\n"
#define CREATE_UD   "CREATE_ID 24 4 ps 111 type 4\n"
#define EVENT	    "GET_EVENT 8 328\n"
#define ATTR(s)	    "INIT_QP_ATTR 16 144 id 6 state " #s "\n"
#define TO_INIT	    ATTR(1) "modify 1 mask 39\n"
#define DESTROY	    "DESTROY_ID 16 4 id 6\n"
#define CONN_ZERO   "qpn 0 srq 0 rr 0 id 0 fc 0 retry 0 rnr 0 valid 0 data 0:0000\n"
#define NEW_ATTR(s) "INIT_QP_ATTR 16 144 id 9 state " #s "\n"

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static inline struct sockaddr *in4(const char *host, unsigned int port)
{
	static struct sockaddr_in addr;

	memset(&addr, 0, sizeof(addr));
	addr.sin_family = AF_INET;
	addr.sin_port = htons(port);
	inet_pton(AF_INET, host, &addr.sin_addr);
	return (struct sockaddr *)&addr;
}

/* The next event, which must be this one. */
static inline struct rdma_cm_event *next_event(enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event = NULL;

	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	assert_int_equal(event->status, status);
	return event;
}

static inline void take(enum rdma_cm_event_type type, int status)
{
	assert_int_equal(rdma_ack_cm_event(next_event(type, status)), 0);
}

static inline void open_id(enum rdma_port_space ps)
{
	channel = rdma_create_event_channel();
	assert_non_null(channel);
	fake.next_id = 6;
	assert_int_equal(rdma_create_id(channel, &id, &channel, ps), 0);
	assert_ptr_equal(id->context, &channel);
	assert_ptr_equal(id->channel, channel);
	assert_int_equal(id->ps, ps);
}

static inline void close_id(uint32_t events)
{
	fake.events_reported = events;
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static inline void resolve(void)
{
	assert_int_equal(rdma_resolve_addr(id, NULL, in4("10.0.0.2", 7472), 2000), 0);
	fake_event(id, 6, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	take(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

static inline struct ibv_qp_init_attr attr(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr a;

	memset(&a, 0xee, sizeof(a));
	memset(&a, 0, offsetof(struct ibv_qp_init_attr, xrc_domain));
	a.cap.max_send_wr = 4;
	a.cap.max_recv_wr = 8;
	a.qp_type = type;
	return a;
}

static inline void create_qp(void)
{
	struct ibv_qp_init_attr a = attr(IBV_QPT_RC);

	assert_int_equal(rdma_create_qp(id, NULL, &a), 0);
	assert_int_equal(a.cap.max_send_wr, 7);
	assert_null(a.send_cq);
}

static inline int start(void **state)
{
	(void)state;
	return fake_start(4, HAS_IB);
}

static inline int stop(void **state)
{
	(void)state;
	fake_stop();
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

#endif
