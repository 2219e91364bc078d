// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The rig: objects, transitions and requests that tests share. Every call checks what it does. */

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>

#include "guest.h"

struct ibv_context *open_device(void)
{
	struct ibv_context *context = NULL;
	struct ibv_device **list;
	int i, n;

	list = ibv_get_device_list(&n);
	CHECK(list);
	for (i = 0; i < n; ++i)
		if (!strcmp(ibv_get_device_name(list[i]), DEVICE))
			context = ibv_open_device(list[i]);
	CHECK(context);
	ibv_free_device_list(list);

	return context;
}

int find_gid(struct ibv_context *context, bool ipv4, union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct ibv_port_attr port;
	int i;

	HERE;
	for (;; usleep(10000)) {
		CHECK_EQ(ibv_query_port(context, 1, &port), 0);
		for (i = 0; i < port.gid_tbl_len && i <= UINT8_MAX; ++i) {
			if (ibv_query_gid(context, 1, i, gid))
				continue;
			if (ipv4 ? !memcmp(gid->raw, mapped, sizeof(mapped))
				 : gid->raw[0] == 0xfe && gid->raw[1] == 0x80)
				return i;
		}
	}
}

void rig_up(struct rig *rig)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_ATOMIC;

	rig->context = open_device();
	rig->gid_index = find_gid(rig->context, true, &rig->gid);
	CHECK(rig->pd = ibv_alloc_pd(rig->context));
	CHECK(rig->channel = ibv_create_comp_channel(rig->context));
	CHECK(rig->cq = ibv_create_cq(rig->context, RIG_CQE, rig, rig->channel, 0));
	rig->buf = mmap(NULL, RIG_BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(rig->buf != MAP_FAILED);
	CHECK(rig->mr = ibv_reg_mr(rig->pd, rig->buf, RIG_BUF, access));
}

void rig_down(struct rig *rig)
{
	CHECK_EQ(ibv_dereg_mr(rig->mr), 0);
	CHECK_EQ(munmap(rig->buf, RIG_BUF), 0);
	CHECK_EQ(ibv_destroy_cq(rig->cq), 0);
	CHECK_EQ(ibv_destroy_comp_channel(rig->channel), 0);
	CHECK_EQ(ibv_dealloc_pd(rig->pd), 0);
	CHECK_EQ(ibv_close_device(rig->context), 0);
}

struct ibv_qp *rig_qp(struct rig *rig, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = rig,
		.send_cq = rig->cq,
		.recv_cq = rig->cq,
		.srq = srq,
		.qp_type = type,
		.cap =
			{
				.max_send_wr = RIG_WR,
				.max_recv_wr = RIG_WR,
				.max_send_sge = RIG_SGE,
				.max_recv_sge = RIG_SGE,
				.max_inline_data = RIG_INLINE,
			},
	};
	struct ibv_qp *qp;

	CHECK(qp = ibv_create_qp(rig->pd, &attr));
	return qp;
}

struct ibv_srq *rig_srq(struct rig *rig, uint32_t max_wr)
{
	struct ibv_srq_init_attr attr = {.srq_context = rig,
					 .attr = {.max_wr = max_wr, .max_sge = RIG_SGE}};
	struct ibv_srq *srq;

	CHECK(srq = ibv_create_srq(rig->pd, &attr));
	return srq;
}

struct ibv_ah_attr rig_ah_attr(const struct rig *rig)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = rig->gid, .sgid_index = rig->gid_index, .hop_limit = 64},
	};
}

struct ibv_ah *rig_ah(struct rig *rig)
{
	struct ibv_ah_attr attr = rig_ah_attr(rig);
	struct ibv_ah *ah;

	CHECK(ah = ibv_create_ah(rig->pd, &attr));
	return ah;
}

int init_attr(const struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT,
		.pkey_index = 0,
		.port_num = 1,
		.qkey = RIG_QKEY,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	if (qp->qp_type == IBV_QPT_UC)
		attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;

	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}

int rtr_attr(const struct rig *rig, const struct ibv_qp *qp, uint32_t dest,
	     struct ibv_qp_attr *attr)
{
	int mask = IBV_QP_STATE;

	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.ah_attr = rig_ah_attr(rig),
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.rq_psn = RIG_PSN,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
	};
	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

	return mask;
}

int rts_attr(const struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = RIG_PSN,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	if (qp->qp_type == IBV_QPT_RC)
		return IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

	return IBV_QP_STATE | IBV_QP_SQ_PSN;
}

void qp_to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	int mask = init_attr(qp, &attr);

	CHECK_EQ(ibv_modify_qp(qp, &attr, mask), 0);
}

void qp_to_rtr(struct rig *rig, struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr attr;
	int mask = rtr_attr(rig, qp, dest, &attr);

	CHECK_EQ(ibv_modify_qp(qp, &attr, mask), 0);
}

