// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_xsrq_pingpong: one server and N clients over XRC, with the XRC interface of OFED 1.x.
 *
 * Each side has one XRC SRQ in an XRC domain, and for each peer an XRC send QP and an XRC receive
 * QP. A send QP is connected to the peer's receive QP and names the peer's SRQ in every message.
 * When all clients are connected, the server sends the first message to each of them. From then on
 * both sides answer each message. The receive QP belongs to the domain. The program has no object
 * for it, only its number, and ends it by unregistering. */

#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pingpong.h"

enum { RECV_CQ, SEND_CQ, QUEUES };

struct peer {
	struct pp_dest local, remote;
	struct ibv_qp *send_qp;
	bool has_recv_qp; /* local.qpn is valid */
	bool sending;	  /* a send has not completed */
	int owed;	  /* messages to send as soon as possible */
	uint64_t sent, received;
	int send_flags;
	int sock;
};

struct run {
	const struct pp_options *opt;
	struct ibv_context *context;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_xrc_domain *domain;
	struct pp_queue queue[QUEUES];
	struct ibv_srq *srq;
	struct pp_content content;
	struct peer *peer;
	int n; /* peers: the clients, or the server */
	int depth;
	int outstanding;
	int total; /* messages each way, of all peers */
	int sent, received;
	int last; /* the peer of the latest receive */
};

/* ---- Set-up ---- */

/* Opens the file of the domain that all clients of this user share, by the name that other
 * generations of this tool use. Returns -1 if that file is another user's. The server of those
 * generations sends a client's message through the receive QP of any client, and a QP reaches only
 * the SRQs of its own domain. */
static int common_file(void)
{
	int fd = open("/tmp/xrc_domain", O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		      0440);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid())) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Returns a descriptor of the domain's file, or -errno. A file that the program makes for itself is
 * unlinked at once. */
static int domain_file(const char *path, bool client)
{
	const char *dir = getenv("TMPDIR");
	char own[4096];
	int fd;

	if (path) {
		fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0666);
		return fd < 0 ? pp_fail(errno,
					"The file's contents do not matter; it must exist or be "
					"creatable.",
					"Couldn't open XRC domain file %s", path)
			      : fd;
	}
	fd = client ? common_file() : -1;
	if (fd >= 0)
		return fd;
	if (snprintf(own, sizeof own, "%s/ibv_xsrq_pingpong.XXXXXX", dir && *dir ? dir : "/tmp") >=
	    (int)sizeof own)
		return pp_fail(ENAMETOOLONG, NULL,
			       "Couldn't make a file for the XRC domain in TMPDIR");
	fd = mkostemp(own, O_CLOEXEC);
	if (fd < 0)
		return pp_fail(errno, "TMPDIR or --domain chooses another place.",
			       "Couldn't make a file for the XRC domain (%s)", own);
	unlink(own);
	return fd;
}

static int open_domain(struct run *run)
{
	int fd = domain_file(run->opt->domain, run->opt->server);

	if (fd < 0)
		return fd;
	errno = 0;
	run->domain = ibv_open_xrc_domain(run->context, fd, O_CREAT);
	if (!run->domain) {
		int err = errno ? errno : ENOSYS;

		close(fd);
		return pp_fail(err,
			       err == ENOSYS ? "The device, its provider or the kernel has no XRC; "
					       "ibv_devinfo -v shows whether the device has."
					     : NULL,
			       "Couldn't open the XRC domain");
	}
	/* The domain belongs to the inode and does not need the descriptor. */
	close(fd);
	return 0;
}

static int make_queues(struct run *run)
{
	const int size[QUEUES] = {[RECV_CQ] = run->depth, [SEND_CQ] = run->n};

	for (int q = 0; q < QUEUES; q++) {
		errno = 0;
		run->queue[q].cq = ibv_create_cq(run->context, size[q], NULL, run->channel, 0);
		if (!run->queue[q].cq)
			return pp_fail(errno, pp_memory_advice(errno),
				       "Couldn't create %s CQ of %d entries",
				       q == RECV_CQ ? "recv" : "send", size[q]);
	}
	return 0;
}

