// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What two ends of one process find in their ids, events and QPs, with librdmacm, whichever it is,
 * on a host of two HCAs: the passive one at the first, the active one at the second. cm_rows
 * rows|CASE: all, or one.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "check.h"

enum { PORT = 7471, GRH = 40, SIZE = 8 };

static const char passive_address[] = "127.128.0.1", active_address[] = "127.128.0.2";
static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener, *active, *passive;
static char buf[3][GRH + SIZE];

static struct sockaddr_in at(const char *address, int port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	inet_pton(AF_INET, address, &in.sin_addr);
	return in;
}

static struct rdma_cm_event *next(const struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	CHECK(!rdma_get_cm_event(channel, &event));
	if (event->event != type || event->id != id)
		printf("%s %d, not %s\n", rdma_event_str(event->event), event->status,
		       rdma_event_str(type));
	CHECK(event->event == type && event->id == id);
	return event;
}

static void take(const struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(next(id, type));
}

static void quiet(void)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

	CHECK(poll(&p, 1, 0) == 0);
}

/* An id at its HCA. */
static struct rdma_cm_id *bound(const char *address, enum rdma_port_space ps, int port)
{
	struct sockaddr_in in = at(address, port);
	struct rdma_cm_id *id;

	CHECK(!rdma_create_id(channel, &id, NULL, ps));
	CHECK(!rdma_bind_addr(id, (struct sockaddr *)&in) && id->verbs);
	return id;
}

static void make_qp(struct rdma_cm_id *id, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_type = type;
	attr.cap.max_send_wr = attr.cap.max_recv_wr = 2;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	CHECK(!rdma_create_qp(id, NULL, &attr));
}

