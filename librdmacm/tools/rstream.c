// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Measures rsockets: the client sends, then the server does, with sizes and counts of several
 * tests. */

#include <stdio.h>
#include <unistd.h>

#include "stream.h"

static int send_one(struct stream *stream, char *buf, size_t size)
{
	if (stream->verify)
		stream_fill(&stream->sent, buf, size);
	return stream_send(stream, buf, size);
}

static int receive_one(struct stream *stream, char *buf, size_t size)
{
	if (stream_receive(stream, buf, size))
		return -1;
	return stream->verify ? stream_check(&stream->received, buf, size) : 0;
}

static int turns(struct stream *stream, const struct figures *test, char *buf, bool sends)
{
	long i;

	for (i = 0; i < test->transfers; i++)
		if (sends ? send_one(stream, buf, test->size)
			  : receive_one(stream, buf, test->size))
			return -1;
	return 0;
}

static int run(struct stream *stream, const struct figures *test, char *buf)
{
	bool first = stream->server;
	long i;

	if (stream_sync(stream))
		return -1;
	for (i = 0; i < test->iterations; i++)
		if (turns(stream, test, buf, first) || turns(stream, test, buf, !first))
			return -1;
	return 0;
}

static int usage(const char *name, int status)
{
	printf("usage: %s\n" STREAM_USAGE "\t[-p port_number]\n"
	       "\t[-k keepalive_time]\n" STREAM_USAGE_TESTS
	       "\t    s|sockets - use standard tcp/ip sockets\n"
	       "\t    f|fork - fork server processing\n"
	       "\t    r|resolve - use rdma cm to resolve address\n"
	       "\t    v|verify - verify data\n",
	       name);
	return status;
}

int main(int argc, char **argv)
{
	struct stream stream = STREAM_DEFAULTS("rstream", run);
	int option;

	while ((option = getopt(argc, argv, "hs:b:f:B:i:I:C:S:p:k:T:")) != -1) {
		if (option == 'h')
			return usage(argv[0], 0);
		if (option == '?')
			return usage(argv[0], 1);
		if (stream_option(&stream, option, optarg, "sabfnrv"))
			return 1;
	}
	return stream_run(&stream);
}