static int make_send_qp(struct run *run, struct peer *peer)
{
	struct ibv_qp_init_attr init = {.send_cq = run->queue[SEND_CQ].cq,
					.recv_cq = run->queue[SEND_CQ].cq,
					.cap = {.max_send_wr = 1, .max_send_sge = 1},
					.qp_type = IBV_QPT_XRC,
					.xrc_domain = run->domain};
	struct ibv_qp_attr attr;
	int mask, err;

	errno = 0;
	peer->send_qp = ibv_create_qp(run->pd, &init);
	if (!peer->send_qp)
		return pp_fail(errno, "ibv_devinfo -v shows the device's max_qp.",
			       "Couldn't create XRC send QP");
	peer->send_flags = IBV_SEND_SIGNALED |
			   (run->opt->size <= init.cap.max_inline_data ? IBV_SEND_INLINE : 0);
	mask = pp_init_attr(run->opt, &attr);
	err = ibv_modify_qp(peer->send_qp, &attr, mask);
	if (err)
		return pp_fail(err, NULL, "Failed to modify XRC send QP to INIT");
	return 0;
}

static int make_recv_qp(struct run *run, struct peer *peer)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_XRC, .xrc_domain = run->domain};
	struct ibv_qp_attr attr;
	int mask, err;

	err = ibv_create_xrc_rcv_qp(&init, &peer->local.qpn);
	if (err)
		return pp_fail(err, "ibv_devinfo -v shows the device's max_qp.",
			       "Couldn't create XRC receive QP");
	peer->has_recv_qp = true;
	mask = pp_init_attr(run->opt, &attr);
	err = ibv_modify_xrc_rcv_qp(run->domain, peer->local.qpn, &attr, mask);
	if (err)
		return pp_fail(err, NULL, "Failed to modify XRC receive QP to INIT");
	return 0;
}

static int make_peer(struct run *run, struct peer *peer)
{
	int ret = make_send_qp(run, peer);

	if (!ret)
		ret = make_recv_qp(run, peer);
	if (ret)
		return ret;
	peer->local.send_qpn = peer->send_qp->qp_num;
	peer->local.psn = pp_random_psn();
	peer->local.srqn = run->srq->xrc_srq_num;
	peer->local.lid = run->port.lid;
	peer->local.gid = run->gid;
	return 0;
}

static int make_srq(struct run *run)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = run->depth, .max_sge = 1}};

	errno = 0;
	run->srq = ibv_create_xrc_srq(run->pd, run->domain, run->queue[RECV_CQ].cq, &attr);
	if (!run->srq)
		return pp_fail(errno, "ibv_devinfo -v shows the device's max_srq and max_srq_wr.",
			       "Couldn't create SRQ of %d receive%s", run->depth,
			       pp_plural(run->depth));
	return 0;
}

static int query(struct run *run)
{
	const struct pp_options *opt = run->opt;
	int ret = pp_query_port(run->context, opt->ib_port, &run->port);

	if (ret)
		return ret;
	if (opt->size > run->port.max_msg_sz)
		return pp_fail(0, "Choose a smaller size (-s).",
			       "Requested size larger than the port's longest message (%" PRIu32
			       ")",
			       run->port.max_msg_sz);
	return pp_query_gid(run->context, opt, &run->port, &run->gid);
}

