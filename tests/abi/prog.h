// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One program for both ABIs. Include it after the header that declares the verbs of one of them.
 * Two RC QPs of one port exchange a chain of messages, with completion events. One QP receives from
 * its own queue, the other from an SRQ. The program compares every byte. Exit status: 0 if all is
 * right, 1 if anything is wrong, 77 if there is no device.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than the compatibility layer converts at a time. */
#define NUM_MESSAGES 75
#define MESSAGE_SIZE 200
#define WAIT_MS	     20000

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s does not hold (errno %d: %s)\n", __FILE__,      \
				__LINE__, #condition, errno, strerror(errno));                     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct end {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	uint8_t (*in)[MESSAGE_SIZE];
	uint8_t (*out)[MESSAGE_SIZE];
	struct ibv_mr *in_mr;
	struct ibv_mr *out_mr;
};

static uint8_t byte_of(int side, int message, int i)
{
	return side * 101 + message * 7 + i;
}

static void make_end(struct end *end, int side, struct ibv_pd *pd, struct ibv_comp_channel *channel,
		     int with_srq)
{
	struct ibv_srq_init_attr srq_attr = {
		.srq_context = end,
		.attr = {.max_wr = NUM_MESSAGES, .max_sge = 1},
	};
	struct ibv_qp_init_attr attr, got;
	struct ibv_qp_attr qp_attr;
	int i, j;

	memset(end, 0, sizeof(*end));
	end->in = calloc(NUM_MESSAGES, MESSAGE_SIZE);
	end->out = calloc(NUM_MESSAGES, MESSAGE_SIZE);
	CHECK(end->in && end->out);
	for (i = 0; i < NUM_MESSAGES; ++i)
		for (j = 0; j < MESSAGE_SIZE; ++j)
			end->out[i][j] = byte_of(side, i, j);

	end->in_mr = ibv_reg_mr(pd, end->in, NUM_MESSAGES * MESSAGE_SIZE, IBV_ACCESS_LOCAL_WRITE);
	end->out_mr = ibv_reg_mr(pd, end->out, NUM_MESSAGES * MESSAGE_SIZE, 0);
	CHECK(end->in_mr && end->out_mr);
	CHECK(end->in_mr->pd == pd && end->in_mr->context == pd->context);

	end->cq = ibv_create_cq(pd->context, 2 * NUM_MESSAGES, end, channel, 0);
	CHECK(end->cq);
	CHECK(end->cq->cq_context == end && end->cq->cqe >= 2 * NUM_MESSAGES);

	if (with_srq) {
		struct ibv_srq_attr now;

		end->srq = ibv_create_srq(pd, &srq_attr);
		CHECK(end->srq);
		CHECK(end->srq->srq_context == end && srq_attr.srq_context == end);
		CHECK(srq_attr.attr.max_wr >= NUM_MESSAGES);
		CHECK(!ibv_query_srq(end->srq, &now));
		CHECK(now.max_wr == srq_attr.attr.max_wr);
	}

	memset(&attr, 0, sizeof(attr));
	attr.qp_context = end;
	attr.send_cq = attr.recv_cq = end->cq;
	attr.srq = end->srq;
	attr.cap.max_send_wr = NUM_MESSAGES;
	attr.cap.max_recv_wr = with_srq ? 0 : NUM_MESSAGES;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	attr.qp_type = IBV_QPT_RC;
	end->qp = ibv_create_qp(pd, &attr);
	CHECK(end->qp);
	CHECK(end->qp->qp_num && end->qp->qp_type == IBV_QPT_RC && end->qp->state == IBV_QPS_RESET);
	CHECK(attr.cap.max_send_wr >= NUM_MESSAGES && attr.cap.max_send_wr < 100000);

	/* This runs for a QP with an SRQ, and for one without. */
	memset(&got, 0xee, sizeof(got));
	CHECK(!ibv_query_qp(end->qp, &qp_attr, IBV_QP_STATE, &got));
	CHECK(qp_attr.qp_state == IBV_QPS_RESET);
	CHECK(got.qp_context == end && got.send_cq == end->cq && got.recv_cq == end->cq &&
	      got.srq == end->srq);
	CHECK(got.qp_type == IBV_QPT_RC && got.cap.max_send_wr == attr.cap.max_send_wr);
}

