// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Measures datagrams of rsockets or of UDP. The server takes one client after the other, until it
 * is stopped. Each datagram begins with
 *
 *	OFFSET SIZE
 *	0      1    what: LOGIN, START, DATA, ECHO or END
 *	1      1    version, 0
 *	2      1    number: an answer has that of its question
 *	3      1    0
 *	4      4    big-endian; in the answer to END the datagrams of DATA and ECHO since START
 *
 * LOGIN, START and END are 16 bytes long, and the server sends them back. So it does with ECHO, but
 * not with DATA. The client asks again if no answer comes: datagrams may get lost.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "stream.h"
#include "tool.h"

enum { LOGIN, START, DATA, ECHO, END };

enum { CONTROL = 16, MOST = 2048 };

struct header {
	uint8_t what;
	uint8_t version;
	uint8_t number;
	uint8_t zero;
	uint32_t count;
};

_Static_assert(sizeof(struct header) == 8, "layout of the header");

union datagram {
	struct header header;
	char bytes[MOST + sizeof(struct header)];
};

static int fail(const struct stream *stream, const char *call)
{
	fflush(stdout);
	fprintf(stderr, "%s%s: %s\n", stream->calls->prefix, call, strerror(errno));
	return -1;
}

/* ---- The client ---- */

/* Waits for the answer to what was sent. 1: there is none yet. */
static int answer(struct stream *stream, const struct header *sent, int wait_ms,
		  union datagram *got)
{
	struct pollfd one = {.fd = stream->fd, .events = POLLIN};
	ssize_t n;

	for (;;) {
		n = stream->calls->poll(&one, 1, wait_ms);
		if (n < 0 && errno != EINTR)
			return fail(stream, "poll");
		if (n <= 0)
			return 1;
		n = stream->calls->recv(stream->fd, got->bytes, sizeof(got->bytes), MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return fail(stream, "recv");
		/* Late answers to what was sent again are dropped. */
		if (n >= (ssize_t)sizeof(*sent) && got->header.what == sent->what &&
		    got->header.number == sent->number)
			return 0;
	}
}

/* Sends until there is an answer, for ten seconds. */
static int ask(struct stream *stream, union datagram *datagram, size_t size, int wait_ms)
{
	double end = clock_us() + 10e6;
	union datagram got;
	int ret;

	do {
		if (stream_send(stream, datagram->bytes, size))
			return -1;
		ret = answer(stream, &datagram->header, wait_ms, &got);
		if (ret < 0)
			return -1;
		if (!ret) {
			datagram->header.count = got.header.count;
			return 0;
		}
	} while (clock_us() < end);
	fflush(stdout);
	fprintf(stderr, "udpong: no answer from %s, port %s: is a server running there?\n",
		stream->server, stream->port);
	return -1;
}

static int control(struct stream *stream, uint8_t what, uint8_t number, int wait_ms,
		   uint32_t *count)
{
	union datagram datagram = {.header = {.what = what, .number = number}};

	if (ask(stream, &datagram, CONTROL, wait_ms))
		return -1;
	if (count)
		*count = ntohl(datagram.header.count);
	return 0;
}

/* Datagrams of one size. Those that are not sent back may arrive or not: the server knows. */
static int run(struct stream *stream, const struct figures *test, char *buf)
{
	union datagram *datagram = (union datagram *)buf;
	struct figures got = *test;
	uint8_t number = 1;
	uint32_t count;
	double start;
	long i;

	if (control(stream, START, number, 1000, NULL))
		return -1;
	start = clock_us();
	for (i = 0; i < test->transfers; i++) {
		datagram->header = (struct header){.what = stream->echo ? ECHO : DATA,
						   .number = stream->echo ? ++number : number};
		if (stream->echo ? ask(stream, datagram, test->size, 1)
				 : stream_send(stream, buf, test->size))
			return -1;
	}
	if (control(stream, END, ++number, stream->echo ? 1000 : 1, &count))
		return -1;
	got.transfers = stream->echo ? 2 * test->transfers : (long)count;
	if (got.transfers)
		figures_print(&got, clock_us() - start);
	else
		printf("%-10sno datagram has arrived\n", test->name);
	return 0;
}

static int measure(struct stream *stream, const struct figures *test)
{
	char *buf = calloc(1, sizeof(union datagram));
	int ret;

	if (!buf)
		return tool_fail("udpong");
	ret = run(stream, test, buf);
	free(buf);
	return ret;
}

static int measure_all(struct stream *stream)
{
	static const long sizes[] = {64, 128, 192, 256, 384, 512, 768, 1024, 1536};
	struct figures test;
	char name[32];
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		test = (struct figures){name, sizes[i], sizes[i] < 1024 ? 10000 : 1000, 0};
		stream_name_test(name, sizeof(name), sizes[i], stream->echo ? "lat" : "bw");
		if (measure(stream, &test))
			return -1;
	}
	return 0;
}

