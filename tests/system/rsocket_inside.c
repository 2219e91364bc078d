// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what a program cannot see of a stream until it costs data: memory that a write comes
 * from stays as it is until the write is complete, also where the position in the stream wraps; and
 * a stream whose first connection was refused sleeps and wakes in its next one. A stream lives on
 * when there was no memory for an event of it, and a request where there was not enough to accept
 * it. And what an administrator's file may ask for has its limit.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_cma_abi.h>

#include "rsocket_pair.h"

/* ---- The ring of what is being sent ---- */

/* The writes of one end that are not complete, as far as that end has looked. */
enum { POSTED = 4096 };
static struct {
	uint64_t addr, wr_id;
	uint32_t length;
} posted[POSTED];
static unsigned int first, behind;
/* Only to compare with: the queue pair ends before the last poll. */
static const struct ibv_qp *sender;
static const struct ibv_cq *sender_cq;
static uint64_t sent;

static int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int (*poll_cq)(struct ibv_cq *cq, int n, struct ibv_wc *wc);

static int watched_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_send_wr *w;
	unsigned int i;

	for (w = wr; w; w = w->next) {
		/* Not credits, which have memory of their own. */
		if (!w->num_sge || w->sg_list->length <= 64)
			continue;
		if (!sender) {
			sender = qp;
			sender_cq = qp->send_cq;
		}
		CHECK(qp == sender);
		for (i = first; i != behind; i++)
			CHECK(w->sg_list->addr + w->sg_list->length <= posted[i % POSTED].addr ||
			      posted[i % POSTED].addr + posted[i % POSTED].length <=
				      w->sg_list->addr);
		CHECK(behind - first < POSTED);
		posted[behind % POSTED].addr = w->sg_list->addr;
		posted[behind % POSTED].length = w->sg_list->length;
		posted[behind++ % POSTED].wr_id = w->wr_id;
		sent += w->sg_list->length;
	}
	return post_send(qp, wr, bad);
}

/*
 * A completion stands for all writes before it, and so does that of a control message, which has
 * bit 0.
 */
static void complete(uint64_t wr_id)
{
	unsigned int i;

	for (i = first; i != behind; i++)
		if (posted[i % POSTED].wr_id == (wr_id & ~UINT64_C(1)))
			first = i + 1;
}

static int watched_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got = poll_cq(cq, n, wc), i;

	for (i = 0; i < got; i++)
		if (cq == sender_cq && !(wc[i].opcode & IBV_WC_RECV))
			complete(wc[i].wr_id);
	return got;
}

enum { TOTAL = 4 << 20 };

static void *send_all(void *arg)
{
	static char data[65536];
	uint32_t done;

	for (done = 0; done < TOTAL; done += sizeof(data))
		CHECK(rsend(*(int *)arg, data, sizeof(data), 0) == sizeof(data));
	return NULL;
}

/*
 * The position of a new stream is such that it wraps soon. Rings of other sizes than powers of 2
 * end elsewhere.
 */
static void test_ring(void)
{
	static char data[65536];
	struct ibv_context **devices;
	uint32_t done = 0;
	pthread_t thread;
	int ends[2], n, i;

	devices = rdma_get_devices(&n);
	CHECK(devices && n > 0);
	for (i = 0; i < n; i++) {
		post_send = devices[i]->ops.post_send;
		poll_cq = devices[i]->ops.poll_cq;
		devices[i]->ops.post_send = watched_post;
		devices[i]->ops.poll_cq = watched_poll;
	}
	wish.sndbuf = 100000;
	pair(ends);
	CHECK(!pthread_create(&thread, NULL, send_all, &ends[0]));
	while (done < TOTAL) {
		ssize_t ret = rrecv(ends[1], data, sizeof(data), 0);

		CHECK(ret > 0);
		done += (uint32_t)ret;
	}
	CHECK(!pthread_join(thread, NULL));
	CHECK(sent == TOTAL);
	close_pair(ends);
	rdma_free_devices(devices);
}

/* ---- Where datagrams wait ---- */

enum { BURST = 24, BURSTS = 20 };

