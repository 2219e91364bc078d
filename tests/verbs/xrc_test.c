// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* See xrc_test.h. */
#include <fcntl.h>

#include "xrc_test.h"

int domain_file(void)
{
	char path[] = "/tmp/xrc-domain-XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	CHECK_EQ(unlink(path), 0);
	return fd;
}

struct ibv_xrc_domain *domain_of(struct side *s, int fd)
{
	struct ibv_xrc_domain *domain = ibv_open_xrc_domain(s->context, fd, O_CREAT);

	CHECK(domain);
	return domain;
}

struct ibv_srq *make_xrc_srq(struct side *s, struct ibv_xrc_domain *domain, unsigned int max_wr)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = max_wr, .max_sge = 2}};
	struct ibv_srq *srq = ibv_create_xrc_srq(s->pd, domain, s->rcq, &attr);

	CHECK(srq);
	CHECK(srq->xrc_srq_num);
	CHECK(srq->xrc_domain == domain && srq->xrc_cq == s->rcq);
	return srq;
}

uint32_t make_rcv_qp(struct ibv_xrc_domain *domain)
{
	struct ibv_qp_init_attr attr = {.xrc_domain = domain};
	uint32_t qpn = 0;

	CHECK_EQ(ibv_create_xrc_rcv_qp(&attr, &qpn), 0);
	CHECK(qpn);
	return qpn;
}

int rcv_to_init(struct ibv_xrc_domain *domain, uint32_t qpn, const struct link *l)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = l->port, .qp_access_flags = l->access};

	return ibv_modify_xrc_rcv_qp(domain, qpn, &attr,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					     IBV_QP_ACCESS_FLAGS);
}

int rcv_to_rtr(struct ibv_xrc_domain *domain, uint32_t qpn, const struct link *l)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = l->mtu,
		.dest_qp_num = l->dest_qpn,
		.rq_psn = l->psn_theirs,
		.max_dest_rd_atomic = l->dest_rd_atomic,
		.min_rnr_timer = l->min_rnr_timer,
		.ah_attr = {.dlid = l->dlid, .port_num = l->port},
	};

	return ibv_modify_xrc_rcv_qp(domain, qpn, &attr,
				     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					     IBV_QP_MIN_RNR_TIMER);
}

int rcv_to_state(struct ibv_xrc_domain *domain, uint32_t qpn, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return ibv_modify_xrc_rcv_qp(domain, qpn, &attr, IBV_QP_STATE);
}

enum ibv_qp_state rcv_state(struct ibv_xrc_domain *domain, uint32_t qpn)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_EQ(ibv_query_xrc_rcv_qp(domain, qpn, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

void connect_rcv(struct ibv_xrc_domain *domain, uint32_t qpn, const struct link *l)
{
	CHECK_EQ(rcv_to_init(domain, qpn, l), 0);
	CHECK_EQ(rcv_to_rtr(domain, qpn, l), 0);
}

int post_xrc(struct ibv_qp *qp, struct side *s, uint64_t wr_id, size_t off, uint32_t len,
	     uint32_t srqn, int flags)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->buf + off, .length = len, .lkey = s->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .wr_id = wr_id,
					   .sg_list = &sge,
					   .num_sge = len ? 1 : 0,
					   .opcode = IBV_WR_SEND,
					   .send_flags = flags,
					   .xrc_remote_srq_num = srqn,
				   },
			   *bad;

	return ibv_post_send(qp, &wr, &bad);
}
