// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: rsockets behave as sockets do: data, flags, ends of connections, options, threads,
 * mapped memory.
 */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "rsocket_pair.h"

/* ---- Data ---- */

static uint8_t byte_at(uint64_t position)
{
	return (uint8_t)(position * 167 + position / 251);
}

static void fill(uint8_t *data, uint64_t position, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		data[i] = byte_at(position + i);
}

static void verify(const uint8_t *data, uint64_t position, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		CHECK(data[i] == byte_at(position + i));
}

struct flow {
	int rs;
	uint64_t bytes;
	bool nonblock;
	unsigned int seed;
};

static void *send_flow(void *arg)
{
	struct flow *flow = arg;
	uint8_t data[30000];
	uint64_t done = 0;

	while (done < flow->bytes) {
		size_t len = (size_t)rand_r(&flow->seed) % (rand_r(&flow->seed) % 4 ? 200 : 30000);
		ssize_t ret;

		if (len > flow->bytes - done)
			len = flow->bytes - done;
		fill(data, done, len);
		ret = rsend(flow->rs, data, len, flow->nonblock ? MSG_DONTWAIT : 0);
		if (ret < 0) {
			CHECK(flow->nonblock && errno == EAGAIN);
			CHECK(wait_for(flow->rs, POLLOUT) & POLLOUT);
			continue;
		}
		CHECK((size_t)ret == len || flow->nonblock);
		done += ret;
	}
	return NULL;
}

static void *receive_flow(void *arg)
{
	struct flow *flow = arg;
	uint8_t data[30000];
	uint64_t done = 0;

	while (done < flow->bytes) {
		size_t len = 1 + (size_t)rand_r(&flow->seed) % sizeof(data);
		ssize_t ret = rrecv(flow->rs, data, len, flow->nonblock ? MSG_DONTWAIT : 0);

		if (ret < 0) {
			CHECK(flow->nonblock && errno == EAGAIN);
			CHECK(wait_for(flow->rs, POLLIN) & POLLIN);
			continue;
		}
		CHECK(ret > 0);
		verify(data, done, (size_t)ret);
		done += ret;
	}
	return NULL;
}

/* Both directions at once, so that two threads are in one rsocket. */
static void flows(bool nonblock, uint64_t bytes)
{
	struct flow flow[4];
	pthread_t threads[4];
	int ends[2], i;

	pair(ends);
	for (i = 0; i < 4; i++) {
		flow[i] = (struct flow){
			.rs = ends[i % 2], .bytes = bytes, .nonblock = nonblock, .seed = 11 + i};
		CHECK(!pthread_create(&threads[i], NULL, i < 2 ? send_flow : receive_flow,
				      &flow[i]));
	}
	for (i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	close_pair(ends);
}

static void test_data(void)
{
	static const int inlines[] = {0, -1, 16, 400};
	unsigned int i;

	for (i = 0; i < sizeof(inlines) / sizeof(inlines[0]); i++) {
		wish.in_line = inlines[i];
		flows(i & 1, 1 << 20);
	}
	/* Rings that wrap often, and queues that run out. */
	memset(&wish, 0, sizeof(wish));
	wish.sndbuf = wish.rcvbuf = 1;
	wish.sq = wish.rq = 1;
	flows(false, 1 << 20);
	flows(true, 1 << 20);
	wish.sndbuf = 100000;
	flows(false, 1 << 20);
	memset(&wish, 0, sizeof(wish));
}

enum { MESSAGES = 140000 };

static void *send_bytes(void *arg)
{
	for (int i = 0; i < MESSAGES; i++) {
		uint8_t data = (uint8_t)(i % 251);

		CHECK(rsend(*(int *)arg, &data, 1, 0) == 1);
	}
	return NULL;
}

/* More messages than their 16-bit numbers have values. */
static void test_many(void)
{
	pthread_t thread;
	uint8_t data[64];
	int ends[2], got;

	pair(ends);
	alarm(2 * LONG_MS / 1000); /* a stream that stands still ends the test */
	CHECK(!pthread_create(&thread, NULL, send_bytes, &ends[0]));
	for (int i = 0; i < MESSAGES; i += got) {
		got = (int)rrecv(ends[1], data, sizeof(data), 0);
		CHECK(got > 0);
		for (int j = 0; j < got; j++)
			CHECK(data[j] == (uint8_t)((i + j) % 251));
	}
	CHECK(!pthread_join(thread, NULL));
	alarm(0);
	close_pair(ends);
}

/* Messages of one write, and of several. */
static const size_t sizes[] = {65, 8191, 8192, 8193, 24577, 32768, 32769, 65536, 100001, 300000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), LONGEST = 300000 };

