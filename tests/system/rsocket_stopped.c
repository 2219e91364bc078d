// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: when the device is gone, calls of rsockets end, those that sleep too. The arguments
 * are the name of a test and a command that takes the device away.
 */
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>

#include "rsocket_pair.h"

static const char *take_device;

struct sleeper {
	int rs;
	ssize_t (*call)(int rs);
	ssize_t ret;
	int error;
};

static void *sleep_in_call(void *arg)
{
	struct sleeper *sleeper = arg;

	sleeper->ret = sleeper->call(sleeper->rs);
	sleeper->error = errno;
	return NULL;
}

/* Takes the device away while a call of this rsocket most likely sleeps; what the call returned. */
static struct sleeper slept(int rs, ssize_t (*call)(int rs))
{
	struct sleeper sleeper = {.rs = rs, .call = call};
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, sleep_in_call, &sleeper));
	usleep(200000);
	CHECK(!system(take_device));
	alarm(LONG_MS / 1000);
	CHECK(!pthread_join(thread, NULL));
	return sleeper;
}

static ssize_t read_one(int rs)
{
	char data;

	return rrecv(rs, &data, 1, 0);
}

static ssize_t write_all(int rs)
{
	static char data[65536];
	ssize_t ret;

	do
		ret = rsend(rs, data, sizeof(data), 0);
	while (ret > 0);
	return ret;
}

static ssize_t poll_input(int rs)
{
	struct pollfd fd = {.fd = rs, .events = POLLIN};

	return rpoll(&fd, 1, -1);
}

static ssize_t poll_nothing(int rs)
{
	struct pollfd fd = {.fd = rs};

	return rpoll(&fd, 1, -1);
}

/* ---- Streams ---- */

static void end_pair(int ends[2])
{
	char data = 0;

	CHECK(rsend(ends[0], &data, 1, 0) == -1);
	CHECK(rrecv(ends[0], &data, 1, 0) == 0);
	(void)rclose(ends[0]);
	(void)rclose(ends[1]);
}

static void test_read(void)
{
	struct sleeper sleeper;
	int ends[2];

	pair(ends);
	sleeper = slept(ends[0], read_one);
	CHECK(sleeper.ret == -1 && sleeper.error == ECONNRESET);
	end_pair(ends);
}

static void test_write(void)
{
	struct sleeper sleeper;
	int ends[2];

	pair(ends);
	sleeper = slept(ends[0], write_all);
	CHECK(sleeper.ret == -1 && (sleeper.error == ECONNRESET || sleeper.error == EPIPE));
	end_pair(ends);
}

static void test_poll(void)
{
	struct sleeper sleeper;
	int ends[2];

	pair(ends);
	sleeper = slept(ends[0], poll_input);
	CHECK(sleeper.ret == 1);
	FAILS(read_one(ends[0]), ECONNRESET);
	CHECK(poll_input(ends[0]) == 1);
	end_pair(ends);
}

static void test_poll_nothing(void)
{
	struct sleeper sleeper;
	int ends[2];

	pair(ends);
	sleeper = slept(ends[0], poll_nothing);
	CHECK(sleeper.ret == 1);
	FAILS(read_one(ends[0]), ECONNRESET);
	end_pair(ends);
}

static struct sockaddr_in mute;

static ssize_t connect_mute(int rs)
{
	return rconnect(rs, (struct sockaddr *)&mute, sizeof(mute));
}

/* Its peer does not accept. */
static void test_connect(void)
{
	int listening = listener(&mute), rs = rsocket(AF_INET, SOCK_STREAM, 0);
	struct sleeper sleeper = slept(rs, connect_mute);

	CHECK(sleeper.ret == -1 && sleeper.error);
	(void)rclose(rs);
	(void)rclose(listening);
}

/*
 * An rsocket for whose next attempt there is no device: it has neither id nor connection, but its
 * name.
 */
