// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: each call writes the commands of the kernel's interface, byte for byte, and asks the device for what it
 * should, with the commands that every kernel has (HAS_IB 0) or with those of AF_IB (1).
 */
#include "fake_rdma_cm.h"

#include <arpa/inet.h>
#include <errno.h>

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

static struct sockaddr *in4(const char *host, unsigned int port)
{
	static struct sockaddr_in addr;

	memset(&addr, 0, sizeof(addr));
	addr.sin_family = AF_INET;
	addr.sin_port = htons(port);
	inet_pton(AF_INET, host, &addr.sin_addr);
	return (struct sockaddr *)&addr;
}

/* The next event, which must be this one. */
static struct rdma_cm_event *next_event(enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event = NULL;

	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	assert_int_equal(event->status, status);
	return event;
}

static void take(enum rdma_cm_event_type type, int status)
{
	assert_int_equal(rdma_ack_cm_event(next_event(type, status)), 0);
}

static void open_id(enum rdma_port_space ps)
{
	channel = rdma_create_event_channel();
	assert_non_null(channel);
	fake.next_id = 6;
	assert_int_equal(rdma_create_id(channel, &id, &channel, ps), 0);
	assert_ptr_equal(id->context, &channel);
	assert_ptr_equal(id->channel, channel);
	assert_int_equal(id->ps, ps);
}

