// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: datagram rsockets and addresses that nobody can resolve. Strangers who send from
 * such an address hold up nobody; programs that send there learn it, at once if it was tried just
 * before, and hold up no other thread. It takes 2 s to find that an address cannot be resolved:
 * what waited for each would not come to its end.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdbool.h>

#include <rdma/rdma_cma.h>

#include "rsocket_pair.h"

enum { MANY = 50, THREADS = 24 };

static struct sockaddr_in far_away(int n)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(7471)};

	addr.sin_addr.s_addr = htonl(0x7f800901 + n); /* 127.128.9.1 */
	return addr;
}

/* The first datagram of somebody who says that his QP has the number 9, by UDP. */
static void send_as(const struct sockaddr_in *from, const struct sockaddr_in *to)
{
	static const uint8_t said[] = {0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0,  0,
				       0,    0,	   9,	 127,  0, 0, 1,	 'x'};
	int udp = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(!bind(udp, (const struct sockaddr *)from, sizeof(*from)));
	CHECK(sendto(udp, said, sizeof(said), 0, (const struct sockaddr *)to, sizeof(*to)) ==
	      sizeof(said));
	CHECK(!close(udp));
}

static void test_strangers(void)
{
	struct sockaddr_in addr, from, got;
	socklen_t len = sizeof(got);
	char data[8];
	int rs, i;

	alarm(LONG_MS / 1000);
	rs = bound(SOCK_DGRAM, &addr);
	for (i = 0; i < MANY; i++) {
		from = far_away(i);
		send_as(&from, &addr);
		CHECK(rrecvfrom(rs, data, sizeof(data), 0, (struct sockaddr *)&got, &len) == 1);
		CHECK(data[0] == 'x' && got.sin_addr.s_addr == from.sin_addr.s_addr);
	}
	CHECK(!rclose(rs));
}

/*
 * One whose header has an address that is not of this host, as those of other implementations have
 * their own. It is answered with a QP all the same.
 */
static void test_foreign_header(void)
{
	struct timeval patience = {.tv_sec = LONG_MS / 1000};
	struct sockaddr_in addr, from = far_away(1);
	uint8_t said[] = {0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 0, 0, 9, 198, 51, 100, 1, 'x'},
		got[64];
	int rs, udp = socket(AF_INET, SOCK_DGRAM, 0);

	alarm(LONG_MS / 1000);
	rs = bound(SOCK_DGRAM, &addr);
	from.sin_port = 0;
	CHECK(!bind(udp, (struct sockaddr *)&from, sizeof(from)));
	CHECK(!setsockopt(udp, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	CHECK(sendto(udp, said, sizeof(said), 0, (struct sockaddr *)&addr, sizeof(addr)) ==
	      sizeof(said));
	CHECK(rrecv(rs, got, sizeof(got), 0) == 1 && got[0] == 'x');
	CHECK(recv(udp, got, sizeof(got), 0) == 16);
	CHECK(got[5] == 7 /* RS_CONTROL */ && (got[9] || got[10] || got[11]));
	CHECK(!close(udp));
	CHECK(!rclose(rs));
}

struct sender {
	int rs, n;
	pthread_t thread;
};

static void *send_far(void *arg)
{
	const struct sender *sender = arg;
	struct sockaddr_in to = far_away(sender->n);

	CHECK(rsendto(sender->rs, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)) == -1);
	CHECK(errno == ETIMEDOUT || errno == EHOSTUNREACH || errno == EBADF);
	return NULL;
}

static void start(struct sender senders[THREADS], int rs, void *(*send)(void *))
{
	int i;

	for (i = 0; i < THREADS; i++) {
		senders[i] = (struct sender){.rs = rs, .n = i};
		CHECK(!pthread_create(&senders[i].thread, NULL, send, &senders[i]));
	}
}

static void join_all(struct sender senders[THREADS])
{
	int i;

	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_join(senders[i].thread, NULL));
}

