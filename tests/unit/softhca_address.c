// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: which names and addresses belong to a host and which do not, for every possible
 * host.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "softhca/host/address.h"

static void names(void **state)
{
	static const char *const none[] = {
		"",	  "h",	     "hos",	 "host",   "host.",	     "host00",
		"host01", "host256", "host1000", "host1x", "host1..",	     "host1.x",
		"host-1", "host 1",  " host1",	 "xhost1", "host99999999999"};
	char name[SH_HOST_NAME], other[16];

	(void)state;
	for (unsigned int k = 0; k < 256; k++) {
		sh_host_name(name, k);
		assert_int_equal(sh_host_of_name(name), k);
		snprintf(other, sizeof(other), "HoSt%u.", k);
		assert_int_equal(sh_host_of_name(other), k);
	}
	assert_string_equal(name, "host255");
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(sh_host_of_name(none[i]), -1);
}

/* Of hosts on a wire: the address is in the name. */
static void wire_names(void **state)
{
	static const char *const both[][2] = {
		{"10.1.2.3", "softhca-10-1-2-3"},
		{"fd00:1::3fe", "softhca-fd00-1--3fe"},
		{"1:2:3:4:5:6:7:8", "softhca-1-2-3-4-5-6-7-8"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		 "softhca-ffff-ffff-ffff-ffff-ffff-ffff-ffff-ffff"},
	};
	static const char *const none[] = {
		"",
		"softhca",
		"softhca-",
		"softhca-.",
		"softhca-10-1-2",
		"softhca-10.1.2.3",
		"softhca-fd00:1::3",
		"softhca-10-1-2-3-",
		"softhca-10-1-2-3..",
		"softhca-10-1-2-256",
		"xsofthca-10-1-2-3",
		"host-10-1-2-3",
		"softhca-00000000000000000000000000000000000000000000000000000010-1-2-3"};
	char name[SH_WIRE_NAME], address[INET6_ADDRSTRLEN], other[SH_WIRE_NAME + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
		sh_wire_name(name, both[i][0]);
		assert_string_equal(name, both[i][1]);
		assert_true(sh_wire_name_address(name, address));
		assert_string_equal(address, both[i][0]);
		snprintf(other, sizeof(other), "SoftHCA%s.", name + 7);
		assert_true(sh_wire_name_address(other, address));
		assert_string_equal(address, both[i][0]);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(sh_wire_name_address(none[i], address));
}

static void addresses(void **state)
{
	static const char *const none[] = {"0.0.0.0",	  "127.0.0.1",	    "127.127.255.1",
					   "127.129.0.1", "127.128.0.0",    "127.128.3.255",
					   "128.127.0.1", "255.255.255.255"};
	unsigned int k, n;
	char text[32];
	struct in_addr in;

	(void)state;
	for (unsigned int host = 0; host < 256; host++) {
		for (unsigned int port = 1; port < 255; port++) {
			in = sh_host_address(host, port);
			assert_true(sh_address_host(in, &k, &n));
			assert_int_equal(k, host);
			assert_int_equal(n, port);
		}
	}
	snprintf(text, sizeof(text), "%s", inet_ntoa(sh_host_address(3, 2)));
	assert_string_equal(text, "127.128.3.2");
	k = n = 77;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_equal(inet_pton(AF_INET, none[i], &in), 1);
		assert_false(sh_address_host(in, &k, &n));
	}
	assert_int_equal(k, 77);
	assert_int_equal(n, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(wire_names),
		cmocka_unit_test(addresses),
	};

	return cmocka_run_group_tests_name("softhca_address", tests, NULL, NULL);
}
