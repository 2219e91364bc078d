// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Description: what a program cannot see of a stream until it costs data: memory that a write comes from
 * stays as it is until the write is complete, also where the position in the stream wraps.
 */
#include <stdbool.h>

#include <rdma/rdma_cma.h>

#include "rsocket_pair.h"

/* ---- The ring of what is being sent ---- */

/* The writes of one end that are not complete, as far as that end has looked. */
enum { POSTED = 4096 };
static struct {
	uint64_t addr, wr_id;
	uint32_t length;
} posted[POSTED];
static unsigned int first, behind;
static struct ibv_qp *sender;
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
		if (!sender)
			sender = qp;
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

/* A completion stands for all writes before it, and so does that of a control message, which has bit 0. */
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
		if (sender && cq == sender->send_cq && !(wc[i].opcode & IBV_WC_RECV))
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

/* The position of a new stream is such that it wraps soon. Rings of other sizes than powers of 2 end
 * elsewhere. */
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

static const struct rsocket_test tests[] = {
	{"ring", test_ring},
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
