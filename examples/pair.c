// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The ping-pong of two processes over one CQ, one or more QPs and in some tools an SRQ. Owns all
 * verbs objects of the run. On each QP a side sends its next message when the last one has been
 * sent and answered, so each direction has one message in flight. */

#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pingpong.h"

/* ---- Set-up ---- */

static int check_size(const struct pp_pair *pair)
{
	const uint32_t mtu = 128u << pair->port.active_mtu;

	if (pair->kind->qp_type == IBV_QPT_UD && pair->opt->size > mtu)
		return pp_fail(0, "A UD message is one packet; choose a smaller size (-s).",
			       "Requested size larger than port MTU (%" PRIu32 ")", mtu);
	if (pair->opt->size > pair->port.max_msg_sz)
		return pp_fail(0, "Choose a smaller size (-s).",
			       "Requested size larger than the port's longest message (%" PRIu32
			       ")",
			       pair->port.max_msg_sz);
	return 0;
}

static int make_srq(struct pp_pair *pair)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = pair->depth, .max_sge = 1}};

	errno = 0;
	pair->srq = ibv_create_srq(pair->pd, &attr);
	if (!pair->srq)
		return pp_fail(errno,
			       "ibv_devinfo -v shows the device's max_srq and max_srq_wr; -r "
			       "lowers what is asked for.",
			       "Couldn't create SRQ of %d receive%s", pair->depth,
			       pp_plural(pair->depth));
	return 0;
}

static int make_qp(struct pp_pair *pair, int i)
{
	struct pp_link *link = &pair->link[i];
	struct ibv_qp_init_attr attr = {.send_cq = pair->queue.cq,
					.recv_cq = pair->queue.cq,
					.srq = pair->srq,
					.cap = {.max_send_wr = 1,
						.max_recv_wr = pair->srq ? 0 : pair->depth,
						.max_send_sge = 1,
						.max_recv_sge = pair->srq ? 0 : 1},
					.qp_type = pair->kind->qp_type};
	int err;

	errno = 0;
	link->qp = ibv_create_qp(pair->pd, &attr);
	if (!link->qp)
		return pp_fail(errno,
			       "ibv_devinfo -v shows the device's max_qp and max_qp_wr; -r lowers "
			       "what is asked for.",
			       "Couldn't create QP %d of %d", i + 1, pair->n);
	link->send_flags = IBV_SEND_SIGNALED |
			   (pair->opt->size <= attr.cap.max_inline_data ? IBV_SEND_INLINE : 0);
	err = pair->kind->init(pair, i);
	if (err)
		return pp_fail(err, "Does the device have this port (-i)?",
			       "Failed to modify QP 0x%06" PRIx32 " to INIT", link->qp->qp_num);
	return 0;
}

