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
		cmocka_unit_test(addresses),
	};

	return cmocka_run_group_tests_name("softhca_address", tests, NULL, NULL);
}