static int client(struct stream *stream)
{
	const struct figures custom = {"custom", stream->size, stream->transfers, 0};

	if (stream_connect(stream) || control(stream, LOGIN, 0, 1000, NULL))
		return -1;
	figures_head(false);
	if (stream->custom)
		return measure(stream, &custom);
	stream->echo = true;
	if (measure_all(stream))
		return -1;
	stream->echo = false;
	return measure_all(stream);
}

/* ---- The server ---- */

/* 1: nothing to send back. */
static int serve(union datagram *datagram, ssize_t n, uint32_t *count)
{
	if (n < (ssize_t)sizeof(datagram->header) || datagram->header.version)
		return 1;
	switch (datagram->header.what) {
	case START:
		*count = 0;
		return 0;
	case DATA:
		(*count)++;
		return 1;
	case ECHO:
		(*count)++;
		return 0;
	case END:
		datagram->header.count = htonl(*count);
		return 0;
	default:
		return datagram->header.what == LOGIN ? 0 : 1;
	}
}

static int server(struct stream *stream)
{
	struct sockaddr_storage from;
	union datagram datagram;
	uint32_t count = 0;
	socklen_t len;
	ssize_t n;

	stream->fd = stream_listen(stream);
	if (stream->fd < 0)
		return -1;
	for (;;) {
		len = sizeof(from);
		n = stream->calls->recvfrom(stream->fd, datagram.bytes, sizeof(datagram.bytes),
					    stream_flags(stream), (struct sockaddr *)&from, &len);
		if (n < 0) {
			if (stream_again(stream, POLLIN, "recvfrom"))
				return -1;
			continue;
		}
		if (serve(&datagram, n, &count))
			continue;
		/* One that cannot be sent is lost, as any may be: the client asks again. */
		if (stream->calls->sendto(stream->fd, datagram.bytes, n, 0,
					  (struct sockaddr *)&from, len) < 0)
			fail(stream, "sendto");
	}
}

static int usage(const char *name, int status)
{
	printf("usage: %s\n"
	       "\t[-s server_address]\n"
	       "\t[-b bind_address]\n"
	       "\t[-B buffer_size]\n"
	       "\t[-C transfer_count]\n"
	       "\t[-S transfer_size]\n"
	       "\t[-p port_number]\n" STREAM_USAGE_TESTS
	       "\t    s|sockets - use standard tcp/ip sockets\n"
	       "\t    e|echo - server echoes all messages\n",
	       name);
	return status;
}

int main(int argc, char **argv)
{
	struct stream stream = STREAM_DEFAULTS("udpong", NULL);
	int option, ret;

	stream.fd = -1;
	stream.datagrams = true;
	stream.port = "7174";
	stream.hints.ai_port_space = RDMA_PS_UDP;
	stream.hints.ai_qp_type = IBV_QPT_UD;
	while ((option = getopt(argc, argv, "hs:b:B:C:S:p:T:")) != -1) {
		if (option == 'h')
			return usage(argv[0], 0);
		if (option == '?')
			return usage(argv[0], 1);
		if (stream_option(&stream, option, optarg, "sabne"))
			return 1;
	}
	if (stream.all || stream.size < CONTROL || stream.size > MOST) {
		fprintf(stderr, "udpong: give -S a number from %d to %d\n", CONTROL, MOST);
		return 1;
	}
	ret = stream.server ? client(&stream) : server(&stream);
	if (stream.fd >= 0)
		stream.calls->close(stream.fd);
	return ret ? 1 : 0;
}