void qp_to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	int mask = rts_attr(qp, &attr);

	CHECK_EQ(ibv_modify_qp(qp, &attr, mask), 0);
}

void qp_to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	CHECK_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

void qp_connect(struct rig *rig, struct ibv_qp *qp, uint32_t dest)
{
	qp_to_init(qp);
	qp_to_rtr(rig, qp, dest);
	qp_to_rts(qp);
}

void connect_pair(struct rig *rig, struct ibv_qp *a, struct ibv_qp *b)
{
	qp_connect(rig, a, b->qp_num);
	qp_connect(rig, b, a->qp_num);
}

void qp_drain(struct rig *rig, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_async_event event;

	CHECK_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	event = wait_async_event(rig->context, IBV_EVENT_SQ_DRAINED);
	CHECK(event.element.qp == qp);
	ibv_ack_async_event(&event);
}

enum ibv_qp_state qp_queried_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

struct ibv_sge rig_sge(const struct rig *rig, size_t offset, uint32_t length)
{
	return (struct ibv_sge){(uintptr_t)rig->buf + offset, length, rig->mr->lkey};
}

void post_recv(struct rig *rig, struct ibv_qp *qp, size_t offset, uint32_t length)
{
	struct ibv_sge sge = rig_sge(rig, offset, length);
	struct ibv_recv_wr wr = {.wr_id = offset, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK_EQ(ibv_post_recv(qp, &wr, &bad), 0);
}

void post_srq_recv(struct rig *rig, struct ibv_srq *srq, size_t offset, uint32_t length)
{
	struct ibv_sge sge = rig_sge(rig, offset, length);
	struct ibv_recv_wr wr = {.wr_id = offset, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

void post_send(struct rig *rig, struct ibv_qp *qp, size_t offset, uint32_t length, int flags)
{
	struct ibv_sge sge = rig_sge(rig, offset, length);
	struct ibv_send_wr wr =
				   {
					   .wr_id = offset,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND,
					   .send_flags = IBV_SEND_SIGNALED | flags,
				   },
			   *bad;

	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
}

void post_ud_send(struct rig *rig, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn,
		  size_t offset, uint32_t length)
{
	struct ibv_sge sge = rig_sge(rig, offset, length);
	struct ibv_send_wr wr =
				   {
					   .wr_id = offset,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.ud = {.ah = ah,
						     .remote_qpn = qpn,
						     .remote_qkey = RIG_QKEY},
				   },
			   *bad;

	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
}

struct ibv_wc(wait_wc)(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		sched_yield();
	CHECK_EQ(n, 1);

	return wc;
}

struct ibv_wc(wait_status)(struct ibv_cq *cq, enum ibv_wc_status status)
{
	struct ibv_wc wc = (wait_wc)(cq);

	CHECK_EQ(wc.status, status);
	return wc;
}

struct ibv_wc(wait_recv_and_send)(struct ibv_cq *cq)
{
	struct ibv_wc a = (wait_status)(cq, IBV_WC_SUCCESS), b = (wait_status)(cq, IBV_WC_SUCCESS);

	CHECK((a.opcode ^ b.opcode) & IBV_WC_RECV);
	return a.opcode & IBV_WC_RECV ? a : b;
}

void(wait_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
	struct ibv_cq *event_cq;
	void *cq_context;

	CHECK_EQ(ibv_get_cq_event(channel, &event_cq, &cq_context), 0);
	CHECK(event_cq == cq);
	CHECK(cq_context == cq->cq_context);
	ibv_ack_cq_events(cq, 1);
}

static bool of_port(enum ibv_event_type type)
{
	return type == IBV_EVENT_PORT_ACTIVE || type == IBV_EVENT_PORT_ERR ||
	       type == IBV_EVENT_LID_CHANGE || type == IBV_EVENT_PKEY_CHANGE ||
	       type == IBV_EVENT_SM_CHANGE || type == IBV_EVENT_CLIENT_REREGISTER ||
	       type == IBV_EVENT_GID_CHANGE;
}

struct ibv_async_event(wait_async_event)(struct ibv_context *context, enum ibv_event_type type)
{
	struct ibv_async_event event;

	for (;;) {
		CHECK_EQ(ibv_get_async_event(context, &event), 0);
		if (event.event_type == type)
			return event;
		CHECK(of_port(event.event_type));
		ibv_ack_async_event(&event);
	}
}

bool readable(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) == 1;
}

static uint8_t content(size_t i, unsigned int seed)
{
	return seed * 131 + i * 7 + (i >> 8) + 1;
}

void fill(uint8_t *to, size_t length, unsigned int seed)
{
	size_t i;

	for (i = 0; i < length; ++i)
		to[i] = content(i, seed);
}

void(check_content)(const uint8_t *from, size_t length, unsigned int seed)
{
	size_t i;

	for (i = 0; i < length; ++i)
		CHECK_EQ(from[i], content(i, seed));
}