static void *send_sizes(void *arg)
{
	static uint8_t data[LONGEST];
	uint64_t done = 0;

	for (unsigned int i = 0; i < SIZES; done += sizes[i++]) {
		fill(data, done, sizes[i]);
		CHECK(rsend(*(int *)arg, data, sizes[i], 0) == (ssize_t)sizes[i]);
	}
	return NULL;
}

static void test_pieces(void)
{
	static uint8_t data[LONGEST];
	uint64_t done = 0;
	pthread_t thread;
	int ends[2];

	pair(ends);
	CHECK(!pthread_create(&thread, NULL, send_sizes, &ends[0]));
	for (unsigned int i = 0; i < SIZES; done += sizes[i++]) {
		CHECK(rrecv(ends[1], data, sizes[i], MSG_WAITALL) == (ssize_t)sizes[i]);
		verify(data, done, sizes[i]);
	}
	CHECK(!pthread_join(thread, NULL));
	close_pair(ends);
}

static void test_flags(void)
{
	struct iovec iov[3];
	struct msghdr msg;
	char data[16] = {0}, more[16] = {0};
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int ends[2];

	pair(ends);
	FAILS(rrecv(ends[0], data, 4, MSG_DONTWAIT), EAGAIN);
	CHECK(rsend(ends[0], data, 0, 0) == 0);
	CHECK(rrecv(ends[1], data, 0, 0) == 0);
	CHECK(rsend(ends[0], "abcdef", 6, 0) == 6);
	CHECK(rrecv(ends[1], data, 3, MSG_PEEK) == 3 && !memcmp(data, "abc", 3));
	CHECK(rrecv(ends[1], data, 2, 0) == 2 && !memcmp(data, "ab", 2));
	CHECK(rwrite(ends[0], "gh", 2) == 2);
	CHECK(rrecv(ends[1], data, 6, MSG_WAITALL) == 6 && !memcmp(data, "cdefgh", 6));

	iov[0] = (struct iovec){.iov_base = "12", .iov_len = 2};
	iov[1] = (struct iovec){.iov_base = NULL, .iov_len = 0};
	iov[2] = (struct iovec){.iov_base = "345", .iov_len = 3};
	CHECK(rwritev(ends[0], iov, 3) == 5);
	iov[0] = (struct iovec){.iov_base = data, .iov_len = 1};
	iov[1] = (struct iovec){.iov_base = more, .iov_len = 16};
	wait_for(ends[1], POLLIN);
	CHECK(rreadv(ends[1], iov, 2) == 5 && data[0] == '1' && !memcmp(more, "2345", 4));

	iov[0] = (struct iovec){.iov_base = "xyz", .iov_len = 3};
	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = iov;
	msg.msg_iovlen = 1;
	CHECK(rsendmsg(ends[1], &msg, 0) == 3);
	iov[0].iov_base = data;
	CHECK(rrecvmsg(ends[0], &msg, 0) == 3 && !memcmp(data, "xyz", 3));
	CHECK(rsendto(ends[1], "q", 1, 0, NULL, 0) == 1);
	CHECK(rrecvfrom(ends[0], data, 16, 0, (struct sockaddr *)&from, &len) == 1);
	CHECK(from.sin_family == AF_INET && len == sizeof(from));

	/* There are neither urgent data nor errors: ordinary data are not taken for them. */
	FAILS(rsend(ends[0], "o", 1, MSG_OOB), EOPNOTSUPP);
	CHECK(rsend(ends[0], "n", 1, 0) == 1);
	CHECK(wait_for(ends[1], POLLIN) == POLLIN);
	FAILS(rrecv(ends[1], data, 1, MSG_OOB), EINVAL);
	FAILS(rrecv(ends[1], data, 1, MSG_OOB | MSG_DONTWAIT), EINVAL);
	FAILS(rrecv(ends[1], data, 1, MSG_ERRQUEUE), EAGAIN);
	FAILS(rrecvmsg(ends[1], &msg, MSG_ERRQUEUE), EAGAIN);
	CHECK(rrecv(ends[1], data, 16, 0) == 1 && data[0] == 'n');
	close_pair(ends);
	FAILS(rrecv(ends[0], data, 1, 0), EBADF);
}

