// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: whoever destroys or moves an id waits for the acknowledgements of the events that
 * were read; synchronous ids turn events into results; and ids of rdma_create_ep() come with what
 * belongs to them.
 */
#define _GNU_SOURCE
#include "fake_rdma_cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static struct sockaddr_in to = {.sin_family = AF_INET};

static struct rdma_cm_event *an_event(struct rdma_event_channel *channel, struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;

	fake_event(id, 5, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_ptr_equal(event->id, id);
	return event;
}

static int acknowledged;

static void *acknowledge(void *event)
{
	usleep(20000);
	__atomic_store_n(&acknowledged, 1, __ATOMIC_SEQ_CST);
	rdma_ack_cm_event(event);
	return NULL;
}

static void waits_for_acknowledgement(void **state)
{
	int what;

	(void)state;
	for (what = 0; what < 2; what++) {
		struct rdma_event_channel *channel = rdma_create_event_channel();
		struct rdma_event_channel *other = rdma_create_event_channel();
		struct rdma_cm_id *id;
		pthread_t thread;

		fake.next_id = 5;
		assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
		acknowledged = 0;
		assert_int_equal(pthread_create(&thread, NULL, acknowledge, an_event(channel, id)),
				 0);
		fake.events_reported = 1;
		if (what) {
			fake_ignore();
			assert_int_equal(rdma_migrate_id(id, other), 0);
			fake_expect("MIGRATE_ID 16 4 id 5\n");
			assert_ptr_equal(id->channel, other);
			assert_int_equal(*(uint32_t *)(fake.last + 8 + 12), channel->fd);
		} else {
			assert_int_equal(rdma_destroy_id(id), 0);
		}
		assert_int_equal(__atomic_load_n(&acknowledged, __ATOMIC_SEQ_CST), 1);
		pthread_join(thread, NULL);
		if (what) {
			fake.events_reported = 1;
			assert_int_equal(rdma_destroy_id(id), 0);
		}
		rdma_destroy_event_channel(channel);
		rdma_destroy_event_channel(other);
	}
	assert_int_equal(rdma_ack_cm_event(NULL), -1);
	assert_int_equal(errno, EINVAL);
}

static void acknowledge_if_any(void *event)
{
	if (*(struct rdma_cm_event **)event)
		rdma_ack_cm_event(*(struct rdma_cm_event **)event);
}

static void *cancelled(void *channel)
{
	struct rdma_cm_event *event = NULL;

	pthread_cleanup_push(acknowledge_if_any, &event);
	rdma_get_cm_event(channel, &event);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	return NULL;
}

/*
 * An event that the kernel counts is the program's, also if its thread is cancelled when it has
 * come.
 */
static void nothing_is_lost_by_cancellation(void **state)
{
	static const enum rdma_cm_event_type types[] = {RDMA_CM_EVENT_ADDR_RESOLVED,
							RDMA_CM_EVENT_ROUTE_RESOLVED,
							RDMA_CM_EVENT_TIMEWAIT_EXIT};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct rdma_event_channel *channel = rdma_create_event_channel();
		struct rdma_cm_id *id;
		pthread_t thread;
		void *result;

		fake.next_id = 5;
		assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
		fake_event(id, 5, types[i], 0);
		fake.cancel_at_event = 1;
		assert_int_equal(pthread_create(&thread, NULL, cancelled, channel), 0);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		/* It waits for an event that nobody has acknowledged. */
		fake.events_reported = 1;
		assert_int_equal(rdma_destroy_id(id), 0);
		rdma_destroy_event_channel(channel);
	}
}

/*
 * The uid is the id's address, which a program has once the call returned: here it is known before.
 */
static struct rdma_cm_id *sync_id(void)
{
	struct rdma_cm_id *id;

	fake.next_id = 5;
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_non_null(id->channel);
	return id;
}

