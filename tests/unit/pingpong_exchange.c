// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: the ping-pongs send addresses as the bytes that every generation of these tools
 * sends, and refuse anything else.
 */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "pingpong.h"

static const char plain_text[] = "0011:00004b:042aaf:fe80000000000000000200c900000035";
static const char xrc_text[] = "0011:80004c:00004d:7542de:00004b:fe80000000000000000200c900000035";

static struct pp_dest example(void)
{
	static const uint8_t gid[16] = {0xfe, 0x80, [9] = 0x02, [11] = 0xc9, [15] = 0x35};
	struct pp_dest dest = {
		.lid = 0x11, .qpn = 0x80004c, .send_qpn = 0x4d, .psn = 0x7542de, .srqn = 0x4b};

	memcpy(dest.gid.raw, gid, sizeof gid);
	return dest;
}

static void addresses_have_the_text_of_all_generations(void **state)
{
	struct pp_dest dest = example(), got;
	char msg[PP_WIRE_XRC_LEN];

	(void)state;
	pp_format_dest(PP_WIRE_XRC, &dest, msg);
	assert_memory_equal(msg, xrc_text, PP_WIRE_XRC_LEN);
	assert_int_equal(pp_parse_dest(PP_WIRE_XRC, xrc_text, &got), 0);
	assert_memory_equal(&got, &dest, sizeof dest);

	dest.qpn = dest.send_qpn = 0x4b;
	dest.psn = 0x042aaf;
	dest.srqn = 0;
	pp_format_dest(PP_WIRE_PLAIN, &dest, msg);
	assert_memory_equal(msg, plain_text, PP_WIRE_PLAIN_LEN);
	assert_int_equal(pp_parse_dest(PP_WIRE_PLAIN, plain_text, &got), 0);
	assert_memory_equal(&got, &dest, sizeof dest);
}

static void garbage_is_refused(void **state)
{
	static const char *const bad[] = {"",
					  "x",
					  "0011:00004b",
					  "0011:00004b:042aaf:fe80",
					  "0011:00004b:042aaf:fe8000000000000000 200c900000035",
					  "GET / HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n"};
	struct pp_dest dest, before;

	(void)state;
	memset(&dest, 0x77, sizeof dest);
	before = dest;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(pp_parse_dest(PP_WIRE_PLAIN, bad[i], &dest), -EPROTO);
		assert_int_equal(pp_parse_dest(PP_WIRE_XRC, bad[i], &dest), -EPROTO);
		assert_memory_equal(&dest, &before, sizeof dest);
	}
}

static void psn_has_24_bits(void **state)
{
	uint32_t seen = 0;

	(void)state;
	for (int i = 0; i < 256; i++) {
		uint32_t psn = pp_random_psn();

		assert_int_equal(psn >> 24, 0);
		seen |= psn;
	}
	assert_int_equal(seen, 0xffffff);
}

/* The client of the next test. Returns its exit status: 0, or the step that went wrong. */
static int client(int port)
{
	struct pp_options opt = PP_DEFAULTS;
	struct pp_dest dest[3], answer;
	int sock;

	opt.server = "127.0.0.1";
	opt.port = port;
	opt.timeout = 20;
	sock = pp_connect(&opt);
	if (sock < 0)
		return 1;
	for (int i = 0; i < 3; i++) {
		dest[i] = example();
		dest[i].psn = i;
	}
	if (pp_send_dest(sock, PP_WIRE_XRC, dest, 3) || pp_recv_dest(sock, PP_WIRE_XRC, &answer, 1))
		return 2;
	if (answer.srqn != 0x99 || pp_send_word(sock, "END"))
		return 3;
	pp_linger(sock);
	return 0;
}

static void two_processes_swap_addresses(void **state)
{
	struct pp_options opt = PP_DEFAULTS;
	struct sockaddr_storage addr;
	socklen_t length = sizeof addr;
	struct pp_dest dest[3], answer = example();
	int listener, sock, status;
	pid_t child;

	(void)state;
	opt.port = 0; /* any free port */
	opt.timeout = 20;
	listener = pp_listen(&opt, 1);
	assert_true(listener >= 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &length), 0);
	child = fork();
	if (!child)
		_exit(client(ntohs(((struct sockaddr_in6 *)&addr)->sin6_port)));
	sock = pp_accept(&opt, listener);
	assert_true(sock >= 0);
	assert_int_equal(pp_recv_dest(sock, PP_WIRE_XRC, dest, 3), 0);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(dest[i].psn, i);
		assert_int_equal(dest[i].qpn, 0x80004c);
	}
	answer.srqn = 0x99;
	assert_int_equal(pp_send_dest(sock, PP_WIRE_XRC, &answer, 1), 0);
	assert_int_equal(pp_recv_word(sock, "END"), 0);
	pp_linger(sock);
	close(listener);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void a_peer_that_stops_or_sends_garbage_is_an_error(void **state)
{
	struct pp_dest dest = example();
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(write(pair[0], plain_text, 20), 20);
	close(pair[0]);
	assert_int_equal(pp_recv_dest(pair[1], PP_WIRE_PLAIN, &dest, 1), -ECONNRESET);
	assert_int_equal(dest.qpn, 0x80004c);
	assert_int_equal(pp_send_dest(pair[1], PP_WIRE_PLAIN, &dest, 1), -EPIPE);
	close(pair[1]);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(write(pair[0], "gone", 5), 5);
	assert_int_equal(pp_recv_word(pair[1], "done"), -EPROTO);
	close(pair[0]);
	assert_int_equal(pp_recv_word(pair[1], "done"), -ECONNRESET);
	close(pair[1]);
}

static void a_limit_ends_the_wait_for_a_client(void **state)
{
	struct pp_options opt = PP_DEFAULTS;
	int listener;

	(void)state;
	opt.port = 0;
	opt.timeout = 1;
	listener = pp_listen(&opt, 1);
	assert_true(listener >= 0);
	assert_int_equal(pp_accept(&opt, listener), -ETIMEDOUT);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_have_the_text_of_all_generations),
		cmocka_unit_test(garbage_is_refused),
		cmocka_unit_test(psn_has_24_bits),
		cmocka_unit_test(two_processes_swap_addresses),
		cmocka_unit_test(a_peer_that_stops_or_sends_garbage_is_an_error),
		cmocka_unit_test(a_limit_ends_the_wait_for_a_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