static int set_up(struct run *run)
{
	const struct pp_options *opt = run->opt;
	int ret;

	run->peer = calloc(run->n, sizeof *run->peer);
	if (!run->peer)
		return pp_fail(ENOMEM, NULL, "Couldn't allocate %d connection%s", run->n,
			       pp_plural(run->n));
	for (int i = 0; i < run->n; i++)
		run->peer[i].sock = -1;
	run->context = pp_open_device(opt->ib_dev);
	if (!run->context)
		return -ENODEV;
	ret = query(run);
	if (ret)
		return ret;
	errno = 0;
	if (opt->events) {
		run->channel = ibv_create_comp_channel(run->context);
		if (!run->channel)
			return pp_fail(errno, "Without -e no channel is needed.",
				       "Couldn't create completion channel");
	}
	run->pd = ibv_alloc_pd(run->context);
	if (!run->pd)
		return pp_fail(errno, pp_memory_advice(errno), "Couldn't allocate PD");
	ret = open_domain(run);
	if (ret)
		return ret;
	/* One message per peer is in flight. Twice as many receives let the check of one message
	 * overlap with the arrival of the next. */
	ret = pp_content_init(&run->content, run->pd, opt, 0, run->n, 2 * run->n, 2 * run->n);
	if (ret)
		return ret;
	run->depth = pp_content_depth(&run->content, 2 * run->n);
	ret = make_queues(run);
	if (!ret)
		ret = make_srq(run);
	for (int i = 0; i < run->n && !ret; i++)
		ret = make_peer(run, &run->peer[i]);
	return ret;
}

/* ---- Clean-up: in reverse order; continues if an object cannot be destroyed ---- */

static int gone(int err, const char *what)
{
	return err ? pp_fail(err, NULL, "Couldn't destroy %s", what) : 0;
}

static int clean_up(struct run *run)
{
	int ret = 0;

	pp_ack_all(run->queue, run->queue[SEND_CQ].cq ? QUEUES : 0);
	for (int i = 0; run->peer && i < run->n; i++) {
		struct peer *peer = &run->peer[i];

		if (peer->sock >= 0)
			close(peer->sock);
		if (peer->send_qp)
			ret |= gone(ibv_destroy_qp(peer->send_qp), "XRC send QP");
		if (peer->has_recv_qp)
			ret |= gone(ibv_unreg_xrc_rcv_qp(run->domain, peer->local.qpn),
				    "XRC receive QP");
	}
	if (run->srq)
		ret |= gone(ibv_destroy_srq(run->srq), "SRQ");
	for (int q = 0; q < QUEUES; q++)
		if (run->queue[q].cq)
			ret |= gone(ibv_destroy_cq(run->queue[q].cq),
				    q == RECV_CQ ? "recv CQ" : "send CQ");
	ret |= pp_content_free(&run->content);
	if (run->domain)
		ret |= gone(ibv_close_xrc_domain(run->domain), "XRC domain");
	if (run->pd)
		ret |= gone(ibv_dealloc_pd(run->pd), "PD");
	if (run->channel)
		ret |= gone(ibv_destroy_comp_channel(run->channel), "completion channel");
	if (run->context)
		ret |= gone(ibv_close_device(run->context), "context");
	free(run->peer);
	return ret;
}

/* ---- Addresses ---- */

static void print_dest(const char *whose, const struct pp_dest *dest)
{
	char gid[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, &dest->gid, gid, sizeof gid);
	printf("%8s: LID %04x, QPN RECV %06x SEND %06x, PSN %06x, SRQN %06x, GID %s\n", whose,
	       dest->lid, dest->qpn, dest->send_qpn, dest->psn, dest->srqn, gid);
	fflush(stdout);
}

static int connect_peer(struct run *run, struct peer *peer)
{
	static const char advice[] =
		"Do -g, -l and -m fit the port? ibv_devinfo -v shows its GIDs and MTU.";
	struct ibv_qp_attr attr;
	int mask, err;

	mask = pp_rtr_attr(run->opt, &peer->remote, peer->remote.send_qpn, &attr);
	err = ibv_modify_xrc_rcv_qp(run->domain, peer->local.qpn, &attr, mask);
	if (err)
		return pp_fail(err, advice,
			       "Failed to modify XRC receive QP 0x%06" PRIx32 " to RTR",
			       peer->local.qpn);
	mask = pp_rtr_attr(run->opt, &peer->remote, peer->remote.qpn, &attr);
	err = ibv_modify_qp(peer->send_qp, &attr, mask);
	if (err)
		return pp_fail(err, advice, "Failed to modify XRC send QP 0x%06" PRIx32 " to RTR",
			       peer->local.send_qpn);
	mask = pp_rts_attr(peer->local.psn, &attr);
	err = ibv_modify_qp(peer->send_qp, &attr, mask);
	if (err)
		return pp_fail(err, NULL, "Failed to modify XRC send QP 0x%06" PRIx32 " to RTS",
			       peer->local.send_qpn);
	return 0;
}