/* ---- Ends ---- */

static void *blocked_reader(void *arg)
{
	char data;

	return (void *)(intptr_t)rrecv(*(int *)arg, &data, 1, 0);
}

static void test_ends(void)
{
	pthread_t thread;
	char data[8];
	void *result;
	int ends[2];

	pair(ends);
	CHECK(rsend(ends[0], "last", 4, 0) == 4);
	CHECK(!rshutdown(ends[0], SHUT_WR));
	FAILS(rsend(ends[0], "x", 1, 0), EPIPE);
	CHECK(rrecv(ends[1], data, 8, MSG_WAITALL) == 4);
	CHECK(rrecv(ends[1], data, 8, 0) == 0);
	CHECK(rrecv(ends[1], data, 8, 0) == 0);
	/* The other direction goes on. */
	CHECK(rsend(ends[1], "back", 4, 0) == 4);
	CHECK(rrecv(ends[0], data, 8, 0) == 4);
	CHECK(!rclose(ends[1]));
	CHECK(rrecv(ends[0], data, 8, 0) == 0);
	CHECK(get_int(ends[0], SOL_SOCKET, SO_ERROR) == 0);
	CHECK(!rclose(ends[0]));

	/* Closed by one with data unread: the other reads them, then the end. */
	pair(ends);
	CHECK(rsend(ends[0], "bye", 3, 0) == 3);
	CHECK(!rclose(ends[0]));
	CHECK(wait_for(ends[1], POLLIN) & POLLIN);
	CHECK(rrecv(ends[1], data, 8, MSG_WAITALL) == 3);
	CHECK(rrecv(ends[1], data, 8, 0) == 0);
	FAILS(rsend(ends[1], "x", 1, 0), EPIPE);
	CHECK(!rclose(ends[1]));

	/* Another thread's shutdown ends a wait. */
	pair(ends);
	CHECK(!pthread_create(&thread, NULL, blocked_reader, &ends[0]));
	usleep(20000);
	CHECK(!rshutdown(ends[0], SHUT_RD));
	CHECK(!pthread_join(thread, &result));
	CHECK(!result);
	close_pair(ends);
}

/* ---- Options ---- */

enum { KEPT = 0x10000 }; /* RS_OPTION_KEPT of librdmacm/src/kept.h */