static void connect_to(struct end *end, const struct end *peer, uint16_t lid)
{
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	CHECK(!ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));

	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = peer->qp->qp_num;
	attr.ah_attr.dlid = lid;
	attr.ah_attr.port_num = 1;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 12;
	CHECK(!ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));

	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	CHECK(!ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
	CHECK(end->qp->state == IBV_QPS_RTS);
}

/* Posts all receives as one chain, then a receive that the provider must refuse. */
static void post_receives(struct end *end)
{
	struct ibv_sge sge[NUM_MESSAGES];
	struct ibv_recv_wr wr[NUM_MESSAGES], *bad = NULL;
	int i;

	memset(wr, 0, sizeof(wr));
	for (i = 0; i < NUM_MESSAGES; ++i) {
		sge[i].addr = (uintptr_t)end->in[i];
		sge[i].length = MESSAGE_SIZE;
		sge[i].lkey = end->in_mr->lkey;
		wr[i].wr_id = 1000 + i;
		wr[i].next = i + 1 < NUM_MESSAGES ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
	}
	if (end->srq)
		CHECK(!ibv_post_srq_recv(end->srq, wr, &bad));
	else
		CHECK(!ibv_post_recv(end->qp, wr, &bad));
	CHECK(!bad);

	/*
	 * More scatter entries than any queue has room for: the provider refuses the request, and
	 * bad_wr names it.
	 */
	wr[0].num_sge = 1000;
	if (end->srq)
		CHECK(ibv_post_srq_recv(end->srq, wr, &bad));
	else
		CHECK(ibv_post_recv(end->qp, wr, &bad));
	CHECK(bad == &wr[0]);
}

static void post_sends(struct end *end)
{
	struct ibv_sge sge[NUM_MESSAGES];
	struct ibv_send_wr wr[NUM_MESSAGES], *bad = NULL;
	int i;

	memset(wr, 0, sizeof(wr));
	for (i = 0; i < NUM_MESSAGES; ++i) {
		sge[i].addr = (uintptr_t)end->out[i];
		sge[i].length = MESSAGE_SIZE;
		sge[i].lkey = end->out_mr->lkey;
		wr[i].wr_id = i;
		wr[i].next = i + 1 < NUM_MESSAGES ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge[i];
		/*
		 * The 71st request of the chain is refused. Those before it are sent, those behind
		 * it are not.
		 */
		wr[i].num_sge = i == 70 ? 1000 : 1;
		wr[i].opcode = IBV_WR_SEND;
		wr[i].send_flags = IBV_SEND_SIGNALED;
	}
	CHECK(ibv_post_send(end->qp, wr, &bad));
	CHECK(bad == &wr[70]);

	wr[70].num_sge = 1;
	bad = NULL;
	CHECK(!ibv_post_send(end->qp, &wr[70], &bad));
	CHECK(!bad);
}

static void take(struct ibv_wc *wc, int *sent, int *received)
{
	CHECK(wc->status == IBV_WC_SUCCESS);
	if (wc->opcode & IBV_WC_RECV) {
		CHECK(wc->byte_len == MESSAGE_SIZE);
		CHECK(wc->wr_id == (uint64_t)(1000 + *received));
		++*received;
	} else {
		CHECK(wc->wr_id == (uint64_t)*sent);
		++*sent;
	}
}

