// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See xrc_peers.h: the objects of a rank, and the receives of its SRQs. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "xrc_peers_internal.h"

struct hca hca;
struct peers_config config;
struct queue queues[MAX_QUEUES];
uint8_t *memory;
size_t sends_at;
unsigned int send_slots;

static void post_free(int q)
{
	struct queue *queue = &queues[q];

	while (queue->frees) {
		unsigned int slot = queue->free[--queue->frees];
		struct ibv_sge sge = {
			.addr = (uintptr_t)memory + queue->at + (size_t)slot * config.size[q],
			.length = config.size[q],
			.lkey = hca.mr->lkey,
		};
		struct ibv_recv_wr wr = {.wr_id = PEERS_RECEIVE | (uint64_t)q << 16 | slot,
					 .sg_list = &sge,
					 .num_sge = 1};
		struct ibv_recv_wr *bad;

		CHECK_EQ(ibv_post_srq_recv(hca.srq[q], &wr, &bad), 0);
	}
}

static void arm_limit(int q)
{
	struct ibv_srq_attr attr = {.srq_limit = config.low[q]};

	if (config.limit[q])
		CHECK_EQ(ibv_modify_srq(hca.srq[q], &attr, IBV_SRQ_LIMIT), 0);
}

void queue_refill(int q)
{
	struct queue *queue = &queues[q];
	uint32_t fired;

	if (config.limit[q]) {
		fired = __atomic_load_n(&queue->fired, __ATOMIC_ACQUIRE);
		if (fired == queue->answered || !queue->frees)
			return;
		queue->answered = fired;
	} else if (config.low[q] && config.slots[q] - queue->frees >= config.low[q]) {
		return;
	}
	/*
	 * The limit is armed before the receives are posted. If there are fewer receives than the
	 * limit already, the event comes with the next message, so no event is missed.
	 */
	arm_limit(q);
	if (queue->frees)
		post_free(q);
}

uint32_t peers_limit_events(int q)
{
	return __atomic_load_n(&queues[q].fired, __ATOMIC_ACQUIRE);
}

static pthread_t event_thread;
static uint32_t event_end;

/*
 * As the event threads of MPI libraries of that time do: polls the descriptor, gets the event,
 * looks, acknowledges.
 */
static void *get_events(void *arg)
{
	struct pollfd pfd = {.fd = hca.context->async_fd, .events = POLLIN};

	(void)arg;
	while (!__atomic_load_n(&event_end, __ATOMIC_ACQUIRE)) {
		struct ibv_async_event event;

		if (poll(&pfd, 1, 20) <= 0)
			continue;
		CHECK_EQ(ibv_get_async_event(hca.context, &event), 0);
		for (int q = 0;
		     event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && q < config.queues; q++)
			if (event.element.srq == hca.srq[q])
				__atomic_fetch_add(&queues[q].fired, 1, __ATOMIC_RELEASE);
		ibv_ack_async_event(&event);
	}
	return NULL;
}

static bool any_limit(void)
{
	return config.limit[0] || config.limit[1] || config.limit[2];
}

static void open_domain(void)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/domain-%d", directory, group_of(me));
	fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	hca.domain = ibv_open_xrc_domain(hca.context, fd, O_CREAT);
	CHECK(hca.domain);
	close(fd);
}

static void open_queues(void)
{
	uint32_t *numbers = board->rank[me].srqn;

	for (int q = 0; q < config.queues; q++) {
		struct ibv_srq_init_attr attr = {.attr = {.max_wr = config.slots[q], .max_sge = 1}};

		hca.srq[q] = ibv_create_xrc_srq(hca.pd, hca.domain, hca.cq, &attr);
		CHECK(hca.srq[q]);
		/*
		 * If this rank is killed before it stores the number, no other one has been told
		 * it.
		 */
		queues[q].before = numbers[q];
		numbers[q] = hca.srq[q]->xrc_srq_num;
		for (queues[q].frees = 0; queues[q].frees < config.slots[q]; queues[q].frees++)
			queues[q].free[queues[q].frees] = queues[q].frees;
		post_free(q);
		arm_limit(q);
	}
}

void peers_open(const struct peers_config *c)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;
	unsigned int receives = 0;
	size_t size = 0;

	config = *c;
	CHECK(list && list[0]);
	hca.context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	CHECK(hca.context);
	CHECK_EQ(ibv_query_port(hca.context, 1, &port), 0);
	hca.lid = port.lid;
	send_slots = config.window * (unsigned int)total;
	CHECK(send_slots <= MOST_SENDS);
	for (int q = 0; q < config.queues; q++) {
		CHECK(config.slots[q] <= MOST_SLOTS);
		queues[q].at = size;
		size += (size_t)config.slots[q] * config.size[q];
		receives += config.slots[q];
	}
	sends_at = size;
	size += (size_t)send_slots * config.size[config.queues - 1];
	size = (size + 4095) & ~(size_t)4095;
	CHECK_EQ(posix_memalign((void **)&memory, 4096, size + config.extra + 1), 0);
	memset(memory, 0, size + config.extra + 1);
	hca.extra = memory + size;
	hca.pd = ibv_alloc_pd(hca.context);
	CHECK(hca.pd);
	hca.mr = ibv_reg_mr(hca.pd, memory, size + config.extra,
			    IBV_ACCESS_LOCAL_WRITE | config.access);
	CHECK(hca.mr);
	hca.cq = ibv_create_cq(hca.context, (int)(receives + send_slots + 64), NULL, NULL, 0);
	CHECK(hca.cq);
	open_domain();
	for (int i = 0; i < total; i++)
		peer[i].life = life_of(i);
	open_queues();
	if (any_limit())
		CHECK_EQ(pthread_create(&event_thread, NULL, get_events, NULL), 0);
}

void peers_leave(int from)
{
	int err;

	if (!source[from].qpn)
		return;
	err = ibv_unreg_xrc_rcv_qp(hca.domain, source[from].qpn);
	CHECK_EQ(err, 0);
	source[from].qpn = 0;
}

void peers_close(void)
{
	peers_flush();
	for (int g = 0; g < MAX_RANKS; g++)
		if (ways[g].qp)
			CHECK_EQ(ibv_destroy_qp(ways[g].qp), 0);
	for (int i = 0; i < total; i++)
		peers_leave(i);
	if (any_limit()) {
		__atomic_store_n(&event_end, 1, __ATOMIC_RELEASE);
		CHECK_EQ(pthread_join(event_thread, NULL), 0);
	}
	for (int q = 0; q < config.queues; q++)
		CHECK_EQ(ibv_destroy_srq(hca.srq[q]), 0);
	CHECK_EQ(ibv_close_xrc_domain(hca.domain), 0);
	CHECK_EQ(ibv_dereg_mr(hca.mr), 0);
	CHECK_EQ(ibv_destroy_cq(hca.cq), 0);
	CHECK_EQ(ibv_dealloc_pd(hca.pd), 0);
	CHECK_EQ(ibv_close_device(hca.context), 0);
	free(memory);
}