/* More of them than 32 bits can count: a new QP begins a little before that. */
static void test_datagram_slots(void)
{
	struct sockaddr_in addr[2];
	int rs[2], i, n, got;

	alarm(LONG_MS / 1000);
	for (i = 0; i < 2; i++)
		rs[i] = bound(SOCK_DGRAM, &addr[i]);
	for (i = 0; i < BURSTS; i++) {
		for (n = 0; n < BURST; n++)
			CHECK(rsendto(rs[0], &n, sizeof(n), 0, (struct sockaddr *)&addr[1],
				      sizeof(addr[1])) == sizeof(n));
		for (n = 0; n < BURST; n++)
			CHECK(rrecv(rs[1], &got, sizeof(got), 0) == sizeof(got) && got == n);
	}
	CHECK(!rclose(rs[0]));
	CHECK(!rclose(rs[1]));
}

/* ---- Another try ---- */

struct refusal {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
};

static void *refuse_one(void *arg)
{
	struct refusal *refusal = arg;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(!rdma_get_cm_event(refusal->channel, &event));
	id = event->id;
	/* So long that the other side most likely sleeps. */
	usleep(100000);
	CHECK(!rdma_reject(id, NULL, 0));
	CHECK(!rdma_ack_cm_event(event));
	CHECK(!rdma_destroy_id(id));
	return NULL;
}

/* Its rconnect() is refused by somebody who has taken time for it. */
static int refused(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	struct refusal refusal;
	pthread_t thread;
	int rs;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	refusal.channel = rdma_create_event_channel();
	CHECK(refusal.channel);
	CHECK(!rdma_create_id(refusal.channel, &refusal.listener, NULL, RDMA_PS_TCP));
	CHECK(!rdma_bind_addr(refusal.listener, (struct sockaddr *)&addr));
	addr.sin_port = rdma_get_src_port(refusal.listener);
	CHECK(!rdma_listen(refusal.listener, 1));
	CHECK(!pthread_create(&thread, NULL, refuse_one, &refusal));
	rs = rsocket(AF_INET, SOCK_STREAM, 0);
	FAILS(rconnect(rs, (struct sockaddr *)&addr, sizeof(addr)), ECONNREFUSED);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!rdma_destroy_id(refusal.listener));
	rdma_destroy_event_channel(refusal.channel);
	return rs;
}

static void *send_late(void *arg)
{
	usleep(100000);
	CHECK(rsend(*(int *)arg, "late", 4, 0) == 4);
	return NULL;
}

static void *connect_again(void *arg)
{
	static int rs;

	rs = refused();
	CHECK(!rconnect(rs, arg, sizeof(struct sockaddr_in)));
	return &rs;
}

static void test_again(void)
{
	struct sockaddr_in addr;
	int listening = listener(&addr), ends[2], i;
	pthread_t thread;
	void *result;
	char data[4];

	CHECK(!pthread_create(&thread, NULL, connect_again, &addr));
	ends[1] = raccept(listening, NULL, NULL);
	CHECK(ends[1] >= 0);
	CHECK(!pthread_join(thread, &result));
	ends[0] = *(int *)result;
	alarm(LONG_MS / 1000);
	for (i = 0; i < 2; i++) {
		CHECK(!pthread_create(&thread, NULL, send_late, &ends[i]));
		CHECK(rrecv(ends[!i], data, 4, MSG_WAITALL) == 4 && !memcmp(data, "late", 4));
		CHECK(!pthread_join(thread, NULL));
	}
	close_pair(ends);
	CHECK(!rclose(listening));
}

/* ---- No memory for an event ---- */

/* So many commands of this thread that ask for an event fail. */
static __thread int without_memory;
/* So many commands that accept a connection fail. */
static int no_memory_to_accept;

