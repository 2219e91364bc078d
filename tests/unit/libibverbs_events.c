// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: events reach the caller with the right element. Each acknowledgement counts on its
 * own object. Destroying an object waits until exactly the events that the kernel reported for it
 * are acknowledged.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <infiniband/driver.h>

#include "fake_provider.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;

static int setup(void **state)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_init_attr qp_attr = {.qp_type = IBV_QPT_RC};

	(void)state;
	fake_hw.comp_reported = fake_hw.async_reported = 0;
	fake_hw.cq_events = fake_hw.async_events = 0;
	context = ibv_open_device(fake_list[0]);
	assert_non_null(context);
	pd = ibv_alloc_pd(context);
	channel = ibv_create_comp_channel(context);
	assert_non_null(channel);
	cq = ibv_create_cq(context, 10, &cq, channel, 0);
	assert_non_null(cq);
	srq = ibv_create_srq(pd, &srq_attr);
	assert_non_null(srq);
	qp_attr.send_cq = qp_attr.recv_cq = cq;
	qp = ibv_create_qp(pd, &qp_attr);
	assert_non_null(qp);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	/*
	 * The kernel reports exactly as many events as the test has acknowledged, so nothing waits
	 * here.
	 */
	fake_hw.comp_reported = cq ? cq->comp_events_completed : 0;
	if (qp) {
		fake_hw.async_reported = qp->events_completed;
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	if (srq) {
		fake_hw.async_reported = srq->events_completed;
		assert_int_equal(ibv_destroy_srq(srq), 0);
	}
	if (cq) {
		fake_hw.async_reported = cq->async_events_completed;
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
	return 0;
}

static void counters(uint32_t comp, uint32_t async, uint32_t of_qp, uint32_t of_srq)
{
	assert_int_equal(cq->comp_events_completed, comp);
	assert_int_equal(cq->async_events_completed, async);
	assert_int_equal(qp->events_completed, of_qp);
	assert_int_equal(srq->events_completed, of_srq);
}

static struct ibv_async_event take(uint64_t element, uint32_t type)
{
	struct ibv_async_event event;

	fake_async_event(element, type);
	memset(&event, 0xee, sizeof(event));
	assert_int_equal(ibv_get_async_event(context, &event), 0);
	assert_int_equal((uint32_t)event.event_type, type);
	return event;
}

static void async_events_of_objects(void **state)
{
	static const int qp_types[] = {
		IBV_EVENT_QP_FATAL,	IBV_EVENT_QP_REQ_ERR,	       IBV_EVENT_QP_ACCESS_ERR,
		IBV_EVENT_COMM_EST,	IBV_EVENT_SQ_DRAINED,	       IBV_EVENT_PATH_MIG,
		IBV_EVENT_PATH_MIG_ERR, IBV_EVENT_QP_LAST_WQE_REACHED,
	};
	struct ibv_async_event event;
	unsigned int i;

	(void)state;
	event = take((uintptr_t)cq, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, cq);
	counters(0, 0, 0, 0);
	ibv_ack_async_event(&event);
	counters(0, 1, 0, 0);

	for (i = 0; i < 8; ++i) {
		event = take((uintptr_t)qp, qp_types[i]);
		assert_ptr_equal(event.element.qp, qp);
		ibv_ack_async_event(&event);
		counters(0, 1, i + 1, 0);
	}

	event = take((uintptr_t)srq, IBV_EVENT_SRQ_ERR);
	assert_ptr_equal(event.element.srq, srq);
	ibv_ack_async_event(&event);
	event = take((uintptr_t)srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	ibv_ack_async_event(&event);
	counters(0, 1, 8, 2);
	assert_int_equal(fake_hw.async_events, 11);
}

static void async_events_of_ports(void **state)
{
	static const int types[] = {8, 9, 10, 11, 12, 13, 17, 18, 19, 99};
	struct ibv_async_event event;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
		event = take(2, types[i]);
		assert_int_equal(event.element.port_num, 2);
		ibv_ack_async_event(&event);
	}
	counters(0, 0, 0, 0);
}

/*
 * The element of these events is a QP number. If the library counted their acknowledgement, it
 * would take the number for an address.
 */
static void async_events_of_xrc_receive_qps(void **state)
{
	struct ibv_async_event event;
	uint32_t type;

	(void)state;
	for (type = 0; type < 20; ++type) {
		event = take(0x800123, type | IBV_XRC_QP_EVENT_FLAG);
		assert_int_equal(event.element.xrc_qp_num, 0x800123);
		ibv_ack_async_event(&event);
	}
	counters(0, 0, 0, 0);
	assert_int_equal(fake_hw.async_events, 20);
}

static void no_async_event(void **state)
{
	struct ibv_async_event event;
	char half[8] = {0};

	(void)state;
	assert_int_equal(fcntl(context->async_fd, F_SETFL, O_NONBLOCK), 0);
	memset(&event, 0xee, sizeof(event));
	errno = 0;
	assert_int_equal(ibv_get_async_event(context, &event), -1);
	assert_int_equal(errno, EAGAIN);

	/* Half a record is an error, not an event. */
	assert_int_equal(write(fake_hw.async_write, half, sizeof(half)), sizeof(half));
	assert_int_equal(ibv_get_async_event(context, &event), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal((uint32_t)event.event_type, 0xeeeeeeee);
	assert_int_equal(fake_hw.async_events, 0);
}

static void completion_events(void **state)
{
	struct ibv_cq *got = NULL;
	void *tag = NULL;

	(void)state;
	fake_comp_event((uintptr_t)cq);
	assert_int_equal(ibv_get_cq_event(channel, &got, &tag), 0);
	assert_ptr_equal(got, cq);
	assert_ptr_equal(tag, &cq);
	assert_int_equal(fake_hw.cq_events, 1);
	ibv_ack_cq_events(cq, 1);
	counters(1, 0, 0, 0);
	ibv_ack_cq_events(cq, 41);
	counters(42, 0, 0, 0);

	got = NULL;
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	errno = 0;
	assert_int_equal(ibv_get_cq_event(channel, &got, &tag), -1);
	assert_int_equal(errno, EAGAIN);
	assert_null(got);
	assert_int_equal(fake_hw.cq_events, 1);
}

static void channels_count_their_cqs(void **state)
{
	struct ibv_cq *second = ibv_create_cq(context, 1, NULL, channel, 0);

	(void)state;
	assert_non_null(second);
	assert_int_equal(channel->refcnt, 2);
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	fake_hw.refuse_number = 20;
	fake_hw.refuse = EBUSY;
	assert_int_equal(ibv_destroy_cq(second), EBUSY);
	assert_int_equal(channel->refcnt, 2);
	assert_int_equal(ibv_destroy_cq(second), 0);
	assert_int_equal(channel->refcnt, 1);
	fake_hw.refuse_number = 18;
	fake_hw.refuse = ENOMEM;
	assert_null(ibv_create_cq(context, 1, NULL, channel, 0));
	assert_int_equal(channel->refcnt, 1);
}

/* A destroy call in a thread of its own. The test can tell when that thread sleeps. */
static struct {
	pthread_t thread;
	int tid;
	int done;
	int ret;
	int (*destroy)(void);
} sleeper;

static void *sleep_in_destroy(void *arg)
{
	(void)arg;
	__atomic_store_n(&sleeper.tid, syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	sleeper.ret = sleeper.destroy();
	__atomic_store_n(&sleeper.done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static char thread_state(int tid)
{
	char path[64], text[256], *p;
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (!f)
		return '?';
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[len] = 0;
	p = strrchr(text, ')');
	return p ? p[2] : '?';
}

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/*
 * Waits until the kernel has the command and the thread sleeps, or until the thread is done. The
 * program's alarm bounds the wait.
 */
static void until_asleep(int command)
{
	int tid;

	for (;; pause_a_little()) {
		if (__atomic_load_n(&sleeper.done, __ATOMIC_SEQ_CST))
			return;
		tid = __atomic_load_n(&sleeper.tid, __ATOMIC_SEQ_CST);
		if (tid && __atomic_load_n(&fake_hw.latest, __ATOMIC_SEQ_CST) == command &&
		    thread_state(tid) == 'S')
			return;
	}
}

static void start_destroy(int (*destroy)(void), int command)
{
	memset(&sleeper, 0, sizeof(sleeper));
	sleeper.destroy = destroy;
	fake_hw.latest = -1;
	assert_int_equal(pthread_create(&sleeper.thread, NULL, sleep_in_destroy, NULL), 0);
	until_asleep(command);
	assert_false(__atomic_load_n(&sleeper.done, __ATOMIC_SEQ_CST));
}

static void still_asleep(int command)
{
	until_asleep(command);
	assert_false(__atomic_load_n(&sleeper.done, __ATOMIC_SEQ_CST));
}

static void ends_well(void)
{
	assert_int_equal(pthread_join(sleeper.thread, NULL), 0);
	assert_int_equal(sleeper.ret, 0);
}

static int destroy_cq(void)
{
	return ibv_destroy_cq(cq);
}

static int destroy_qp(void)
{
	return ibv_destroy_qp(qp);
}

static int destroy_srq(void)
{
	return ibv_destroy_srq(srq);
}

static void cq_waits_for_both_kinds(void **state)
{
	struct ibv_async_event event;

	(void)state;
	event = take((uintptr_t)cq, IBV_EVENT_CQ_ERR);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	qp = NULL;
	fake_hw.comp_reported = 3;
	fake_hw.async_reported = 1;
	start_destroy(destroy_cq, 20);
	ibv_ack_cq_events(cq, 2);
	still_asleep(20);
	ibv_ack_async_event(&event);
	still_asleep(20);
	ibv_ack_cq_events(cq, 1);
	ends_well();
	cq = NULL;
	assert_int_equal(channel->refcnt, 0);
}

static void qp_waits(void **state)
{
	struct ibv_async_event first, second;

	(void)state;
	first = take((uintptr_t)qp, IBV_EVENT_COMM_EST);
	second = take((uintptr_t)qp, IBV_EVENT_QP_FATAL);
	fake_hw.async_reported = 2;
	start_destroy(destroy_qp, 27);
	ibv_ack_async_event(&first);
	still_asleep(27);
	ibv_ack_async_event(&second);
	ends_well();
	qp = NULL;
}

static void srq_waits(void **state)
{
	struct ibv_async_event event;

	(void)state;
	event = take((uintptr_t)srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	fake_hw.async_reported = 1;
	start_destroy(destroy_srq, 35);
	ibv_ack_async_event(&event);
	ends_well();
	srq = NULL;
}

/* The library's counter is 32 bits wide, and so is the kernel's. */
static void counters_wrap(void **state)
{
	(void)state;
	cq->comp_events_completed = 0xffffffff;
	ibv_ack_cq_events(cq, 2);
	fake_hw.comp_reported = 1;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	qp = NULL;
	assert_int_equal(ibv_destroy_cq(cq), 0);
	cq = NULL;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(async_events_of_objects),
		TEST(async_events_of_ports),
		TEST(async_events_of_xrc_receive_qps),
		TEST(no_async_event),
		TEST(completion_events),
		TEST(channels_count_their_cqs),
		TEST(cq_waits_for_both_kinds),
		TEST(qp_waits),
		TEST(srq_waits),
		TEST(counters_wrap),
	};

	return cmocka_run_group_tests_name("events", tests, fake_group_setup, fake_group_teardown);
}
