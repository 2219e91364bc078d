// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what the library reads from sysfs: plain attributes, GUIDs, GIDs and P_Keys, well
 * and badly formed.
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

static int group_setup(void **state)
{
	(void)state;
	fake_provider_start();
	list = ibv_get_device_list(NULL);
	if (!list || !list[0])
		return -1;
	context = ibv_open_device(list[0]);
	return context ? 0 : -1;
}

static int group_teardown(void **state)
{
	(void)state;
	ibv_close_device(context);
	ibv_free_device_list(list);
	fake_provider_stop();
	return 0;
}

static void read_file(void **state)
{
	char buf[16];

	(void)state;
	fake_file(fake_hw.sysfs, "attribute", "hello\n");
	memset(buf, 'x', sizeof(buf));
	assert_int_equal(ibv_read_sysfs_file(fake_hw.sysfs, "attribute", buf, sizeof(buf)), 5);
	assert_string_equal(buf, "hello");
	assert_int_equal(buf[6], 'x');

	/* The library removes only one newline at the end. */
	fake_file(fake_hw.sysfs, "attribute", "a\n\n");
	assert_int_equal(ibv_read_sysfs_file(fake_hw.sysfs, "attribute", buf, sizeof(buf)), 2);
	assert_string_equal(buf, "a\n");

	/* Without a newline at the end it removes nothing. */
	fake_file(fake_hw.sysfs, "attribute", "abc");
	memset(buf, 'x', sizeof(buf));
	assert_int_equal(ibv_read_sysfs_file(fake_hw.sysfs, "attribute", buf, sizeof(buf)), 3);
	assert_memory_equal(buf, "abcx", 4);

	/* It reads no more than the buffer holds. */
	fake_file(fake_hw.sysfs, "attribute", "0123456789abcdefghijkl\n");
	memset(buf, 'x', sizeof(buf));
	assert_int_equal(ibv_read_sysfs_file(fake_hw.sysfs, "attribute", buf, 10), 10);
	assert_memory_equal(buf, "0123456789x", 11);

	fake_file(fake_hw.sysfs, "attribute", "");
	assert_int_equal(ibv_read_sysfs_file(fake_hw.sysfs, "attribute", buf, sizeof(buf)), 0);

	errno = 0;
	assert_int_equal(ibv_read_sysfs_file(fake_hw.sysfs, "no such", buf, sizeof(buf)), -1);
	assert_int_equal(errno, ENOENT);
}

static uint64_t guid_of(const char *text)
{
	fake_file(fake_hw.sysfs, "class/infiniband/fake_0/node_guid", "%s", text);
	return ibv_get_device_guid(list[0]);
}

static void guid(void **state)
{
	static const uint8_t must[8] = {0x00, 0x02, 0xc9, 0x03, 0xab, 0xcd, 0xef, 0x01};
	uint64_t value = guid_of("0002:c903:abcd:ef01\n");

	(void)state;
	assert_memory_equal(&value, must, 8);
	assert_true(guid_of("0002:c903:abcd\n") == 0);
	assert_true(guid_of("nothing\n") == 0);
	assert_true(guid_of("") == 0);
}

static int gid_of(const char *text, union ibv_gid *gid)
{
	fake_file(fake_hw.sysfs, "class/infiniband/fake_0/ports/1/gids/3", "%s", text);
	return ibv_query_gid(context, 1, 3, gid);
}

static void gids(void **state)
{
	static const uint8_t must[16] = {0xfe, 0x80, 0,	   0,	 0,    0,    0,	   1,
					 0x00, 0x02, 0xc9, 0x03, 0xab, 0xcd, 0xef, 0x01};
	union ibv_gid gid;

	(void)state;
	assert_int_equal(gid_of("fe80:0000:0000:0001:0002:c903:abcd:ef01\n", &gid), 0);
	assert_memory_equal(gid.raw, must, 16);
	assert_int_equal(gid_of("fe80:0000:0000:0001:0002:c903:abcd\n", &gid), -1);
	assert_int_equal(gid_of("fe80:0000:0000:0001:0002:c903:abcd:", &gid), -1);
	assert_int_equal(gid_of("", &gid), -1);
	/* A failure leaves the GID unchanged. */
	assert_memory_equal(gid.raw, must, 16);
	assert_int_equal(ibv_query_gid(context, 1, 4, &gid), -1);
	assert_int_equal(ibv_query_gid(context, 2, 3, &gid), -1);
	assert_int_equal(ibv_query_gid(context, 1, -1, &gid), -1);
}

static void pkeys(void **state)
{
	uint16_t pkey = 0;

	(void)state;
	fake_file(fake_hw.sysfs, "class/infiniband/fake_0/ports/1/pkeys/0", "0xffff\n");
	fake_file(fake_hw.sysfs, "class/infiniband/fake_0/ports/1/pkeys/7", "0x8012\n");
	fake_file(fake_hw.sysfs, "class/infiniband/fake_0/ports/1/pkeys/8", "none\n");
	assert_int_equal(ibv_query_pkey(context, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_query_pkey(context, 1, 7, &pkey), 0);
	assert_int_equal(pkey, htons(0x8012));
	assert_int_equal(ibv_query_pkey(context, 1, 8, &pkey), -1);
	assert_int_equal(ibv_query_pkey(context, 1, 9, &pkey), -1);
	assert_int_equal(pkey, htons(0x8012));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_file),
		cmocka_unit_test(guid),
		cmocka_unit_test(gids),
		cmocka_unit_test(pkeys),
	};

	return cmocka_run_group_tests_name("sysfs", tests, group_setup, group_teardown);
}