/* Comes before the C library's, and before softhca's. */
ssize_t write(int fd, const void *buf, size_t count)
{
	static ssize_t (*next)(int fd, const void *buf, size_t count);
	const struct ucma_abi_cmd_hdr *command = buf;

	if (!next)
		next = dlsym(RTLD_NEXT, "write");
	if (without_memory && count == sizeof(struct ucma_abi_get_event) &&
	    command->cmd == UCMA_CMD_GET_EVENT && command->in == count - sizeof(*command)) {
		without_memory--;
		errno = ENOMEM;
		return -1;
	}
	if (no_memory_to_accept && count >= sizeof(struct ucma_abi_accept) &&
	    command->cmd == UCMA_CMD_ACCEPT && command->in == count - sizeof(*command)) {
		no_memory_to_accept--;
		errno = ENOMEM;
		return -1;
	}
	return next(fd, buf, count);
}

/*
 * The end that has accepted gets an event when the other one has heard of it. Its first sleep reads
 * that.
 */
static void receives_late(bool poll)
{
	pthread_t thread;
	char data[4];
	int ends[2];

	pair(ends);
	alarm(LONG_MS / 1000);
	without_memory = 3;
	CHECK(!pthread_create(&thread, NULL, send_late, &ends[0]));
	if (poll)
		CHECK(wait_for(ends[1], POLLIN) == POLLIN);
	CHECK(rrecv(ends[1], data, 4, MSG_WAITALL) == 4 && !memcmp(data, "late", 4));
	CHECK(!pthread_join(thread, NULL));
	/* The event is read when there is memory again. */
	while (without_memory) {
		struct pollfd fd = {.fd = ends[1], .events = POLLIN};

		CHECK(rpoll(&fd, 1, 10) == 0);
	}
	CHECK(rsend(ends[1], "late", 4, 0) == 4);
	CHECK(rrecv(ends[0], data, 4, MSG_WAITALL) == 4);
	close_pair(ends);
}

static void test_no_memory(void)
{
	receives_late(false);
	receives_late(true);
}

static void *connect_without_memory(void *arg)
{
	without_memory = 3;
	arg = connect_there(arg);
	CHECK(!without_memory);
	return arg;
}

static void test_no_memory_to_connect(void)
{
	struct sockaddr_in addr;
	int rs = listener(&addr), one;
	pthread_t thread;
	void *result;

	alarm(LONG_MS / 1000);
	CHECK(!pthread_create(&thread, NULL, connect_without_memory, &addr));
	one = raccept(rs, NULL, NULL);
	CHECK(one >= 0);
	CHECK(!pthread_join(thread, &result));
	CHECK(!rclose((int)(intptr_t)result));
	CHECK(!rclose(one));
	CHECK(!rclose(rs));
}

/* ---- Not enough to accept a connection ---- */

/*
 * A client, of a process of its own: what its connecting fails with, or 0 when it has sent four
 * bytes and read the end.
 */
static void client_of(const struct sockaddr_in *addr, const int start[2])
{
	pid_t child = fork();
	char data[4];
	int rs;

	CHECK(child >= 0);
	if (child)
		return;
	/* It ends with its parent. */
	close(start[1]);
	CHECK(read(start[0], data, 1) == 1);
	alarm(LONG_MS / 1000);
	rs = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(rs >= 0);
	if (rconnect(rs, (const struct sockaddr *)addr, sizeof(*addr)))
		_exit(errno);
	CHECK(rsend(rs, "late", 4, 0) == 4);
	CHECK(rrecv(rs, data, sizeof(data), 0) == 0);
	CHECK(!rclose(rs));
	_exit(0);
}