static void exchange(struct ibv_comp_channel *channel, struct end *ends)
{
	int sent[2] = {0}, received[2] = {0};
	struct pollfd pfd = {.fd = channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int i, n;

	for (i = 0; i < 2; ++i)
		CHECK(!ibv_req_notify_cq(ends[i].cq, 0));
	for (i = 0; i < 2; ++i)
		post_sends(&ends[i]);

	while (sent[0] + sent[1] + received[0] + received[1] < 4 * NUM_MESSAGES) {
		CHECK(poll(&pfd, 1, WAIT_MS) == 1);
		CHECK(!ibv_get_cq_event(channel, &cq, &context));
		CHECK(context == &ends[0] || context == &ends[1]);
		i = context == &ends[1];
		CHECK(cq == ends[i].cq);
		ibv_ack_cq_events(cq, 1);
		CHECK(!ibv_req_notify_cq(cq, 0));
		while ((n = ibv_poll_cq(cq, 1, &wc)) > 0)
			take(&wc, &sent[i], &received[i]);
		CHECK(n == 0);
	}

	for (i = 0; i < 2; ++i) {
		int m, j;

		CHECK(sent[i] == NUM_MESSAGES && received[i] == NUM_MESSAGES);
		for (m = 0; m < NUM_MESSAGES; ++m)
			for (j = 0; j < MESSAGE_SIZE; ++j)
				CHECK(ends[i].in[m][j] == byte_of(!i, m, j));
	}
}

static void unmake_end(struct end *end)
{
	CHECK(!ibv_destroy_qp(end->qp));
	if (end->srq)
		CHECK(!ibv_destroy_srq(end->srq));
	CHECK(!ibv_destroy_cq(end->cq));
	CHECK(!ibv_dereg_mr(end->in_mr));
	CHECK(!ibv_dereg_mr(end->out_mr));
	free(end->in);
	free(end->out);
}

int main(void)
{
	struct ibv_device **list;
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_device_attr device_attr;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	struct end ends[2];
	union ibv_gid gid, zero;
	uint16_t pkey;
	int i, n = -1;

	list = ibv_get_device_list(&n);
	if (!list || !n) {
		fprintf(stderr, "skipped: no device\n");
		return 77;
	}
	CHECK(list[0] && !list[n]);
	CHECK(strlen(ibv_get_device_name(list[0])) > 0);
	CHECK(ibv_get_device_guid(list[0]));

	context = ibv_open_device(list[0]);
	CHECK(context);
	CHECK(context->device == list[0]);
	ibv_free_device_list(list);
	CHECK(strlen(ibv_get_device_name(context->device)) > 0);
	CHECK(context->num_comp_vectors >= 1);
	CHECK(fcntl(context->cmd_fd, F_GETFD) >= 0 && fcntl(context->async_fd, F_GETFD) >= 0);

	CHECK(!ibv_query_device(context, &device_attr));
	CHECK(device_attr.node_guid == ibv_get_device_guid(context->device));
	CHECK(device_attr.phys_port_cnt >= 1);
	CHECK(!ibv_query_port(context, 1, &port));
	CHECK(port.state == IBV_PORT_ACTIVE && port.lid);
	memset(&zero, 0, sizeof(zero));
	CHECK(!ibv_query_gid(context, 1, 0, &gid));
	CHECK(memcmp(&gid, &zero, sizeof(gid)));
	CHECK(!ibv_query_pkey(context, 1, 0, &pkey));
	CHECK(pkey == 0xffff);

	pd = ibv_alloc_pd(context);
	CHECK(pd);
	CHECK(pd->context == context);
	channel = ibv_create_comp_channel(context);
	CHECK(channel);
	CHECK(fcntl(channel->fd, F_GETFD) >= 0);

	make_end(&ends[0], 0, pd, channel, 0);
	make_end(&ends[1], 1, pd, channel, 1);
	CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	connect_to(&ends[0], &ends[1], port.lid);
	connect_to(&ends[1], &ends[0], port.lid);
	for (i = 0; i < 2; ++i)
		post_receives(&ends[i]);
	exchange(channel, ends);

	for (i = 0; i < 2; ++i)
		unmake_end(&ends[i]);
	CHECK(!ibv_destroy_comp_channel(channel));
	CHECK(!ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(context));

	printf("%d messages each way\n", NUM_MESSAGES);
	return 0;
}
