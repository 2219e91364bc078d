// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The options of the tools that measure rsockets. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "stream.h"
#include "tool.h"

static const struct stream_calls sockets = {
	.prefix = "",
	.socket = socket,
	.bind = bind,
	.listen = listen,
	.accept = accept,
	.connect = connect,
	.shutdown = shutdown,
	.close = close,
	.send = send,
	.recv = recv,
	.sendto = sendto,
	.recvfrom = recvfrom,
	.poll = poll,
	.set = setsockopt,
	.get = getsockopt,
	.fcntl = fcntl,
};

const struct stream_calls stream_rsockets = {
	.prefix = "r",
	.socket = rsocket,
	.bind = rbind,
	.listen = rlisten,
	.accept = raccept,
	.connect = rconnect,
	.shutdown = rshutdown,
	.close = rclose,
	.send = rsend,
	.recv = rrecv,
	.sendto = rsendto,
	.recvfrom = rrecvfrom,
	.poll = rpoll,
	.set = rsetsockopt,
	.get = rgetsockopt,
	.fcntl = rfcntl,
};

/* Takes a word of -T or its first letter. */
static int take_test(struct stream *stream, const char *text, const char *letters)
{
	static const char *const words[] = {"sockets",	"async",       "blocking", "echo",  "fork",
					    "nonblock", "nonblocking", "resolve",  "verify"};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(text, words[i]) || (text[0] == words[i][0] && !text[1]))
			break;
	if (i == sizeof(words) / sizeof(words[0]) || !strchr(letters, words[i][0])) {
		fprintf(stderr, "%s: '%s' is no test option: -h lists them\n", stream->name, text);
		return -1;
	}
	switch (words[i][0]) {
	case 's':
		stream->calls = &sockets;
		break;
	case 'a':
		stream->async = true;
		break;
	case 'b':
		stream->blocking = true;
		break;
	case 'e':
		stream->echo = true;
		break;
	case 'f':
		stream->fork = true;
		break;
	case 'n':
		stream->blocking = false;
		break;
	case 'r':
		stream->resolve = true;
		break;
	default:
		stream->verify = true;
	}
	return 0;
}

static int take_number(struct stream *stream, const char *what, const char *text, long least,
		       long *value)
{
	return tool_named_number(stream->name, what, text, least, 1 << 30, value);
}

int stream_option(struct stream *stream, int letter, const char *text, const char *letters)
{
	switch (letter) {
	case 's':
		stream->server = text;
		return 0;
	case 'b':
		stream->bind = text;
		return 0;
	case 'p':
		return tool_port(stream->name, text, &stream->port);
	case 'f':
		return tool_format(&stream->hints, text);
	case 'T':
		return take_test(stream, text, letters);
	case 'B':
		return take_number(stream, "size of buffers", text, 1, &stream->buffer_size);
	case 'i':
		return take_number(stream, "inline size", text, 0, &stream->inline_size);
	case 'k':
		return take_number(stream, "time in seconds", text, 1, &stream->keepalive);
	case 'S':
		if (!strcasecmp(text, "all")) {
			stream->all = true;
			return 0;
		}
		stream->custom = true;
		return take_number(stream, "size of transfers", text, 1, &stream->size);
	case 'I':
		stream->custom = true;
		return take_number(stream, "number of iterations", text, 1, &stream->iterations);
	default:
		stream->custom = true;
		return take_number(stream, "number of transfers", text, 1, &stream->transfers);
	}
}