static void test_options(void)
{
	int ends[2], rs = rsocket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(int);
	int value = 1;

	CHECK(get_int(rs, SOL_RDMA, RDMA_SQSIZE) == 384);
	CHECK(get_int(rs, SOL_RDMA, RDMA_RQSIZE) == 384);
	CHECK(get_int(rs, SOL_RDMA, RDMA_INLINE) == 64);
	CHECK(get_int(rs, SOL_RDMA, RDMA_IOMAPSIZE) == 0);
	CHECK(get_int(rs, SOL_SOCKET, SO_SNDBUF) == 1 << 17);
	CHECK(get_int(rs, SOL_SOCKET, SO_RCVBUF) == 1 << 17);
	CHECK(get_int(rs, SOL_SOCKET, SO_TYPE) == SOCK_STREAM);
	CHECK(get_int(rs, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP);
	CHECK(get_int(rs, SOL_SOCKET, SO_ERROR) == 0);
	set_int(rs, SOL_SOCKET, SO_SNDBUF, 1 << 16);
	CHECK(get_int(rs, SOL_SOCKET, SO_SNDBUF) == 1 << 16);
	set_int(rs, SOL_SOCKET, SO_REUSEADDR, 1);
	CHECK(get_int(rs, SOL_SOCKET, SO_REUSEADDR) == 1);
	set_int(rs, SOL_SOCKET, SO_KEEPALIVE, 1);
	CHECK(get_int(rs, SOL_SOCKET, SO_KEEPALIVE) == 1);
	set_int(rs, IPPROTO_TCP, TCP_NODELAY, 1);
	CHECK(get_int(rs, IPPROTO_TCP, TCP_NODELAY) == 1);
	set_int(rs, IPPROTO_TCP, TCP_KEEPIDLE, 3);
	CHECK(get_int(rs, IPPROTO_TCP, TCP_KEEPIDLE) == 3);
	set_int(rs, SOL_RDMA, RDMA_IOMAPSIZE, 256);
	CHECK(get_int(rs, SOL_RDMA, RDMA_IOMAPSIZE) == 256);
	FAILS(rsetsockopt(rs, SOL_RDMA, 99, &value, sizeof(value)), ENOPROTOOPT);
	FAILS(rsetsockopt(rs, 99, 1, &value, sizeof(value)), ENOPROTOOPT);
	FAILS(rsetsockopt(rs, SOL_SOCKET, SO_SNDBUF, &value, 1), EINVAL);
	FAILS(rgetsockopt(rs, SOL_SOCKET, 99, &value, &len), ENOPROTOOPT);
	/* What librspreload.so asks for does no harm to a program that asks for it. */
	FAILS(rgetsockopt(rs, SOL_RDMA, KEPT, NULL, &len), EFAULT);
	FAILS(rgetsockopt(rs, SOL_RDMA, KEPT, &value, NULL), EFAULT);
	len = sizeof(value) - 1;
	value = 0;
	FAILS(rgetsockopt(rs, SOL_RDMA, KEPT, &value, &len), EINVAL);
	CHECK(!value);
	len = 2 * sizeof(value);
	CHECK(!rgetsockopt(rs, SOL_RDMA, KEPT, &value, &len));
	CHECK(value >= 0 && len == sizeof(value));
	value = 1;
	FAILS(rsetsockopt(0, SOL_SOCKET, SO_SNDBUF, &value, sizeof(value)), EBADF);
	CHECK(!rclose(rs));
	FAILS(rclose(rs), EBADF);

	pair(ends);
	FAILS(rsetsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &value, sizeof(value)), EINVAL);
	FAILS(rsetsockopt(ends[0], SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)), EINVAL);
	close_pair(ends);
}

/* ---- Threads ---- */

struct share {
	int rs;
	uint64_t bytes;
};

static void *send_share(void *arg)
{
	struct share *share = arg;
	char data[700] = {0};
	int i;

	for (i = 0; i < 500; i++)
		CHECK(rsend(share->rs, data, sizeof(data), 0) == sizeof(data));
	return NULL;
}

static void *receive_share(void *arg)
{
	struct share *share = arg;
	char data[1000];
	ssize_t ret;

	while ((ret = rrecv(share->rs, data, sizeof(data), 0)) > 0)
		share->bytes += ret;
	CHECK(!ret);
	return NULL;
}

static void *poll_share(void *arg)
{
	struct share *share = arg;
	char data[100];
	ssize_t ret = 1;

	while (ret) {
		CHECK(wait_for(share->rs, POLLIN) & POLLIN);
		ret = rrecv(share->rs, data, sizeof(data), MSG_DONTWAIT);
		if (ret > 0)
			share->bytes += ret;
		else
			CHECK(!ret || errno == EAGAIN);
	}
	return NULL;
}

