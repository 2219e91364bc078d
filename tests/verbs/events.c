// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Options: --ports 2
 * Description: asynchronous events: ports down and up, LID, P_Key and SM changed by `softhca port`.
 * Each context of each process gets each event once, and traffic is affected as it should be.
 * COMM_EST; path migration; device fatal. Unacknowledged events delay the end of their QP, CQ or
 * SRQ; unread events end with it.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>

#include "verbs_test.h"

static struct side s, other;

static void told(int type)
{
	CHECK_EQ(expect_event(s.context, type).element.port_num, 1);
	CHECK(!event_pending(s.context));
	CHECK_EQ(expect_event(other.context, type).element.port_num, 1);
	CHECK(!event_pending(other.context));
}

static struct ibv_port_attr port(void)
{
	struct ibv_port_attr attr;

	CHECK_EQ(ibv_query_port(s.context, 1, &attr), 0);
	return attr;
}

/* A message that is sent while the port is down arrives when it is up. */
static void down_and_up(void)
{
	struct ibv_qp *a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL),
		      *b = make_qp(&other, IBV_QPT_RC, NULL, NULL, NULL);
	struct ibv_port_attr second;
	struct link l;

	link_defaults(&l, s.lid, b->qp_num);
	l.timeout = 17;
	connect_qp(a, &l);
	l.dest_qpn = a->qp_num;
	connect_qp(b, &l);
	CHECK_EQ(port().state, IBV_PORT_ACTIVE);
	port_change("down");
	told(IBV_EVENT_PORT_ERR);
	CHECK_EQ(port().state, IBV_PORT_DOWN);
	CHECK_EQ(ibv_query_port(s.context, 2, &second), 0);
	CHECK_EQ(second.state, IBV_PORT_ACTIVE);
	port_change("down"); /* is down already */
	CHECK(!event_pending(s.context));
	CHECK_EQ(post_recv1(b, &other, 2, 0, 64), 0);
	fill(s.buf, 64, 1);
	CHECK_EQ(post_send1(a, &s, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_silence(s.scq, 3);
	expect_silence(other.rcq, 0);
	port_change("up");
	told(IBV_EVENT_PORT_ACTIVE);
	CHECK_EQ(port().state, IBV_PORT_ACTIVE);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	expect_wc(other.rcq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(differs(other.buf, 64, 1), -1);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
}

static void reached(uint16_t dlid, int pkey_a, int pkey_b, enum ibv_wc_status status)
{
	struct ibv_qp *a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL),
		      *b = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct link l;

	link_defaults(&l, dlid, b->qp_num);
	l.timeout = 8;
	l.retry_cnt = 2;
	for (int i = 0; i < 2; i++) {
		attr.pkey_index = i ? pkey_b : pkey_a;
		CHECK_EQ(ibv_modify_qp(i ? b : a, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	}
	CHECK_EQ(to_rtr(a, &l), 0);
	CHECK_EQ(to_rts(a, &l), 0);
	l.dest_qpn = a->qp_num;
	CHECK_EQ(to_rtr(b, &l), 0);
	CHECK_EQ(to_rts(b, &l), 0);
	CHECK_EQ(post_recv1(b, &s, 2, 0, 64), 0);
	CHECK_EQ(post_send1(a, &s, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 1, status);
	if (status == IBV_WC_SUCCESS)
		expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
}

static void lid_and_sm(void)
{
	uint16_t old = port().lid;

	port_change("lid %d", 1000);
	told(IBV_EVENT_LID_CHANGE);
	CHECK_EQ(port().lid, 1000);
	reached(1000, 0, 0, IBV_WC_SUCCESS);
	reached(old, 0, 0, IBV_WC_RETRY_EXC_ERR);
	port_change("lid %d", old);
	told(IBV_EVENT_LID_CHANGE);
	reached(old, 0, 0, IBV_WC_SUCCESS);
	port_change("sm %d", 4321);
	CHECK_EQ(expect_event(s.context, IBV_EVENT_SM_CHANGE).element.port_num, 1);
	CHECK_EQ(expect_event(other.context, IBV_EVENT_SM_CHANGE).element.port_num, 1);
	told(IBV_EVENT_CLIENT_REREGISTER);
	CHECK_EQ(port().sm_lid, 4321);
}

static void pkeys(void)
{
	uint64_t drops;
	uint16_t pkey;

	port_change("pkey %d 0x%x", 3, 0x8001);
	told(IBV_EVENT_PKEY_CHANGE);
	port_change("pkey %d 0x%x", 4, 0x0001);
	told(IBV_EVENT_PKEY_CHANGE);
	CHECK_EQ(ibv_query_pkey(s.context, 1, 3, &pkey), 0);
	CHECK_EQ(ntohs(pkey), 0x8001);
	CHECK_EQ(ibv_query_pkey(s.context, 1, 4, &pkey), 0);
	CHECK_EQ(ntohs(pkey), 1);
	reached(s.lid, 3, 3, IBV_WC_SUCCESS);
	reached(s.lid, 3, 4, IBV_WC_SUCCESS);
	drops = hca_counter("drops_pkey");
	reached(s.lid, 0, 3, IBV_WC_RETRY_EXC_ERR);
	CHECK_EQ(hca_counter("drops_pkey") - drops, 3);
	reached(s.lid, 4, 4, IBV_WC_RETRY_EXC_ERR); /* two limited members */
	reached(s.lid, 7, 7, IBV_WC_RETRY_EXC_ERR); /* no key at all */
}

/* COMM_EST comes for the first message to a receiver in RTR, and only for that. */
static void established(void)
{
	struct ibv_qp *a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL),
		      *b = make_qp(&other, IBV_QPT_RC, NULL, NULL, NULL);
	struct link l;

	link_defaults(&l, s.lid, a->qp_num);
	CHECK_EQ(to_init(b, &l), 0);
	CHECK_EQ(to_rtr(b, &l), 0);
	l.dest_qpn = b->qp_num;
	connect_qp(a, &l);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(post_recv1(b, &other, i, 0, 64), 0);
		CHECK_EQ(post_send1(a, &s, i, 0, 64, IBV_SEND_SIGNALED), 0);
		expect_wc(s.scq, i, IBV_WC_SUCCESS);
		expect_wc(other.rcq, i, IBV_WC_SUCCESS);
	}
	CHECK(expect_event(other.context, IBV_EVENT_COMM_EST).element.qp == b);
	CHECK(!event_pending(other.context));
	CHECK(!event_pending(s.context));
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
}

static enum ibv_mig_state migration(struct ibv_qp *qp, uint8_t *port_num)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_EQ(ibv_query_qp(qp, &attr, IBV_QP_PATH_MIG_STATE | IBV_QP_AV, &init), 0);
	*port_num = attr.ah_attr.port_num;
	return attr.path_mig_state;
}

/*
 * An alternate path through the second port: taken on request, and when the first port goes down.
 */
static void migrates(bool by_itself)
{
	struct ibv_qp *qp[2] = {make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL),
				make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL)};
	struct ibv_qp_attr attr = {.path_mig_state = IBV_MIG_REARM};
	struct ibv_port_attr second;
	struct link l;
	uint8_t on;

	CHECK_EQ(ibv_query_port(s.context, 2, &second), 0);
	link_defaults(&l, s.lid, 0);
	l.timeout = 8;
	l.retry_cnt = 1;
	connect_pair_as(&s, qp[0], qp[1], &l);
	attr.alt_ah_attr = (struct ibv_ah_attr){.dlid = second.lid, .port_num = 2};
	attr.alt_port_num = 2;
	attr.alt_timeout = 8;
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(ibv_modify_qp(qp[i], &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE), 0);
		CHECK(migration(qp[i], &on) != IBV_MIG_MIGRATED);
		CHECK_EQ(on, 1);
	}
	if (by_itself) {
		port_change("down");
		told(IBV_EVENT_PORT_ERR);
	} else {
		attr.path_mig_state = IBV_MIG_MIGRATED;
		CHECK_EQ(ibv_modify_qp(qp[0], &attr, IBV_QP_PATH_MIG_STATE), 0);
		CHECK(expect_event(s.context, IBV_EVENT_PATH_MIG).element.qp == qp[0]);
	}
	CHECK_EQ(post_recv1(qp[1], &s, 2, 4096, 64), 0);
	fill(s.buf, 64, by_itself);
	CHECK_EQ(post_send1(qp[0], &s, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	expect_wc(s.rcq, 2, IBV_WC_SUCCESS);
	CHECK_EQ(differs(s.buf + 4096, 64, by_itself), -1);
	/* The other end has migrated, too. */
	expect_event(s.context, IBV_EVENT_PATH_MIG);
	if (by_itself)
		expect_event(s.context, IBV_EVENT_PATH_MIG);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(migration(qp[i], &on), IBV_MIG_MIGRATED);
		CHECK_EQ(on, 2);
		CHECK_EQ(ibv_destroy_qp(qp[i]), 0);
	}
	if (by_itself) {
		port_change("up");
		told(IBV_EVENT_PORT_ACTIVE);
	}
	CHECK(!event_pending(s.context));
}

