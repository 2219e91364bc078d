// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the calls that give an id a QP, connect it, join groups and pass on XRC write the
 * commands of the kernel's interface, byte for byte, and ask the device for what they should.
 * HAS_IB as commands.h says.
 */
#include <pthread.h>
#include <sched.h>

#include "commands.h"

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

/* Of the group: its uid. ah_attr: GID at 0, dlid at 24, is_global at 29. */
static void joined_event(void)
{
	fake_event(group_uid(), 77, RDMA_CM_EVENT_MULTICAST_JOIN, 0, {20, 4, 0xffffff},
		   {24, 4, RDMA_UDP_QKEY}, {28 + 15, 1, 0x33}, {28 + 24, 2, 0xc001},
		   {28 + 29, 1, 1});
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
		joined_event();
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

static pthread_t leaver;

static void *leave(void *arg)
{
	(void)arg;
	fake.events_reported = 1;
	assert_int_equal(rdma_leave_multicast(id, in4("239.1.2.3", 0)), 0);
	return NULL;
}

static void leaves_meanwhile(void)
{
	assert_int_equal(pthread_create(&leaver, NULL, leave, NULL), 0);
	while (!__atomic_load_n(&fake.left, __ATOMIC_SEQ_CST))
		sched_yield();
}

/*
 * One thread has read the event and is attaching the QP. Another one leaves the group: the QP is
 * detached in the end.
 */
static void leaving_while_joining(void **state)
{
	struct ibv_qp_init_attr a = attr(IBV_QPT_UD);
	struct rdma_cm_event *event;

	(void)state;
	open_id(RDMA_PS_UDP);
	resolve();
	assert_int_equal(rdma_create_qp(id, NULL, &a), 0);
	assert_int_equal(rdma_join_multicast(id, in4("239.1.2.3", 0), &a), 0);
	fake_ignore();
	joined_event();
	fake.at_attach = leaves_meanwhile;
	event = next_event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	rdma_ack_cm_event(event);
	pthread_join(leaver, NULL);
	fake_expect(EVENT "attach ..33 c001\nLEAVE_MCAST 16 4 id 77\ndetach ..33 c001\n");
	rdma_destroy_qp(id);
	close_id(2);
}

static int has_joined, leaver_waits;

/* Comes before the C library's. A wait may end at any time. */
int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	(void)cond;
	if (__atomic_load_n(&has_joined, __ATOMIC_SEQ_CST) && pthread_equal(pthread_self(), leaver))
		__atomic_store_n(&leaver_waits, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(mutex);
	sched_yield();
	pthread_mutex_lock(mutex);
	pthread_testcancel();
	return 0;
}

static void *read_and_leave(void *arg)
{
	take(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	__atomic_store_n(&has_joined, 1, __ATOMIC_SEQ_CST);
	return leave(arg);
}

static void joins_meanwhile(void)
{
	joined_event();
	leaver_waits = 0;
	assert_int_equal(pthread_create(&leaver, NULL, read_and_leave, NULL), 0);
	/* It waits for the number, or else leaves a group without one: until it has done either. */
	while (!__atomic_load_n(&leaver_waits, __ATOMIC_SEQ_CST) &&
	       !__atomic_load_n(&fake.left, __ATOMIC_SEQ_CST))
		sched_yield();
}

/*
 * The event is there before the command has returned, and another thread leaves the group at once.
 * It leaves this group.
 */
static void leaving_before_the_number(void **state)
{
	struct ibv_qp_init_attr a = attr(IBV_QPT_UD);

	(void)state;
	open_id(RDMA_PS_UDP);
	resolve();
	assert_int_equal(rdma_create_qp(id, NULL, &a), 0);
	fake_ignore();
	has_joined = 0;
	fake.at_join = joins_meanwhile;
	assert_int_equal(rdma_join_multicast(id, in4("239.1.2.3", 0), &a), 0);
	pthread_join(leaver, NULL);
	fake_expect(JOIN("239.1.2.3:0") EVENT
		    "attach ..33 c001\ndetach ..33 c001\nLEAVE_MCAST 16 4 id 77\n");
	rdma_destroy_qp(id);
	close_id(2);
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

/* The library asks the kernel for its commands when it makes its first id (commands.c). */
static int start_after_that(void **state)
{
	int err = start(state);

	if (!err) {
		open_id(RDMA_PS_TCP);
		close_id(0);
	}
	return err;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		TEST(leaving_while_joining),
		TEST(leaving_before_the_number),
		TEST(xrc_sender),
		TEST(xrc_receiver),
	};

	return cmocka_run_group_tests(tests, start_after_that, stop);
}