static void test_threads(void)
{
	struct sender senders[THREADS];
	struct sockaddr_in addr;
	int rs;

	alarm(LONG_MS / 1000);
	rs = bound(SOCK_DGRAM, &addr);
	start(senders, rs, send_far);
	join_all(senders);
	/* The rsocket is as it was. */
	CHECK(rsendto(rs, "self", 4, 0, (struct sockaddr *)&addr, sizeof(addr)) == 4);
	CHECK(wait_for(rs, POLLIN) == POLLIN);
	CHECK(!rclose(rs));
}

static bool held; /* nobody's question goes on */
static int asking;

/* Comes before the library's, which asks for addresses by it. */
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
		      int timeout_ms)
{
	int (*next)(struct rdma_cm_id *, struct sockaddr *, struct sockaddr *, int) =
		dlsym(RTLD_NEXT, "rdma_resolve_addr");

	__atomic_fetch_add(&asking, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&held, __ATOMIC_SEQ_CST))
		sched_yield();
	return next(id, src, dst, timeout_ms);
}

static void *send_to_closed(void *arg)
{
	const struct sender *sender = arg;
	struct sockaddr_in to = far_away(sender->n);

	FAILS(rsendto(sender->rs, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), EBADF);
	return NULL;
}

/*
 * Also when it is closed while they ask: rclose() does not wait for them, and another rsocket has
 * the memory by then.
 */
static void test_closed(void)
{
	struct sender senders[THREADS];
	struct sockaddr_in addr;
	int rs;

	alarm(LONG_MS / 1000);
	rs = bound(SOCK_DGRAM, &addr);
	held = true;
	start(senders, rs, send_to_closed);
	while (__atomic_load_n(&asking, __ATOMIC_SEQ_CST) < THREADS)
		sched_yield();
	CHECK(!rclose(rs));
	rs = bound(SOCK_DGRAM, &addr);
	__atomic_store_n(&held, false, __ATOMIC_SEQ_CST);
	join_all(senders);
	CHECK(rsendto(rs, "self", 4, 0, (struct sockaddr *)&addr, sizeof(addr)) == 4);
	CHECK(wait_for(rs, POLLIN) == POLLIN);
	CHECK(!rclose(rs));
}

static void test_remembered(void)
{
	struct sender sender = {.n = 1};
	struct sockaddr_in addr;
	int i;

	alarm(LONG_MS / 1000);
	sender.rs = bound(SOCK_DGRAM, &addr);
	for (i = 0; i < MANY; i++)
		send_far(&sender);
	CHECK(!rclose(sender.rs));
}

/* ---- One who is no stranger ---- */

static unsigned int posted;
static int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

static int counted_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	posted++;
	return post_send(qp, wr, bad);
}

/* The one who only receives tells its QP: then datagrams go there. */
static void test_one_way(void)
{
	struct ibv_context **devices;
	struct sockaddr_in addr[2];
	char data[8];
	int rs[2], n, i;

	devices = rdma_get_devices(&n);
	CHECK(devices && n > 0);
	for (i = 0; i < n; i++) {
		post_send = devices[i]->ops.post_send;
		devices[i]->ops.post_send = counted_post;
	}
	alarm(LONG_MS / 1000);
	for (i = 0; i < 2; i++)
		rs[i] = bound(SOCK_DGRAM, &addr[i]);
	for (i = 0; i < MANY; i++) {
		CHECK(rsendto(rs[0], "way", 3, 0, (struct sockaddr *)&addr[1], sizeof(addr[1])) ==
		      3);
		CHECK(rrecv(rs[1], data, sizeof(data), 0) == 3);
	}
	CHECK(posted >= MANY - 2);
	/* Whose number it has heard gets no datagram by UDP. */
	posted = 0;
	CHECK(rsendto(rs[1], "back", 4, 0, (struct sockaddr *)&addr[0], sizeof(addr[0])) == 4);
	CHECK(posted == 1);
	CHECK(rrecv(rs[0], data, sizeof(data), 0) == 4);
	CHECK(!rclose(rs[0]));
	CHECK(!rclose(rs[1]));
	rdma_free_devices(devices);
}

static const struct rsocket_test tests[] = {
	{"foreign_header", test_foreign_header},
	{"strangers", test_strangers},
	{"threads", test_threads},
	{"closed", test_closed},
	{"remembered", test_remembered},
	{"one_way", test_one_way},
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
