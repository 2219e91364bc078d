// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the calls that make an id, give it an address and look for the way write the
 * commands of the kernel's interface, byte for byte. HAS_IB as commands.h says.
 */
#include "commands.h"

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
	/* In the order of their numbers, which programs were built with. */
	static const char *const known[] = {
		"RDMA_CM_EVENT_ADDR_RESOLVED",	 "RDMA_CM_EVENT_ADDR_ERROR",
		"RDMA_CM_EVENT_ROUTE_RESOLVED",	 "RDMA_CM_EVENT_ROUTE_ERROR",
		"RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
		"RDMA_CM_EVENT_CONNECT_ERROR",	 "RDMA_CM_EVENT_UNREACHABLE",
		"RDMA_CM_EVENT_REJECTED",	 "RDMA_CM_EVENT_ESTABLISHED",
		"RDMA_CM_EVENT_DISCONNECTED",	 "RDMA_CM_EVENT_DEVICE_REMOVAL",
		"RDMA_CM_EVENT_MULTICAST_JOIN",	 "RDMA_CM_EVENT_MULTICAST_ERROR",
		"RDMA_CM_EVENT_ADDR_CHANGE",	 "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	};

	(void)state;
	for (int i = 0; i < 16; i++)
		assert_string_equal(rdma_event_str((enum rdma_cm_event_type)i), known[i]);
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type)16), "UNKNOWN EVENT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type) - 1), "UNKNOWN EVENT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(first_id),	   TEST(binding_and_listening), TEST(bad_families),
		TEST(resolving),   TEST(failing_queries),	TEST(options),
		TEST(refused_ids), TEST(all_devices),		TEST(names),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
