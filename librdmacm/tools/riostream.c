// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Measures writes into the memory that the peer has mapped. Each end maps one buffer, at offset 0,
 * and its own writes come out of that buffer, too: only one end writes at a time. The peer learns
 * that it is its turn by the last byte, which counts the turns of both ends from 0; it is 255
 * before.
 */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "clock.h"
#include "stream.h"
#include "tool.h"

/* As often between two looks at whether the peer still lives. */
enum { LOOKS = 1000 };

static int write_there(struct stream *stream, const char *buf, size_t size)
{
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = (ssize_t)riowrite(stream->fd, buf + done, size - done, (off_t)done,
				      stream_flags(stream));
		if (n > 0)
			done += n;
		else if (stream_again(stream, POLLOUT, "iowrite"))
			return -1;
	}
	return 0;
}

/* The counter comes last: a reader that sees it has all of the data. */
static int send_turn(struct stream *stream, const struct figures *test, char *buf, char turn)
{
	long i;

	for (i = 1; i < test->transfers; i++)
		if (write_there(stream, buf, test->size))
			return -1;
	if (stream->verify)
		stream_fill(&stream->sent, buf, test->size - 1);
	buf[test->size - 1] = turn;
	return write_there(stream, buf, test->size);
}

static bool has_come(const char *last, char turn)
{
	return __atomic_load_n(last, __ATOMIC_ACQUIRE) == turn;
}

/*
 * Nothing is sent while a turn lasts: what there is to receive is the peer's end. A peer that has
 * ended may have written before.
 */
static int peer_lives(struct stream *stream, const char *last, char turn)
{
	char byte;
	ssize_t n = rrecv(stream->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)) || has_come(last, turn))
		return 0;
	return n ? tool_fail("rrecv") : stream_ended(stream);
}

static int receive_turn(struct stream *stream, const struct figures *test, const char *buf,
			char turn)
{
	const char *last = buf + test->size - 1;
	/* A second more for each MiB: nothing else tells that a write of a turn has come. */
	double end = clock_us() +
		     (STREAM_PATIENCE + (double)test->size * test->transfers / (1 << 20)) * 1e6;
	int looks = 0;

	while (!has_come(last, turn)) {
		if (++looks < LOOKS)
			continue;
		looks = 0;
		/* No call can sleep until memory changes. */
		sched_yield();
		if (peer_lives(stream, last, turn))
			return -1;
		if (clock_us() > end)
			return stream_idle(stream);
	}
	return stream->verify ? stream_check(&stream->received, buf, test->size - 1) : 0;
}

static int take_turns(struct stream *stream, const struct figures *test, char *buf)
{
	bool sends = stream->server;
	char turn = 0;
	long i;

	for (i = 0; i < 2 * test->iterations; i++, turn++, sends = !sends)
		if (sends ? send_turn(stream, test, buf, turn)
			  : receive_turn(stream, test, buf, turn))
			return -1;
	return 0;
}

static int run(struct stream *stream, const struct figures *test, char *buf)
{
	int ret;

	buf[test->size - 1] = -1;
	if (riomap(stream->fd, buf, test->size, PROT_WRITE, 0, 0))
		return tool_fail("riomap");
	ret = stream_sync(stream);
	if (!ret)
		ret = take_turns(stream, test, buf);
	riounmap(stream->fd, buf, test->size);
	return ret;
}

static int usage(const char *name, int status)
{
	printf("usage: %s\n" STREAM_USAGE "\t[-p port_number]\n" STREAM_USAGE_TESTS
	       "\t    v|verify - verify data\n",
	       name);
	return status;
}

int main(int argc, char **argv)
{
	struct stream stream = STREAM_DEFAULTS("riostream", run);
	int option;

	stream.io_maps = true;
	while ((option = getopt(argc, argv, "hs:b:f:B:i:I:C:S:p:T:")) != -1) {
		if (option == 'h')
			return usage(argv[0], 0);
		if (option == '?')
			return usage(argv[0], 1);
		if (stream_option(&stream, option, optarg, "abnv"))
			return 1;
	}
	return stream_run(&stream);
}