/* ---- acknowledgements ---- */

static struct ibv_async_event unacked;
static int acked;

static void *acknowledge_later(void *arg)
{
	(void)arg;
	sleep_ms(20);
	__atomic_store_n(&acked, 1, __ATOMIC_SEQ_CST);
	ibv_ack_async_event(&unacked);
	return NULL;
}

static void take(int type)
{
	do
		CHECK_EQ(ibv_get_async_event(s.context, &unacked), 0);
	while (unacked.event_type == IBV_EVENT_COMM_EST && (ibv_ack_async_event(&unacked), 1));
	CHECK_EQ(unacked.event_type, type);
}

static void holds_up(int what)
{
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(s.pd, &srq_init);
	struct ibv_srq_attr limit = {.srq_limit = 1};
	struct ibv_cq *own = s.scq, *cq = ibv_create_cq(s.context, 1, NULL, NULL, 0);
	struct ibv_qp *a, *b;
	pthread_t thread;

	CHECK(srq && cq);
	acked = 0;
	if (what == 1)
		s.scq = cq;
	a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	s.scq = own;
	b = make_qp(&s, IBV_QPT_RC, srq, NULL, NULL);
	connect_pair(&s, a, b);
	if (what == 0) {
		/* Events of a QP: one is read and not acknowledged, one is not read. */
		CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, 1, 0, 8, (uintptr_t)s.buf,
				    s.mr->rkey ^ 0x01000000, 0),
			 0);
		expect_wc(s.scq, 1, IBV_WC_REM_ACCESS_ERR);
		take(IBV_EVENT_QP_ACCESS_ERR);
		CHECK(unacked.element.qp == b);
		CHECK(event_pending(s.context)); /* LAST_WQE_REACHED */
		CHECK_EQ(pthread_create(&thread, NULL, acknowledge_later, NULL), 0);
		CHECK_EQ(ibv_destroy_qp(b), 0);
		CHECK(!event_pending(s.context));
	} else if (what == 1) {
		for (int i = 0; i < 4; i++)
			CHECK_EQ(post_rdma1(a, &s, IBV_WR_RDMA_WRITE, i, 0, 8, (uintptr_t)s.buf,
					    s.mr->rkey, IBV_SEND_SIGNALED),
				 0);
		take(IBV_EVENT_CQ_ERR);
		CHECK(unacked.element.cq == cq);
		expect_event(s.context, IBV_EVENT_QP_FATAL);
		CHECK_EQ(ibv_destroy_qp(a), 0);
		CHECK_EQ(pthread_create(&thread, NULL, acknowledge_later, NULL), 0);
		CHECK_EQ(ibv_destroy_cq(cq), 0);
		cq = NULL;
		CHECK_EQ(ibv_destroy_qp(b), 0);
	} else {
		CHECK_EQ(post_srq1(srq, &s, 1, 0, 64), 0);
		CHECK_EQ(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
		CHECK_EQ(post_send1(a, &s, 1, 0, 8, IBV_SEND_SIGNALED), 0);
		expect_wc(s.scq, 1, IBV_WC_SUCCESS);
		expect_wc(s.rcq, 1, IBV_WC_SUCCESS);
		take(IBV_EVENT_SRQ_LIMIT_REACHED);
		CHECK(unacked.element.srq == srq);
		CHECK_EQ(ibv_destroy_qp(b), 0);
		CHECK_EQ(pthread_create(&thread, NULL, acknowledge_later, NULL), 0);
		CHECK_EQ(ibv_destroy_srq(srq), 0);
		srq = NULL;
	}
	CHECK_EQ(__atomic_load_n(&acked, __ATOMIC_SEQ_CST), 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	if (what != 1)
		CHECK_EQ(ibv_destroy_qp(a), 0);
	if (srq)
		CHECK_EQ(ibv_destroy_srq(srq), 0);
	if (cq)
		CHECK_EQ(ibv_destroy_cq(cq), 0);
}

static void non_blocking(void)
{
	struct ibv_async_event event;
	int flags = fcntl(s.context->async_fd, F_GETFL);

	CHECK_EQ(fcntl(s.context->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
	errno = 0;
	CHECK_EQ(ibv_get_async_event(s.context, &event), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(fcntl(s.context->async_fd, F_SETFL, flags), 0);
}

/* Another process gets the same event, once. */
static void witness(int arg)
{
	(void)arg;
	side_open(&s, 4096, 16, 0);
	meet(2);
	CHECK_EQ(expect_event(s.context, IBV_EVENT_PORT_ERR).element.port_num, 1);
	CHECK_EQ(expect_event(s.context, IBV_EVENT_PORT_ACTIVE).element.port_num, 1);
	meet(2);
	CHECK(!event_pending(s.context));
	side_close(&s);
}

/*
 * The device fails: all contexts get one event, and it does not recover. Objects can still be
 * destroyed.
 */
static void fatal(void)
{
	struct ibv_qp *a = make_qp(&s, IBV_QPT_RC, NULL, NULL, NULL);
	struct ibv_qp *b = make_qp(&other, IBV_QPT_RC, NULL, NULL, NULL);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct link l;

	link_defaults(&l, s.lid, b->qp_num);
	connect_qp(a, &l);
	l.dest_qpn = a->qp_num;
	connect_qp(b, &l);
	CHECK_EQ(post_recv1(b, &other, 1, 0, 64), 0);
	CHECK_EQ(post_send1(a, &s, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_wc(s.scq, 1, IBV_WC_SUCCESS);
	expect_wc(other.rcq, 1, IBV_WC_SUCCESS);
	port_change("fatal");
	expect_event(s.context, IBV_EVENT_DEVICE_FATAL);
	expect_event(other.context, IBV_EVENT_DEVICE_FATAL);
	port_change("fatal");
	CHECK(!event_pending(s.context));
	CHECK(!event_pending(other.context));
	CHECK_EQ(post_recv1(b, &other, 2, 0, 64), 0);
	CHECK_EQ(post_send1(a, &s, 2, 0, 64, IBV_SEND_SIGNALED), 0);
	expect_silence(s.scq, 3);
	expect_silence(other.rcq, 0);
	CHECK_EQ(ibv_modify_qp(a, &attr, IBV_QP_STATE), EIO);
	errno = 0;
	CHECK(!ibv_alloc_pd(s.context) && errno == EIO);
	expect_silence(s.scq, 0);
	CHECK_EQ(ibv_destroy_qp(a), 0);
	CHECK_EQ(ibv_destroy_qp(b), 0);
}

int main(void)
{
	pid_t child;

	test_begin();
	child = spawn(witness, 0);
	side_open(&s, 16384, 64, 0);
	side_open(&other, 16384, 64, 0);
	meet(2);
	down_and_up();
	meet(2);
	join(child);
	lid_and_sm();
	pkeys();
	established();
	migrates(false);
	migrates(true);
	for (int what = 0; what < 3; what++)
		holds_up(what);
	while (event_pending(s.context))
		skip_established(s.context);
	while (event_pending(other.context))
		skip_established(other.context);
	non_blocking();
	fatal();
	side_close(&other);
	side_close(&s);
	return 0;
}