static void route(enum rdma_port_space ps)
{
	struct sockaddr_in in = at(passive_address, PORT);

	active = bound(active_address, ps, 0);
	CHECK(!rdma_resolve_addr(active, NULL, (struct sockaddr *)&in, 2000));
	take(active, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!rdma_resolve_route(active, 2000));
	take(active, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void begin(enum rdma_port_space ps)
{
	listener = bound(passive_address, ps, PORT);
	CHECK(!rdma_listen(listener, 4));
	route(ps);
	make_qp(active, ps == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD);
}

static struct rdma_cm_event *request(struct rdma_conn_param *param)
{
	struct rdma_cm_event *event;

	CHECK(!rdma_connect(active, param));
	CHECK(!rdma_get_cm_event(channel, &event));
	CHECK(event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = event->id;
	return event;
}

static void end(void)
{
	struct rdma_cm_id *ids[] = {active, passive, listener};

	for (int i = 0; i < 3; i++) {
		if (!ids[i])
			continue;
		if (ids[i]->qp)
			rdma_destroy_qp(ids[i]);
		CHECK(!rdma_destroy_id(ids[i]));
	}
	active = passive = listener = NULL;
}

/* ---- 30: what a request brings ---- */

static bool is(struct sockaddr *addr, const char *address, uint16_t port)
{
	struct sockaddr_in wanted = at(address, ntohs(port)), got;

	memcpy(&got, addr, sizeof(got));
	return got.sin_family == AF_INET && got.sin_port == wanted.sin_port &&
	       got.sin_addr.s_addr == wanted.sin_addr.s_addr;
}

static void requests(void)
{
	struct rdma_conn_param param = {.retry_count = 7};
	uint16_t port;
	struct rdma_cm_event *event;

	begin(RDMA_PS_TCP);
	port = rdma_get_src_port(active);
	event = request(&param);
	CHECK(event->listen_id == listener && passive != listener && passive->channel == channel);
	CHECK(passive->verbs == listener->verbs && passive->verbs != active->verbs);
	CHECK(passive->pd && passive->pd->context == passive->verbs && !passive->qp);
	CHECK(passive->ps == RDMA_PS_TCP && passive->port_num == 1 && port && port != htons(PORT));
	CHECK(is(rdma_get_local_addr(passive), passive_address, htons(PORT)));
	CHECK(is(rdma_get_peer_addr(passive), active_address, port));
	CHECK(is(rdma_get_local_addr(active), active_address, port));
	CHECK(is(rdma_get_peer_addr(active), passive_address, htons(PORT)));
	CHECK(!memcmp(&passive->route.addr.addr.ibaddr.sgid, &active->route.addr.addr.ibaddr.dgid,
		      16));
	CHECK(!memcmp(&passive->route.addr.addr.ibaddr.dgid, &active->route.addr.addr.ibaddr.sgid,
		      16));
	CHECK(memcmp(&passive->route.addr.addr.ibaddr.dgid, &passive->route.addr.addr.ibaddr.sgid,
		     16));
	rdma_ack_cm_event(event);
	end();
}

/* ---- 31, 32: what becomes of numbers, and what both QPs get ---- */

static void state_of(struct rdma_cm_id *id, struct ibv_qp_attr *attr)
{
	struct ibv_qp_init_attr init;

	memset(attr, 0xee, sizeof(*attr));
	CHECK(!ibv_query_qp(id->qp, attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU, &init));
}

static void same_pair(const struct ibv_qp_attr *a, const struct ibv_qp_attr *b,
		      struct rdma_cm_id *of_b)
{
	struct ibv_port_attr port;

	CHECK(a->qp_state == IBV_QPS_RTS && a->dest_qp_num == of_b->qp->qp_num);
	CHECK(a->sq_psn == b->rq_psn && a->path_mtu == b->path_mtu);
	CHECK(!ibv_query_port(of_b->verbs, of_b->port_num, &port));
	CHECK(a->ah_attr.dlid == port.lid && a->path_mtu == port.active_mtu);
	CHECK(a->timeout > 0 && a->timeout <= 31 && a->timeout == b->timeout);
}

static void attributes(void)
{
	struct rdma_conn_param asks = {.responder_resources = 3,
				       .initiator_depth = 1,
				       .retry_count = 5,
				       .rnr_retry_count = 6,
				       .flow_control = 1};
	struct rdma_conn_param answers = {
		.responder_resources = 1, .initiator_depth = 2, .rnr_retry_count = 4};
	struct ibv_qp_attr a, p;
	struct rdma_cm_event *event;

	begin(RDMA_PS_TCP);
	event = request(&asks);
	CHECK(event->param.conn.responder_resources == 1 && event->param.conn.initiator_depth == 3);
	CHECK(event->param.conn.retry_count == 5 && event->param.conn.rnr_retry_count == 6);
	CHECK(event->param.conn.qp_num == active->qp->qp_num &&
	      event->param.conn.flow_control == 1);
	rdma_ack_cm_event(event);
	make_qp(passive, IBV_QPT_RC);
	CHECK(!rdma_accept(passive, &answers));
	event = next(active, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(event->param.conn.responder_resources == 2 && event->param.conn.initiator_depth == 1);
	CHECK(event->param.conn.rnr_retry_count == 4);
	CHECK(event->param.conn.qp_num == passive->qp->qp_num);
	rdma_ack_cm_event(event);
	take(passive, RDMA_CM_EVENT_ESTABLISHED);
	state_of(active, &a);
	state_of(passive, &p);
	same_pair(&a, &p, passive);
	same_pair(&p, &a, active);
	CHECK(a.rq_psn != a.sq_psn || p.rq_psn != p.sq_psn);
	CHECK(a.max_dest_rd_atomic == 2 && a.max_rd_atomic == 1);
	CHECK(p.max_dest_rd_atomic == 1 && p.max_rd_atomic == 2);
	CHECK(a.retry_cnt == 5 && a.rnr_retry == 4 && p.retry_cnt == 5 && p.rnr_retry == 6);
	end();
}

static void depths(void)
{
	struct rdma_conn_param most = {.responder_resources = RDMA_MAX_RESP_RES,
				       .initiator_depth = RDMA_MAX_INIT_DEPTH,
				       .retry_count = 7},
			       few = {.responder_resources = 2,
				      .initiator_depth = 4,
				      .retry_count = 7};
	struct ibv_device_attr device;
	struct rdma_cm_event *event;
	struct ibv_qp_attr a, p;

	for (int i = 0; i < 2; i++) {
		begin(RDMA_PS_TCP);
		CHECK(!ibv_query_device(active->verbs, &device));
		CHECK(device.max_qp_rd_atom < 255 && device.max_qp_init_rd_atom < 255);
		few.responder_resources = (uint8_t)(device.max_qp_rd_atom + 1);
		CHECK(rdma_connect(active, &few) == -1 && errno == EINVAL);
		few.responder_resources = 2;
		few.initiator_depth = (uint8_t)(device.max_qp_init_rd_atom + 1);
		CHECK(rdma_connect(active, &few) == -1 && errno == EINVAL);
		few.initiator_depth = 4;
		/* The smaller one of request and device, where the other end does not limit it. */
		event = request(i ? &few : &most);
		CHECK(event->param.conn.initiator_depth == (i ? 2 : device.max_qp_rd_atom));
		CHECK(event->param.conn.responder_resources ==
		      (i ? 4 : device.max_qp_init_rd_atom));
		rdma_ack_cm_event(event);
		make_qp(passive, IBV_QPT_RC);
		CHECK(!rdma_accept(passive, i ? &most : NULL));
		take(active, RDMA_CM_EVENT_ESTABLISHED);
		take(passive, RDMA_CM_EVENT_ESTABLISHED);
		state_of(active, &a);
		state_of(passive, &p);
		CHECK(a.max_dest_rd_atomic == (i ? 2 : device.max_qp_rd_atom));
		CHECK(p.max_rd_atomic == a.max_dest_rd_atomic);
		CHECK(p.max_dest_rd_atomic == (i ? 4 : device.max_qp_rd_atom));
		CHECK(a.max_rd_atomic == p.max_dest_rd_atomic);
		end();
	}
}

/* ---- 36: the end ---- */

static struct ibv_mr *receive(struct rdma_cm_id *id, char *where)
{
	struct ibv_mr *mr = ibv_reg_mr(id->pd, where, GRH + SIZE, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {.addr = (uintptr_t)where, .length = GRH + SIZE};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(mr);
	sge.lkey = mr->lkey;
	CHECK(!ibv_post_recv(id->qp, &wr, &bad));
	return mr;
}

static void completes(struct ibv_cq *cq, enum ibv_wc_status status)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	CHECK(n == 1 && wc.status == status);
}

static void disconnects(void)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_id *first, *second;
	struct ibv_qp_attr attr;
	struct ibv_mr *mr[2];

	for (int i = 0; i < 2; i++) {
		begin(RDMA_PS_TCP);
		rdma_ack_cm_event(request(&param));
		make_qp(passive, IBV_QPT_RC);
		CHECK(!rdma_accept(passive, &param));
		take(active, RDMA_CM_EVENT_ESTABLISHED);
		take(passive, RDMA_CM_EVENT_ESTABLISHED);
		mr[0] = receive(active, buf[0]);
		mr[1] = receive(passive, buf[1]);
		first = i ? passive : active;
		second = i ? active : passive;
		CHECK(!rdma_disconnect(first));
		state_of(first, &attr);
		CHECK(attr.qp_state == IBV_QPS_ERR);
		completes(first->recv_cq, IBV_WC_WR_FLUSH_ERR);
		take(second, RDMA_CM_EVENT_DISCONNECTED);
		CHECK(!rdma_disconnect(second));
		state_of(second, &attr);
		CHECK(attr.qp_state == IBV_QPS_ERR);
		completes(second->recv_cq, IBV_WC_WR_FLUSH_ERR);
		take(first, RDMA_CM_EVENT_DISCONNECTED);
		CHECK(!rdma_disconnect(first) && !rdma_disconnect(second));
		/*
		 * One event each, and then the end of the time in which the connection is not used
		 * again.
		 */
		for (int n = 0; n < 2; n++) {
			struct rdma_cm_event *event;

			CHECK(!rdma_get_cm_event(channel, &event));
			CHECK(event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT);
			rdma_ack_cm_event(event);
		}
		quiet();
		CHECK(!ibv_dereg_mr(mr[0]) && !ibv_dereg_mr(mr[1]));
		end();
	}
}

/* ---- 46, 48: datagrams and groups ---- */

static void send_to(struct rdma_cm_id *id, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
		    const char *text)
{
	struct ibv_mr *mr = ibv_reg_mr(id->pd, buf[2], SIZE, 0);
	struct ibv_sge sge = {.addr = (uintptr_t)buf[2], .length = SIZE};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	CHECK(mr && ah);
	sge.lkey = mr->lkey;
	snprintf(buf[2], SIZE, "%s", text);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	CHECK(!ibv_post_send(id->qp, &wr, &bad));
	completes(id->send_cq, IBV_WC_SUCCESS);
	CHECK(!ibv_dereg_mr(mr));
}

static void datagrams(void)
{
	struct rdma_conn_param param = {0};
	struct rdma_cm_event *event;
	struct ibv_mr *mr;
	struct ibv_ah *ah;

	begin(RDMA_PS_UDP);
	rdma_ack_cm_event(request(&param));
	make_qp(passive, IBV_QPT_UD);
	mr = receive(passive, buf[0]);
	param.qp_num = passive->qp->qp_num;
	CHECK(!rdma_accept(passive, &param));
	event = next(active, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(!event->status && event->param.ud.qkey == RDMA_UDP_QKEY);
	CHECK(event->param.ud.qp_num == passive->qp->qp_num);
	quiet();
	/* What came leads to the QP. */
	ah = ibv_create_ah(active->pd, &event->param.ud.ah_attr);
	send_to(active, ah, event->param.ud.qp_num, event->param.ud.qkey, "by SIDR");
	completes(passive->recv_cq, IBV_WC_SUCCESS);
	CHECK(!strcmp(buf[0] + GRH, "by SIDR"));
	rdma_ack_cm_event(event);
	CHECK(!ibv_destroy_ah(ah) && !ibv_dereg_mr(mr));
	end();

	begin(RDMA_PS_UDP);
	rdma_ack_cm_event(request(&param));
	CHECK(!rdma_reject(passive, NULL, 0));
	event = next(active, RDMA_CM_EVENT_UNREACHABLE);
	CHECK(event->status == 2);
	rdma_ack_cm_event(event);
	end();

	route(RDMA_PS_UDP);
	make_qp(active, IBV_QPT_UD);
	CHECK(!rdma_connect(active, &param));
	event = next(active, RDMA_CM_EVENT_UNREACHABLE);
	CHECK(event->status == 1);
	rdma_ack_cm_event(event);
	quiet();
	end();
}

static void groups(void)
{
	struct sockaddr_in group = at("239.1.2.3", 0), other = at("239.1.2.4", 0);
	struct rdma_cm_event *event;
	struct ibv_ah_attr to[2];
	struct ibv_mr *mr[2];
	struct ibv_ah *ah;
	uint32_t qkey = 0;
	struct ibv_wc wc;
	int context[2];

	passive = bound(passive_address, RDMA_PS_UDP, 0);
	active = bound(active_address, RDMA_PS_UDP, 0);
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_id *id = i ? active : passive;

		make_qp(id, IBV_QPT_UD);
		mr[i] = receive(id, buf[i]);
		CHECK(!rdma_join_multicast(id, (struct sockaddr *)&group, &context[i]));
		event = next(id, RDMA_CM_EVENT_MULTICAST_JOIN);
		CHECK(!event->status && event->param.ud.private_data == &context[i]);
		CHECK(event->param.ud.qp_num == 0xffffff && event->param.ud.qkey == RDMA_UDP_QKEY);
		to[i] = event->param.ud.ah_attr;
		qkey = event->param.ud.qkey;
		CHECK(to[i].is_global && to[i].dlid >= 0xc000);
		rdma_ack_cm_event(event);
	}
	CHECK(to[0].dlid == to[1].dlid && !memcmp(&to[0].grh.dgid, &to[1].grh.dgid, 16));
	CHECK(rdma_leave_multicast(passive, (struct sockaddr *)&other) == -1 &&
	      errno == EADDRNOTAVAIL);
	ah = ibv_create_ah(active->pd, &to[1]);
	send_to(active, ah, 0xffffff, qkey, "to all");
	completes(passive->recv_cq, IBV_WC_SUCCESS);
	CHECK(!strcmp(buf[0] + GRH, "to all"));
	CHECK(!ibv_dereg_mr(mr[0]));
	/* From then on the QP gets nothing, and whoever stays does. */
	mr[0] = receive(passive, buf[0]);
	completes(active->recv_cq, IBV_WC_SUCCESS); /* its own */
	CHECK(!ibv_dereg_mr(mr[1]));
	mr[1] = receive(active, buf[1]);
	CHECK(!rdma_leave_multicast(passive, (struct sockaddr *)&group));
	CHECK(rdma_leave_multicast(passive, (struct sockaddr *)&group) == -1 &&
	      errno == EADDRNOTAVAIL);
	send_to(active, ah, 0xffffff, qkey, "again");
	completes(active->recv_cq, IBV_WC_SUCCESS);
	CHECK(!ibv_poll_cq(passive->recv_cq, 1, &wc));
	quiet();
	CHECK(!ibv_destroy_ah(ah) && !ibv_dereg_mr(mr[0]) && !ibv_dereg_mr(mr[1]));
	end();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"requests", requests},	      {"attributes", attributes}, {"depths", depths},
		{"disconnects", disconnects}, {"datagrams", datagrams},	  {"groups", groups},
	};
	int ran = 0;

	alarm(50);
	channel = rdma_create_event_channel();
	CHECK(channel);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc != 2 || (strcmp(argv[1], "rows") && strcmp(argv[1], cases[i].name)))
			continue;
		printf("%s\n", cases[i].name);
		fflush(stdout);
		cases[i].run();
		ran++;
	}
	rdma_destroy_event_channel(channel);
	return ran ? 0 : 2;
}