/* One of them: any may have been the first to read that it is to start. */
static int one_ended_with(void)
{
	int status;

	CHECK(waitpid(-1, &status, 0) > 0);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Takes all descriptors but so many; give_back() of what it returned gives them back. */
enum { MOST = 128 };
static int taken[MOST];

static int take_descriptors(int but)
{
	int n = 0, limit = 0, fd;
	struct rlimit most;

	for (fd = 0; fd < MOST; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			limit = fd + 1;
	CHECK(!getrlimit(RLIMIT_NOFILE, &most));
	most.rlim_cur = (rlim_t)(limit + but);
	CHECK(!setrlimit(RLIMIT_NOFILE, &most));
	while (n < MOST && (taken[n] = open("/dev/null", O_RDONLY)) >= 0)
		n++;
	CHECK(errno == EMFILE && n >= but);
	for (fd = 0; fd < but; fd++)
		close(taken[--n]);
	return n;
}

static void give_back(int n)
{
	struct rlimit most;

	while (n)
		close(taken[--n]);
	CHECK(!getrlimit(RLIMIT_NOFILE, &most));
	most.rlim_cur = most.rlim_max < 1024 ? most.rlim_max : 1024;
	CHECK(!setrlimit(RLIMIT_NOFILE, &most));
}

static void accept_late(int listening, int n)
{
	char data[4];
	int one;

	for (int i = 0; i < n; i++) {
		CHECK(wait_for(listening, POLLIN) == POLLIN);
		one = raccept(listening, NULL, NULL);
		CHECK(one >= 0);
		CHECK(rrecv(one, data, 4, MSG_WAITALL) == 4 && !memcmp(data, "late", 4));
		CHECK(!rclose(one));
	}
	for (int i = 0; i < n; i++)
		CHECK(!one_ended_with());
	FAILS(raccept(listening, NULL, NULL), EAGAIN);
}

/*
 * As with accept(), the request stays, whatever it is that is missing. Each end of a connection has
 * two descriptors and more, and some of them are made when the request has been read.
 */
static void test_accept_again(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(7411)};
	int start[2], listening, taking, i;

	alarm(LONG_MS / 1000);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!pipe(start));
	/* Before this process has the device. */
	for (i = 0; i < 6; i++)
		client_of(&addr, start);
	listening = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(!rbind(listening, (struct sockaddr *)&addr, sizeof(addr)));
	CHECK(!rlisten(listening, 8));
	/* The first one accepted has opened what is opened once. */
	CHECK(write(start[1], "x", 1) == 1);
	accept_late(listening, 1);

	for (i = 0; i < 2; i++) {
		CHECK(write(start[1], "x", 1) == 1);
		CHECK(wait_for(listening, POLLIN) == POLLIN);
		taking = take_descriptors(i);
		FAILS(raccept(listening, NULL, NULL), EMFILE);
		FAILS(raccept(listening, NULL, NULL), EMFILE);
		CHECK(wait_for(listening, POLLIN) == POLLIN);
		give_back(taking);
		accept_late(listening, 1);
	}

	CHECK(write(start[1], "xx", 2) == 2);
	for (no_memory_to_accept = 2; no_memory_to_accept;) {
		CHECK(wait_for(listening, POLLIN) == POLLIN);
		FAILS(raccept(listening, NULL, NULL), ENOMEM);
	}
	accept_late(listening, 2);

	/* One that waits for the rest is refused when the listener ends. */
	CHECK(write(start[1], "x", 1) == 1);
	CHECK(wait_for(listening, POLLIN) == POLLIN);
	no_memory_to_accept = 1;
	FAILS(raccept(listening, NULL, NULL), ENOMEM);
	CHECK(!rclose(listening));
	CHECK(one_ended_with() == ECONNREFUSED);
}

/* ---- Files of an administrator ---- */

static bool large_inline;

/* Comes before the C library's. */
FILE *fopen(const char *path, const char *mode)
{
	FILE *(*next)(const char *path, const char *mode) = dlsym(RTLD_NEXT, "fopen");
	FILE *file;

	if (!large_inline || strcmp(path, "/etc/rdma/rsocket/inline_default"))
		return next(path, mode);
	file = tmpfile();
	CHECK(file && fputs("4000\n", file) >= 0);
	rewind(file);
	return file;
}

/* More than there is room for, where such data are put together. */
static void test_inline(void)
{
	int rs;

	large_inline = true;
	rs = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(get_int(rs, SOL_RDMA, RDMA_INLINE) == 1024);
	CHECK(!rclose(rs));
}

static const struct rsocket_test tests[] = {
	{"ring", test_ring},
	{"again", test_again},
	{"no_memory", test_no_memory},
	{"no_memory_to_connect", test_no_memory_to_connect},
	{"inline", test_inline},
	{"datagram_slots", test_datagram_slots},
	{"accept_again", test_accept_again},
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