static void without_id(int rs, const struct sockaddr_in *name)
{
	struct sockaddr_in addr, there = mute;
	socklen_t len = sizeof(addr);
	char data = 0;
	int i;

	for (i = 0; i < 2; i++) {
		CHECK(connect_mute(rs) == -1 && errno);
		CHECK(!rgetsockname(rs, (struct sockaddr *)&addr, &len));
		CHECK(len == sizeof(addr) && addr.sin_family == AF_INET);
		CHECK(addr.sin_port == name->sin_port);
		CHECK(addr.sin_addr.s_addr == name->sin_addr.s_addr);
		FAILS(rgetpeername(rs, (struct sockaddr *)&addr, &len), ENOTCONN);
		FAILS(rbind(rs, (struct sockaddr *)&there, sizeof(there)), EINVAL);
		FAILS(rlisten(rs, 1), EINVAL);
		FAILS(raccept(rs, NULL, NULL), EINVAL);
		FAILS(rshutdown(rs, SHUT_RDWR), ENOTCONN);
		FAILS(rsend(rs, &data, 1, 0), ENOTCONN);
		FAILS(rrecv(rs, &data, 1, 0), ENOTCONN);
		CHECK(get_int(rs, IPPROTO_TCP, TCP_MAXSEG) > 0);
		CHECK(get_int(rs, SOL_SOCKET, SO_ERROR) == 0);
		set_int(rs, SOL_SOCKET, SO_REUSEADDR, 1);
		CHECK(riomap(rs, &data, 1, PROT_WRITE, 0, 0) == -1);
		CHECK(wait_for(rs, POLLIN | POLLOUT) & POLLHUP);
	}
	CHECK(!rclose(rs));
}

static void test_no_id(void)
{
	int rs[2] = {rsocket(AF_INET, SOCK_STREAM, 0)}, i;
	struct sockaddr_in names[2] = {{.sin_family = AF_INET}};

	CHECK(rs[0] >= 0);
	rs[1] = bound(SOCK_STREAM, &names[1]);
	CHECK(!rclose(listener(&mute)));
	for (i = 0; i < 2; i++)
		FAILS(connect_mute(rs[i]), ECONNREFUSED);
	CHECK(!system(take_device));
	alarm(LONG_MS / 1000);
	for (i = 0; i < 2; i++)
		without_id(rs[i], &names[i]);
}

/* ---- Datagrams ---- */

/* Two that know each other's QPs. */
static void datagram_pair(int rs[2])
{
	struct sockaddr_in addr[2];
	char data[8];
	int i;

	for (i = 0; i < 2; i++)
		rs[i] = bound(SOCK_DGRAM, &addr[i]);
	CHECK(!rconnect(rs[0], (struct sockaddr *)&addr[1], sizeof(addr[1])));
	CHECK(!rconnect(rs[1], (struct sockaddr *)&addr[0], sizeof(addr[0])));
	for (i = 0; i < 40; i++) {
		CHECK(rsend(rs[i % 2], "ping", 4, 0) == 4);
		CHECK(wait_for(rs[!(i % 2)], POLLIN) & POLLIN);
		CHECK(rrecv(rs[!(i % 2)], data, sizeof(data), 0) == 4);
	}
}

static void end_datagrams(int rs[2])
{
	char data = 0;
	int i;

	for (i = 0; i < 2; i++) {
		FAILS(rrecv(rs[i], &data, 1, 0), EIO);
		FAILS(rrecv(rs[i], &data, 1, MSG_DONTWAIT), EIO);
		FAILS(rsend(rs[i], &data, 1, 0), EIO);
		CHECK(wait_for(rs[i], POLLIN) & POLLERR);
		CHECK(!rclose(rs[i]));
	}
}

/* Datagrams may be lost: some go after the end. */
static void test_send_datagrams(void)
{
	char data = 0;
	int rs[2];

	datagram_pair(rs);
	CHECK(!system(take_device));
	alarm(LONG_MS / 1000);
	while (rsend(rs[0], &data, 1, 0) == 1)
		;
	CHECK(errno == EIO);
	end_datagrams(rs);
}

static void test_read_datagram(void)
{
	struct sleeper sleeper;
	int rs[2];

	datagram_pair(rs);
	sleeper = slept(rs[0], read_one);
	CHECK(sleeper.ret == -1 && sleeper.error == EIO);
	end_datagrams(rs);
}

static void test_poll_datagram(void)
{
	struct sleeper sleeper;
	int rs[2];

	datagram_pair(rs);
	sleeper = slept(rs[0], poll_input);
	CHECK(sleeper.ret == 1);
	end_datagrams(rs);
}

static const struct rsocket_test tests[] = {
	{"read", test_read},
	{"write", test_write},
	{"poll", test_poll},
	{"poll_nothing", test_poll_nothing},
	{"connect", test_connect},
	{"no_id", test_no_id},
	{"send_datagrams", test_send_datagrams},
	{"read_datagram", test_read_datagram},
	{"poll_datagram", test_poll_datagram},
};

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	take_device = argv[2];
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argv[1]);
}