static int set_up(struct pp_pair *pair)
{
	const struct pp_options *opt = pair->opt;
	int ret;

	pair->link = calloc(pair->n, sizeof *pair->link);
	if (!pair->link)
		return pp_fail(ENOMEM, NULL, "Couldn't allocate %d connection%s", pair->n,
			       pp_plural(pair->n));
	pair->context = pp_open_device(opt->ib_dev);
	if (!pair->context)
		return -ENODEV;
	ret = pp_query_port(pair->context, opt->ib_port, &pair->port);
	if (ret)
		return ret;
	ret = check_size(pair);
	if (ret)
		return ret;
	errno = 0;
	if (opt->events) {
		pair->channel = ibv_create_comp_channel(pair->context);
		if (!pair->channel)
			return pp_fail(errno, "Without -e no channel is needed.",
				       "Couldn't create completion channel");
	}
	pair->pd = ibv_alloc_pd(pair->context);
	if (!pair->pd)
		return pp_fail(errno, pp_memory_advice(errno), "Couldn't allocate PD");
	ret = pp_content_init(&pair->content, pair->pd, opt, pair->kind->headroom, pair->n,
			      pair->n + 1, opt->rx_depth);
	if (ret)
		return ret;
	pair->depth = pp_content_depth(&pair->content, opt->rx_depth);
	errno = 0;
	pair->queue.cq =
		ibv_create_cq(pair->context, pair->depth + pair->n, NULL, pair->channel, 0);
	if (!pair->queue.cq)
		return pp_fail(errno, pp_memory_advice(errno), "Couldn't create CQ of %d entries",
			       pair->depth + pair->n);
	if (pair->kind->srq) {
		ret = make_srq(pair);
		if (ret)
			return ret;
	}
	for (int i = 0; i < pair->n; i++) {
		ret = make_qp(pair, i);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- Clean-up: in reverse order; continues if an object cannot be destroyed ---- */

static int gone(int err, const char *what)
{
	return err ? pp_fail(err, NULL, "Couldn't destroy %s", what) : 0;
}

static int clean_up(struct pp_pair *pair)
{
	int ret = 0;

	pp_ack_all(&pair->queue, 1);
	for (int i = 0; pair->link && i < pair->n; i++) {
		if (pair->link[i].qp)
			ret |= gone(ibv_destroy_qp(pair->link[i].qp), "QP");
		if (pair->link[i].ah)
			ret |= gone(ibv_destroy_ah(pair->link[i].ah), "AH");
	}
	if (pair->srq)
		ret |= gone(ibv_destroy_srq(pair->srq), "SRQ");
	if (pair->queue.cq)
		ret |= gone(ibv_destroy_cq(pair->queue.cq), "CQ");
	ret |= pp_content_free(&pair->content);
	if (pair->pd)
		ret |= gone(ibv_dealloc_pd(pair->pd), "PD");
	if (pair->channel)
		ret |= gone(ibv_destroy_comp_channel(pair->channel), "completion channel");
	if (pair->context)
		ret |= gone(ibv_close_device(pair->context), "context");
	free(pair->link);
	return ret;
}

/* ---- Addresses ---- */

static int set_local(struct pp_pair *pair)
{
	union ibv_gid gid;
	int ret = pp_query_gid(pair->context, pair->opt, &pair->port, &gid);

	if (ret)
		return ret;
	for (int i = 0; i < pair->n; i++)
		pair->link[i].local = (struct pp_dest){
			.lid = pair->port.lid,
			.gid = gid,
			.qpn = pair->link[i].qp->qp_num,
			.send_qpn = pair->link[i].qp->qp_num,
			.psn = pp_random_psn(),
		};
	return 0;
}

static void print_dest(const char *whose, const struct pp_dest *dest)
{
	char gid[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, &dest->gid, gid, sizeof gid);
	printf("  %-15s LID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID %s\n", whose, dest->lid, dest->qpn,
	       dest->psn, gid);
}

static int connect_qps(struct pp_pair *pair)
{
	for (int i = 0; i < pair->n; i++) {
		const char *step = "RTR";
		int err = pair->kind->connect(pair, i, &step);

		if (err)
			return pp_fail(err,
				       "Do -g, -l and -m fit the port? ibv_devinfo -v shows its "
				       "GIDs and MTU.",
				       "Couldn't connect to remote QP 0x%06" PRIx32 " (%s)",
				       pair->link[i].remote.qpn, step);
	}
	return 0;
}

/* All generations of the tool send this many addresses. Those beyond the QPs in use are zero. */
static int send_addresses(const struct pp_pair *pair, int sock)
{
	struct pp_dest *dest = calloc(pair->kind->wire_count, sizeof *dest);
	int ret;

	if (!dest)
		return pp_fail(ENOMEM, NULL, "Couldn't allocate %d address%s",
			       pair->kind->wire_count, pair->kind->wire_count == 1 ? "" : "es");
	for (int i = 0; i < pair->n; i++)
		dest[i] = pair->link[i].local;
	ret = pp_send_dest(sock, PP_WIRE_PLAIN, dest, pair->kind->wire_count);
	free(dest);
	return ret;
}

static int recv_addresses(struct pp_pair *pair, int sock)
{
	struct pp_dest *dest = calloc(pair->kind->wire_count, sizeof *dest);
	int ret;

	if (!dest)
		return pp_fail(ENOMEM, NULL, "Couldn't allocate %d address%s",
			       pair->kind->wire_count, pair->kind->wire_count == 1 ? "" : "es");
	ret = pp_recv_dest(sock, PP_WIRE_PLAIN, dest, pair->kind->wire_count);
	for (int i = 0; i < pair->n && !ret; i++) {
		pair->link[i].remote = dest[i];
		if (!dest[i].qpn)
			ret = pp_fail(EPROTO, "Both sides need the same number of QPs (-q).",
				      "The other side has %d QP%s, not %d", i, pp_plural(i),
				      pair->n);
	}
	free(dest);
	return ret;
}

/* The server's QPs must be ready before its answer makes the client start. */
static int swap_addresses(struct pp_pair *pair, int sock)
{
	const bool client = pair->opt->server;
	int ret = client ? send_addresses(pair, sock) : 0;

	if (!ret)
		ret = recv_addresses(pair, sock);
	if (!ret)
		ret = connect_qps(pair);
	if (!ret && !client)
		ret = send_addresses(pair, sock);
	if (ret)
		return ret;
	return client ? pp_send_word(sock, "done") : pp_recv_word(sock, "done");
}

/* Connects to the peer, until all QPs are ready to send. Returns the socket or -errno. */
static int meet(struct pp_pair *pair)
{
	int sock, ret;

	for (int i = 0; i < pair->n; i++)
		print_dest("local address:", &pair->link[i].local);
	fflush(stdout);
	if (pair->opt->server) {
		sock = pp_connect(pair->opt);
	} else {
		int listener = pp_listen(pair->opt, 1);

		if (listener < 0)
			return listener;
		sock = pp_accept(pair->opt, listener);
		close(listener);
	}
	if (sock < 0)
		return sock;
	ret = swap_addresses(pair, sock);
	if (ret) {
		close(sock);
		return ret;
	}
	for (int i = 0; i < pair->n; i++)
		print_dest("remote address:", &pair->link[i].remote);
	fflush(stdout);
	return sock;
}

/* ---- Messages ---- */

static int post_receives(struct pp_pair *pair)
{
	while (pair->outstanding < pair->depth) {
		struct ibv_sge sge;
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
		int slot = pp_take_slot(&pair->content);
		int err;

		pp_slot_sge(&pair->content, slot, &sge);
		/* To the hardware a length of 0 means 2 GiB. */
		if (!sge.length)
			wr.num_sge = 0;
		wr.wr_id = (uint64_t)slot << 2 | PP_RECV;
		err = pair->srq ? ibv_post_srq_recv(pair->srq, &wr, &bad)
				: ibv_post_recv(pair->link[0].qp, &wr, &bad);
		if (err)
			return pp_fail(err, NULL, "Couldn't post receive (%d of %d)",
				       pair->outstanding + 1, pair->depth);
		pair->outstanding++;
	}
	return 0;
}

static int post_message(struct pp_pair *pair, int i)
{
	struct pp_link *link = &pair->link[i];
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = (uint64_t)i << 2 | PP_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = link->send_flags},
			   *bad;
	int err;

	pp_send_sge(&pair->content, i, &sge);
	if (!sge.length)
		wr.num_sge = 0;
	if (link->ah) {
		wr.wr.ud.ah = link->ah;
		wr.wr.ud.remote_qpn = link->remote.qpn;
		wr.wr.ud.remote_qkey = PP_UD_QKEY;
	}
	pp_write_message(&pair->content, i, pp_stream(link->local.send_qpn, link->local.psn),
			 link->sent);
	err = ibv_post_send(link->qp, &wr, &bad);
	if (err)
		return pp_fail(err, NULL, "Couldn't post send %" PRIu64 " on QP 0x%06" PRIx32,
			       link->sent, link->qp->qp_num);
	link->sent++;
	link->pending = PP_RECV | PP_SEND;
	return 0;
}

/* Returns the connection whose QP has the number, or -1. Searches from the one after LAST. */
static int find_link(const struct pp_pair *pair, uint32_t qpn, int last)
{
	for (int k = 1; k <= pair->n; k++) {
		int i = (last + k) % pair->n;

		if (pair->link[i].qp->qp_num == qpn)
			return i;
	}
	return -1;
}

struct count {
	int sent, received, posted;
	int last; /* the connection with the latest receive */
};

static int completed(struct pp_pair *pair, const struct ibv_wc *wc, struct count *count)
{
	const int kind = wc->wr_id & 3, index = wc->wr_id >> 2;
	int i, ret;

	if (wc->status != IBV_WC_SUCCESS)
		return pp_wc_failed(wc);
	if (kind == PP_SEND) {
		i = index;
		count->sent++;
	} else if (kind == PP_RECV) {
		i = find_link(pair, wc->qp_num, count->last);
		if (i < 0)
			return pp_fail(0, NULL, "Completion for unknown QP 0x%06" PRIx32,
				       wc->qp_num);
		ret = pp_check_message(
			&pair->content, index,
			pp_stream(pair->link[i].remote.send_qpn, pair->link[i].remote.psn),
			pair->link[i].received, wc->byte_len);
		if (ret)
			return ret;
		pair->link[i].received++;
		count->last = i;
		count->received++;
		if (--pair->outstanding <= pair->n) {
			ret = post_receives(pair);
			if (ret)
				return ret;
		}
	} else {
		return pp_fail(0, NULL, "Completion for unknown wr_id %d", (int)wc->wr_id);
	}
	pair->link[i].pending &= ~kind;
	if (count->posted < pair->opt->iters && !pair->link[i].pending) {
		count->posted++;
		return post_message(pair, i);
	}
	return 0;
}

static int exchange_messages(struct pp_pair *pair, struct count *count)
{
	const int iters = pair->opt->iters;
	struct pp_progress progress;
	struct pp_watch watch = {};
	int ret = 0;

	pp_progress_start(&progress);
	while (!ret && (count->received < iters || count->sent < iters)) {
		struct ibv_wc wc[16];
		int n;

		if (pair->channel) {
			ret = pp_wait_event(pair->channel, &pair->queue, 1, pair->opt->timeout);
			if (ret)
				break;
		}
		do {
			n = ibv_poll_cq(pair->queue.cq, 16, wc);
			if (n < 0)
				ret = pp_fail(0, NULL, "poll CQ failed %d", n);
			else if (!n)
				ret = pp_idle(&watch, pair->opt->timeout);
			else
				pp_busy(&watch);
			for (int k = 0; k < n && !ret; k++) {
				ret = completed(pair, &wc[k], count);
				/* Errors after the last exchange, such as those when the peer ends,
				 * do not matter. */
				if (count->received >= iters && count->sent >= iters)
					break;
			}
			if (n > 0)
				pp_progress_step(&progress, count->received, iters);
			/* With events, drain the CQ: the next event is only for completions that
			 * come later. */
		} while (!ret && (pair->channel ? n > 0 : !n));
	}
	pp_progress_end(&progress);
	return ret;
}

static int talk(struct pp_pair *pair)
{
	struct count count = {.last = -1};
	uint64_t start, usec;
	int sock, ret;

	ret = set_local(pair);
	if (!ret)
		ret = post_receives(pair);
	if (!ret && pair->channel)
		ret = pp_arm(&pair->queue, 1);
	if (ret)
		return ret;
	sock = meet(pair);
	if (sock < 0)
		return sock;

	for (int i = 0; i < pair->n; i++)
		pair->link[i].pending = PP_RECV;
	start = pp_now_usec();
	for (int i = 0; pair->opt->server && i < pair->n && count.posted < pair->opt->iters && !ret;
	     i++) {
		count.posted++;
		ret = post_message(pair, i);
	}
	if (!ret)
		ret = exchange_messages(pair, &count);
	usec = pp_now_usec() - start;
	if (ret) {
		close(sock);
		return ret;
	}
	pp_print_rate(pair->opt->size, pair->opt->iters, usec);
	pp_print_verified(&pair->content);
	fflush(stdout);
	pp_linger(sock);
	return 0;
}

int pp_run_pair(const struct pp_kind *kind, const struct pp_options *opt)
{
	struct pp_pair pair = {.kind = kind, .opt = opt, .n = kind->srq ? opt->num_qp : 1};
	int ret;

	ret = set_up(&pair);
	if (!ret)
		ret = talk(&pair);
	ret |= clean_up(&pair);
	return ret ? 1 : 0;
}