static int tell(struct peer *peer)
{
	print_dest("local", &peer->local);
	return pp_send_dest(peer->sock, PP_WIRE_XRC, &peer->local, 1);
}

static int hear(struct run *run, struct peer *peer)
{
	int ret = pp_recv_dest(peer->sock, PP_WIRE_XRC, &peer->remote, 1);

	if (ret)
		return ret;
	print_dest("remote", &peer->remote);
	return connect_peer(run, peer);
}

static int meet_server(struct run *run)
{
	struct peer *peer = &run->peer[0];
	int ret;

	peer->sock = pp_connect(run->opt);
	if (peer->sock < 0)
		return peer->sock;
	ret = tell(peer);
	return ret ? ret : hear(run, peer);
}

static int meet_clients(struct run *run)
{
	int listener = pp_listen(run->opt, run->n);
	int ret = listener < 0 ? listener : 0;

	for (int i = 0; i < run->n && !ret; i++) {
		struct peer *peer = &run->peer[i];

		peer->sock = pp_accept(run->opt, listener);
		if (peer->sock < 0) {
			ret = peer->sock;
			break;
		}
		ret = hear(run, peer);
		if (!ret)
			ret = tell(peer);
	}
	if (listener >= 0)
		close(listener);
	return ret;
}

/* ---- Messages ---- */

static int post_receives(struct run *run)
{
	while (run->outstanding < run->depth) {
		struct ibv_sge sge;
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
		int slot = pp_take_slot(&run->content);
		int err;

		pp_slot_sge(&run->content, slot, &sge);
		/* To the hardware a length of 0 means 2 GiB. */
		if (!sge.length)
			wr.num_sge = 0;
		wr.wr_id = slot;
		err = ibv_post_srq_recv(run->srq, &wr, &bad);
		if (err)
			return pp_fail(err, NULL, "Couldn't post receives (%d of %d)",
				       run->outstanding + 1, run->depth);
		run->outstanding++;
	}
	return 0;
}

static int send_owed(struct run *run, int i)
{
	struct peer *peer = &run->peer[i];
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = i,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = peer->send_flags,
				 .xrc_remote_srq_num = peer->remote.srqn},
			   *bad;
	int err;

	if (!peer->owed || peer->sending)
		return 0;
	pp_send_sge(&run->content, i, &sge);
	if (!sge.length)
		wr.num_sge = 0;
	pp_write_message(&run->content, i, pp_stream(peer->local.send_qpn, peer->local.psn),
			 peer->sent);
	err = ibv_post_send(peer->send_qp, &wr, &bad);
	if (err)
		return pp_fail(err, NULL, "Couldn't post send %" PRIu64 " to SRQ 0x%06" PRIx32,
			       peer->sent, peer->remote.srqn);
	peer->owed--;
	peer->sent++;
	peer->sending = true;
	return 0;
}

/* A client receives only from its server, which may use the receive QP of another client. */
static int find_peer(const struct run *run, uint32_t qpn)
{
	if (run->opt->server)
		return 0;
	for (int k = 1; k <= run->n; k++) {
		int i = (run->last + k) % run->n;

		if (run->peer[i].local.qpn == qpn)
			return i;
	}
	return -1;
}

static int received(struct run *run, const struct ibv_wc *wc)
{
	int i = find_peer(run, wc->qp_num);
	struct peer *peer;
	int ret;

	if (i < 0)
		return pp_fail(0, NULL, "Unable to find QP 0x%06" PRIx32, wc->qp_num);
	peer = &run->peer[i];
	if (peer->received == (uint64_t)run->opt->iters)
		return pp_fail(EPROTO, "Both sides need the same number of tests (-n).",
			       "Peer %d sent more than %d message%s", i, run->opt->iters,
			       pp_plural(run->opt->iters));
	ret = pp_check_message(&run->content, wc->wr_id,
			       pp_stream(peer->remote.send_qpn, peer->remote.psn), peer->received,
			       wc->byte_len);
	if (ret)
		return ret;
	run->last = i;
	run->received++;
	run->outstanding--;
	/* The client answers every message. The server sends its next message when it gets the
	 * answer. */
	if (++peer->received < (uint64_t)run->opt->iters || run->opt->server)
		peer->owed++;
	ret = post_receives(run);
	return ret ? ret : send_owed(run, i);
}