/* Three send and three receive, each its own way: no byte is lost, and nobody waits for ever. */
static void test_threads(void)
{
	struct share shares[6];
	pthread_t threads[6];
	int ends[2], i;

	pair(ends);
	for (i = 0; i < 6; i++) {
		shares[i] = (struct share){.rs = ends[i / 3]};
		CHECK(!pthread_create(&threads[i], NULL,
				      i < 3    ? send_share
				      : i == 3 ? poll_share
					       : receive_share,
				      &shares[i]));
	}
	for (i = 0; i < 3; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!rshutdown(ends[0], SHUT_WR));
	for (i = 3; i < 6; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(shares[3].bytes + shares[4].bytes + shares[5].bytes == 3 * 500 * 700);
	close_pair(ends);
}

/* ---- Mapped memory ---- */

static void test_iomap(void)
{
	static char memory[2][100000];
	static char data[100000];
	int ends[2];
	off_t at;
	char one;

	wish.iomap = 1;
	pair(ends);
	wish.iomap = 0;
	FAILS(riowrite(ends[0], data, 1, 5, 0), EFAULT);
	at = riomap(ends[1], memory[0], sizeof(memory[0]), PROT_WRITE, 0, 5000);
	CHECK(at == 5000);
	FAILS(riomap(ends[1], memory[1], sizeof(memory[1]), PROT_WRITE, 0, -1), ENOMEM);
	CHECK(riomap(ends[1], memory[1], sizeof(memory[1]), PROT_NONE, 0, -1) != -1);
	CHECK(rsend(ends[1], "m", 1, 0) == 1);
	CHECK(rrecv(ends[0], &one, 1, 0) == 1);

	memset(data, 'd', sizeof(data));
	CHECK(riowrite(ends[0], data, sizeof(data), at, 0) == sizeof(data));
	CHECK(riowrite(ends[0], "tail", 4, at + 7, 0) == 4);
	FAILS(riowrite(ends[0], data, 1, at + 100000, 0), EFAULT);
	FAILS(riowrite(ends[0], data, 1, at - 1, 0), EFAULT);
	/* What is sent later arrives later. */
	CHECK(rsend(ends[0], "w", 1, 0) == 1);
	CHECK(rrecv(ends[1], &one, 1, 0) == 1);
	CHECK(!memcmp(memory[0] + 7, "tail", 4));
	CHECK(memory[0][0] == 'd' && memory[0][sizeof(memory[0]) - 1] == 'd');

	CHECK(!riounmap(ends[1], memory[0], sizeof(memory[0])));
	FAILS(riounmap(ends[1], memory[0], sizeof(memory[0])), EINVAL);
	CHECK(rsend(ends[1], "u", 1, 0) == 1);
	CHECK(rrecv(ends[0], &one, 1, 0) == 1);
	FAILS(riowrite(ends[0], data, 1, at, 0), EFAULT);
	close_pair(ends);
}

/* ---- Nothing is left ---- */

/* softhca keeps a few of files that are gone, out of the way. */
static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	char path[300], to[300];
	struct dirent *entry;
	int n = 0;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		len = readlink(path, to, sizeof(to) - 1);
		to[len > 0 ? len : 0] = '\0';
		n += !strstr(to, " (deleted)");
	}
	closedir(dir);
	return n;
}

static void test_leaves_nothing(void)
{
	int ends[2], before, i;

	pair(ends);
	close_pair(ends);
	before = descriptors();
	for (i = 0; i < 20; i++) {
		pair(ends);
		CHECK(rsend(ends[0], "x", 1, 0) == 1);
		close_pair(ends);
	}
	CHECK(descriptors() == before);
}

static const struct rsocket_test tests[] = {
	{"data", test_data},	   {"many", test_many},	  {"pieces", test_pieces},
	{"flags", test_flags},	   {"ends", test_ends},	  {"options", test_options},
	{"threads", test_threads}, {"iomap", test_iomap}, {"leaves_nothing", test_leaves_nothing},
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