static void close_id(uint32_t events)
{
	fake.events_reported = events;
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void resolve(void)
{
	assert_int_equal(rdma_resolve_addr(id, NULL, in4("10.0.0.2", 7472), 2000), 0);
	fake_event(id, 6, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	take(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

static struct ibv_qp_init_attr attr(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr a;

	memset(&a, 0xee, sizeof(a));
	memset(&a, 0, offsetof(struct ibv_qp_init_attr, xrc_domain));
	a.cap.max_send_wr = 4;
	a.cap.max_recv_wr = 8;
	a.qp_type = type;
	return a;
}

static void create_qp(void)
{
	struct ibv_qp_init_attr a = attr(IBV_QPT_RC);

	assert_int_equal(rdma_create_qp(id, NULL, &a), 0);
	assert_int_equal(a.cap.max_send_wr, 7);
	assert_null(a.send_cq);
}

static void first_id(void **state)
{
	(void)state;
	channel = rdma_create_event_channel();
	assert_non_null(channel);
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	fake_expect(PROBE CREATE);
	assert_int_equal(id->qp_type, IBV_QPT_RC);
	assert_int_equal(rdma_destroy_id(id), 0);
	fake_expect(DESTROY);
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), 0);
	fake_expect("CREATE_ID 24 4 ps 111 type 4\n");
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void binding_and_listening(void **state)
{
	(void)state;
	open_id(RDMA_PS_TCP);
	fake_expect(CREATE);
	fake.with_device = 0;
	assert_int_equal(rdma_bind_addr(id, in4("0.0.0.0", 7471)), 0);
	fake_expect(BIND("0.0.0.0:7471") Q_ADDR);
	assert_null(id->verbs);
	assert_int_equal(rdma_get_src_port(id), htons(7471));
	assert_int_equal(rdma_get_dst_port(id), htons(7472));
	fake.with_device = 1;
	assert_int_equal(rdma_listen(id, 3), 0);
	fake_expect("LISTEN 8 0 id 6 backlog 3\n" Q_ADDR);
	assert_non_null(id->verbs);
	assert_non_null(id->pd);
	assert_int_equal(id->port_num, 1);
	assert_int_equal(id->route.addr.addr.ibaddr.sgid.raw[15], 1);
	assert_int_equal(id->route.addr.addr.ibaddr.pkey, 0xffff);
	close_id(0);
}

static void bad_families(void **state)
{
	struct sockaddr un = {.sa_family = AF_UNIX};

	(void)state;
	open_id(RDMA_PS_TCP);
	fake_ignore();
	assert_int_equal(rdma_bind_addr(id, &un), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_resolve_addr(id, NULL, &un, 1), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_join_multicast(id, &un, NULL), -1);
	assert_int_equal(errno, EINVAL);
	un.sa_family = AF_IB;
	if (!HAS_IB) {
		assert_int_equal(rdma_bind_addr(id, &un), -1);
		assert_int_equal(errno, EINVAL);
	}
	fake_expect("");
	close_id(0);
}

static void resolving(void **state)
{
	(void)state;
	open_id(RDMA_PS_TCP);
	fake_ignore();
	resolve();
	fake_expect(RESOLVE("10.0.0.2:7472") EVENT Q_ADDR);
	assert_non_null(id->verbs);
	fake.num_paths = 1;
	assert_int_equal(rdma_resolve_route(id, 1500), 0);
	fake_event(id, 6, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	take(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	fake_expect("RESOLVE_ROUTE 8 0 id 6 1500 ms\n" EVENT Q_PATH);
	assert_int_equal(id->route.num_paths, 1);
	assert_int_equal(id->route.path_rec->dlid, htons(7));
	assert_int_equal(id->route.path_rec->pkey, 0xffff);
	assert_int_equal(id->route.path_rec->mtu, IBV_MTU_2048);
	assert_int_equal(id->route.path_rec->dgid.raw[15], 2);
	close_id(2);
}

static void failing_queries(void **state)
{
	(void)state;
	open_id(RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(id, NULL, in4("10.0.0.2", 7472), 2000), 0);
	fake_event(id, 6, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	fake.fail_command = HAS_IB ? 19 : 5;
	fake.fail_errno = EIO;
	take(RDMA_CM_EVENT_ADDR_ERROR, -EIO);
	fake_event(id, 6, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	fake.fail_command = HAS_IB ? 19 : 5;
	take(RDMA_CM_EVENT_ROUTE_ERROR, -EIO);
	fake_event(id, 6, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	take(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	close_id(3);
}

static void qp_of_an_id(void **state)
{
	struct ibv_qp_init_attr a = attr(IBV_QPT_RC);
	struct ibv_context other;
	struct ibv_pd pd = {.context = &other};

	(void)state;
	open_id(RDMA_PS_TCP);
	assert_int_equal(rdma_create_qp(id, NULL, &a), -1);
	assert_int_equal(errno, EINVAL);
	resolve();
	assert_int_equal(rdma_create_qp(id, &pd, &a), -1);
	assert_int_equal(errno, EINVAL);
	fake_ignore();
	create_qp();
	fake_expect("create_cq 8 channel\ncreate_cq 4 channel\ncreate_qp type 2\n" TO_INIT);
	assert_int_equal(rdma_create_qp(id, NULL, &a), -1);
	assert_int_equal(errno, EINVAL);
	fake_expect("");
	rdma_destroy_qp(id);
	fake_expect("destroy_qp\ndestroy_cq\ndestroy_cq\n");
	assert_null(id->qp);
	assert_null(id->send_cq);
	assert_null(id->recv_cq_channel);

	fake.fail_modify = EBADF;
	fake.fail_modify_state = IBV_QPS_INIT;
	assert_int_equal(rdma_create_qp(id, NULL, &a), -1);
	assert_int_equal(errno, EBADF);
	assert_null(id->qp);
	close_id(1);
}

static void qp_with_srq(void **state)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 32, .max_sge = 1}};

	(void)state;
	open_id(RDMA_PS_TCP);
	assert_int_equal(rdma_create_srq(id, NULL, &srq), -1);
	assert_int_equal(errno, EINVAL);
	resolve();
	fake_ignore();
	assert_int_equal(rdma_create_srq(id, NULL, &srq), 0);
	create_qp();
	fake_expect("create_srq\ncreate_cq 32 channel\ncreate_cq 4 channel\ncreate_qp type 2 "
		    "srq\n" TO_INIT);
	assert_int_equal(rdma_create_srq(id, NULL, &srq), -1);
	assert_int_equal(errno, EINVAL);
	rdma_destroy_qp(id);
	fake_ignore();
	rdma_destroy_srq(id);
	fake_expect("destroy_srq\n");
	close_id(1);
}

static void connecting(void **state)
{
	struct rdma_conn_param param = {
		.private_data = "ab",
		.private_data_len = 2,
		.responder_resources = 3,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = 5,
		.rnr_retry_count = 6,
		.qp_num = 4711,
	};

	(void)state;
	open_id(RDMA_PS_TCP);
	resolve();
	assert_int_equal(rdma_connect(id, NULL), -1);
	assert_int_equal(errno, EINVAL);
	create_qp();
	fake_ignore();
	param.responder_resources = 17;
	assert_int_equal(rdma_connect(id, &param), -1);
	assert_int_equal(errno, EINVAL);
	param.responder_resources = 3;
	assert_int_equal(rdma_connect(id, &param), 0);
	fake_expect("CONNECT 280 0 id 6 qpn 101 srq 0 rr 3 id 12 fc 0 retry 5 rnr 6 valid 1 data "
		    "2:6162\n");
	assert_int_equal(rdma_connect(id, NULL), 0);
	fake_expect("CONNECT 280 0 id 6 qpn 101 srq 0 rr 16 id 12 fc 0 retry 7 rnr 7 valid 1 data "
		    "0:0000\n");

	fake_event(id, 6, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, {20 + 264, 1, 196}, {20 + 8, 1, 'x'},
		   {20 + 266, 1, 2});
	{
		struct rdma_cm_event *event = next_event(RDMA_CM_EVENT_ESTABLISHED, 0);

		assert_ptr_equal(event->id, id);
		assert_null(event->listen_id);
		assert_int_equal(event->param.conn.private_data_len, 196);
		assert_int_equal(*(const char *)event->param.conn.private_data, 'x');
		assert_int_equal(event->param.conn.responder_resources, 2);
		rdma_ack_cm_event(event);
	}
	fake_expect(EVENT TO_INIT ATTR(2) "modify 2 mask 129181 dest 8\n" ATTR(
		3) "modify 3 mask 12e01 rd 9\nACCEPT 288 0 id 6 uid 0 " CONN_ZERO);

	assert_int_equal(rdma_disconnect(id), 0);
	fake_expect("modify 6 mask 1\nDISCONNECT 4 0 id 6\n");
	fake_event(id, 6, RDMA_CM_EVENT_DISCONNECTED, 0);
	take(RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_notify(id, IBV_EVENT_COMM_EST), 0);
	fake_ignore();
	rdma_destroy_qp(id);
	close_id(3);
}

static void connect_without_qp(void **state)
{
	struct rdma_conn_param param = {.qp_num = 4711, .srq = 1};

	(void)state;
	open_id(RDMA_PS_TCP);
	resolve();
	fake_ignore();
	assert_int_equal(rdma_connect(id, &param), 0);
	fake_expect("CONNECT 280 0 id 6 qpn 4711 srq 1 rr 0 id 0 fc 0 retry 0 rnr 0 valid 1 data "
		    "0:0000\n");
	fake_event(id, 6, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	take(RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	fake_expect(EVENT);
	close_id(2);
}

/* The connection cannot be used: the program learns it once. */
static void failing_response(void **state)
{
	struct rdma_cm_event *event;

	(void)state;
	open_id(RDMA_PS_TCP);
	resolve();
	create_qp();
	assert_int_equal(rdma_connect(id, NULL), 0);
	fake.fail_modify = EDOM;
	fake.fail_modify_state = IBV_QPS_RTS;
	fake_event(id, 6, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	take(RDMA_CM_EVENT_CONNECT_ERROR, -EDOM);
	fake_event(id, 6, RDMA_CM_EVENT_REJECTED, 28);
	assert_int_equal(rdma_get_cm_event(channel, &event), -1);
	assert_int_equal(errno, EAGAIN);
	rdma_destroy_qp(id);
	/* The one that was kept back counts, too. */
	close_id(3);
}

static void rejected(void **state)
{
	struct rdma_cm_event *event;

	(void)state;
	open_id(RDMA_PS_TCP);
	resolve();
	create_qp();
	fake_ignore();
	fake_event(id, 6, RDMA_CM_EVENT_REJECTED, 28, {20 + 264, 1, 148}, {20 + 8, 1, 'n'});
	event = next_event(RDMA_CM_EVENT_REJECTED, 28);
	assert_int_equal(event->param.conn.private_data_len, 148);
	assert_int_equal(*(const char *)event->param.conn.private_data, 'n');
	rdma_ack_cm_event(event);
	fake_expect(EVENT "modify 6 mask 1\n");
	rdma_destroy_qp(id);
	close_id(2);
}

static struct rdma_cm_id *request(void)
{
	struct rdma_cm_id *new_id;
	struct rdma_cm_event *event;

	fake_event(id, 9, RDMA_CM_EVENT_CONNECT_REQUEST, 0, {20 + 264, 1, 56}, {20 + 8, 1, 'h'},
		   {20 + 266, 1, 20}, {20 + 267, 1, 4});
	event = next_event(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_ptr_equal(event->listen_id, id);
	assert_ptr_not_equal(event->id, id);
	assert_ptr_equal(event->id->context, &channel);
	assert_ptr_equal(event->id->channel, channel);
	assert_non_null(event->id->verbs);
	assert_int_equal(event->param.conn.private_data_len, 56);
	assert_int_equal(event->param.conn.responder_resources, 20);
	new_id = event->id;
	rdma_ack_cm_event(event);
	return new_id;
}

static void accepting(void **state)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 2, .retry_count = 7};
	struct ibv_qp_init_attr a = attr(IBV_QPT_RC);
	struct rdma_cm_id *passive;

	(void)state;
	open_id(RDMA_PS_TCP);
	assert_int_equal(rdma_listen(id, 0), 0);
	fake_ignore();
	passive = request();
	fake_expect(EVENT Q_NEW);
	assert_int_equal(rdma_accept(passive, NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_create_qp(passive, NULL, &a), 0);
	fake_ignore();
	assert_int_equal(rdma_accept(passive, NULL), 0);
	fake_expect(NEW_ATTR(1) "modify 1 mask 39\n" NEW_ATTR(
		2) "modify 2 mask 129181 dest 16\n" NEW_ATTR(3) "modify 3 mask 12e01 rd 4\n"
								"ACCEPT 288 0 id 9 uid set qpn 101 "
								"srq 0 rr 16 id 4 fc 0 retry 7 rnr "
								"7 valid 1 data 0:0000\n");
	assert_int_equal(rdma_accept(passive, &param), 0);
	fake_expect(NEW_ATTR(1) "modify 1 mask 39\n" NEW_ATTR(
		2) "modify 2 mask 129181 dest 1\n" NEW_ATTR(3) "modify 3 mask 12e01 rd 2\n"
							       "ACCEPT 288 0 id 9 uid set qpn 101 "
							       "srq 0 rr 1 id 2 fc 0 retry 7 rnr 0 "
							       "valid 1 data 0:0000\n");
	/* The peer has gone: the QP is of no use any more. */
	fake.fail_command = 8;
	fake.fail_errno = EINVAL;
	assert_int_equal(rdma_accept(passive, &param), -1);
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(fake.log, "modify 6 mask 1\n"));
	fake_ignore();

	/* It may come before the kernel knows the id's address, and alone does. */
	fake_event(NULL, 9, RDMA_CM_EVENT_DISCONNECTED, 0);
	fake_event(NULL, 9, RDMA_CM_EVENT_ESTABLISHED, 0);
	{
		struct rdma_cm_event *event = next_event(RDMA_CM_EVENT_ESTABLISHED, 0);

		assert_ptr_equal(event->id, passive);
		rdma_ack_cm_event(event);
	}
	rdma_destroy_qp(passive);
	fake.events_reported = 2;
	assert_int_equal(rdma_destroy_id(passive), 0);
	close_id(1);
}

static void rejecting(void **state)
{
	struct rdma_cm_id *passive;

	(void)state;
	open_id(RDMA_PS_TCP);
	passive = request();
	fake_ignore();
	assert_int_equal(rdma_reject(passive, "no", 2), 0);
	fake_expect("REJECT 264 0 id 9 reason 0 data 2:6e\n");
	assert_int_equal(rdma_destroy_id(passive), 0);
	fake_expect("DESTROY_ID 16 4 id 9\n");
	/* A request whose id cannot be made is rejected, and the program does not see it. */
	fake_event(id, 9, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	fake.fail_command = HAS_IB ? 19 : 5;
	fake.fail_errno = ENODEV;
	{
		struct rdma_cm_event *event;

		assert_int_equal(rdma_get_cm_event(channel, &event), -1);
		assert_int_equal(errno, EAGAIN);
	}
	assert_non_null(strstr(fake.log, "DESTROY_ID 16 4 id 9\n"));
	close_id(2);
}

static void datagrams(void **state)
{
	struct ibv_qp_init_attr a = attr(IBV_QPT_UD);
	struct rdma_conn_param param = {.private_data = "ab", .private_data_len = 2};
	struct rdma_cm_event *event;

	(void)state;
	open_id(RDMA_PS_UDP);
	fake_expect(CREATE_UD);
	resolve();
	fake.attr_mask[IBV_QPS_INIT] = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	fake_ignore();
	assert_int_equal(rdma_create_qp(id, NULL, &a), 0);
	fake_expect("create_cq 8 channel\ncreate_cq 4 channel\ncreate_qp type 4\n" ATTR(
		1) "modify 1 mask 71 qkey 1234567\nmodify 2 mask 1\nmodify 3 mask 10001\n");
	assert_int_equal(rdma_connect(id, &param), 0);
	fake_expect("CONNECT 280 0 id 6 qpn 101 srq 0 rr 0 id 0 fc 0 retry 0 rnr 0 valid 1 data "
		    "2:6162\n");
	fake_event(id, 6, RDMA_CM_EVENT_ESTABLISHED, 0, {20, 4, 0x222}, {24, 4, RDMA_UDP_QKEY},
		   {20 + 8 + 24, 2, 7}, {20 + 296, 1, 136}, {20 + 40, 1, 'u'});
	event = next_event(RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(event->param.ud.qp_num, 0x222);
	assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
	assert_int_equal(event->param.ud.private_data_len, 136);
	assert_int_equal(*(const char *)event->param.ud.private_data, 'u');
	rdma_ack_cm_event(event);
	fake_ignore();

	/* Accepting moves no QP. */
	assert_int_equal(rdma_accept(id, NULL), 0);
	fake_expect("ACCEPT 288 0 id 6 uid set qpn 101 srq 0 rr 0 id 0 fc 0 retry 7 rnr 7 valid 1 "
		    "data 0:0000\n");

	assert_int_equal(rdma_join_multicast(id, in4("239.1.2.3", 0), &event), 0);
	fake_expect(JOIN("239.1.2.3:0"));
	rdma_destroy_qp(id);
	fake.events_reported = 0;
	assert_int_equal(rdma_leave_multicast(id, in4("239.1.2.4", 0)), -1);
	assert_int_equal(errno, EADDRNOTAVAIL);
	fake_ignore();
	assert_int_equal(rdma_leave_multicast(id, in4("239.1.2.3", 0)), 0);
	fake_expect("LEAVE_MCAST 16 4 id 77\n");
	close_id(2);
}

/* The uid of a group is the library's own: it is in the command. */
static uint64_t group_uid(void)
{
	uint64_t uid;

	memcpy(&uid, fake.last + 8 + 8, sizeof(uid));
	return uid;
}

static void groups(void **state)
{
	struct ibv_qp_init_attr a = attr(IBV_QPT_UD);
	struct rdma_cm_event *event;
	int fails;

	(void)state;
	open_id(RDMA_PS_UDP);
	resolve();
	assert_int_equal(rdma_create_qp(id, NULL, &a), 0);
	for (fails = 0; fails < 2; fails++) {
		assert_int_equal(rdma_join_multicast(id, in4("239.1.2.3", 0), &a), 0);
		fake_ignore();
		fake.fail_attach = fails ? ENOMEM : 0;
		/* Of the group: its uid. ah_attr: GID at 0, dlid at 24, is_global at 29. */
		fake_event(group_uid(), 77, RDMA_CM_EVENT_MULTICAST_JOIN, 0, {20, 4, 0xffffff},
			   {24, 4, RDMA_UDP_QKEY}, {28 + 15, 1, 0x33}, {28 + 24, 2, 0xc001},
			   {28 + 29, 1, 1});
		event = next_event(fails ? RDMA_CM_EVENT_MULTICAST_ERROR
					 : RDMA_CM_EVENT_MULTICAST_JOIN,
				   fails ? -ENOMEM : 0);
		assert_ptr_equal(event->id, id);
		assert_ptr_equal(event->param.ud.private_data, &a);
		fake_expect(EVENT "attach ..33 c001\n");
		rdma_ack_cm_event(event);
		fake.events_reported = 1;
		assert_int_equal(rdma_leave_multicast(id, in4("239.1.2.3", 0)), 0);
		fake_expect(fails ? "LEAVE_MCAST 16 4 id 77\n"
				  : "detach ..33 c001\nLEAVE_MCAST 16 4 id 77\n");
	}
	/* Refused: there is nothing to leave. */
	fake.fail_command = HAS_IB ? 22 : 16;
	fake.fail_errno = EINVAL;
	assert_int_equal(rdma_join_multicast(id, in4("239.1.2.3", 0), &a), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_leave_multicast(id, in4("239.1.2.3", 0)), -1);
	assert_int_equal(errno, EADDRNOTAVAIL);
	/* A group that the program does not leave goes with the id. */
	assert_int_equal(rdma_join_multicast(id, in4("239.1.2.3", 0), &a), 0);
	rdma_destroy_qp(id);
	close_id(3);
}

static void options(void **state)
{
	struct ibv_path_data path = {.flags = 0x2b};
	uint8_t tos = 32;

	(void)state;
	open_id(RDMA_PS_TCP);
	fake_ignore();
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
	assert_int_equal(
		rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)), 0);
	fake_expect("SET_OPTION 24 0 id 6 level 0 name 0 len 1 value 32\n"
		    "SET_OPTION 24 0 id 6 level 1 name 1 len 72 value 43\n");
	fake.fail_command = 14;
	fake.fail_errno = ENOSYS;
	assert_int_equal(rdma_set_option(id, 7, 7, &tos, 1), -1);
	assert_int_equal(errno, ENOSYS);
	close_id(0);
}

static void xrc_sender(void **state)
{
	struct ibv_qp_init_attr a = attr(IBV_QPT_XRC);

	(void)state;
	open_id(RDMA_PS_TCP);
	resolve();
	fake_ignore();
	a.xrc_domain = NULL;
	assert_int_equal(rdma_create_qp(id, NULL, &a), 0);
	fake_expect("open_xrc_domain -1 1\ncreate_cq 8 channel\ncreate_cq 4 channel\n"
		    "create_qp type 5 domain\n" TO_INIT);
	assert_int_equal(id->qp_type, RDMA_XRC_SEND);
	rdma_destroy_qp(id);
	fake_expect("destroy_qp\ndestroy_cq\ndestroy_cq\nclose_xrc_domain\n");
	close_id(1);
}

static void xrc_receiver(void **state)
{
	struct ibv_xrc_domain domain;
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 16}};
	struct ibv_qp_init_attr a = attr(IBV_QPT_XRC);

	(void)state;
	open_id(RDMA_PS_TCP);
	resolve();
	id->qp_type = (enum ibv_qp_type)RDMA_XRC_RECV;
	fake_ignore();
	assert_int_equal(rdma_create_srq(id, NULL, &srq), 0);
	fake_expect("open_xrc_domain -1 1\ncreate_cq 16 channel\ncreate_srq\nxrc cq\n");
	assert_int_equal(id->srq->xrc_srq_num, 0x55);
	domain.context = id->verbs;
	a.xrc_domain = &domain;
	assert_int_equal(rdma_create_qp(id, NULL, &a), 0);
	fake_expect("create_xrc_rcv_qp domain\n" ATTR(1) "xrc_rcv 800001 modify 1 mask 39\n");
	assert_int_equal(id->qp->qp_num, 0x800001);
	assert_ptr_equal(id->qp->xrc_domain, &domain);
	/* As a kernel that knows the type gives them: OFED's verbs want the others, too. */
	fake.attr_mask[IBV_QPS_RTS] = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT;
	assert_int_equal(rdma_accept(id, NULL), 0);
	fake_expect(ATTR(1) "xrc_rcv 800001 modify 1 mask 39\n" ATTR(
		2) "xrc_rcv 800001 modify 2 mask 129181 dest 0\n" ATTR(3) "xrc_rcv 800001 modify 3 "
									  "mask 12e01 rd 0\n"
									  "ACCEPT 288 0 id 6 uid "
									  "set qpn 8388609 srq 1 "
									  "rr 0 id 0 fc 0 retry 7 "
									  "rnr 7 valid 1 data "
									  "0:0000\n");
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	fake_expect("unreg_xrc_rcv_qp 800001\ndestroy_srq\ndestroy_cq\nclose_xrc_domain\n");
	close_id(1);
}

static void refused_ids(void **state)
{
	(void)state;
	channel = rdma_create_event_channel();
	fake_ignore();
	fake.fail_command = 0;
	fake.fail_errno = EINVAL;
	id = NULL;
	assert_int_equal(rdma_create_id(channel, &id, NULL, (enum rdma_port_space)5), -1);
	assert_int_equal(errno, EINVAL);
	assert_null(id);
	rdma_destroy_event_channel(channel);
}

static void all_devices(void **state)
{
	struct ibv_context **list;
	int n = -1;

	(void)state;
	list = rdma_get_devices(&n);
	assert_non_null(list);
	assert_int_equal(n, 1);
	assert_non_null(list[0]);
	assert_null(list[1]);
	rdma_free_devices(list);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED),
			    "RDMA_CM_EVENT_ADDR_RESOLVED");
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT),
			    "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type)16), "UNKNOWN EVENT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type) - 1), "UNKNOWN EVENT");
}

static int start(void **state)
{
	(void)state;
	return fake_start(4, HAS_IB);
}

static int stop(void **state)
{
	(void)state;
	fake_stop();
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(first_id),
		TEST(binding_and_listening),
		TEST(bad_families),
		TEST(resolving),
		TEST(failing_queries),
		TEST(qp_of_an_id),
		TEST(qp_with_srq),
		TEST(connecting),
		TEST(connect_without_qp),
		TEST(failing_response),
		TEST(rejected),
		TEST(accepting),
		TEST(rejecting),
		TEST(datagrams),
		TEST(groups),
		TEST(options),
		TEST(xrc_sender),
		TEST(xrc_receiver),
		TEST(refused_ids),
		TEST(all_devices),
		TEST(names),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
