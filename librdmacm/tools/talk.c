// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Ids of one tool that exchange messages: their life, their messages and their events. A talker
 * sleeps on its completion channel and on the event channel at the same time, so it learns that its
 * peer has gone. One thread does everything. */

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "talk.h"
#include "tool.h"

int talk_fail(const struct talk *talk, const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", talk->name, what, strerror(errno));
	return -1;
}

int talk_end(const struct talk *talk, int ret)
{
	printf("test complete\nreturn status %d\n", ret && talk->status ? talk->status : ret);
	return ret ? 1 : 0;
}

/* ---- Life ---- */

int talk_open(struct talk *talk, bool ids)
{
	struct talker *talker;
	long i;

	/* Tools of other packages send nothing then, either. */
	if (!talk->size)
		talk->count = 0;
	talk->channel = rdma_create_event_channel();
	if (!talk->channel)
		return talk_fail(talk, "failed to create RDMA CM event channel");
	talk->talkers = calloc(talk->connections, sizeof(*talk->talkers));
	if (!talk->talkers)
		return talk_fail(talk, "unable to allocate memory for test nodes");
	for (i = 0; i < talk->connections; i++) {
		talker = &talk->talkers[i];
		talker->number = i + 1;
		if (ids && rdma_create_id(talk->channel, &talker->id, talker,
					  (enum rdma_port_space)talk->hints.ai_port_space))
			return talk_fail(talk, "unable to create id");
	}
	talk->awaited = talk->connections;
	return 0;
}

static void close_talker(struct talker *talker)
{
	if (talker->ah)
		ibv_destroy_ah(talker->ah);
	if (talker->id && talker->id->qp)
		rdma_destroy_qp(talker->id);
	if (talker->mr)
		rdma_dereg_mr(talker->mr);
	free(talker->buf);
	if (talker->id)
		rdma_destroy_id(talker->id);
}

void talk_close(struct talk *talk)
{
	long i;

	for (i = 0; talk->talkers && i < talk->connections; i++)
		close_talker(&talk->talkers[i]);
	free(talk->talkers);
	if (talk->channel)
		rdma_destroy_event_channel(talk->channel);
	if (talk->res)
		rdma_freeaddrinfo(talk->res);
}

int talk_listen(struct talk *talk, struct rdma_cm_id **listener, int backlog)
{
	if (talk_addresses(talk, NULL))
		return -1;
	if (rdma_create_id(talk->channel, listener, NULL,
			   (enum rdma_port_space)talk->hints.ai_port_space))
		return talk_fail(talk, "listen request failed");
	if (rdma_bind_addr(*listener, talk->res->ai_src_addr)) {
		talk_fail(talk, "bind address failed");
		fprintf(stderr, "%s: it was %s, port %s\n", talk->name,
			talk->bind ? talk->bind : "any address", talk->port);
		return -1;
	}
	if (rdma_listen(*listener, backlog)) {
		talk_fail(talk, "failure trying to listen");
		fprintf(stderr, "%s: does another program listen at port %s?\n", talk->name,
			talk->port);
		return -1;
	}
	return 0;
}

static int post_receives(struct talk *talk, struct talker *talker)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)talker->buf,
		.length = talk->size + talk->grh,
		.lkey = talker->mr->lkey,
	};
	long i;

	for (i = 0; i < talk->count; i++)
		if (rdma_post_recvv(talker->id, NULL, &sge, 1))
			return talk_fail(talk, "failed to post receives");
	return 0;
}

int talk_prepare(struct talk *talk, struct talker *talker)
{
	size_t length = talk->size + talk->grh;
	struct ibv_qp_init_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.cap.max_send_wr = attr.cap.max_recv_wr = talk->count ? talk->count : 1;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	attr.qp_type = talk->grh ? IBV_QPT_UD : IBV_QPT_RC;
	attr.sq_sig_all = 1;
	if (rdma_create_qp(talker->id, NULL, &attr)) {
		talk_fail(talk, "unable to create QP");
		if (errno == EINVAL || errno == ENOMEM)
			fprintf(stderr,
				"%s: it was to have room for %ld message%s; a smaller -C takes "
				"less\n",
				talk->name, talk->count, tool_plural(talk->count));
		return -1;
	}
	talker->buf = calloc(1, length ? length : 1);
	if (!talker->buf)
		return talk_fail(talk, "failed message allocation");
	talker->mr = rdma_reg_msgs(talker->id, talker->buf, length ? length : 1);
	if (!talker->mr) {
		talk_fail(talk, "failed to reg MR");
		fprintf(stderr, "%s: it has %zu byte%s; a smaller -S or a higher ulimit -l helps\n",
			talk->name, length, tool_plural(length));
		return -1;
	}
	return post_receives(talk, talker);
}

/* ---- Messages ---- */

int talk_check_mtu(struct talk *talk, struct talker *talker)
{
	struct ibv_port_attr port;
	int ret = ibv_query_port(talker->id->verbs, talker->id->port_num, &port);

	if (ret) {
		errno = ret;
		return talk_fail(talk, "unable to query the port");
	}
	if (talk->size <= 1 << (port.active_mtu + 7))
		return 0;
	fprintf(stderr, "%s: message_size %ld is larger than active mtu %d\n", talk->name,
		talk->size, 1 << (port.active_mtu + 7));
	return -1;
}