static void synchronous(void **state)
{
	static const struct {
		int event, status, err;
	} results[] = {
		{RDMA_CM_EVENT_REJECTED, 28, ECONNREFUSED},
		{RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, ETIMEDOUT},
		{RDMA_CM_EVENT_ESTABLISHED, 0, 0},
	};
	struct rdma_conn_param param = {.qp_num = 1};
	struct rdma_cm_id *id = sync_id();
	unsigned int i, events = 1;

	(void)state;
	fake_event(id, 5, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	fake_event(id, 5, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL);
	assert_int_equal(rdma_resolve_route(id, 1000), -1);
	assert_int_equal(errno, EINVAL);
	events++;
	for (i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		fake_event(id, 5, results[i].event, results[i].status);
		events++;
		errno = 0;
		assert_int_equal(rdma_connect(id, &param), results[i].err ? -1 : 0);
		assert_int_equal(errno, results[i].err);
		assert_int_equal((int)id->event->event, results[i].event);
	}
	assert_int_equal(rdma_migrate_id(id, NULL), -1);
	assert_int_equal(errno, EINVAL);
	fake_event(id, 5, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_disconnect(id), 0);
	/* It comes once: a second call must not wait for it. */
	assert_int_equal(rdma_disconnect(id), 0);
	fake.events_reported = events + 1;
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* No DISCONNECTED comes when there was no connection: nobody waits for it. */
static void nothing_to_disconnect(void **state)
{
	static const struct {
		int event, status;
	} failures[] = {
		{RDMA_CM_EVENT_REJECTED, 28},
		{RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT},
		{RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL},
	};
	struct rdma_conn_param param = {.qp_num = 1};
	struct rdma_cm_id *id = sync_id();
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		fake_event(id, 5, failures[i].event, failures[i].status);
		assert_int_equal(rdma_connect(id, &param), -1);
		assert_int_equal(rdma_disconnect(id), 0);
		assert_int_equal((int)id->event->event, failures[i].event);
	}
	fake.events_reported = i;
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* It stays synchronous, and keeps its channel. */
static void moves_to_its_own_channel(void **state)
{
	struct rdma_cm_id *id = sync_id();

	(void)state;
	assert_int_equal(fake.channels, 1);
	assert_int_equal(rdma_migrate_id(id, id->channel), 0);
	assert_int_equal(fake.channels, 1);
	fake_event(id, 5, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	fake.events_reported = 1;
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(fake.channels, 0);
}

static void becomes_asynchronous(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = sync_id();

	(void)state;
	assert_int_equal(fake.channels, 2);
	fake_event(id, 5, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	fake.events_reported = 1;
	assert_int_equal(rdma_migrate_id(id, channel), 0);
	assert_null(id->event);
	assert_int_equal(fake.channels, 1);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_int_equal(rdma_migrate_id(id, NULL), 0);
	assert_int_equal(fake.channels, 2);
	rdma_destroy_event_channel(channel);
	fake.events_reported = 1;
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void requests(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST}, *res;
	const size_t before_xrc = offsetof(struct ibv_qp_init_attr, xrc_domain);
	struct ibv_qp_init_attr *attr;
	struct rdma_cm_id *id, *other, *got;
	long page = sysconf(_SC_PAGESIZE);
	uint8_t *pages;

	(void)state;
	assert_int_equal(rdma_create_id(channel, &other, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_get_request(other, &got), -1);
	assert_int_equal(errno, EINVAL);
	rdma_destroy_id(other);
	rdma_destroy_event_channel(channel);

	assert_int_equal(rdma_getaddrinfo("10.0.0.1", "7471", &hints, &res), 0);
	assert_int_equal(res->ai_port_space, RDMA_PS_TCP);
	assert_int_equal(res->ai_qp_type, IBV_QPT_RC);
	assert_int_equal(((struct sockaddr_in *)res->ai_src_addr)->sin_port, htons(7471));
	assert_null(res->ai_dst_addr);
	/* Programs of before XRC have nothing behind the other members: here, not even memory. */
	pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(pages != MAP_FAILED);
	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	attr = (void *)(pages + page - before_xrc);
	attr->cap.max_send_wr = attr->cap.max_recv_wr = 1;
	fake.next_id = 5;
	assert_int_equal(rdma_create_ep(&id, res, NULL, attr), 0);
	assert_int_equal(munmap(pages, 2 * page), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_listen(id, 0), 0);

	fake_event(id, 9, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	fake_ignore();
	assert_int_equal(rdma_get_request(id, &got), 0);
	assert_non_null(strstr(fake.log, "MIGRATE_ID 16 4 id 9\n"));
	assert_non_null(got->qp);
	assert_ptr_not_equal(got->channel, id->channel);
	assert_int_equal(got->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	fake_event(got, 9, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(rdma_accept(got, NULL), 0);

	/* The listener does not wait for what the new id holds. */
	fake_event(id, 10, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_get_request(id, &other), 0);
	fake.events_reported = 2;
	rdma_destroy_ep(id);
	rdma_destroy_ep(other);
	fake.events_reported = 1;
	rdma_destroy_ep(got);
}

static void destroy_if_any(void *id)
{
	if (*(struct rdma_cm_id **)id)
		rdma_destroy_ep(*(struct rdma_cm_id **)id);
}

static void *get_request(void *listener)
{
	struct rdma_cm_id *got = NULL;

	pthread_cleanup_push(destroy_if_any, &got);
	rdma_get_request(listener, &got);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	return NULL;
}

static void *create_ep(void *res)
{
	struct rdma_cm_id *made = NULL;

	pthread_cleanup_push(destroy_if_any, &made);
	rdma_create_ep(&made, res, NULL, NULL);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	return NULL;
}

static struct rdma_addrinfo *found(int flags)
{
	struct rdma_addrinfo hints = {.ai_flags = flags | RAI_NUMERICHOST}, *res;

	assert_int_equal(rdma_getaddrinfo("10.0.0.1", "7471", &hints, &res), 0);
	return res;
}

/* A thread that is cancelled when the event is there: */
static void cancel(void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	void *result;

	fake.cancel_at_event = 1;
	assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
}

/* Either gets the request, or there is none: nobody else could answer the peer. */
static void no_request_is_lost_by_cancellation(void **state)
{
	struct rdma_addrinfo *res = found(RAI_PASSIVE);
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct rdma_cm_id *id;

	(void)state;
	fake.next_id = 5;
	assert_int_equal(rdma_create_ep(&id, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_listen(id, 0), 0);
	fake_event(id, 9, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	fake_ignore();
	cancel(get_request, id);
	assert_non_null(strstr(fake.log, "destroy_qp\n"));
	assert_non_null(strstr(fake.log, "DESTROY_ID 16 4 id 9\n"));
	fake.events_reported = 1;
	rdma_destroy_ep(id);
}

/*
 * Nobody but the call knows the id that it makes. AddressSanitizer takes the stack of frames that a
 * cancelled thread never left for redzones, and ends the program when the cleanup goes on.
 */
static void no_id_is_left_by_cancellation(void **state)
{
	struct rdma_addrinfo *res;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	print_message("# left out with AddressSanitizer\n");
	return;
#endif
	res = found(0);
	fake.next_id = 5;
	/*
	 * Uid 0: the library looks the id up by its number, and passes on nothing but ESTABLISHED.
	 */
	fake_event(0, 5, RDMA_CM_EVENT_ESTABLISHED, 0);
	fake_ignore();
	cancel(create_ep, res);
	assert_non_null(strstr(fake.log, "DESTROY_ID 16 4 id 5\n"));
	rdma_freeaddrinfo(res);
}

static void *destroy_id(void *id)
{
	rdma_destroy_id(id);
	return NULL;
}

static void *destroy_ep(void *id)
{
	pthread_cancel(pthread_self());
	rdma_destroy_ep(id);
	pthread_testcancel();
	return NULL;
}

/*
 * The event is not acknowledged yet: the id is there until then, with its channel, and no longer.
 */
static void no_memory_is_left_by_cancellation(void **state)
{
	struct rdma_cm_id *id = sync_id();
	struct rdma_cm_event *event = an_event(id->channel, id);
	pthread_t thread;
	void *result;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
	print_message("# left out with AddressSanitizer\n");
	return;
#endif
	fake.events_reported = 1;
	assert_int_equal(pthread_create(&thread, NULL, destroy_id, id), 0);
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(fake.channels, 1);
	assert_ptr_equal(event->id, id);
	rdma_ack_cm_event(event);
	assert_int_equal(fake.channels, 0);

	/* With nothing to wait for, all of it goes at once. */
	id = sync_id();
	assert_int_equal(pthread_create(&thread, NULL, destroy_ep, id), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(fake.channels, 0);
}

static void *binds(void *id)
{
	rdma_bind_addr(id, (struct sockaddr *)&to);
	pthread_testcancel();
	return NULL;
}

static void *listens(void *id)
{
	rdma_listen(id, 1);
	pthread_testcancel();
	return NULL;
}

static void *accepts(void *id)
{
	rdma_accept(id, NULL);
	pthread_testcancel();
	return NULL;
}

/*
 * A call that has written its first command goes on to its last one, so that the library knows what
 * the kernel does.
 */
static void calls_are_whole(void **state)
{
	static const struct {
		void *(*call)(void *id);
		int first;
		const char *last;
	} calls[] = {{binds, 20, "QUERY 16 "}, {listens, 7, "QUERY 16 "}, {accepts, 11, "ACCEPT "}};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;
	unsigned int i;

	(void)state;
	fake.next_id = 5;
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&to), 0);
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		pthread_t thread;
		void *result;

		fake_ignore();
		fake.cancel_at = calls[i].first;
		assert_int_equal(pthread_create(&thread, NULL, calls[i].call, id), 0);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		assert_int_equal(fake.cancel_at, -1);
		assert_non_null(strstr(fake.log, calls[i].last));
	}
	rdma_destroy_qp(id);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void names_and_hints(void **state)
{
	struct rdma_addrinfo hints, *res = NULL;

	(void)state;
	assert_int_equal(rdma_getaddrinfo(NULL, NULL, NULL, &res), -1);
	assert_int_equal(errno, EINVAL);
	memset(&hints, 0, sizeof(hints));
	hints.ai_port_space = RDMA_PS_UDP;
	assert_int_equal(rdma_getaddrinfo("10.0.0.2", "53", &hints, &res), 0);
	assert_int_equal(res->ai_qp_type, IBV_QPT_UD);
	assert_int_equal(res->ai_family, AF_INET);
	assert_int_equal(((struct sockaddr_in *)res->ai_dst_addr)->sin_port, htons(53));
	rdma_freeaddrinfo(res);

	memset(&hints, 0, sizeof(hints));
	hints.ai_flags = RAI_FAMILY | RAI_NUMERICHOST;
	hints.ai_family = AF_IB;
	hints.ai_port_space = RDMA_PS_IB;
	assert_int_equal(rdma_getaddrinfo("fe80::7", "16", &hints, &res), 0);
	assert_int_equal(res->ai_family, AF_IB);
	assert_int_equal(res->ai_dst_len, 48);
	assert_int_equal(((uint8_t *)res->ai_dst_addr)[8 + 15], 7);
	assert_memory_equal((uint8_t *)res->ai_dst_addr + 24, "\0\0\0\0\x01\x3f\0\x10", 8);
	rdma_freeaddrinfo(res);

	memset(&hints, 0, sizeof(hints));
	hints.ai_qp_type = RDMA_XRC_SEND;
	assert_int_equal(rdma_getaddrinfo("10.0.0.2", "53", &hints, &res), 0);
	assert_int_equal(res->ai_port_space, RDMA_PS_IB);
	rdma_freeaddrinfo(res);
	hints.ai_flags = RAI_NUMERICHOST;
	assert_int_not_equal(rdma_getaddrinfo("no number", "53", &hints, &res), 0);
	rdma_freeaddrinfo(NULL);
}

static int start(void **state)
{
	(void)state;
	return fake_start(4, 1);
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
		TEST(waits_for_acknowledgement),
		TEST(nothing_is_lost_by_cancellation),
		TEST(synchronous),
		TEST(nothing_to_disconnect),
		TEST(moves_to_its_own_channel),
		TEST(becomes_asynchronous),
		TEST(requests),
		TEST(no_request_is_lost_by_cancellation),
		TEST(no_id_is_left_by_cancellation),
		TEST(no_memory_is_left_by_cancellation),
		TEST(calls_are_whole),
		TEST(names_and_hints),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
