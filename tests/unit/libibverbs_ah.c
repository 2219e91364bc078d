// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: address handles for the answer to a completion, and the Ethernet addresses in GIDs.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <infiniband/driver.h>

#include "fake_provider.h"
#include "fake_sysfs.h"

static struct ibv_device **list;
static struct ibv_context *context;
static struct ibv_pd *pd;

static const union ibv_gid own = {
	.raw = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0x02, 0xc9, 0x00, 0x65, 0x01, 0x02, 0x03},
};

static int group_setup(void **state)
{
	(void)state;
	fake_provider_start();
	fake_file(fake_hw.sysfs, "class/infiniband/fake_0/ports/2/gids/0",
		  "fe80:0000:0000:0000:0202:c9ff:fe01:0203\n");
	fake_file(fake_hw.sysfs, "class/infiniband/fake_0/ports/2/gids/1",
		  "fe80:0000:0000:0000:0202:c900:6501:0203\n");
	fake_file(fake_hw.sysfs, "class/infiniband/fake_0/ports/2/gids/2", "not a gid\n");
	list = ibv_get_device_list(NULL);
	if (!list || !list[0])
		return -1;
	context = ibv_open_device(list[0]);
	pd = context ? ibv_alloc_pd(context) : NULL;
	return pd ? 0 : -1;
}

static int group_teardown(void **state)
{
	(void)state;
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	ibv_free_device_list(list);
	fake_provider_stop();
	return 0;
}

static void without_grh(void **state)
{
	struct ibv_wc wc = {.slid = 0x1234, .sl = 5, .dlid_path_bits = 3};
	struct ibv_ah_attr attr,
		must = {.dlid = 0x1234, .sl = 5, .src_path_bits = 3, .port_num = 2};

	(void)state;
	memset(&attr, 0xee, sizeof(attr));
	/* Without IBV_WC_GRH the library does not look at the GRH. */
	assert_int_equal(ibv_init_ah_from_wc(context, 2, &wc, NULL, &attr), 0);
	assert_memory_equal(&attr, &must, offsetof(struct ibv_ah_attr, port_num) + 1);
}

static void with_grh(void **state)
{
	struct ibv_wc wc = {.slid = 0x1234, .sl = 5, .dlid_path_bits = 3, .wc_flags = IBV_WC_GRH};
	struct ibv_grh grh = {
		.version_tclass_flow = htonl(6u << 28 | 0xa5 << 20 | 0x12345),
		.hop_limit = 61,
		.sgid = {.raw = {0x20, 1, 2, 3}},
		.dgid = own,
	};
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	(void)state;
	memset(&attr, 0xee, sizeof(attr));
	assert_int_equal(ibv_init_ah_from_wc(context, 2, &wc, &grh, &attr), 0);
	assert_int_equal(attr.dlid, 0x1234);
	assert_int_equal(attr.sl, 5);
	assert_int_equal(attr.src_path_bits, 3);
	assert_int_equal(attr.port_num, 2);
	assert_int_equal(attr.static_rate, 0);
	assert_int_equal(attr.is_global, 1);
	assert_memory_equal(&attr.grh.dgid, &grh.sgid, 16);
	/* The destination GID is entry 1 of the port's table. */
	assert_int_equal(attr.grh.sgid_index, 1);
	assert_int_equal(attr.grh.flow_label, 0x12345);
	assert_int_equal(attr.grh.hop_limit, 61);
	assert_int_equal(attr.grh.traffic_class, 0xa5);

	ah = ibv_create_ah_from_wc(pd, &wc, &grh, 2);
	assert_non_null(ah);
	assert_ptr_equal(ah->pd, pd);
	assert_ptr_equal(ah->context, context);
	assert_int_equal(ibv_destroy_ah(ah), 0);

	/* The destination GID is not in the port's table. */
	grh.dgid.raw[15] ^= 1;
	memset(&attr, 0xee, sizeof(attr));
	assert_true(ibv_init_ah_from_wc(context, 2, &wc, &grh, &attr) < 0);
	assert_int_equal(attr.dlid, 0xeeee);
	fake_hw.commands = 0;
	assert_null(ibv_create_ah_from_wc(pd, &wc, &grh, 2));
	assert_int_equal(fake_hw.commands, 0);
}

static void resolve_unicast(void **state)
{
	union ibv_gid dgid = {
		.raw = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0x56, 0xff, 0xfe, 0x78, 0x9a,
			0xbc},
	};
	static const uint8_t must[6] = {0x10, 0x34, 0x56, 0x78, 0x9a, 0xbc};
	uint8_t mac[6], tagged = 9, is_mcast = 9;
	uint16_t vlan = 9;

	(void)state;
	assert_int_equal(ibv_resolve_eth_gid(pd, 2, &dgid, 0, mac, &vlan, &tagged, &is_mcast), 0);
	assert_memory_equal(mac, must, 6);
	assert_int_equal(is_mcast, 0);
	assert_int_equal(tagged, 0);

	/* The VLAN comes from the port's own GID. */
	assert_int_equal(ibv_resolve_eth_gid(pd, 2, &dgid, 1, mac, &vlan, &tagged, &is_mcast), 0);
	assert_int_equal(tagged, 1);
	assert_int_equal(vlan, 0x0065);
}

static void resolve_multicast(void **state)
{
	union ibv_gid dgid = {
		.raw = {0xff, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef},
	};
	static const uint8_t must[6] = {0x33, 0x33, 0xde, 0xad, 0xbe, 0xef};
	uint8_t mac[6], tagged, is_mcast = 9;
	uint16_t vlan;

	(void)state;
	assert_int_equal(ibv_resolve_eth_gid(pd, 2, &dgid, 0, mac, &vlan, &tagged, &is_mcast), 0);
	assert_memory_equal(mac, must, 6);
	assert_int_equal(is_mcast, 1);
}

static void resolve_failures(void **state)
{
	union ibv_gid dgid = {.raw = {0x20, 0x01}};
	uint8_t mac[6] = {1}, tagged = 9, is_mcast = 9;
	uint16_t vlan = 9;

	(void)state;
	assert_int_equal(ibv_resolve_eth_gid(pd, 2, &dgid, 0, mac, &vlan, &tagged, &is_mcast),
			 -EINVAL);
	/* The port has no GID with this index. */
	assert_int_equal(ibv_resolve_eth_gid(pd, 2, (union ibv_gid *)&own, 17, mac, &vlan, &tagged,
					     &is_mcast),
			 -1);
	assert_int_equal(mac[0], 1);
	assert_int_equal(tagged, 9);
	assert_int_equal(is_mcast, 9);
	assert_int_equal(vlan, 9);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_grh),	    cmocka_unit_test(with_grh),
		cmocka_unit_test(resolve_unicast),  cmocka_unit_test(resolve_multicast),
		cmocka_unit_test(resolve_failures),
	};

	return cmocka_run_group_tests_name("address handles", tests, group_setup, group_teardown);
}