int talk_reach(struct talk *talk, struct talker *talker, const struct rdma_ud_param *param)
{
	struct ibv_ah_attr attr = param->ah_attr;

	talker->remote_qpn = param->qp_num;
	talker->remote_qkey = param->qkey;
	talker->ah = ibv_create_ah(talker->id->pd, &attr);
	return talker->ah ? 0 : talk_fail(talk, "failure creating address handle");
}

static int send_all(struct talk *talk, struct talker *talker)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)talker->buf,
		.length = talk->size,
		.lkey = talker->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
				 };
	long i;
	int ret;

	if (talker->ah) {
		/* The other end replies to this number. */
		wr.opcode = IBV_WR_SEND_WITH_IMM;
		wr.imm_data = htonl(talker->id->qp->qp_num);
		wr.wr.ud.ah = talker->ah;
		wr.wr.ud.remote_qpn = talker->remote_qpn;
		wr.wr.ud.remote_qkey = talker->remote_qkey;
	}
	for (i = 0; i < talk->count; i++) {
		ret = ibv_post_send(talker->id->qp, &wr, &bad);
		if (ret) {
			errno = ret;
			return talk_fail(talk, "failed to post sends");
		}
	}
	return 0;
}

int talk_send(struct talk *talk)
{
	long i;

	for (i = 0; i < talk->connections; i++)
		if (talk->talkers[i].connected && send_all(talk, &talk->talkers[i]))
			return -1;
	return 0;
}

/* Sleeps until channel or the event channel has something. Returns 1 for channel. */
static int sleep_for(struct talk *talk, struct talker *talker, struct ibv_comp_channel *channel)
{
	struct pollfd fds[2] = {{.fd = channel->fd, .events = POLLIN},
				{.fd = talk->channel->fd, .events = POLLIN}};
	int n = poll(fds, 2, talk->patience);

	if (n < 0)
		return errno == EINTR ? 0 : talk_fail(talk, "unable to wait for completions");
	if (!n) {
		fprintf(stderr,
			"%s: connection %d: %ld of %ld messages have come, and none for %d s. "
			"Datagrams may be lost, or the peer has ended or has another -C\n",
			talk->name, talker->number, talker->received, talk->count,
			talk->patience / 1000);
		return -1;
	}
	/* What an event says counts only after all completions that came before it. */
	if (fds[0].revents)
		return 1;
	return talk_event(talk);
}

static int lost(struct talk *talk, struct talker *talker, long done)
{
	fprintf(stderr,
		"%s: connection %d: the peer disconnected when %ld of %ld messages had come; "
		"what it printed may say why\n",
		talk->name, talker->number, done, talk->count);
	return -1;
}

static int take(struct talk *talk, struct talker *talker, struct ibv_wc *wc, bool sends)
{
	if (wc->status == IBV_WC_SUCCESS) {
		++*(sends ? &talker->sent : &talker->received);
		return !sends && talk->message ? talk->message(talk, talker, wc) : 0;
	}
	if (wc->status == IBV_WC_WR_FLUSH_ERR && talker->over)
		return lost(talk, talker, talker->received);
	fprintf(stderr, "%s: connection %d: a message could not be %s: %s%s\n", talk->name,
		talker->number, sends ? "sent" : "received", ibv_wc_status_str(wc->status),
		wc->status == IBV_WC_LOC_LEN_ERR ? "; does the peer have the same -S?" : "");
	return -1;
}

static int wait_one(struct talk *talk, struct talker *talker, bool sends)
{
	struct ibv_comp_channel *channel =
		sends ? talker->id->send_cq_channel : talker->id->recv_cq_channel;
	struct ibv_cq *of, *cq = sends ? talker->id->send_cq : talker->id->recv_cq;
	const long *done = sends ? &talker->sent : &talker->received;
	bool armed = false;
	struct ibv_wc wc;
	void *context;
	int n;

	while (*done < talk->count) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n < 0) {
			fprintf(stderr, "%s: failed polling CQ: %d\n", talk->name, n);
			return -1;
		}
		if (n) {
			if (take(talk, talker, &wc, sends))
				return -1;
			continue;
		}
		if (!armed) {
			if (rdma_seterrno(ibv_req_notify_cq(cq, 0)))
				return talk_fail(talk, "unable to wait for completions");
			armed = true;
			continue;
		}
		if (talker->over && !sends)
			return lost(talk, talker, *done);
		n = sleep_for(talk, talker, channel);
		if (n < 0)
			return -1;
		if (n) {
			if (ibv_get_cq_event(channel, &of, &context))
				return talk_fail(talk, "unable to wait for completions");
			ibv_ack_cq_events(of, 1);
			armed = false;
		}
	}
	return 0;
}

int talk_wait(struct talk *talk, bool sends)
{
	long i;

	for (i = 0; i < talk->connections; i++)
		if (talk->talkers[i].connected && wait_one(talk, &talk->talkers[i], sends))
			return -1;
	return 0;
}

/* ---- Events ---- */

int talk_event(struct talk *talk)
{
	struct rdma_cm_event *event, copy;

	if (rdma_get_cm_event(talk->channel, &event))
		return errno == EINTR ? 0 : talk_fail(talk, "failure in rdma_get_cm_event");
	/* An id can be destroyed only when its events are acknowledged. */
	copy = *event;
	rdma_ack_cm_event(event);
	return talk->event(talk, copy.id->context, &copy);
}

int talk_bad_event(struct talk *talk, const struct rdma_cm_event *event)
{
	fprintf(stderr, "%s: event: %s, error: %d\n", talk->name, rdma_event_str(event->event),
		event->status);
	talk->status = event->status;
	talk->awaited--;
	return -1;
}