static int sent(struct run *run, const struct ibv_wc *wc)
{
	run->peer[wc->wr_id].sending = false;
	run->sent++;
	return send_owed(run, wc->wr_id);
}

/* Takes the completions of queue Q. Returns their number or -errno. */
static int drain(struct run *run, int q)
{
	int taken = 0, n, ret;
	struct ibv_wc wc[16];

	while ((n = ibv_poll_cq(run->queue[q].cq, 16, wc)) > 0) {
		for (int k = 0; k < n; k++) {
			ret = wc[k].status != IBV_WC_SUCCESS ? pp_wc_failed(&wc[k])
			      : q == RECV_CQ		     ? received(run, &wc[k])
							     : sent(run, &wc[k]);
			if (ret)
				return ret;
		}
		taken += n;
	}
	return n < 0 ? pp_fail(0, NULL, "Error polling cq %d", n) : taken;
}

static int exchange_messages(struct run *run)
{
	struct pp_progress progress;
	struct pp_watch watch = {};
	int ret = 0;

	pp_progress_start(&progress);
	while (run->received < run->total || run->sent < run->total) {
		int taken = 0;

		if (run->channel) {
			ret = pp_wait_event(run->channel, run->queue, QUEUES, run->opt->timeout);
			if (ret)
				break;
		}
		for (int q = 0; q < QUEUES && ret >= 0; q++) {
			ret = drain(run, q);
			taken += ret;
		}
		if (ret < 0)
			break;
		ret = 0;
		if (taken) {
			pp_busy(&watch);
			pp_progress_step(&progress, run->received, run->total);
		} else if (!run->channel) {
			ret = pp_idle(&watch, run->opt->timeout);
			if (ret)
				break;
		}
	}
	pp_progress_end(&progress);
	return ret;
}

/* Both sides keep their QPs until the other side is done: its last acknowledgement may still be in
 * flight. */
static int part(struct run *run)
{
	const bool client = run->opt->server;
	int ret = client ? pp_send_word(run->peer[0].sock, "END") : 0;

	for (int i = 0; i < run->n && !ret; i++)
		ret = pp_recv_word(run->peer[i].sock, "END");
	for (int i = 0; i < run->n && !ret && !client; i++)
		ret = pp_send_word(run->peer[i].sock, "END");
	return ret;
}

static int talk(struct run *run)
{
	int ret = post_receives(run);

	if (!ret && run->channel)
		ret = pp_arm(run->queue, QUEUES);
	if (!ret)
		ret = run->opt->server ? meet_server(run) : meet_clients(run);
	for (int i = 0; i < run->n && !run->opt->server && !ret; i++) {
		run->peer[i].owed = 1;
		ret = send_owed(run, i);
	}
	if (!ret)
		ret = exchange_messages(run);
	if (ret)
		return ret;
	pp_print_verified(&run->content);
	fflush(stdout);
	return part(run);
}

int main(int argc, char **argv)
{
	struct pp_options opt = PP_DEFAULTS;
	struct run run = {.opt = &opt};
	int ret;

	opt.mtu = IBV_MTU_2048;
	opt.iters = 5;
	pp_parse(argc, argv,
		 PP_COMMON | PP_BIT(PP_MTU) | PP_BIT(PP_CLIENTS) | PP_BIT(PP_NUM_TESTS) |
			 PP_BIT(PP_ODP) | PP_BIT(PP_DOMAIN),
		 &opt);
	run.n = opt.server ? 1 : opt.clients;
	run.total = run.n * opt.iters;

	ret = set_up(&run);
	if (!ret)
		ret = talk(&run);
	ret |= clean_up(&run);
	if (ret)
		return 1;
	printf("success\n");
	return 0;
}
